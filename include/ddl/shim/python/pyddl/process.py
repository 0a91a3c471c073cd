# SPDX-License-Identifier: Apache-2.0
"""This process among the ranks: its start and end, its numbers, and IBM DDL's memory."""

import atexit
import ctypes
import os
import sys
import threading
import typing

from . import arrays, interrupt
from . import memory as memories
from .communicator import Communicator, abort_all, interrupt_all
from .errors import Error
from .library import functions
from .memory import Memory


class _Nobody:
    """Stands where the ranks will be, before `init` and after `finalize`."""

    def __init__(self, why):
        self._why = why

    def __getattr__(self, name):
        def refuse(*_arguments, **_more):
            raise Error(f"{name}: pyddl {self._why}")
        return refuse


class _Process:
    def __init__(self):
        self.ranks = _Nobody("is not initialised; call pyddl.init() first")
        self.started = False
        self.watch = None
        self.opening = None  # of an `init` that Ctrl-C has ended


here = _Process()


def init(options: typing.Optional[str] = None) -> int:
    """Finds the other ranks; to be called once, by all of them, before anything else.

    `options` are those of IBM DDL, such as "-mode b:4x2"; without them, those of DDL_OPTIONS. Under mpirun, or if MPI runs in
    this process, the ranks are MPI's; under ddlrun on one host, and where RANK and WORLD_SIZE are set, they are processes of
    this host; else this process is alone.

    Arrays of 64 KiB and more that NumPy makes from here on move into memory that peers can map once collectives keep using them:
    they keep their addresses, and calls are faster. With DDL_MAPPED_ARRAYS=1 in the environment all are those of `mapped_arrays`
    from their beginning, with 0 none is.
    """
    return start(_open_environment, options)


class _Opening:
    """The ranks of this host meet, in a thread of its own: while the main thread is in the library no KeyboardInterrupt comes, and
    there is nothing yet that could be interrupted. Behind a Ctrl-C that goes on, for the others may have met this rank: the next
    `init` waits for it, too."""

    def __init__(self):
        self._handle, self._lock, self.process = ctypes.c_void_p(), threading.Lock(), os.getpid()

    def wait(self):
        """The handle, and a failure or None."""
        failures = []

        def run():
            with self._lock:
                status = 0 if self._handle else functions.open_environment(ctypes.byref(self._handle))
                if status != 0:
                    failures.append(functions.failure(status, "init"))  # whose words are this thread's

        thread = threading.Thread(target=run, name="pyddl-init", daemon=True)
        try:
            interrupt.start_quiet(thread)
        except RuntimeError:
            if thread.ident is not None:  # it is a handler's, which has ended the wait
                raise
            run()  # the others come to hear from `start` that there is no thread
        else:
            thread.join()
        return self._handle.value, failures[0] if failures else None


def _open_environment(place):
    """The same as `functions.open_environment`, but Ctrl-C ends the wait for ranks of this host. MPI wants the thread that started it."""
    opening = here.opening
    if opening is None or opening.process != os.getpid():
        if threading.current_thread() is not threading.main_thread() or functions.ranks_are_of_mpi():
            return functions.open_environment(place)
        here.opening = opening = _Opening()
    place._obj.value, failure = opening.wait()
    here.opening = None
    if failure is not None:
        raise failure
    return 0


def start(open_world, options=None):
    """`init` by another way to the other ranks: `open_world(place)` opens them, and returns a status of the library."""
    if here.started:
        state = "is already initialised" if initialized() else "was finalised, and a process starts once"
        raise Error(f"init: pyddl {state}; call pyddl.init() once")
    options = os.environ.get("DDL_OPTIONS", "") if options is None else options
    if not isinstance(options, str):
        raise TypeError(f"init: options is {options!r}; pass words such as \"-mode b:4x2\"")
    words = options.replace("\0", "\\0").encode("utf-8", "backslashreplace")
    from .mapped_arrays import handler_setter, let_arrays_move_from_here, map_arrays_from_here  # which need this module
    mapped = os.environ.get("DDL_MAPPED_ARRAYS", "")
    if mapped not in ("", "0", "1"):
        raise Error(f"init: DDL_MAPPED_ARRAYS is \"{mapped}\"; set 0 or 1")
    if mapped == "1":
        handler_setter()  # says now if NumPy has none
    handle = ctypes.c_void_p()
    status = open_world(ctypes.byref(handle))
    if status == 0:
        status = functions.set_options(handle, words)
    if status != 0:
        failure = functions.failure(status, "init")
        functions.close(handle)
        raise failure
    ranks = Communicator(handle.value)
    try:
        here.watch = interrupt.watch(interrupt_all, f"init, rank {ranks.rank}")
    except BaseException:  # the others, which have met this rank, are not to wait for its calls
        tell_of_failure()
        ranks.close()
        raise
    here.ranks, here.started = ranks, True
    if mapped == "1":
        map_arrays_from_here()
    elif mapped == "" and functions.get_local_size(handle) > 1:
        let_arrays_move_from_here()
    return 0


