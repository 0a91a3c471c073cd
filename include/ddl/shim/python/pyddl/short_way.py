# SPDX-License-Identifier: Apache-2.0
"""The methods that are called most, without ctypes: the library has them as Python's own kind of functions."""

import ctypes
import inspect
import sys
from ctypes import POINTER, c_char_p, c_int, c_void_p, py_object

from .library import functions, python_function

_VARARGS_AND_KEYWORDS = 3


class _Definition(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p)]


_definitions = []  # Python points to them for ever


def shorten(kind, *names):
    """Puts the library's functions in the place of methods of `kind`, if this Python can call them.

    They take what leaves no question, and hand all else to what was there before, from now on `_long_<name>`.
    """
    if sys.implementation.name != "cpython":
        return
    make = python_function("PyDescr_NewMethod", py_object, py_object, POINTER(_Definition))
    for name in names:
        function = functions.python_method(name.encode())
        if function:
            method = getattr(kind, name)
            signature = plain_signature(method).replace("(self", "($self", 1)
            text = f"{name}{signature}\n--\n\n{method.__doc__}"
            definition = _Definition(name.encode(), function, _VARARGS_AND_KEYWORDS, text.encode())
            _definitions.append(definition)
            setattr(kind, "_long_" + name, method)
            setattr(kind, name, make(kind, definition))


def plain_signature(function):
    """Without types, which such a function's text cannot have: `(self, x, n=None)`."""
    parameters = [each.replace(annotation=each.empty) for each in inspect.signature(function).parameters.values()]
    return str(inspect.Signature(parameters))
