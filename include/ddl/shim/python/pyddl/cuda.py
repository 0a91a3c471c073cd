# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a GPU: the library tells by itself, if the CUDA driver is loaded, and reduces them on the host.
Here is what it cannot know: whose stream produces them, and copies without a collective.

Nothing here is loaded before the first such array comes.
"""

import contextlib
import ctypes
import functools
from ctypes import addressof, byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

_CONTEXT_OF_POINTER = 1  # CU_POINTER_ATTRIBUTE_CONTEXT
_DEVICE_OF_POINTER = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
LIBRARY = "libcuda.so.1"


@functools.lru_cache(maxsize=None)
def memory():
    """The driver. Throws `ValueError` where there is none."""
    try:
        return Memory(ctypes.CDLL(LIBRARY))
    except OSError as why:
        raise ValueError(f"lies in the memory of a GPU, and the CUDA driver cannot be loaded: {why}; copy it to the host"
                         ) from None


class Memory:
    """Copies between host and GPU. Each is done when it returns."""

    def __init__(self, driver):
        self._driver = driver
        self._call("cuInit", 0)

    def await_producer(self, stream, address):
        """Waits for what is under way on the stream of an array interface, where the array lies: 1 and 2 are the default
        streams, None is any."""
        if stream is not None and stream > 2:
            self._call("cuStreamSynchronize", c_void_p(stream))
            return
        with self._context_of(address):
            context = c_void_p()
            self._call("cuCtxGetCurrent", byref(context))
            if context:
                self._call("cuCtxSynchronize")

    def to_host(self, target, source, size):
        self._copy(target, source, size, source)

    def to_device(self, target, source, size):
        self._copy(target, source, size, target)

    def _copy(self, target, source, size, pointer):
        if size == 0:  # of which there need be no memory
            return
        with self._context_of(pointer):
            self._call("cuMemcpy", c_uint64(target), c_uint64(source), c_size_t(size))

    @contextlib.contextmanager
    def _context_of(self, address):
        """In it the context of that memory is current; the thread's own, if the driver does not know the memory."""
        context, device = c_void_p(), c_int()
        asked = (c_int * 2)(_CONTEXT_OF_POINTER, _DEVICE_OF_POINTER)
        answers = (c_void_p * 2)(addressof(context), addressof(device))
        self._call("cuPointerGetAttributes", c_uint(2), asked, answers, c_uint64(address))
        if not context and device.value >= 0:  # memory of a pool belongs to none
            self._call("cuDeviceGet", byref(device), c_int(device.value))
            self._call("cuDevicePrimaryCtxRetain", byref(context), device)
            self._call("cuDevicePrimaryCtxRelease_v2", device)  # the memory's owner keeps it, too
        if not context:
            yield
            return
        self._call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", byref(context))

    def _call(self, name, *arguments):
        status = getattr(self._driver, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} failed with status {status} of the CUDA driver")
