# SPDX-License-Identifier: Apache-2.0
"""libddl.so, and the functions of <ddl/shim/ddl.h> that Python calls.

It is looked for in the folders of DDL_LIBRARY_PATH, in this package, and where the system looks. It loads without MPI and
without CUDA, and finds them by itself where they are wanted.
"""

import ctypes
import functools
import glob
import os
import re
import sys
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_void_p

from . import errors

_HANDLE = POINTER(c_void_p)
_DATA = (c_void_p, c_void_p, c_size_t, c_int)  # in, out, count, element
_TENSORS = (c_void_p, c_void_p, c_size_t, c_int, c_int)  # data, counts, tensors, element, op

# The arguments of each collective behind its communicator; `run`, `start` and `plan` have them alike.
COLLECTIVES = {
    "allreduce": (*_DATA, c_int),
    "allreduce_n": _TENSORS,
    "reduce_scatter": (*_DATA, c_int),
    "all_gather": _DATA,
    "broadcast": (c_void_p, c_size_t, c_int, c_int),
    "reduce": (*_DATA, c_int, c_int),
    "gather": (*_DATA, c_int),
    "scatter": (*_DATA, c_int),
    "all_to_all": _DATA,
    "barrier": (),
}
_FUNCTIONS = {
    "last_error": (c_char_p,),
    "version": (c_char_p,),
    "size_element": (c_size_t, c_int),
    "find_element": (c_int, c_char_p),
    "find_op": (c_int, c_char_p),
    "ranks_are_of_mpi": (c_int,),
    "open_environment": (c_int, _HANDLE),
    "open_job": (c_int, c_char_p, c_int, c_int, c_double, _HANDLE),
    "split": (c_int, c_void_p, c_int, c_int, _HANDLE),
    "close": (c_int, c_void_p),
    "get_rank": (c_int, c_void_p),
    "get_size": (c_int, c_void_p),
    "get_local_rank": (c_int, c_void_p),
    "get_local_size": (c_int, c_void_p),
    "get_transport": (c_char_p, c_void_p),
    "set_timeout": (c_int, c_void_p, c_double),
    "set_schedule": (c_int, c_void_p, c_char_p),
    "set_options": (c_int, c_void_p, c_char_p),
    "interrupt": (c_int, c_void_p),
    "abort": (c_int, c_void_p, c_char_p),
    "allocate": (c_int, c_void_p, c_size_t, POINTER(c_void_p)),
    "deallocate": (c_int, c_void_p),
    "count_of_block": (c_size_t, c_size_t, c_int, c_int),
    "wait_request": (c_int, c_void_p),
    "wait_request_for": (c_int, c_void_p, c_double, POINTER(c_int)),
    "test_request": (c_int, c_void_p, POINTER(c_int)),
    "get_descriptor": (c_int, c_void_p, POINTER(c_int)),
    "free_request": (c_int, c_void_p),
    "python_calls": (c_void_p,),
    "run_plan": (c_int, c_void_p),
    "explain_plan": (c_int, c_void_p, c_char_p, c_size_t),
    "free_plan": (c_int, c_void_p),
}


def candidates(name):
    """Paths of the library `name`, best first."""
    folders = [folder for folder in os.environ.get("DDL_LIBRARY_PATH", "").split(os.pathsep) if folder]
    # more than one where it is installed to be edited: the modules lie in the tree, what was built does not
    folders.extend(os.path.join(os.path.abspath(folder), "lib") for folder in sys.modules[__package__].__path__)
    for folder in folders:
        found = sorted(glob.glob(os.path.join(glob.escape(folder), name + "*")))
        yield from found or [os.path.join(folder, name)]  # what the system says of that tells what is wrong with the folder
    yield name + ".0"
    yield name


def load(name):
    """The shared library `name`. Throws `ImportError` with what was tried."""
    tried = []
    for path in candidates(name):
        try:
            return ctypes.CDLL(path)
        except OSError as why:
            tried.append(f"  {why}")
    raise ImportError(f"{name} cannot be loaded; build ddl with DDL_BUILD_SHIMS, and name its folder in DDL_LIBRARY_PATH. "
                      "What was tried:\n" + "\n".join(tried))


@functools.lru_cache(maxsize=None)
def python_function(name, result, *arguments):
    """A function of Python's own C interface. Throws `Unsupported` in an interpreter that does not show it to ctypes."""
    if not hasattr(ctypes, "pythonapi") or not hasattr(ctypes.pythonapi, name):
        raise errors.Unsupported(f"{name}: {sys.implementation.name} has no such function; pass arrays of NumPy or pyddl.zeros")
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


class Functions:
    """The functions of ddl.h without their `ddl_`: `functions.run_allreduce(...)` returns the status."""

    def __init__(self, library):
        for name, (result, *arguments) in _FUNCTIONS.items():
            self._declare(library, name, result, arguments)
        for name, arguments in COLLECTIVES.items():
            self._declare(library, "run_" + name, c_int, [c_void_p, *arguments])
            self._declare(library, "start_" + name, c_int, [c_void_p, *arguments, _HANDLE])
            if arguments:  # a barrier has no plan
                self._declare(library, "plan_" + name, c_int, [c_void_p, *arguments, _HANDLE])
        self.python_method = ctypes.PYFUNCTYPE(c_void_p, c_char_p)(("ddl_python_method", library))
        self.numpy_handler = ctypes.PYFUNCTYPE(c_void_p, c_void_p)(("ddl_numpy_handler", library))
        self.numpy_movable_handler = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object)(("ddl_numpy_movable_handler", library))

    def _declare(self, library, name, result, arguments):
        function = getattr(library, "ddl_" + name)
        function.restype = result
        function.argtypes = list(arguments)
        setattr(self, name, function)

    def failure(self, status, call=None):
        """The exception that a status stands for, with the library's words: of `call`, where that is not what Python has called."""
        words = self.last_error().decode("utf-8", "replace")
        if call is not None:
            words = re.sub("^[^,:]*", call, words)
        return errors.BY_STATUS.get(status, errors.Error)(words)


functions = Functions(load("libddl.so"))
