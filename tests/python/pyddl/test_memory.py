# SPDX-License-Identifier: Apache-2.0
"""Memory of `malloc`, and arrays of `zeros`: peers map it, it is given back, and what was given back is not used."""


def test_malloc_rounds_up_and_all_of_it_may_be_used(ranks):
    ranks(2, """
for wanted, given in ((0, 0), (1, 64), (64, 64), (65, 128), (400, 448), (1_000_000, 1_000_000)):
    usable, memory = pyddl.malloc(64, wanted)
    assert usable == given == memory.nbytes == len(memory)
    whole = np.asarray(memory)
    assert whole.dtype == np.uint8 and not whole.any()
    part = memory.array(usable // 4)
    part[:] = rank + 1
    pyddl.allreduce(memory, usable // 4, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_SUM)
    same(part, np.full(usable // 4, 3))
    pyddl.allreduce(part)
    same(part, np.full(usable // 4, 6))
    pyddl.allreduce(memory, type=pyddl.DDL_TYPE_UINT8, op=pyddl.DDL_OP_MAX)
    pyddl.free(memory)
""")


def test_copies(python):
    python("""
usable, memory = pyddl.malloc(64, 40)
pyddl.memcpy_host_to_device(memory, np.arange(10, dtype=np.float32))
back = np.zeros(10, np.float32)
pyddl.memcpy_device_to_host(back, memory)
pyddl.memsync()
same(back, np.arange(10))
locked = np.arange(5, dtype=np.int64)
locked.flags.writeable = False
pyddl.memcpy_host_to_device(memory, locked)
with refused(ValueError, "memcpy_device_to_host, rank 0: the array is read-only"):
    pyddl.memcpy_device_to_host(locked, memory)
for call, order in ((pyddl.memcpy_host_to_device, 1), (pyddl.memcpy_device_to_host, -1)):
    with refused(ValueError, call.__name__ + ", rank 0: the array has 800 bytes, and the memory 64"):
        call(*(memory, np.zeros(100))[::order])
    with refused(ValueError, "is strided"):
        call(*(memory, np.zeros(10)[::2])[::order])
    with refused(TypeError, "buf is of type ndarray; pass memory of pyddl.malloc"):
        call(*(np.zeros(3), np.zeros(3))[::order])
same(np.asarray(memory)[:40].view(np.int64), np.arange(5))
""")


def test_more_than_there_can_be(python):
    python("""
for nbytes, kind, words in ((2**64 + 64, ValueError, "nbytes is 18446744073709551680; pass a number of 64 bits"),
                            (-1, ValueError, "nbytes is -1; pass 0 or more"), (2.0, TypeError, "nbytes is 2.0; pass an integer")):
    with refused(kind, "malloc, rank 0: " + words):
        pyddl.malloc(64, nbytes)
    with refused(kind, "malloc, rank 0: " + words):
        pyddl.world().malloc(nbytes)
with refused(ValueError, "malloc, rank 0: nbytes is 9223372036854775808"):
    pyddl.malloc(64, 2**63 - 1)
with refused(ValueError, "malloc, rank 0: nbytes is 18446744073709551616"):
    pyddl.zeros(2**62)
""")


def test_freed_memory_is_not_used(python):
    python("""
usable, memory = pyddl.malloc(64, 400)
pyddl.free(memory)
assert "freed" in repr(memory)
for act in (lambda: pyddl.free(memory), lambda: pyddl.allreduce(memory, 100, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_SUM),
            lambda: pyddl.allreduce(memory), lambda: pyddl.memcpy_host_to_device(memory, np.zeros(3)),
            lambda: pyddl.memcpy_device_to_host(np.zeros(3), memory), lambda: pyddl.broadcast(memory)):
    with refused(ValueError, "rank 0", "that was freed"):
        act()
with refused(ValueError, "that was freed"):
    np.asarray(memory)
with refused(TypeError, "free, rank 0: buf is of type NoneType"):
    pyddl.free(None)
pyddl.allreduce(np.zeros(3))
""")


def test_sizes_that_make_no_sense(python):
    python("""
for alignment, nbytes, kind, words in ((64, -1, ValueError, "nbytes is -1"), (0, 8, ValueError, "alignment is 0"),
                                       (3, 8, ValueError, "alignment is 3"), (-64, 8, ValueError, "alignment is -64"),
                                       (64, 1.5, TypeError, "nbytes is 1.5"), (64, 2**70, ValueError, "nbytes is"),
                                       ("64", 8, TypeError, "alignment is '64'")):
    with refused(kind, "malloc, rank 0", words):
        pyddl.malloc(alignment, nbytes)
with refused(MemoryError):
    pyddl.malloc(64, 2**62)
usable, memory = pyddl.malloc(64, 64)
for shape in (17, (4, 5), -1):
    with refused(ValueError, "bytes"):
        memory.array(shape)
with refused(ValueError, "zeros"):
    pyddl.zeros(-1)
pyddl.allreduce(np.zeros(3))
""")


def test_zeros_live_as_long_as_they_are_used(ranks):
    ranks(2, """
import gc
data = pyddl.zeros((20, 50), np.float64)
assert data.shape == (20, 50) and not data.any()
row = data[3]
data[:] = rank
del data
gc.collect()
pyddl.allreduce(row)
same(row, np.ones(50))
for turn in range(200):
    pyddl.zeros(1 << 20, np.uint8)[0] = 1  # given back each time, or this would be 200 MiB
kept = pyddl.empty(10)
pyddl.finalize()
kept += 1  # outlives the ranks
same(kept, np.ones(10))
""")