def finalize() -> int:
    """Ends what `init` began, at the end of the program. Does nothing where there is nothing to end."""
    if initialized():
        tell_of_failure()
        ranks, here.ranks = here.ranks, _Nobody("was finalised; call nothing behind pyddl.finalize()")
        try:
            ranks.close()
        finally:
            _stop_watching()
    return 0


@atexit.register  # while its thread can still tell of a Ctrl-C that ends the program
def _leave():
    _stop_watching()
    tell_of_failure()


def tell_of_failure():
    """An exception that ends the program ends the waits of the other ranks: over MPI they would not hear of it, and the end of
    this process waits for theirs."""
    why = words_of_failure()
    if why is not None:
        abort_all(why)


def words_of_failure() -> typing.Optional[str]:
    """What the exception that ends the program says, if one does. What a prompt has shown did not end it."""
    failure = sys.exc_info()[1] or (None if hasattr(sys, "ps1") else getattr(sys, "last_value", None))
    if failure is None:
        return None
    why = type(failure).__name__
    try:
        why += f": {failure}"
    except Exception:  # pylint: disable=broad-except  # the program's own code
        pass
    return why


def _stop_watching():
    if here.watch is not None:
        here.watch.stop()
        here.watch = None


def initialized() -> bool:
    """Whether this process is between `init` and `finalize`."""
    return isinstance(here.ranks, Communicator)


def world() -> Communicator:
    """All ranks, as an object with a method for each function of this module."""
    return _ranks_for("world")


def _ranks_for(call):
    if not initialized():
        getattr(here.ranks, call)()
    return here.ranks


# Before `init`, and after `finalize`, the numbers are those of the launcher that `init` goes by. The first names are of none of MPI.
_VARIABLES = {
    "rank": ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"),
    "size": ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"),
    "local_rank": ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"),
    "local_size": ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"),
}


def _number(name, alone):
    if initialized():
        return getattr(here.ranks, name)
    for variable in _VARIABLES[name][functions.ranks_are_of_mpi():]:
        value = os.environ.get(variable, "")
        if value.isdigit():
            return int(value)
    return alone


def rank() -> int:
    """This process's rank, from 0."""
    return _number("rank", 0)


def size() -> int:
    """The number of ranks."""
    return _number("size", 1)


def local_rank() -> int:
    """This process's rank among those of its host: the number of the GPU to use, if each has one."""
    return _number("local_rank", 0)


def local_size() -> int:
    """The number of ranks on this host."""
    return _number("local_size", 1)


def malloc(alignment: int, nbytes: int) -> typing.Tuple[int, Memory]:
    """Memory that the other ranks of the host can map, zero at first: the bytes that it has, and the memory.

    The bytes are `nbytes` up to the next multiple of `alignment`; all of them may be used.
    """
    ranks = _ranks_for("malloc")
    numbers = []
    for name, value in (("alignment", alignment), ("nbytes", nbytes)):
        try:
            numbers.append(arrays.index(value))
        except (TypeError, ValueError) as why:
            raise type(why)(f"malloc, rank {ranks.rank}: {name} {why}") from None
    step, wanted = numbers
    if step < 1 or step & (step - 1) or step > 4096:
        raise ValueError(f"malloc, rank {ranks.rank}: alignment is {step}; pass a power of 2 up to 4096, such as 64")
    if wanted < 0:
        raise ValueError(f"malloc, rank {ranks.rank}: nbytes is {wanted}; pass 0 or more")
    usable = -(-wanted // step) * step
    return usable, ranks.malloc(usable)


def free(buf: Memory) -> int:
    """Gives memory of `malloc` back."""
    _named("free", buf, Memory.used)
    buf.free()
    return 0


def memcpy_host_to_device(buf: Memory, array) -> int:
    """Copies the elements of an array to the beginning of `buf`. The array may be changed behind `memsync`."""
    _named("memcpy_host_to_device", buf, memories.copy_to, array)
    return 0


def memcpy_device_to_host(array, buf: Memory) -> int:
    """Copies as many elements as an array has from the beginning of `buf`. They are there behind `memsync`."""
    _named("memcpy_device_to_host", buf, lambda memory, target: memories.copy_from(target, memory), array)
    return 0


def memsync() -> int:
    """Returns when all copies are done."""
    _ranks_for("memsync")
    return 0


def version() -> str:
    """The version of the library."""
    return functions.version().decode()


def _named(call, buf, act, *arguments):
    """Acts on memory of `malloc`; a failure says of which call, and on which rank."""
    if not isinstance(buf, Memory):
        raise TypeError(f"{call}, rank {rank()}: buf is of type {type(buf).__name__}; pass memory of pyddl.malloc")
    try:
        act(buf, *arguments)
    except Error:
        raise
    except (TypeError, ValueError) as why:
        raise type(why)(f"{call}, rank {rank()}: {'the array' if arguments and buf.address else 'buf'} {why}") from None
