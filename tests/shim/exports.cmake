# SPDX-License-Identifier: Apache-2.0
# cmake -DLIBRARY=... -DLIST=... -DNM=... [-DWRITE=ON] -P exports.cmake: the library exports what the list says, no more and no
# less. A name that goes away breaks programs: then the SONAME gets a new number.
cmake_policy(VERSION 3.22)
execute_process(COMMAND "${NM}" -D --defined-only "${LIBRARY}" OUTPUT_VARIABLE symbols RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "nm cannot read ${LIBRARY}")
endif()
string(REGEX REPLACE "[0-9a-f]+ [A-Za-z] ([^\n]*)\n" "\\1;" names "${symbols}")
list(REMOVE_ITEM names "")
list(SORT names)
list(JOIN names "\n" exported)
if(WRITE)
  file(WRITE "${LIST}" "${exported}\n")
endif()
file(READ "${LIST}" wanted)
if(NOT "${exported}\n" STREQUAL "${wanted}")
  message(FATAL_ERROR "${LIBRARY} exports\n${exported}\nand ${LIST} says\n${wanted}")
endif()
