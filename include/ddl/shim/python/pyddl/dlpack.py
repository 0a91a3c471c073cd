# SPDX-License-Identifier: Apache-2.0
"""A tensor as DLPack describes it: https://dmlc.github.io/dlpack/latest/c_api.html"""

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

from . import elements
from .library import python_function

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
READ_ONLY = 1
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("manager", c_void_p), ("deleter", c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _Tensor)]


def _is_valid(capsule, name):
    return python_function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(capsule, name)


def pointer_of(capsule, name):
    """What a capsule of this name holds."""
    return python_function("PyCapsule_GetPointer", c_void_p, ctypes.py_object, ctypes.c_char_p)(capsule, name)


class Tensor:
    """What `data.__dlpack__()` says. It holds the capsule, which keeps the memory alive and frees it when it goes."""

    def __init__(self, data):
        self._capsule = _capsule_of(data)
        self.read_only = False
        if _is_valid(self._capsule, b"dltensor_versioned"):
            managed = _Versioned.from_address(pointer_of(self._capsule, b"dltensor_versioned"))
            if managed.major != 1:
                raise ValueError(f"speaks DLPack {managed.major}.{managed.minor}, which is not known here")
            self.read_only = bool(managed.flags & READ_ONLY)
        elif _is_valid(self._capsule, b"dltensor"):
            managed = _Managed.from_address(pointer_of(self._capsule, b"dltensor"))
        else:
            raise ValueError("has a __dlpack__ that gives no DLPack tensor")
        tensor = managed.tensor
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
        self.strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim)) if tensor.strides else None
        self.type_name = f"{_KINDS.get(tensor.code, f'code {tensor.code}')}{tensor.bits}" + (
            f"x{tensor.lanes}" if tensor.lanes != 1 else "")
        name = "bool" if self.type_name == "bool8" else self.type_name
        self.element = elements.NAMES.index(name) if name in elements.NAMES else -1
        if tensor.device_type not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
            raise ValueError(f"lies on a device of DLPack type {tensor.device_type}; copy it to the host")
        self.on_device = tensor.device_type == CUDA


def _capsule_of(data):
    try:
        return data.__dlpack__(max_version=(1, 0))  # which says whether it is read-only
    except TypeError:
        pass
    except (BufferError, RuntimeError) as why:
        raise ValueError(f"is not handed out by its __dlpack__: {why}") from None
    try:
        return data.__dlpack__()
    except (BufferError, RuntimeError, TypeError) as why:
        raise ValueError(f"is not handed out by its __dlpack__: {why}") from None
