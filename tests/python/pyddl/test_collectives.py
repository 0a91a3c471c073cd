# SPDX-License-Identifier: Apache-2.0
"""Every collective on 1 to 5 ranks, against what NumPy computes of all ranks' values."""

import pytest

RANKS = pytest.mark.parametrize("count", [1, 2, 3, 5])

VALUES = """
def values(of, n, dtype, low=0, high=4):
    "What rank `of` brings: small numbers, so that a sum is exact whatever its order."
    return np.random.default_rng(7 * of + n).integers(low, high, n).astype(dtype)
def of_all(n, dtype, **more):
    return np.stack([values(of, n, dtype, **more) for of in range(size)])
"""


@RANKS
def test_allreduce_of_every_dtype_and_op(ranks, count):
    ranks(count, VALUES + """
sums = ((pyddl.DDL_OP_SUM, np.add), (pyddl.DDL_OP_MIN, np.minimum), (pyddl.DDL_OP_MAX, np.maximum))
for dtype in "int8 uint8 int16 uint16 int32 uint32 int64 uint64 longlong float16 float32 float64".split():
    product = () if dtype in "int8 uint8 int16 uint16 uint32 uint64".split() else ((pyddl.DDL_OP_PRODUCT, np.multiply),)
    for op, expected in sums + product:
        for n in (0, 1, 7, 1000):
            mine = values(rank, n, dtype, low=1, high=3)
            pyddl.allreduce(mine, op=op)
            same(mine, expected.reduce(of_all(n, dtype, low=1, high=3), dtype=dtype))
for dtype in "uint8 uint16 uint32 uint64".split():
    for op, expected in ((pyddl.DDL_OP_BIT_AND, np.bitwise_and), (pyddl.DDL_OP_BIT_OR, np.bitwise_or),
                         (pyddl.DDL_OP_BIT_XOR, np.bitwise_xor)):
        mine = values(rank, 50, dtype, high=100)
        pyddl.allreduce(mine, op=op)
        same(mine, expected.reduce(of_all(50, dtype, high=100)))
for op, expected in ((pyddl.DDL_OP_LOGICAL_AND, np.logical_and), (pyddl.DDL_OP_LOGICAL_OR, np.logical_or),
                     (pyddl.DDL_OP_LOGICAL_XOR, np.logical_xor)):
    mine = values(rank, 50, bool, high=2)
    pyddl.allreduce(mine, op=op)
    same(mine, expected.reduce(of_all(50, bool, high=2)))
for dtype in "complex64 complex128".split():
    mine = values(rank, 33, dtype) * (1 + 2j)
    pyddl.allreduce(mine)
    same(mine, of_all(33, dtype).sum(0) * np.dtype(dtype).type(1 + 2j))
for dtype in "float16 float32 float64".split():
    mine = values(rank, 33, dtype) * size
    pyddl.allreduce(mine, op=pyddl.DDL_OP_AVERAGE)
    same(mine, of_all(33, dtype).sum(0))
pyddl.finalize()
""")


@RANKS
def test_bfloat16(ranks, count):
    pytest.importorskip("ml_dtypes")
    ranks(count, VALUES + """
import ml_dtypes
mine = values(rank, 99, np.float32).astype(ml_dtypes.bfloat16)
pyddl.allreduce(mine)
same(mine.astype(np.float32), of_all(99, np.float32).sum(0))
pyddl.allreduce(mine, 99, pyddl.DDL_TYPE_BFLOAT16, pyddl.DDL_OP_MAX)
same(mine.astype(np.float32), of_all(99, np.float32).sum(0))
pyddl.finalize()
""")


@RANKS
def test_the_other_collectives(ranks, count):
    ranks(count, VALUES + """
for n in (0, 1, 12, 5 * size + 3, 4096 * size):
    first = sum(pyddl.block(n, before) for before in range(rank))
    mine_of = slice(first, first + pyddl.block(n))
    total = of_all(n, np.float32).sum(0)
    for root in {0, size - 1}:
        data = values(rank, n, np.float32)
        pyddl.broadcast(data, root)
        same(data, values(root, n, np.float32))
        data = values(rank, n, np.float32)
        pyddl.reduce(data, root)
        same(data, total if rank == root else values(rank, n, np.float32))
        whole = np.zeros(n, np.float32)
        pyddl.gather(total[mine_of], whole if rank == root else None, root, n=n)
        if rank == root:
            same(whole, total)
        part = np.zeros(pyddl.block(n), np.float32)
        pyddl.scatter(total if rank == root else None, part, root, n=n)
        same(part, total[mine_of])
    part = np.zeros(pyddl.block(n), np.float32)
    pyddl.reduce_scatter(values(rank, n, np.float32), part)
    same(part, total[mine_of])
    whole = np.zeros(n, np.float32)
    pyddl.all_gather(part, whole)
    same(whole, total)
    if n % size == 0:
        pyddl.all_to_all(np.repeat(np.float32(rank), n), whole)
        same(whole, np.repeat(np.arange(size, dtype=np.float32), n // size))
    pyddl.barrier()
pyddl.finalize()
""")


