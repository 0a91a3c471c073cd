# SPDX-License-Identifier: Apache-2.0
"""Where ddl_MDR.so is: the operators for TensorFlow."""

import os


def operator_library() -> str:
    """The path of ddl_MDR.so, which lies beside libddl.so: in a folder of DDL_LIBRARY_PATH, or in the package pyddl."""
    from pyddl import library
    for path in library.candidates("ddl_MDR.so"):
        if os.sep in path and os.path.exists(path):
            return os.path.abspath(path)
    raise ImportError("ddl_MDR.so is in no folder of DDL_LIBRARY_PATH, and not in the package pyddl; build ddl with DDL_BUILD_SHIMS")
