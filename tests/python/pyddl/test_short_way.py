# SPDX-License-Identifier: Apache-2.0
"""Calls whose arguments leave no question go from Python straight into the library; all others go the long way."""

import pytest

NO_LONG_WAY = """
class Taken(Exception):
    pass
def long_way(*_arguments, **_more):
    raise Taken
for name in ("allreduce", "broadcast", "reduce", "barrier"):
    setattr(pyddl.Communicator, "_long_" + name, long_way)
"""


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_plain_calls_take_it(ranks, number):
    ranks(number, NO_LONG_WAY + """
from pyddl.elements import NAMES, OF_TYPE
all_ranks = pyddl.world()
for name in NAMES:
    if name == "bfloat16":
        continue
    kind = next(number for number, element in OF_TYPE.items() if NAMES[element] == name)
    op = pyddl.DDL_OP_LOGICAL_OR if name == "bool" else pyddl.DDL_OP_SUM
    for call in (lambda x: pyddl.allreduce(x, None, None, op), lambda x: pyddl.allreduce(x, 5, kind, op),
                 lambda x: all_ranks.allreduce(x, op=op, type=kind), lambda x: pyddl.Communicator.allreduce(all_ranks, x, op=op),
                 lambda x: pyddl.allreduce(n=5, x=x, op=op)):
        data = np.array([0, 1, 1, 0, 1], name)
        assert call(data) == 0
        same(data, np.array([0, 1, 1, 0, 1] if name == "bool" else [0, size, size, 0, size], name))
    data = np.full(4, rank, name)
    assert pyddl.broadcast(data, root=size - 1) == 0 and pyddl.broadcast(data, size - 1, 4, kind) == 0
    same(data, np.full(4, size - 1, name))
for kind in (np.longlong, np.ulonglong, np.intc, np.dtype("l")):
    data = np.ones(3, kind)
    pyddl.allreduce(data)
    same(data, np.full(3, size))
data = np.full((2, 3), rank + 1.0, order="F")
assert pyddl.reduce(data, size - 1) == 0
total = size * (size + 1) / 2
same(data, np.full((2, 3), total if rank == size - 1 else rank + 1.0))
pyddl.reduce(data, 0, 2, pyddl.DDL_TYPE_DOUBLE, pyddl.DDL_OP_MAX)
if rank == 0:
    same(data.T.ravel()[:3], (total, total, 1))
pyddl.allreduce(np.array(1.0)), pyddl.allreduce(np.zeros((0, 3)))
several = np.ones(6)
pyddl.allreduce(several, 4)
same(several, [size] * 4 + [1, 1])
assert pyddl.barrier() == 0
nbytes, memory = pyddl.malloc(64, 12)
memory.array(3)[:] = 1
pyddl.allreduce(memory, 2)
pyddl.allreduce(memory, 3, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_MAX)
same(memory.array(3), [size, size, 1])
pyddl.allreduce(memory, type=pyddl.DDL_TYPE_INT8, n=nbytes)
""")


def test_all_others_go_the_long_way(python):
    python(NO_LONG_WAY + """
data, locked = np.zeros(9, np.float32), np.zeros(9, np.float32)
locked.flags.writeable = False
memory = pyddl.malloc(64, 64)[1]
alone = pyddl.split(0)
cases = [((data[::2],), {}), ((locked,), {}), ((data.view(">f4"),), {}), (([1.0],), {}), ((data.view("f4,f4,f4"),), {}),
         ((np.zeros((2, 3, 4)).transpose(1, 0, 2),), {}), ((data, 10), {}), ((data, -1), {}), ((data, 2.0), {}),
         ((data, np.int64(3)), {}), ((data, 2**70), {}), ((data, None, pyddl.DDL_TYPE_DOUBLE), {}), ((data, None, 99), {}),
         ((data,), {"op": None}), ((data,), {"op": -1}), ((data,), {"op": 2**31}), ((data,), {"op": "sum"}), ((), {}), ((), {"n": 1}),
         ((data,), {"other": 1}), ((data,), {"x": data}), ((data, 1), {"n": 1}), ((data, None, None, 0, 0), {}),
         ((memory, 65, pyddl.DDL_TYPE_UINT8), {}), ((np.zeros(3, "M8[s]"),), {}), ((np.array(["ab"]),), {}),
         ((np.zeros(3, np.longdouble),), {})]
for positional, named in cases:
    with refused(Taken):
        alone.allreduce(*positional, **named)
memory.free()
with refused(Taken):
    alone.allreduce(memory)
alone.close()
for call in (lambda: alone.allreduce(data), alone.barrier, lambda: alone.broadcast(data), lambda: alone.reduce(data, 0)):
    with refused(Taken):
        call()
""")


def test_only_memory_of_malloc_is_taken_for_it(python):
    """Not what says where it lies, and how long it is, in other words of its own."""
    python("""
class Block:
    def __init__(self, array):
        self.__array_interface__, self.address, self.nbytes = array.__array_interface__, array.ctypes.data, array.nbytes
data = np.full(4, 1.5)
pyddl.allreduce(Block(data), 4, pyddl.DDL_TYPE_DOUBLE)
with refused(ValueError, "allreduce, rank 0: n is 5; x holds 4 elements of type float64"):
    pyddl.allreduce(Block(data), 5)
class Untyped:
    address, nbytes = data.ctypes.data, data.nbytes
with refused(TypeError, "allreduce, rank 0: x is of type Untyped"):
    pyddl.allreduce(Untyped())
same(data, np.full(4, 1.5))
""")


