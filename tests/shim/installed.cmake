# SPDX-License-Identifier: Apache-2.0
# The libraries as `cmake --install` leaves them: clients in C and C++ are compiled against them with plain compilers, and the
# project in examples/own_face makes a library of types of its own. Starts from nothing each time.
include("${CMAKE_CURRENT_LIST_DIR}/../cmake/run.cmake")
function(expect_output words)
  if(NOT output STREQUAL "${words}")
    message(FATAL_ERROR "this was printed:\n${output}\ninstead of:\n${words}")
  endif()
endfunction()

file(REMOVE_RECURSE "${BUILD}")
set(prefix "${BUILD}/prefix")
run("${CMAKE_COMMAND}" --install "${SHIMS}" --prefix "${prefix}")
file(GLOB headers RELATIVE "${prefix}/include" "${prefix}/include/*.h" "${prefix}/include/*.hpp")
list(SORT headers)
if(NOT headers STREQUAL "ddl.h;ddl.hpp;ddl_mpi.hpp;dl_comm.h")
  message(FATAL_ERROR "the headers are: ${headers}")
endif()
foreach(name IN ITEMS ddl ddl_pack dl_comm)
  if(NOT EXISTS "${prefix}/${LIBRARIES}/lib${name}.so")
    message(FATAL_ERROR "there is no ${prefix}/${LIBRARIES}/lib${name}.so")
  endif()
endforeach()

# the libraries find each other, wherever they lie
set(link "-I${prefix}/include" "-L${prefix}/${LIBRARIES}" "-Wl,-rpath,${prefix}/${LIBRARIES}" -Wl,--no-as-needed)
foreach(client IN ITEMS ibm_init cray_training)
  run("${CXX}" "${CLIENTS}/${client}.cpp" -o "${BUILD}/${client}" ${link} -lddl -lddl_pack -ldl_comm)
  run("${LAUNCH}" 2 "${BUILD}/${client}")
endforeach()
foreach(language IN ITEMS c++ c)
  foreach(header IN ITEMS ddl.h ddl.hpp dl_comm.h)
    file(WRITE "${BUILD}/only.txt" "#include <${header}>\nint main(void) { return 0; }\n")
    run("${CXX}" -x ${language} "${BUILD}/only.txt" -x none -o "${BUILD}/only" ${link} -lddl -lddl_pack)
  endforeach()
endforeach()

# somebody else's op, element and schedule
run("${CMAKE_COMMAND}" -S "${OWN}" -B "${BUILD}/own" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX}"
  "-DCMAKE_PREFIX_PATH=${prefix}")
run("${CMAKE_COMMAND}" --build "${BUILD}/own")
run("${LAUNCH}" 3 "${BUILD}/own/brighten")
expect_output("255 3 255\n")
run("${LAUNCH}" 3 "${PYTHON}" "${OWN}/brighten.py" "${BUILD}/own/libpixels.so")
if(NOT output MATCHES "^255 3 255\n[^\n]*: chain, walked round by round")
  message(FATAL_ERROR "this was printed:\n${output}")
endif()
