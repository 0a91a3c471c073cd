# SPDX-License-Identifier: Apache-2.0
"""Arrays of CuPy, in the memory of a GPU that all ranks share. Without a GPU all of it is skipped."""

import pytest

cupy = pytest.importorskip("cupy")
try:
    cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError as why:
    pytest.skip(f"no GPU: {why}", allow_module_level=True)

PREAMBLE = """
import numpy as np
import cupy as cp
import pyddl
from programs import *
pyddl.init()
rank, size = pyddl.rank(), pyddl.size()
def of(rank, count, dtype=np.float32): return np.random.default_rng(rank).integers(0, 4, count).astype(dtype)
def of_all(count, dtype=np.float32): return [of(each, count, dtype) for each in range(size)]
def same_on_gpu(found, expected): same(found.get(), expected)
"""
CHUNKS = 262_144 * 3 + 7  # elements of 4 bytes that pass in four chunks


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_each_collective(ranks, count):
    ranks(count, f"""
for n in (0, 1, 5, 1000, 65_537, {CHUNKS}):
    for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64):
        every = of_all(n, dtype)
        mine = cp.asarray(every[rank])
        pyddl.allreduce(mine)
        same_on_gpu(mine, sum(every))
        mine = cp.asarray(every[rank])
        pyddl.allreduce(mine, op=pyddl.DDL_OP_MAX)
        same_on_gpu(mine, np.max(every, 0))
        pyddl.broadcast(mine := cp.asarray(every[rank]), size - 1)
        same_on_gpu(mine, every[size - 1])
        pyddl.reduce(mine := cp.asarray(every[rank]), size - 1)
        if rank == size - 1: same_on_gpu(mine, sum(every))
        whole = cp.empty(n * size, dtype)
        pyddl.all_gather(cp.asarray(every[rank]), whole)
        same_on_gpu(whole, np.concatenate(every))
        out = cp.empty(n, dtype)
        pyddl.reduce_scatter(cp.asarray(np.concatenate(every)), out)
        same_on_gpu(out, size * every[rank])
        blocks = cp.empty(n * size, dtype)
        pyddl.all_to_all(cp.asarray(np.concatenate([every[rank] + each for each in range(size)]).astype(dtype)), blocks)
        same_on_gpu(blocks, np.concatenate([every[each] + rank for each in range(size)]).astype(dtype))
""", preamble=PREAMBLE)


def test_beside_arrays_of_the_host(ranks):
    ranks(2, f"""
every = of_all({CHUNKS})
mine = cp.asarray(every[0]) if rank == 0 else every[1].copy()
pyddl.allreduce(mine)
same(cp.asnumpy(mine), sum(every))
gpu, host = cp.asarray(every[rank]), every[rank].copy()
pyddl.allreduce_n([gpu, host, gpu[:0]])
same_on_gpu(gpu, sum(every))
same(host, sum(every))
nbytes, memory = pyddl.malloc(64, 4 * {CHUNKS})
pyddl.memcpy_host_to_device(memory, cp.asarray(every[rank]))
pyddl.allreduce(memory, {CHUNKS}, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_SUM)
pyddl.memcpy_device_to_host(gpu, memory)
same_on_gpu(gpu, sum(every))
""", preamble=PREAMBLE)


def test_plans_and_requests(ranks):
    ranks(3, f"""
for n in (3, {CHUNKS}):
    every = of_all(n)
    mine = cp.asarray(every[rank])
    plan = pyddl.plan_allreduce(mine)
    for _ in range(3): plan()
    same_on_gpu(mine, 9 * sum(every))
    several = [cp.asarray(every[rank]) for _ in range(4)]
    for request in [pyddl.allreduce_async(each) for each in several]: request.wait()
    for each in several: same_on_gpu(each, sum(every))
""", preamble=PREAMBLE)


def test_streams_that_produce(ranks):
    """What a stream of the program's still computes is waited for."""
    ranks(2, f"""
stream = cp.cuda.Stream(non_blocking=True)
big = cp.ones((2048, 2048), cp.float32)
every = of_all({CHUNKS})
for _ in range(5):
    with stream:
        mine = cp.zeros({CHUNKS}, cp.float32)
        for _ in range(20): big = (big @ big) * (1 / 2048)  # keeps the stream busy
        mine += cp.asarray(every[rank])
        pyddl.allreduce(mine)
    same_on_gpu(mine, sum(every))
""", preamble=PREAMBLE)


def test_mistakes(ranks):
    ranks(2, """
mine = cp.ones(1000, cp.float32)
with refused(pyddl.Mismatch, f"rank {rank}"):
    pyddl.allreduce(mine[:1000 - rank])
with refused(ValueError if rank == 0 else pyddl.Mismatch, "strided" if rank == 0 else "see its own error"):
    pyddl.allreduce(mine[::2] if rank == 0 else mine)
pyddl.allreduce(mine)
same_on_gpu(mine, np.full(1000, 2))
""", preamble=PREAMBLE)
