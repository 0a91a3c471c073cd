# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=... -DSOURCE=... -P compare_output.cmake: the program succeeds and prints the `// prints:` lines of
# SOURCE, of which long ones go on in lines that begin with `//         `.
file(STRINGS "${SOURCE}" expected REGEX "^//( prints:|        ) ")
list(JOIN expected "\n" expected)
string(REGEX REPLACE "\n//         " " " expected "${expected}")
string(REGEX REPLACE "(^|\n)// prints: " "\\1" expected "${expected}")
execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE printed RESULT_VARIABLE status)
message("${printed}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "it ended with ${status}")
elseif(NOT printed STREQUAL "${expected}\n")
  message(FATAL_ERROR "it should have printed\n${expected}")
endif()
