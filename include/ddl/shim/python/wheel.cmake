# SPDX-License-Identifier: Apache-2.0
# The target ddl_wheel: a wheel of the Python packages with the libraries of this build, in <build>/wheel. It needs pip, and
# scikit-build-core, which pip fetches if it is not installed.
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
if(Python3_FOUND)
  add_custom_target(ddl_wheel
    COMMAND "${Python3_EXECUTABLE}" -m pip wheel --no-deps --quiet --wheel-dir "${CMAKE_CURRENT_BINARY_DIR}/wheel"
      --config-settings=cmake.define.DDL_BUILT_LIBRARIES=$<TARGET_FILE_DIR:ddl_shim> "${CMAKE_CURRENT_LIST_DIR}"
    VERBATIM)
  add_dependencies(ddl_wheel ddl_shim ddl_pack dl_comm ddl_MDR)
endif()
