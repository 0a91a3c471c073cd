# SPDX-License-Identifier: Apache-2.0
# libddl.so       ddl.h and IBM DDL's ddl.hpp, for the processes of one host; needs no MPI
# libddl_pack.so  what of both needs MPI
# libdl_comm.so   the Cray PE DL Plugin's dl_comm.h, over libddl.so
# ddl_MDR.so      IBM DDL's operators for TensorFlow, over libddl.so; needs no TensorFlow to be built or loaded
include("${CMAKE_CURRENT_LIST_DIR}/ddl_add_shim.cmake")

set(ddl_shim_sums ddl::sum ddl::minimum ddl::maximum)
set(ddl_shim_numbers float double ddl::half ddl::bfloat16 std::int32_t std::int64_t)
set(ddl_shim_more_numbers std::int8_t std::uint8_t std::int16_t std::uint16_t std::uint32_t std::uint64_t)
set(ddl_shim_modes ddl::shim::enhanced ddl::shim::rings ddl::shim::halvings)

set(DDL_SHIM_ROWS all CACHE STRING "What the libraries hold: all, or for a build that only tests them, common or few")
set_property(CACHE DDL_SHIM_ROWS PROPERTY STRINGS all common few)

# A library of `transport` with what both have: each product of two lists has a meaning. What is left out is left out for the
# time it takes to compile.
function(ddl_add_common_shim target transport)
  if(DDL_SHIM_ROWS STREQUAL "few")
    ddl_add_shim(${target} OPS ddl::sum ddl::maximum ddl::average ELEMENTS float std::int64_t std::uint8_t
      SCHEDULES ddl::tuned COLLECTIVES allreduce
      TRANSPORTS ${transport} VERSION "${PROJECT_VERSION}" SOVERSION ${PROJECT_VERSION_MAJOR} ${ARGN})
    ddl_extend_shim(${target} OPS ddl::sum ELEMENTS float SCHEDULES ddl::shim::rings COLLECTIVES allreduce)
    ddl_extend_shim(${target} OPS ddl::sum ELEMENTS float SCHEDULES ddl::tuned COLLECTIVES reduce reduce_scatter)
    return()
  endif()
  ddl_add_shim(${target} OPS ${ddl_shim_sums} ddl::average ELEMENTS ${ddl_shim_numbers} SCHEDULES ddl::tuned
    TRANSPORTS ${transport} VERSION "${PROJECT_VERSION}" SOVERSION ${PROJECT_VERSION_MAJOR} ${ARGN})
  ddl_extend_shim(${target} OPS ddl::sum ELEMENTS float ddl::half double SCHEDULES ${ddl_shim_modes} COLLECTIVES allreduce)
  ddl_extend_shim(${target} OPS ddl::shim::average_in_double ELEMENTS ddl::half ddl::bfloat16 float SCHEDULES ddl::tuned
    COLLECTIVES allreduce)
  if(DDL_SHIM_ROWS STREQUAL "common")
    ddl_extend_shim(${target} OPS ddl::sum ELEMENTS std::uint8_t SCHEDULES ddl::tuned COLLECTIVES allreduce)
    ddl_extend_shim(${target} OPS ddl::product ELEMENTS float double SCHEDULES ddl::tuned COLLECTIVES allreduce)
    return()
  endif()
  foreach(list IN ITEMS
      "OPS;${ddl_shim_sums};ELEMENTS;${ddl_shim_more_numbers}"
      "OPS;ddl::product;ELEMENTS;${ddl_shim_numbers}"
      "OPS;ddl::bit_and;ddl::bit_or;ddl::bit_xor;ELEMENTS;std::uint8_t;std::uint16_t;std::uint32_t;std::uint64_t"
      "OPS;ddl::logical_and;ddl::logical_or;ddl::logical_xor;ELEMENTS;bool;std::int32_t"
      "OPS;ddl::sum;ddl::product;ddl::average;ELEMENTS;std::complex<float>;std::complex<double>")
    ddl_extend_shim(${target} ${list} SCHEDULES ddl::tuned COLLECTIVES allreduce)
  endforeach()
endfunction()

set(ddl_companion libddl_pack.so.${PROJECT_VERSION_MAJOR})
ddl_add_common_shim(ddl_shim ddl::shared_memory SOURCES "${CMAKE_CURRENT_LIST_DIR}/ibm/ddl.cpp" COMPANION ${ddl_companion})
set_target_properties(ddl_shim PROPERTIES OUTPUT_NAME ddl)

