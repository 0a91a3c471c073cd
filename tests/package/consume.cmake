# SPDX-License-Identifier: Apache-2.0
# Builds and runs the project in consumer/, which takes ddl in the way WAY says. Starts from nothing each time.
include("${CMAKE_CURRENT_LIST_DIR}/../cmake/run.cmake")

file(REMOVE_RECURSE "${BUILD}")
if(WAY MATCHES "without_mpi")
  find_program(wrapper NAMES false REQUIRED)  # a wrapper that tells of no MPI
  set(MPI_COMPILER "${wrapper}")
endif()
set(settings -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DMPI_CXX_COMPILER=${MPI_COMPILER}")

if(WAY MATCHES "^find_package")
  run("${CMAKE_COMMAND}" -S "${ROOT}" -B "${BUILD}/ddl" ${settings} "-DCMAKE_INSTALL_PREFIX=${BUILD}/prefix"
    -DDDL_BUILD_TESTS=OFF -DDDL_BUILD_EXAMPLES=OFF -DDDL_BUILD_BENCHMARKS=OFF)
  run("${CMAKE_COMMAND}" --install "${BUILD}/ddl")
  list(APPEND settings "-DCMAKE_PREFIX_PATH=${BUILD}/prefix")
endif()
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${BUILD}/consumer" ${settings} -DWAY=${WAY}
  "-DDDL_ROOT=${ROOT}")
run("${CMAKE_COMMAND}" --build "${BUILD}/consumer")
run("${BUILD}/consumer/consumer")
run("${CMAKE_CTEST_COMMAND}" --test-dir "${BUILD}/consumer" -N)
if(NOT output MATCHES "Total Tests: 0")
  message(FATAL_ERROR "${WAY}: ddl adds tests to a project that only uses it:\n${output}")
endif()

# what it installs names ddl's libraries as find_package gives them, and brings ddl's licence if it brings ddl
run("${CMAKE_COMMAND}" --install "${BUILD}/consumer" --prefix "${BUILD}/theirs")
file(READ "${BUILD}/consumer/linked.txt" linked)
file(READ "${BUILD}/theirs/theirs/theirs.cmake" exported)
if(NOT exported MATCHES "INTERFACE_LINK_LIBRARIES \"([^\"]*)\"" OR NOT CMAKE_MATCH_1 STREQUAL linked)
  message(FATAL_ERROR "${WAY}: a library that links ${linked} is exported as one that links ${CMAKE_MATCH_1}")
endif()
if(WAY MATCHES "^find_package")
  set(prefix "${BUILD}/prefix")
else()
  set(prefix "${BUILD}/theirs")
endif()
if(NOT EXISTS "${prefix}/share/licenses/ddl/LICENSE")
  message(FATAL_ERROR "${WAY}: ddl's licence is not installed")
endif()
