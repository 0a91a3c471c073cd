# SPDX-License-Identifier: Apache-2.0
# The compilers that must take every header: the lowest and the highest of each kind.
# Sets ddl_compilers, their short names, and ddl_compiler_<name>, their paths ("" if this machine lacks it).
# And what else is looked for once: nvcc, Thrust, Python.
set(ddl_compilers g++ clang++-14 clang++-22)
foreach(name IN LISTS ddl_compilers)
  find_program(DDL_TEST_${name} NAMES ${name})
  mark_as_advanced(DDL_TEST_${name})
  set(ddl_compiler_${name} "")
  if(DDL_TEST_${name})
    set(ddl_compiler_${name} "${DDL_TEST_${name}}")
  endif()
endforeach()
find_program(DDL_TEST_NVCC NAMES nvcc PATHS /usr/local/cuda/bin)
# Thrust where a compiler finds it unasked, as Debian's libthrust-dev is. That of a CUDA toolkit is nvcc's alone.
find_path(DDL_TEST_INCLUDE_thrust thrust/version.h)
find_path(DDL_TEST_INCLUDE_cuda cuda_runtime.h HINTS /usr/local/cuda PATH_SUFFIXES include)
find_path(DDL_TEST_INCLUDE_nccl nccl.h HINTS "${NCCL_ROOT}" "$ENV{NCCL_ROOT}" PATH_SUFFIXES include)
find_library(DDL_TEST_LIBRARY_nccl NAMES nccl libnccl.so.2 HINTS "${NCCL_ROOT}" "$ENV{NCCL_ROOT}" PATH_SUFFIXES lib)
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