@RANKS
def test_several_arrays_in_one_exchange(ranks, count):
    ranks(count, VALUES + """
tensors = [values(rank, n, np.float64) for n in (3, 0, 1000, 1)] + [pyddl.zeros(9, np.float64) + rank]
pyddl.allreduce_n(tensors)
for found, n in zip(tensors, (3, 0, 1000, 1)):
    same(found, of_all(n, np.float64).sum(0))
same(tensors[4], np.full(9, sum(range(size))))
for name in pyddl.__all__:
    if name.startswith("DDL_OP"):  # of no arrays there is each
        pyddl.allreduce_n([], getattr(pyddl, name))
        pyddl.allreduce_n_async([], getattr(pyddl, name)).wait()
pyddl.finalize()
""")


@RANKS
def test_requests_and_plans(ranks, count):
    ranks(count, """
import select
data = [np.full(1000, rank + i, np.float32) for i in range(4)]
under_way = [pyddl.allreduce_async(each) for each in data]
under_way.append(pyddl.barrier_async())
small = np.full(3, rank, np.int64)
under_way.append(pyddl.broadcast_async(small, size - 1))
several = [np.ones(2, np.float32), np.ones(5, np.float32)]
under_way.append(pyddl.allreduce_n_async(several))
for request in under_way:
    request.wait()
    assert request.test()
for i, each in enumerate(data):
    same(each, np.full(1000, sum(range(size)) + i * size))
same(small, [size - 1] * 3)
same(several[1], [size] * 5)
last = pyddl.allreduce_async(small)
assert select.select([last], [], [], 30)[0] == [last] and last.test()
plan = pyddl.plan_allreduce(data[0], op=pyddl.DDL_OP_MAX)
for turn in range(3):
    data[0][:] = rank + turn
    plan()
    same(data[0], np.full(1000, size - 1 + turn))
assert "allreduce of 1000" in plan.explain()
pyddl.finalize()
""")


def test_buffers_belong_to_their_collective(ranks):
    ranks(2, """
for start in (pyddl.allreduce_async, lambda buffer: pyddl.allreduce_n_async([buffer])):
    buffer = bytearray(512)
    started = start(buffer)
    with refused(BufferError, "cannot be re-sized"):
        buffer.extend(bytes(1 << 20))
    started.wait()
    buffer.extend(bytes(8))
""")


def test_parts_of_the_ranks(ranks):
    ranks(5, """
with pyddl.split(rank % 2, -rank) as part:
    members = [each for each in range(size) if each % 2 == rank % 2][::-1]
    assert (part.rank, part.size) == (members.index(rank), len(members))
    data = np.full(10, rank)
    part.allreduce(data)
    same(data, np.full(10, sum(members)))
    part.set_timeout(20)
pyddl.set_schedule("tuned")
with refused(pyddl.Unsupported, "set_schedule", f"rank {rank}", "nosuch"):
    pyddl.set_schedule("nosuch")
data = np.full(10, rank, np.float32)
pyddl.allreduce(data)
same(data, np.full(10, 10))
world = pyddl.world()
assert (world.rank, world.size, world.local_rank, world.local_size) == (rank, 5, rank, 5)
assert world.transport == "shared_memory" and "rank" in repr(world)
pyddl.finalize()
assert (pyddl.rank(), pyddl.size(), pyddl.local_rank(), pyddl.local_size()) == (rank, 5, rank, 5)
""")


@RANKS
def test_large_arrays(ranks, count):
    ranks(count, """
for make in (np.zeros, pyddl.zeros):
    data = make(3_000_001, np.float32)
    data[:] = np.arange(3_000_001) % 100 + rank
    pyddl.allreduce(data)
    same(data, np.arange(3_000_001) % 100 * size + sum(range(size)))
pyddl.finalize()
""")
