# SPDX-License-Identifier: Apache-2.0
# Tests of the tree itself: its format, its layout, its reference pages.
find_program(DDL_TEST_CLANG_FORMAT NAMES clang-format-16)
if(DDL_TEST_CLANG_FORMAT)
  add_test(NAME format COMMAND "${CMAKE_COMMAND}" "-DROOT=${ddl_root}" "-DCLANG_FORMAT=${DDL_TEST_CLANG_FORMAT}"
    -P "${CMAKE_CURRENT_LIST_DIR}/format.cmake")
else()
  ddl_add_skipped_test(format "no clang-format-16")
endif()

add_test(NAME repository.layout COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/layout.py" "${ddl_root}")

find_program(DDL_TEST_DOXYGEN NAMES doxygen)
if(NOT DDL_TEST_DOXYGEN)
  ddl_add_skipped_test(docs.reference "no doxygen")
else()
  add_test(NAME docs.reference COMMAND "${CMAKE_COMMAND}" "-DROOT=${ddl_root}" "-DDOXYGEN=${DDL_TEST_DOXYGEN}"
    "-DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/reference" -P "${CMAKE_CURRENT_LIST_DIR}/reference.cmake")
endif()
