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
with refused(MemoryError, "malloc"):
    pyddl.malloc(64, 1 << 50)
for shape, words in ((2**62, "(4611686018427387904,)"), ((2**40, 2**40), "(1099511627776, 1099511627776)"), ((1,) * 65, "(1, 1,"),
                     ((2**40, 2**40, 0), "(1099511627776, 1099511627776, 0)")):
    for name, make in (("zeros", pyddl.zeros), ("array", pyddl.malloc(64, 64)[1].array)):
        with refused(ValueError, f"{name}, rank 0: shape is {words}", ", of which NumPy makes no array: ", "; pass fewer elements, or fewer axes"):
            make(shape)
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
for name, act in (("free", memory.free), ("array", lambda: memory.array(3))):
    with refused(ValueError, name + ", rank 0: buf is memory of 448 bytes that was freed; do not use it any more"):
        act()
with refused(TypeError, "free, rank 0: buf is of type NoneType"):
    pyddl.free(None)
pyddl.allreduce(np.zeros(3))
""")


def test_memory_has_one_owner_in_one_process(python):
    python("""
import copy, pickle
usable, memory = pyddl.malloc(64, 64)
for act in (copy.copy, copy.deepcopy, pickle.dumps, lambda thing: pickle.dumps(thing, 0)):
    with refused(TypeError, "memory of pyddl.malloc is of one process, which holds it once; send, or copy, an array of it"):
        act(memory)
sent = pickle.loads(pickle.dumps(memory.array(16)))
same(sent, np.zeros(16))
pyddl.free(memory)
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
for shape, said in ((17, "(17,)"), ((4, 5), "(4, 5)")):
    with refused(ValueError, f"array, rank 0: shape is {said}, which takes", "bytes of float32, and buf has 64"):
        memory.array(shape)
for call, make in (("array", memory.array), ("zeros", pyddl.zeros)):
    for shape, kind, words in ((-1, ValueError, "shape is (-1,); pass 0 or more for each axis"),
                               ((2, -3), ValueError, "shape is (2, -3); pass 0 or more for each axis"),
                               (1.5, TypeError, "shape is 1.5; pass an integer"), (None, TypeError, "shape is None; pass an integer"),
                               (("2",), TypeError, "shape is '2'; pass an integer")):
        with refused(kind, f"{call}, rank 0: {words}"):
            make(shape)
    for dtype, words in ((object, "dtype is object; pass one of numbers"), ("S", "dtype is |S0; pass one of numbers"),
                         (("f4", (2,)), "dtype is ('<f4', (2,)); pass one of numbers"),
                         ("U3", "dtype is <U3; pass one of numbers"), ("M8[s]", "dtype is datetime64[s]; pass one of numbers"),
                         ("nonsense", "dtype is 'nonsense'; pass one that NumPy knows")):
        with refused(TypeError, f"{call}, rank 0: {words}"):
            make(3, dtype)
    assert make(np.array(3)).shape == (3,) and make([2, np.int64(1)], ">f4").shape == (2, 1)
    assert make((), np.float64).shape == () and make(0).shape == (0,)
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