def test_failures_are_exceptions_of_the_library(python):
    python(NO_LONG_WAY + """
with refused(pyddl.Unsupported, "allreduce, rank 0"):
    pyddl.allreduce(np.zeros(3, np.float32), op=pyddl.DDL_OP_BIT_XOR)
with refused(pyddl.InvalidArgument, "broadcast, rank 0: root is 7"):
    pyddl.broadcast(np.zeros(3), 7)
plan = pyddl.split(0).plan_allreduce(np.ones(3))
assert plan() == 0
plan._communicator.close()
with refused(pyddl.InvalidArgument, "run_plan"):
    plan()
with refused(TypeError):
    plan(1)
""")


def test_nothing_is_kept(python):
    python("""
import gc
data = np.zeros(3)
words = {"op": pyddl.DDL_OP_SUM, "n": 3}
before = [sys.getrefcount(each) for each in (data, words)]
for _ in range(1000):
    pyddl.allreduce(data, None, None, 0)
    pyddl.world().allreduce(data, **words)
    with refused(TypeError):
        pyddl.allreduce(data, op="sum")
gc.collect()
after = [sys.getrefcount(each) for each in (data, words)]
assert after == before, (before, after)
buffer = bytearray(8)
pyddl.allreduce(np.frombuffer(buffer, np.int64))
buffer.append(1)  # which a buffer that is still held forbids
""")


def test_other_threads_run_meanwhile(ranks):
    ranks(2, """
import ctypes, threading
from pyddl.library import functions
calls = ctypes.c_ulong.from_address(functions.python_calls())  # those of the main thread
before = calls.value
def tick():
    while calls.value == before: time.sleep(0.01)
    open("ticked", "w").close()  # while rank 0 waits for rank 1
if rank == 0:
    threading.Thread(target=tick).start()
else:
    while not os.path.exists("ticked"): time.sleep(0.02)
pyddl.barrier()
""")


def test_help_is_that_of_the_method(python):
    said = python("""
import inspect
for method in (pyddl.Communicator.allreduce, pyddl.world().reduce):
    print(inspect.signature(method), method.__doc__)
print(inspect.signature(pyddl.broadcast))
""")
    assert "(self, /, x, n=None, type=None, op=0) Replaces `x` by the combination of all ranks' `x`" in said
    assert "(x, root=0, n=None, type=None, op=0) Replaces the root's `x`" in said
    assert "(x: Any, root: int = 0, n: Optional[int] = None, type: Optional[int] = None) -> int" in said


@pytest.mark.parametrize("kind", ["another interpreter", "a library without it"])
def test_without_it_the_long_way_does_all(python, kind):
    cause = ("sys.implementation.name = 'another'; del ctypes.pythonapi" if kind == "another interpreter" else
             """real = ctypes.PYFUNCTYPE
def function(*types):
    return lambda of: (lambda name: None) if "ddl_python_method" in (of if isinstance(of, tuple) else ()) else real(*types)(of)
ctypes.PYFUNCTYPE = function""")
    python(f"""
import ctypes, sys
import numpy as np
import numpy.ctypeslib
{cause}
import pyddl
pyddl.init()
assert not hasattr(pyddl.Communicator, "_long_allreduce")
data = np.ones(3, np.float32)
memory = pyddl.malloc(64, 64)[1]
for x in (data, memory):
    assert pyddl.allreduce(x) == pyddl.allreduce(x, 3, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_SUM) == 0
assert pyddl.barrier() == pyddl.broadcast(data) == pyddl.reduce(data) == pyddl.plan_allreduce(data)() == 0
if not hasattr(ctypes, "pythonapi"):
    from programs import refused
    with refused(pyddl.Unsupported, "PyCapsule_GetPointer: another has no such function"):
        with pyddl.mapped_arrays():
            pass
""", preamble="")


def test_what_an_argument_raises(python):
    python("""
class Asked:
    def __init__(self, kind):
        self.kind = kind
    def __getattr__(self, name):
        raise self.kind(name)
with refused(KeyboardInterrupt, "address"):
    pyddl.allreduce(Asked(KeyboardInterrupt))
with refused(TypeError, "allreduce, rank 0: x is of type Asked"):
    pyddl.allreduce(Asked(AttributeError))
class Odd:
    _ddl_malloc_address, address, nbytes = 4096, 4096, -1
with refused(TypeError, "allreduce, rank 0: x is of type Odd"):
    pyddl.allreduce(Odd())
pyddl.allreduce(np.ones(3))
""")


def test_a_thread_that_python_ends_meanwhile(ranks):
    ranks(2, """
import ctypes, threading
from pyddl.library import functions
class Slow:  # keeps the end of the interpreter from ending the process before rank 1 has come and gone
    def __del__(self, make=os.mkdir, exists=os.access, sleep=time.sleep):
        make("ends")
        while not exists("gone", 0): sleep(0.02)
        sleep(0.3)  # for the thread, which wakes now
data = np.zeros(3)
if rank == 1:
    while not os.path.exists("ends"): time.sleep(0.02)
    pyddl.allreduce(data)
    os.mkdir("gone")
else:
    sys.slow, calls = Slow(), []  # what the thread can reach it would keep
    def work():
        calls.append(ctypes.c_ulong.from_address(functions.python_calls()))
        pyddl.allreduce(data)
    threading.Thread(target=work, daemon=True).start()
    while not calls or calls[0].value == 0: time.sleep(0.02)
""")
