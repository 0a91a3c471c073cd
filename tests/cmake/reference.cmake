# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=... -DDOXYGEN=... -DOUTPUT=... -P reference.cmake: docs/Doxyfile builds, and doxygen has no complaint.
# Run from the root, as `doxygen docs/Doxyfile` would be; only the output goes elsewhere.
file(READ "${ROOT}/docs/Doxyfile" settings)
file(MAKE_DIRECTORY "${OUTPUT}")
file(WRITE "${OUTPUT}/Doxyfile" "${settings}
OUTPUT_DIRECTORY = \"${OUTPUT}\"
QUIET = YES
WARNINGS = YES
WARN_LOGFILE =
")
execute_process(COMMAND "${DOXYGEN}" "${OUTPUT}/Doxyfile" WORKING_DIRECTORY "${ROOT}"
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE complaints)
if(NOT result EQUAL 0 OR complaints)
  message(FATAL_ERROR "doxygen ended with ${result}:\n${complaints}")
endif()
