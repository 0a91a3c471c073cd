# SPDX-License-Identifier: Apache-2.0
"""What values are: the numbers of ddl.h, under IBM's names, and the NumPy dtypes that they stand for."""

import numpy

__all__ = [
    "DDL_TYPE_FLOAT", "DDL_TYPE_HALF", "DDL_TYPE_DOUBLE", "DDL_TYPE_INT8", "DDL_TYPE_UINT8", "DDL_TYPE_INT16",
    "DDL_TYPE_UINT16", "DDL_TYPE_INT32", "DDL_TYPE_UINT32", "DDL_TYPE_INT64", "DDL_TYPE_UINT64", "DDL_TYPE_BFLOAT16",
    "DDL_TYPE_BOOL", "DDL_TYPE_COMPLEX_FLOAT", "DDL_TYPE_COMPLEX_DOUBLE", "DDL_OP_SUM", "DDL_OP_PRODUCT", "DDL_OP_MIN",
    "DDL_OP_MAX", "DDL_OP_AVERAGE", "DDL_OP_AVERAGE_IN_DOUBLE", "DDL_OP_BIT_AND", "DDL_OP_BIT_OR", "DDL_OP_BIT_XOR",
    "DDL_OP_LOGICAL_AND", "DDL_OP_LOGICAL_OR", "DDL_OP_LOGICAL_XOR"]

# As in ddl.hpp, and beyond its last one those that Python alone has.
DDL_TYPE_FLOAT = 0
DDL_TYPE_HALF = 1
DDL_TYPE_DOUBLE = 2
DDL_TYPE_INT8 = 3
DDL_TYPE_UINT8 = 4
DDL_TYPE_INT16 = 5
DDL_TYPE_UINT16 = 6
DDL_TYPE_INT32 = 7
DDL_TYPE_UINT32 = 8
DDL_TYPE_INT64 = 9
DDL_TYPE_UINT64 = 10
DDL_TYPE_BFLOAT16 = 11
DDL_TYPE_BOOL = 12
DDL_TYPE_COMPLEX_FLOAT = 13
DDL_TYPE_COMPLEX_DOUBLE = 14

# As in ddl.h, whose first ones are those of ddl.hpp.
DDL_OP_SUM = 0
DDL_OP_PRODUCT = 1
DDL_OP_MIN = 2
DDL_OP_MAX = 3
DDL_OP_AVERAGE = 4
DDL_OP_AVERAGE_IN_DOUBLE = 5
DDL_OP_BIT_AND = 6
DDL_OP_BIT_OR = 7
DDL_OP_BIT_XOR = 8
DDL_OP_LOGICAL_AND = 9
DDL_OP_LOGICAL_OR = 10
DDL_OP_LOGICAL_XOR = 11

# By the numbers of ddl.h: the names of NumPy, bytes.
NAMES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16",
         "float32", "float64", "complex64", "complex128")
SIZES = (1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16)
_NUMBERS = {name: number for number, name in enumerate(NAMES)}
FLOAT, INT32 = _NUMBERS["float32"], _NUMBERS["int32"]

# By DDL_TYPE: the number of ddl.h.
OF_TYPE = {number: _NUMBERS[name] for number, name in enumerate((
    "float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bfloat16",
    "bool", "complex64", "complex128"))}

# By dtype object, for the short way. A dtype of the other byte order is another key.
OF_DTYPE = {numpy.dtype(name): number for number, name in enumerate(NAMES) if name != "bfloat16"}
for _name in ("longlong", "ulonglong"):  # of one size with int64, and yet another dtype
    OF_DTYPE.setdefault(numpy.dtype(_name), _NUMBERS[f"{'u' if _name[0] == 'u' else ''}int{8 * numpy.dtype(_name).itemsize}"])


def of_dtype(dtype):
    """The number of a dtype; -1 if there is none, as for one of the other byte order."""
    number = OF_DTYPE.get(dtype, -1)
    if number < 0 and dtype.isnative and dtype.name == "bfloat16":  # of ml_dtypes, which need not be there
        number = OF_DTYPE[dtype] = _NUMBERS["bfloat16"]
    return number


def name_of(number):
    return NAMES[number] if 0 <= number < len(NAMES) else f"number {number}"
