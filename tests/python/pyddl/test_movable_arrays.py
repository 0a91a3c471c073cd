# SPDX-License-Identifier: Apache-2.0
"""Ordinary arrays that collectives keep using move into memory that peers can map, and stay what and where they are."""

TOLD = """
import ctypes
def mapped(x): return "mapped:" in pyddl.plan_allreduce(x).explain()
"""


def test_an_array_moves_at_the_eighth_call(ranks):
    ranks(2, TOLD + """
for dtype in (np.float32, np.float64, np.int16):
    data = np.zeros((1 << 9, 1 << 7), dtype, order="F")
    address = data.ctypes.data
    for turn in range(1, 13):
        data[...] = rank + turn
        pyddl.allreduce(data)
        same(data, np.full(data.shape, 2 * turn + 1, dtype))
        assert mapped(data) == (turn >= 8), turn
    assert data.ctypes.data == address
    part = data.T[1:-1]
    assert mapped(part)
    part[...] = rank
    pyddl.allreduce(part)
    same(part, np.ones(part.shape))
    same(data[:, 0], np.full(1 << 9, 25))
    short = data.T[3, :5]
    short[...] = rank
    pyddl.allreduce(short)
    same(short, np.ones(5))
""")


def test_each_collective_finds_what_has_moved(ranks):
    ranks(3, TOLD + """
count = 3 << 14
whole, other, part = np.zeros(count), np.zeros(count), np.zeros(count // 3)
def value(of): return np.arange(count) % 97 + of
for turn in range(10):
    whole[:] = value(rank)
    pyddl.reduce(whole, root=turn % 3)
    if rank == turn % 3:
        same(whole, 3 * value(1))
    whole[:] = value(rank)
    pyddl.broadcast(whole, root=turn % 3)
    same(whole, value(turn % 3))
    data = [np.full(count, rank + 1.0), whole, other]
    other[:] = rank
    whole[:] = value(rank)
    pyddl.world().allreduce_n(data)
    for each, expected in zip(data, (np.full(count, 6), 3 * value(1), np.full(count, 3))):
        same(each, expected)
    request = pyddl.world().allreduce_async(other)
    request.wait()
    same(other, np.full(count, 9))
    plan = pyddl.plan_allreduce(other)
    plan()
    same(other, np.full(count, 27))
    part[:] = rank
    pyddl.world().all_gather(part, whole)
    same(whole, np.repeat(np.arange(3), count // 3))
    inside = whole[rank * len(part):(rank + 1) * len(part)]
    whole[:] = -1
    inside[:] = rank + 5
    pyddl.world().all_gather(inside, whole)
    same(whole, np.repeat(np.arange(5, 8), count // 3))
    whole[:] = value(rank)
    pyddl.world().reduce_scatter(whole, inside)
    same(inside, 3 * value(1)[rank * len(part):(rank + 1) * len(part)])
    whole[:] = value(rank)
    pyddl.world().all_to_all(whole, other)
    for peer in range(3):
        same(other[peer * len(part):(peer + 1) * len(part)], value(peer)[rank * len(part):(rank + 1) * len(part)])
assert mapped(whole) and mapped(other)
""")


def test_a_call_in_place_is_one_while_its_array_moves(ranks):
    ranks(2, TOLD + """
half = 1 << 15
gathered, scattered, mine = np.zeros(2 * half), np.zeros(2 * half), slice(rank * half, (rank + 1) * half)
for turn in range(10):
    gathered[:] = -1
    gathered[mine] = turn + rank
    pyddl.world().all_gather(gathered[mine], gathered)
    same(gathered, np.repeat([turn, turn + 1], half))
    scattered[:] = np.arange(2 * half) + rank
    pyddl.world().reduce_scatter(scattered, scattered[mine])
    same(scattered[mine], (2 * np.arange(2 * half) + 1)[mine])
assert mapped(gathered) and mapped(scattered)
""")


def test_ranks_whose_arrays_move_at_different_times(ranks):
    ranks(3, TOLD + """
kept = np.zeros(1 << 15)
for turn in range(16):
    data = kept if rank == 0 or (rank == 1 and turn > 5) else np.zeros(1 << 15)
    data[:] = np.arange(1 << 15) + rank
    pyddl.allreduce(data)
    same(data, 3 * (np.arange(1 << 15) + 1))
assert mapped(kept) == (rank < 2)
""")


def test_they_grow_shrink_and_go(ranks):
    ranks(2, TOLD + """
with refused(MemoryError):
    np.zeros(1 << 60, np.int8)
for _ in range(40):
    data = np.arange(1 << 14) * 1.0
    for _ in range(9):
        pyddl.allreduce(data, op=pyddl.DDL_OP_MAX)
    same(data, np.arange(1 << 14))
    for count in (1 << 17, 1 << 15, 10, 1 << 14):
        kept = data[:10].copy()
        data.resize(count, refcheck=False)
        same(data[:10], kept)
        data[:] = np.arange(count)
        for _ in range(9):
            pyddl.allreduce(data, op=pyddl.DDL_OP_MAX)
        same(data, np.arange(count))
    fresh = [np.full(1 << 14, 3.0), np.zeros(1 << 14)]
    pyddl.allreduce(data, op=pyddl.DDL_OP_MAX)
    del data
    same(np.zeros(1 << 14), np.zeros(1 << 14))
    same(fresh[0] + fresh[1], np.full(1 << 14, 3))
late = np.ones(1 << 14)
for _ in range(9):
    pyddl.allreduce(late, op=pyddl.DDL_OP_MAX)
assert mapped(late)
pyddl.finalize()
late += 1
same(late, np.full(1 << 14, 2))
late.resize(1 << 16, refcheck=False)
same(late[:1 << 14], np.full(1 << 14, 2))
same(np.ones(1 << 15) + np.ones(1 << 15), np.full(1 << 15, 2))
""")


