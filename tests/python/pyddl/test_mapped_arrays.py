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
