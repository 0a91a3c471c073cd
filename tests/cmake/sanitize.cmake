# SPDX-License-Identifier: Apache-2.0
# Turns DDL_TEST_SANITIZER on for everything below. Sets ddl_test_environment, what each test runs with.
set(ddl_test_environment "")
if(DDL_TEST_SANITIZER)
  list(JOIN DDL_TEST_SANITIZER "," ddl_sanitizers)
  set(ddl_sanitize_flags -fsanitize=${ddl_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options(${ddl_sanitize_flags})
  add_link_options(${ddl_sanitize_flags})
  list(APPEND ddl_test_environment
    "ASAN_OPTIONS=detect_stack_use_after_return=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions='${CMAKE_CURRENT_LIST_DIR}/thread_sanitizer.supp'"
    "UBSAN_OPTIONS=print_stacktrace=1")

  # A kernel that scatters addresses widely leaves the runtime no room for its shadow now and then: so without scattering,
  # where the system lets us.
  set(probe "${CMAKE_CURRENT_BINARY_DIR}/sanitizer_probe")
  file(WRITE "${probe}.cpp" "int main() {}\n")
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" ${ddl_sanitize_flags} "${probe}.cpp" -o "${probe}" RESULT_VARIABLE built)
  if(NOT built EQUAL 0)
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} cannot link with -fsanitize=${ddl_sanitizers}; install its runtime")
  endif()
  execute_process(COMMAND setarch -R "${probe}" RESULT_VARIABLE fixed OUTPUT_QUIET ERROR_QUIET)
  if(fixed EQUAL 0)
    set(ddl_test_launcher setarch -R)
  else()
    execute_process(COMMAND "${probe}" RESULT_VARIABLE plain OUTPUT_QUIET ERROR_QUIET)
    if(NOT plain EQUAL 0)
      message(FATAL_ERROR "An empty program fails under -fsanitize=${ddl_sanitizers}; try sysctl vm.mmap_rnd_bits=28")
    endif()
  endif()
endif()
