# SPDX-License-Identifier: Apache-2.0
"""What programs on ranks say in their checks."""

import contextlib
import sys

import numpy


def same(found, expected):
    """Throws unless both arrays hold the same bits (NaN equals NaN)."""
    numpy.testing.assert_array_equal(numpy.asarray(found), numpy.asarray(expected))


@contextlib.contextmanager
def refused(kind, *words):
    """The block throws `kind`, and its text holds these words."""
    try:
        yield
    except kind as why:
        for word in words:
            assert word in str(why), f"'{word}' is not in: {why}"
    else:
        raise AssertionError(f"no {kind.__name__}")


def say(*words):
    """One line, in one write."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()
