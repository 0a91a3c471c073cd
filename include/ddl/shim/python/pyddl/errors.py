# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as exceptions. Each is an `Error`, and what Python calls such a thing besides.

The text of each names the call, the rank and the cause. After `Mismatch`, `InvalidArgument` and `Unsupported` the
communicator is as good as before; after the others it is broken, and each further call on it raises `Broken`.
"""


class Error(RuntimeError):
    """A failure of ddl. `status` is its number in ddl.h."""

    status = -1


class Mismatch(Error):
    """Ranks called with different counts, types, ops or roots, or in a different order."""

    status = 1


class PeerLost(Error, ConnectionError):
    """A peer's process has ended."""

    status = 2


class Timeout(Error, TimeoutError):
    """A peer did not arrive before the deadline."""

    status = 3


class InvalidArgument(Error, ValueError):
    """This rank's own arguments make no sense."""

    status = 4


class OutOfMemory(Error, MemoryError):
    """Memory that peers can map could not be had."""

    status = 5


class SystemRefusal(Error, OSError):
    """The operating system or MPI refused; the text holds its words."""

    status = 6


class Broken(Error):
    """An earlier failure left the communicator unusable."""

    status = 7


class Unsupported(Error, NotImplementedError):
    """The library was built without it."""

    status = 8


class Interrupted(Error):
    """Another thread, or Ctrl-C, ended the call."""

    status = 9


BY_STATUS = {kind.status: kind for kind in (Mismatch, PeerLost, Timeout, InvalidArgument, OutOfMemory, SystemRefusal,
                                            Broken, Unsupported, Interrupted)}
