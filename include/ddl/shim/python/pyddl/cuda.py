# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a GPU: the library tells by itself, if the CUDA driver is loaded, and reduces them on the host.
Here is what it cannot know: whose stream produces them, and copies without a collective.

Nothing here is loaded before the first such array comes.
"""

import ctypes
import functools
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

_CONTEXT_OF_POINTER = 1  # CU_POINTER_ATTRIBUTE_CONTEXT
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

    def await_producer(self, stream):
        """Waits for what is under way on the stream of an array interface: 1 and 2 are the default streams, None is any."""
        if stream is not None and stream > 2:
            self._call("cuStreamSynchronize", c_void_p(stream))
        else:
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
        context = c_void_p()
        self._call("cuPointerGetAttribute", byref(context), c_int(_CONTEXT_OF_POINTER), c_uint64(pointer))
        self._call("cuCtxPushCurrent_v2", context)
        try:
            self._call("cuMemcpy", c_uint64(target), c_uint64(source), c_size_t(size))
        finally:
            self._call("cuCtxPopCurrent_v2", byref(context))

    def _call(self, name, *arguments):
        status = getattr(self._driver, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} failed with status {status} of the CUDA driver")
