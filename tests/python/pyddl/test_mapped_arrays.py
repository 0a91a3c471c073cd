# SPDX-License-Identifier: Apache-2.0
"""Arrays that NumPy makes in a block lie in memory that peers can map, and are arrays like all others."""


def test_they_are_mapped_and_behave_as_arrays(ranks):
    ranks(2, """
def way(x): return pyddl.plan_allreduce(x).explain()
before = np.zeros(1 << 15, np.float32)
with pyddl.mapped_arrays():
    made = [np.zeros(1 << 15, np.float32), np.empty((1 << 6, 1 << 9)), np.arange(1 << 15), np.ones(1 << 15)[::2] + 1]
    short = np.ones(10)
    with pyddl.mapped_arrays():
        made.append(np.full(1 << 15, 7, np.float32))
    made.append(np.full(1 << 15, 8, np.float32))
behind = np.zeros(1 << 15, np.float32)
assert "mapped" in way(made[0]) and "mapped" not in way(before) and "mapped" not in way(behind), way(made[0])
same(made[0], np.zeros(1 << 15))
for data in made:
    assert "mapped" in way(data) and data.ctypes.data % 4096 == 0
    data[...] = rank + 1
    pyddl.allreduce(data)
    same(data, np.full(data.shape, 3))
pyddl.allreduce(short)
same(short, np.full(10, 2))
""")


def test_they_grow_shrink_and_go(python):
    python("""
with pyddl.mapped_arrays():
    data = np.arange(5000.)
    for count in (100000, 10, 6000, 0, 5000, 3):  # from one kind of memory to the other
        common = min(count, data.size, 3)
        kept = data[:common].copy()
        data.resize(count, refcheck=False)
        same(data[:common], kept)
        data[:] = np.arange(count)
        pyddl.allreduce(data)
        same(data, np.arange(count))
    for _ in range(300):  # far more than there is, if it were kept
        block = np.ones(4 << 20, np.float32)
    zeros = [np.zeros(3000, np.float32) for _ in range(50)]
    for each in zeros:
        each += 1
    del zeros
    for _ in range(50):
        same(np.zeros(3000, np.float32), np.zeros(3000))
    with refused(MemoryError):
        np.zeros(1 << 60, np.int8)
    made = np.ones(100000)
    pyddl.finalize()
    later = np.ones(100000)
same(made + later, np.full(100000, 2))
made.resize(200000, refcheck=False)
same(made[:100000], np.ones(100000))
""")


def test_before_the_start_there_are_none(python):
    python("""
import numpy as np
import pyddl
from programs import *
with refused(pyddl.Error, "not initialised"):
    with pyddl.mapped_arrays():
        pass
pyddl.init()
with refused(KeyError):
    with pyddl.mapped_arrays():
        raise KeyError
assert "mapped" not in pyddl.plan_allreduce(np.zeros(1 << 15)).explain()
np.lib.NumpyVersion.__lt__ = lambda self, other: True
with refused(pyddl.Unsupported, "mapped_arrays: NumPy", "use pyddl.zeros"):
    with pyddl.mapped_arrays():
        pass
""", preamble="")


def test_the_environment_asks_for_them_all(python):
    python("""
import os
import numpy as np
import pyddl
from programs import *
os.environ["DDL_MAPPED_ARRAYS"] = "yes"
with refused(pyddl.Error, "DDL_MAPPED_ARRAYS is \\"yes\\"", "set 0 or 1"):
    pyddl.init()
os.environ["DDL_MAPPED_ARRAYS"] = "1"
before = np.zeros(1 << 15)
pyddl.init()
behind = np.zeros(1 << 15)
assert before.ctypes.data % 4096 != 0 and behind.ctypes.data % 4096 == 0
pyddl.allreduce(behind)
""", preamble="")


def test_a_child_leaves_its_parents_memory_alone(ranks):
    ranks(2, """
def child_does(act):
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
count = 1 << 17  # long enough to go back to the system at once
with pyddl.mapped_arrays():
    def make(value):
        return [np.full(count, value), np.full(600, value)]
    made = make(1.0) + [pyddl.zeros(count, np.float64)]
    made[2][:] = 1
    def drop():
        made[0].resize(2 * count, refcheck=False)
        made[0][:] = 5
        made.clear()
        for each in make(7.0):
            same(each, np.full(each.shape, 7))
        with refused(MemoryError, "a process made by fork"):
            pyddl.zeros(count)
    child_does(drop)
    for each in made:
        same(each, np.ones(each.shape))
    more = make(2.0)
    def write():
        mine = make(9.0)
        same(mine[0], np.full(count, 9))
        for each in more:
            each[:] = 5
        made[2][0] = 3  # which is shared
    child_does(write)
    assert made[2][0] == 3
    made[2][0] = 1
    go, may = os.pipe()
    def look():
        os.read(go, 1)  # the parent has gone on
        for each in more:
            same(each, np.full(each.shape, 2))
    child = os.fork()
    if child == 0:
        try:
            look()
            os._exit(0)
        finally:
            os._exit(1)
    for each in more:
        each[:] = 4
    os.write(may, b"x")
    assert os.waitpid(child, 0)[1] == 0
    for each in more:
        each[:] = 2
    for each in made + more:
        pyddl.allreduce(each)
    for each in made:
        same(each, np.full(each.shape, 2))
    for each in more:
        same(each, np.full(each.shape, 4))
""")


def test_a_fork_beside_threads_that_allocate(python):
    python("""
import threading
over = threading.Event()
def work():
    while not over.is_set():
        pyddl.free(pyddl.malloc(64, 64)[1])
threads = [threading.Thread(target=work) for _ in range(3)]
for each in threads: each.start()
mine = pyddl.zeros(1000)
for _ in range(200):
    child = os.fork()
    if child == 0:
        del mine
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
over.set()
for each in threads: each.join()
""")