def test_a_child_has_a_copy(ranks):
    ranks(2, TOLD + """
data = np.zeros(1 << 15)
for _ in range(9):
    data[:] = 2
    pyddl.allreduce(data)
assert mapped(data)
go, may = os.pipe()
def look():
    os.read(go, 1)  # the parent has gone on
    same(data, np.full(data.shape, 4))
    data[:] = 9
    data.resize(1 << 17, refcheck=False)
    same(data[:1 << 15], np.full(1 << 15, 9))
child = fork(look)
data[:] = 5
os.write(may, b"x")
assert os.waitpid(child, 0)[1] == 0
same(data, np.full(data.shape, 5))
pyddl.allreduce(data)
same(data, np.full(data.shape, 10))
""")


def test_a_thread_may_read_what_is_sent_while_it_moves(ranks):
    ranks(2, TOLD + """
import threading
for _ in range(20):
    sent, received = np.full(1 << 17, rank + 1.0), np.zeros(2 << 17)
    done, wrong = threading.Event(), []
    def read():
        while not done.is_set():
            if not (sent == rank + 1).all():
                wrong.append(1)
    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(9):
        pyddl.world().all_gather(sent, received)
    done.set()
    reader.join()
    assert not wrong
    same(received, np.repeat([1, 2], 1 << 17))
""")


def test_what_is_under_way_is_awaited_before_an_array_moves(ranks):
    ranks(2, TOLD + """
for turn in range(30):
    data = np.zeros(1 << 18)
    for _ in range(6):
        pyddl.allreduce(data)
    data[:] = turn + 3 * rank
    under_way = pyddl.world().broadcast_async(data, 1)
    pyddl.allreduce(data)
    same(data, np.full(data.shape, 2 * turn + 6))
    under_way.wait()
    assert mapped(data)
""")


def test_a_failed_call_leaves_an_array_to_use(ranks):
    ranks(3, TOLD + """
data, part = np.zeros(3 << 15), np.zeros(1 << 15)
for _ in range(9):
    data[:] = part[:] = rank
    pyddl.world().all_gather(part, data)
    pyddl.allreduce(part)
assert mapped(data) and mapped(part)
part[:] = 5
if rank == 2:
    pyddl.world().abort("it had enough")
else:
    with refused(pyddl.Broken, "it had enough"):
        pyddl.world().all_gather(part, data)
same(part, np.full(1 << 15, 5))
data[:] = 4
same(data, np.full(3 << 15, 4))
data.resize(5 << 15, refcheck=False)
same(data[:3 << 15], np.full(3 << 15, 4))
""")


def test_who_does_not_want_it_has_none(ranks):
    ranks(2, """
import os
os.environ["DDL_MAPPED_ARRAYS"] = "0"
import numpy as np
import pyddl
from programs import *
pyddl.init()
data = np.zeros(1 << 15)
assert data.ctypes.data % 4096 != 0
for _ in range(12):
    pyddl.allreduce(data)
assert "mapped:" not in pyddl.plan_allreduce(data).explain()
""", preamble="")


def test_somebody_elses_handler_stays(ranks):
    ranks(2, """
import ctypes
import numpy as np
import pyddl
from pyddl.mapped_arrays import _handler_getter, handler_setter
from pyddl.dlpack import pointer_of
from programs import *

class Handler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("functions", ctypes.c_void_p * 5)]
theirs = Handler.from_buffer_copy((ctypes.c_char * ctypes.sizeof(Handler)).from_address(
    pointer_of(_handler_getter()(), b"mem_handler")))
assert theirs.name == b"default_allocator"
theirs.name = b"somebody else's"
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
name = ctypes.create_string_buffer(b"mem_handler")
capsule = new(ctypes.addressof(theirs), ctypes.cast(name, ctypes.c_char_p), None)
handler_setter()(capsule)
pyddl.init()
assert _handler_getter()() is capsule
assert np.zeros(1 << 15).ctypes.data % 4096 != 0
""", preamble="")


def test_a_rank_that_shares_memory_with_nobody_has_none(python):
    python("""
assert np.zeros(1 << 15).ctypes.data % 4096 != 0
""")


def test_beside_a_device_they_stay(ranks, cuda_double):
    ranks(2, cuda_double + """
import ctypes
ctypes.CDLL(pyddl.cuda.LIBRARY, mode=ctypes.RTLD_GLOBAL)
data = np.zeros(1 << 15)
for _ in range(12):
    data[:] = rank
    pyddl.allreduce(data)
    same(data, np.ones(1 << 15))
assert "mapped:" not in pyddl.plan_allreduce(data).explain()
""")
