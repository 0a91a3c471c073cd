# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for what frameworks hand over, where the frameworks are not installed: they speak the same protocols."""

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object

import numpy

CPU, ROCM = 1, 10
_TYPES = {"bfloat16": (4, 16)}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("manager", c_void_p), ("deleter", c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("tensor", _Tensor)]


class Tensor:
    """A tensor of PyTorch, as far as others see it: its bytes, by DLPack alone.

    `dtype` is NumPy's, or "bfloat16" for an array of its bits. `versioned` tells a tensor of DLPack 1 from one of old.
    """

    def __init__(self, array, dtype=None, versioned=True, device=CPU, major=1, requires_grad=False, skip=0):
        self.array, self.dtype, self.versioned, self.device, self.major = array, dtype, versioned, device, major
        self.requires_grad, self.skip = requires_grad, skip
        self.grad = None
        self._kept = []  # what capsules point to

    def detach(self):
        return Tensor(self.array, self.dtype, self.versioned, self.device, self.major)

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **more):
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if not self.versioned and more:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        kind = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}[self.array.dtype.kind]
        code, bits = _TYPES.get(self.dtype, (kind, self.array.itemsize * 8))
        axes = self.array.ndim
        shape = (c_int64 * axes)(*self.array.shape)
        strides = (c_int64 * axes)(*[stride // self.array.itemsize for stride in self.array.strides])
        tensor = _Tensor(self.array.ctypes.data - self.skip, self.device, 0, axes, code, bits, 1, shape, strides, self.skip)
        managed = _Versioned(self.major, 0, None, None, 0, tensor) if self.versioned else _Managed(tensor, None, None)
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        self._kept.append((shape, strides, managed, name))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
        return new(ctypes.addressof(managed), name, None)


class EagerTensor(Tensor):
    """A tensor of TensorFlow, which is not to be changed, though DLPack and NumPy would."""

    __module__ = "tensorflow.python.framework.ops"

    def __init__(self, array):
        super().__init__(array, versioned=False)

    def numpy(self):
        return self.array.copy()

    def __array__(self, dtype=None, copy=None):
        return numpy.array(self.array, dtype)


class OnDevice:
    """An array of a GPU, as far as others see it: a copy of `array`, where no host code can reach it. It needs a driver, be it a
    double."""

    def __init__(self, array, stream=None):
        from pyddl import cuda
        self.array, self._driver, place = array, cuda.memory(), c_uint64()
        assert self._driver._driver.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(array.nbytes)) == 0
        self.__cuda_array_interface__ = dict(array.__array_interface__, data=(place.value, False), stream=stream)
        self._driver.to_device(place.value, array.ctypes.data, array.nbytes)

    def get(self):
        self._driver.to_host(self.array.ctypes.data, self.__cuda_array_interface__["data"][0], self.array.nbytes)
        return self.array


class SGD:
    """An optimizer of PyTorch, as far as the distributed one sees it."""

    def __init__(self, parameters, lr):
        self.param_groups = [{"params": list(parameters), "lr": lr}]

    def step(self, closure=None):
        if closure is not None:
            closure()
        for group in self.param_groups:
            for each in group["params"]:
                if each.grad is not None:
                    each.array -= group["lr"] * each.grad.array
        return "stepped"