if(TARGET ddl::mpi)
  ddl_add_common_shim(ddl_pack ddl::cluster
    SOURCES "${CMAKE_CURRENT_LIST_DIR}/ibm/ddl_mpi.cpp" "${CMAKE_CURRENT_LIST_DIR}/tensorflow/mpi_sum.cpp"
    EXPORTS ddl_allreduce_mpi ddl_sum_by_mpi COMPANION_OF ddl_shim)
  target_compile_definitions(ddl_pack PRIVATE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)  # no C++ bindings of MPI
  if(NOT DDL_SHIM_ROWS STREQUAL "few")
    ddl_extend_shim(ddl_pack OPS ddl::sum ELEMENTS float ddl::half double COLLECTIVES allreduce
      SCHEDULES ddl::shim::enhanced_on_nodes ddl::shim::rings_on_nodes ddl::shim::halvings_on_nodes)
  endif()
else()
  # clients link it whether they use MPI or not
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/ddl_pack.cpp" CONTENT "// without MPI there is nothing to pack\n")
  add_library(ddl_pack SHARED "${CMAKE_CURRENT_BINARY_DIR}/ddl_pack.cpp")
  set_target_properties(ddl_pack PROPERTIES VERSION "${PROJECT_VERSION}" SOVERSION ${PROJECT_VERSION_MAJOR})
endif()

add_library(dl_comm SHARED "${CMAKE_CURRENT_LIST_DIR}/cray/dl_comm.cpp")
target_link_libraries(dl_comm PUBLIC ddl::ddl PRIVATE ddl_shim)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/dl_comm.map" CONTENT "{ global: dl_comm_*; dl_create_team; local: *; };\n")
target_link_options(dl_comm PRIVATE "-Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/dl_comm.map" "-Wl,-Bsymbolic"
  "-Wl,--no-undefined" "-Wl,-z,nodelete")  # what it does when the process ends
set_target_properties(dl_comm PROPERTIES VERSION "${PROJECT_VERSION}" SOVERSION ${PROJECT_VERSION_MAJOR}
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF)
target_compile_options(dl_comm PRIVATE "$<$<CONFIG:>:-O2>")

add_library(ddl_MDR SHARED)
foreach(source IN ITEMS c_api operators ranks reference)
  target_sources(ddl_MDR PRIVATE "${CMAKE_CURRENT_LIST_DIR}/tensorflow/${source}.cpp")
endforeach()
target_link_libraries(ddl_MDR PRIVATE ddl::ddl ddl_shim ${CMAKE_DL_LIBS})
target_compile_definitions(ddl_MDR PRIVATE "DDL_SHIM_COMPANION=\"${ddl_companion}\"")
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/ddl_MDR.map" CONTENT "{ global: ddl_tensorflow_ranks; local: *; };\n")
target_link_options(ddl_MDR PRIVATE "-Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/ddl_MDR.map" "-Wl,-Bsymbolic"
  "-Wl,--no-undefined" "-Wl,-z,nodelete")  # TensorFlow keeps pointers to its kernels
set_target_properties(ddl_MDR PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  CXX_EXTENSIONS OFF)
target_compile_options(ddl_MDR PRIVATE "$<$<CONFIG:>:-O2>")

# In the folder of the build as installed, for wheels are made of either: they look for each other beside them, for MPI where it
# was found, and nowhere else.
set_target_properties(ddl_shim ddl_pack dl_comm ddl_MDR PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH_USE_LINK_PATH ON)
# the places in the source that lines of errors tell are of ddl, not of the machine that built it
get_filename_component(ddl_headers "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/ibm/ddl.cpp" "${CMAKE_CURRENT_LIST_DIR}/ibm/ddl_mpi.cpp" PROPERTIES
  COMPILE_OPTIONS "-fmacro-prefix-map=${ddl_headers}/=")

# One folder of headers and one of libraries, as clients of old expect them; `-lddl -lddl_pack -ldl_comm`.
foreach(header IN ITEMS ddl.h ddl.hpp ddl_mpi.hpp dl_comm.h)
  install(FILES "${CMAKE_CURRENT_LIST_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endforeach()
install(TARGETS ddl_shim ddl_pack dl_comm ddl_MDR LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
