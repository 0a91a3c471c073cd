# SPDX-License-Identifier: Apache-2.0
# Runs the command in the shortest time, and has the compiler read what it printed.
set(words --programs "${PROGRAMS}" --seconds 0.0001 --anyway --transport threads --transport shared_memory)
set(over_mpi "")
if(MESSAGES)
  list(APPEND words --transport mpi --transport cluster)
  set(over_mpi "#include <ddl/transport/cluster.hpp>
void call(ddl::mpi& wire, float (&values)[9]) { ddl::allreduce(wire, values); }
void call(ddl::cluster& world, float (&values)[9]) { ddl::allreduce(world, values); }
")
  list(TRANSFORM MPI_INCLUDE PREPEND "-isystem")
endif()
execute_process(COMMAND "${PYTHON}" "${TUNE}" ${words} OUTPUT_FILE my_machine.hpp RESULT_VARIABLE ended)
if(NOT ended EQUAL 0)
  message(FATAL_ERROR "benchmarks/tune ended with ${ended}")
endif()
file(WRITE my_machine.cpp "#include \"my_machine.hpp\"
#include <ddl/allreduce.hpp>
#include <ddl/transport/shared_memory.hpp>
#include <ddl/transport/threads.hpp>
void call(ddl::threads& team, float (&values)[9]) { ddl::allreduce(team, values); }
void call(ddl::shared_memory& node, float (&values)[9]) { ddl::allreduce(node, values); }
static_assert(ddl::limits_of<ddl::shared_memory>.segment >= 1 << 14);
${over_mpi}")
execute_process(COMMAND "${COMPILER}" -std=c++20 -Wall -Wextra -Wpedantic -Werror "-I${INCLUDE}" ${MPI_INCLUDE} -fsyntax-only
  my_machine.cpp RESULT_VARIABLE ended)
if(NOT ended EQUAL 0)
  file(READ my_machine.hpp text)
  message(FATAL_ERROR "the compiler does not take\n${text}")
endif()

# a rank alone has no link to measure, and what is printed then is no header
if(MESSAGES)
  execute_process(COMMAND "${PYTHON}" "${TUNE}" --programs "${PROGRAMS}" --seconds 0.0001 --anyway --transport mpi
    --launcher env OUTPUT_VARIABLE text RESULT_VARIABLE ended)
  if(NOT ended EQUAL 2 OR NOT text MATCHES "#error")
    message(FATAL_ERROR "one rank alone: benchmarks/tune ended with ${ended}, and printed\n${text}")
  endif()
endif()
