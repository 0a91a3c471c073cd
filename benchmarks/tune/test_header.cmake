# SPDX-License-Identifier: Apache-2.0
# Runs the command in the shortest time, and has the compiler read what it printed.
set(words --programs "${PROGRAMS}" --seconds 0.0001 --anyway --transport threads --transport shared_memory)
if(MESSAGES)
  list(APPEND words --transport mpi --transport cluster)
endif()
execute_process(COMMAND "${PYTHON}" "${TUNE}" ${words} OUTPUT_FILE my_machine.hpp RESULT_VARIABLE ended)
if(NOT ended EQUAL 0)
  message(FATAL_ERROR "benchmarks/tune ended with ${ended}")
endif()
file(WRITE my_machine.cpp "#include \"my_machine.hpp\"
#include <ddl/allreduce.hpp>
#include <ddl/transport/shared_memory.hpp>
#include <ddl/transport/threads.hpp>
void call(ddl::threads& team, ddl::shared_memory& node, float (&values)[9]) {
    ddl::allreduce(team, values);
    ddl::allreduce(node, values);
}
static_assert(ddl::limits_of<ddl::shared_memory>.segment >= 1 << 14);
")
execute_process(COMMAND "${COMPILER}" -std=c++20 -Wall -Wextra -Wpedantic -Werror "-I${INCLUDE}" -fsyntax-only
  my_machine.cpp RESULT_VARIABLE ended)
if(NOT ended EQUAL 0)
  file(READ my_machine.hpp text)
  message(FATAL_ERROR "the compiler does not take\n${text}")
endif()
