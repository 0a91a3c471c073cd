# SPDX-License-Identifier: Apache-2.0
"""What programs on ranks say in their checks."""

import contextlib
import os
import sys
import traceback

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


def fork(act):
    """The number of a process made by fork that does `act()`, and ends with 0 if that throws nothing."""
    child = os.fork()
    if child:
        return child
    try:
        act()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def child_does(act):
    """A process made by fork does `act()`, which must throw nothing."""
    ended = os.waitpid(fork(act), 0)[1]
    assert ended == 0, f"the child ended with {ended}"
