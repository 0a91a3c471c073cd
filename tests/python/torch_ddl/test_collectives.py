# SPDX-License-Identifier: Apache-2.0
"""The collectives of torch.distributed over the backend ddl, in scripts that import torch alone."""

import pytest

import conftest
import torch_ddl

pytest.importorskip("torch", minversion=torch_ddl.OLDEST)

TORCH = conftest.TORCH
COLLECTIVES = """
from functools import reduce as fold
shape = (3, 5)
combine = {ReduceOp.SUM: torch.add, ReduceOp.PRODUCT: torch.mul, ReduceOp.MIN: torch.minimum, ReduceOp.MAX: torch.maximum,
           ReduceOp.BAND: torch.bitwise_and, ReduceOp.BOR: torch.bitwise_or, ReduceOp.BXOR: torch.bitwise_xor}
integers = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
numbers = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64]
def check(op, dtype):
    all_of = [of(each, shape, dtype) for each in range(size)]
    whole = fold(combine[op], all_of).to(dtype)
    tensor = all_of[rank].clone()
    dist.all_reduce(tensor, op)
    same(tensor, whole)
    tensor = all_of[rank].clone()
    dist.reduce(tensor, size - 1, op)
    same(tensor, whole if rank == size - 1 else all_of[rank])
    each = [torch.cat([of(10 * r + i, (2,), dtype) for i in range(size)]) for r in range(size)]
    mine = fold(combine[op], each).to(dtype)[2 * rank:2 * rank + 2]
    out = torch.empty(2, dtype=dtype)
    dist.reduce_scatter_tensor(out, each[rank].clone(), op)
    same(out, mine)
    dist.reduce_scatter(out.fill_(0), list(each[rank].split(2)), op)
    same(out, mine)
for op in (ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX):
    for dtype in numbers + integers: check(op, dtype)
for dtype in numbers + integers: check(ReduceOp.PRODUCT, dtype)
large = torch.full((2, 3), 100 + rank, dtype=torch.int8).T  # whose product is of more bits
dist.all_reduce(large, ReduceOp.PRODUCT)
same(large, torch.prod(100 + torch.arange(size)).expand(3, 2).to(torch.int8))
for op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR):
    for dtype in integers + [torch.bool]: check(op, dtype)
for op, word in ((ReduceOp.SUM, torch.logical_or), (ReduceOp.MAX, torch.logical_or), (ReduceOp.PRODUCT, torch.logical_and),
                 (ReduceOp.MIN, torch.logical_and)):
    flags = of(rank, shape, torch.bool)
    dist.all_reduce(flags, op)
    same(flags, fold(word, [of(each, shape, torch.bool) for each in range(size)]))
average = of(rank, shape) * size
dist.all_reduce(average, ReduceOp.AVG)
same(average, sum(of(each, shape) for each in range(size)))
turned = torch.complex(of(rank, shape), of(rank + 9, shape))
dist.all_reduce(turned)
assert torch.equal(turned, sum(torch.complex(of(each, shape), of(each + 9, shape)) for each in range(size)))

moved = [torch.bool, torch.int16, torch.bfloat16, torch.float64, torch.complex64, torch.float8_e4m3fn]
for dtype in moved:
    all_of = [of(each, shape, torch.float32).to(dtype) for each in range(size)]
    mine = all_of[rank]
    def same(found, expected):
        assert found.dtype == expected.dtype and torch.equal(found.contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8))
    for root in range(size):
        tensor = mine.clone()
        dist.broadcast(tensor, root)
        same(tensor, all_of[root])
        parts = [torch.empty_like(mine) for _ in range(size)] if rank == root else None
        dist.gather(mine, parts, root)
        for found, expected in zip(parts or [], all_of): same(found, expected)
        opts = dist.GatherOptions()
        opts.rootRank = root
        whole = torch.zeros((3 * size, 5)).to(dtype)
        dist.group.WORLD.gather_single(whole if rank == root else torch.empty(0), mine, opts).wait()
        same(whole, torch.cat(all_of) if rank == root else torch.zeros((3 * size, 5)).to(dtype))
        tensor = torch.empty_like(mine)
        dist.scatter(tensor, all_of if rank == root else None, root)
        same(tensor, mine)
    parts = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(parts, mine)
    for found, expected in zip(parts, all_of): same(found, expected)
    whole = torch.empty((3 * size, 5), dtype=dtype)
    dist.all_gather_into_tensor(whole, mine)
    same(whole, torch.cat(all_of))
    lines = [torch.stack([of(10 * s + d, (4,)) for d in range(size)]).to(dtype) for s in range(size)]
    out = torch.empty_like(lines[rank])
    dist.all_to_all_single(out, lines[rank])
    same(out, torch.stack([each[rank] for each in lines]))
    rows = lambda s, d: (s + 2 * d) % 3  # from s to d
    sent, come = [rows(rank, each) for each in range(size)], [rows(each, rank) for each in range(size)]
    out = torch.zeros((sum(come), 2)).to(dtype)
    dist.all_to_all_single(out, torch.cat([of(10 * rank + d, (n, 2)) for d, n in enumerate(sent)]).to(dtype), come, sent)
    same(out, torch.cat([of(10 * s + rank, (n, 2)) for s, n in enumerate(come)]).to(dtype))
    parts = [torch.zeros(n).to(dtype) for n in come]
    dist.all_to_all(parts, [torch.full((n,), float(rank)).to(dtype) for n in sent])
    for s, found in enumerate(parts): same(found, torch.full((come[s],), float(s)).to(dtype))
tensor = torch.empty(2, 3)
dist.group.WORLD.scatter([tensor], [[of(each, (3, 2) if each else (6,)) for each in range(size)]] if rank == 0 else []).wait()
assert torch.equal(tensor.flatten(), of(rank, (6,)))
for objects in ([None] * size,):
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    assert [each["rank"] for each in objects] == list(range(size))
    objects = [{"of": rank}, rank]
    dist.broadcast_object_list(objects, src=size - 1)
    assert objects == [{"of": size - 1}, size - 1]
if hasattr(dist, "gather_single"):  # of torch 2.14
    whole = torch.empty(size) if rank == 0 else None
    dist.gather_single(torch.full((1,), float(rank)), whole)
    if rank == 0: assert whole.tolist() == list(range(size))
dist.all_reduce(torch.empty(0))
dist.destroy_process_group()
say("done")
"""


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_against_an_oracle(ranks, torch_on, count):
    assert ranks(count, COLLECTIVES, preamble=torch_on).count("done") == count


@pytest.mark.skipif(not conftest.HAS_MPI, reason="this build has no MPI")
def test_under_mpirun(mpirun):
    done = mpirun(2, COLLECTIVES, preamble=TORCH)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines().count("done") == 2


def test_layouts(ranks, torch_on):
    ranks(2, """
grid = torch.arange(12.0).reshape(3, 4)
for view in (lambda t: t[:, ::2], lambda t: t.T, lambda t: t[1:, 1]):
    tensor = grid.clone()
    dist.all_reduce(view(tensor))
    expected = grid.clone()
    view(expected).mul_(2)
    same(tensor, expected)
images = of(rank, (2, 3, 4, 4)).to(memory_format=torch.channels_last if rank else torch.contiguous_format)
dist.broadcast(images, 0)  # whose axes lie in another order on the other rank
same(images, of(0, (2, 3, 4, 4)))
turned = torch.complex(of(rank, (4,)), of(rank + 1, (4,))).conj()  # by a mark on one rank, by its values on the other
if rank: turned = turned.resolve_conj()
dist.group.WORLD.allreduce([turned]).wait()
assert torch.equal(turned, sum(torch.complex(of(each, (4,)), of(each + 1, (4,))).conj() for each in range(2)))
wide = torch.ones(1).expand(4) if rank == 0 else torch.zeros(4)  # to which nothing can be put back
dist.broadcast(wide, 0)
same(wide, torch.ones(4))
parts = [torch.zeros(4, 2).T[:, :3] for _ in range(2)]
dist.all_gather(parts, grid.T[:2, :] + rank)
for each in range(2): same(parts[each], grid.T[:2] + each)
leaf = torch.ones(3, requires_grad=True)
dist.all_reduce(leaf)
assert leaf.tolist() == [2, 2, 2]
for tensor, words in ((torch.eye(3).to_sparse(), "layout torch.sparse_coo"), (torch.ones(3, device="meta"), "device meta")):
    with refused(ValueError, f"all_reduce, rank {rank}: the tensor", words):
        dist.group.WORLD.allreduce([tensor])
""", preamble=torch_on)


def test_mistakes_are_told_on_all_ranks(ranks, torch_on):
    ranks(2, """
import pyddl
with refused(ValueError, "torch.float8_e4m3fn, which ddl moves and does not combine"):
    dist.all_reduce(torch.ones(2).to(torch.float8_e4m3fn))
with refused(ValueError, "PREMUL_SUM"):
    dist.all_reduce(torch.ones(2), dist._make_nccl_premul_sum(2.0))
with refused(ValueError, "torch.bool, of which there is no AVG"):
    dist.all_reduce(torch.ones(2, dtype=torch.bool), ReduceOp.AVG)
with refused(pyddl.Mismatch, f"rank {rank}"):
    dist.all_reduce(torch.ones(2 + rank))
with refused(pyddl.Mismatch, f"rank {rank}"):
    dist.all_reduce(torch.ones(2 + rank), async_op=True).wait()
with refused(pyddl.Mismatch if rank else ValueError, f"all_gather, rank {rank}", "" if rank else "the tensor_list is to hold 2"):
    dist.group.WORLD.allgather([[torch.ones(2)] * (1 + rank)], [torch.ones(2)]).wait()
with refused(pyddl.Mismatch if rank else IndexError, "rank 0 has called with invalid arguments" if rank else "index out of range"):
    dist.group.WORLD.reduce([torch.ones(2)] if rank else []).wait()
if rank: dist.all_reduce(torch.ones(4))
else:  # what fails behind the call concerns nobody else
    with refused(RuntimeError, "single memory location"): dist.all_reduce(torch.ones(1).expand(4))
with refused(ValueError, "the output has 3 elements of torch.float32, and input 4"):
    dist.reduce_scatter_tensor(torch.ones(3), torch.ones(4))
with refused(ValueError, "the input has 3 elements; pass a multiple of the 2 ranks"):
    dist.all_to_all_single(torch.ones(3), torch.ones(3))
with refused(pyddl.Mismatch, "rank 0 sends 1 elements to rank 1, which expects 2"):
    dist.all_to_all_single(torch.ones(2 + rank), torch.ones(2), [1, 1] if rank == 0 else [2, 1], [1, 1])
with refused(pyddl.Mismatch, "pass splits on every rank or on none" if rank == 0 else "rank 0 calls all_gather"):
    dist.all_to_all_single(torch.ones(2), torch.ones(2), *([[1, 1], [1, 1]] if rank == 0 else []))
with refused(ValueError, "output has 0 parts; pass one for each of the 2 ranks"): dist.all_to_all([], [])
with refused(ValueError, "output is a tensor of no dimensions"): dist.all_to_all_single(torch.tensor(1.0), torch.ones(2), [1], [1, 1])
with refused(pyddl.Unsupported, "name the source"): dist.recv(torch.ones(1))
for name, call in (("send", dist.group.WORLD.send), ("recv", dist.group.WORLD.recv)):
    for other in (rank, 2, -2):
        with refused(ValueError, f"{name}, rank {rank}: rank {other} is no other of the 2 ranks"): call([torch.ones(1)], other, 0)
with refused(pyddl.Mismatch, "recv, rank 1: rank 0 sent 8 bytes with tag 0, and the tensor has 12" if rank else
             "send, rank 0, round 0: rank 1 brings 12 bytes, this rank 8"):
    (dist.recv if rank else dist.send)(torch.ones(2 + rank), 1 - rank)
mine, theirs = 12 + 4 * rank, 16 - 4 * rank  # what only moves is counted in bytes
for call, parts in ((lambda: dist.broadcast(torch.ones(3 + rank), 0), 1),
                    (lambda: dist.broadcast(torch.ones(3 + rank), 0, async_op=True).wait(), 1),
                    (lambda: dist.gather(torch.ones(3 + rank), [torch.ones(3)] * 2 if rank == 0 else None), 2)):
    with refused(pyddl.Mismatch, f"rank {1 - rank} brings {theirs * parts} bytes, this rank {mine * parts}; pass equal counts"): call()
with refused(pyddl.Mismatch, f"rank {1 - rank} brings {4 - rank} elements, this rank {3 + rank}"): dist.all_reduce(torch.ones(3 + rank))
dist.barrier()  # all of these leave the group as it was
""", preamble=torch_on)


def test_work(ranks, torch_on):
    ranks(2, """
import pyddl, threading
works = []
tensors = [torch.full((1000 * i + 1,), float(rank)) for i in range(20)]
for each in tensors: works.append(dist.all_reduce(each, async_op=True))
dist.barrier()  # which is carried out behind them
for work, each in zip(works, tensors):
    assert work.is_completed() and work.is_success() and work.exception() is None
    same(each, torch.ones_like(each))
    assert work.wait() and work.wait(datetime.timedelta(seconds=9)) and work.result()[0] is each
assert works[0].get_future().done()
# a call that the other rank does not join yet
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    tensor = torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    assert not work.is_completed()
    with refused(pyddl.Timeout, "was not done within 0.01 s"):
        work.wait(datetime.timedelta(seconds=0.01))
    future = work.get_future()
    assert not future.done() and work.get_future() is future
    doubled = future.then(lambda it: it.value()[0] * 2)
    # a callback that communicates, and waits for that
    chained = future.then(lambda it: dist.all_reduce(it.value()[0], async_op=True).get_future().wait()[0])
    store.set("go", "1")
else:
    store.get("go")
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    dist.all_reduce(tensor)
if rank == 0:
    assert doubled.wait().tolist() == [4, 4, 4] and chained.wait().tolist() == [4, 4, 4]
assert tensor.tolist() == [4, 4, 4]
failed = dist.all_reduce(torch.ones(2 + rank), async_op=True)
future = failed.get_future()
with refused(Exception, "elements"): future.wait()
assert failed.is_completed() and not failed.is_success() and isinstance(failed.exception(), pyddl.Mismatch)
with refused(pyddl.Mismatch): failed.wait()
# several at once
pairs = [torch.full((3,), float(rank)), torch.full((2, 2), rank, dtype=torch.int64), torch.full((4,), rank + 1.0)]
dist.group.WORLD.allreduce(pairs).wait()
same(pairs[0], torch.ones(3)); same(pairs[1], torch.ones(2, 2, dtype=torch.int64)); same(pairs[2], torch.full((4,), 3.0))
with dist._coalescing_manager():
    for each in pairs[::2]: dist.all_reduce(each)
same(pairs[2], torch.full((4,), 6.0))
with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as together:
    for root in range(2): dist.broadcast(pairs[root], root, async_op=True)
together.wait()
outs = [torch.empty(2), torch.empty(4)]
with dist._coalescing_manager():
    for n, out in enumerate(outs): dist.all_gather_into_tensor(out, torch.full((n + 1,), float(rank)))
same(outs[1], torch.tensor([0.0, 0, 1, 1]))
parts = [torch.empty(1), torch.empty(2)]
with dist._coalescing_manager():
    for out, source in zip(parts, outs): dist.reduce_scatter_tensor(out, source)
same(parts[1], torch.full((2,), 2.0 * rank))
""", preamble=torch_on)


def test_functional_collectives(ranks):
    ranks(2, """
import torch.distributed._functional_collectives as functional
group = list(range(size))
same(functional.all_reduce(torch.ones(3) * rank, "sum", group) + 0, torch.ones(3))
same(functional.all_gather_tensor(torch.ones(2) * rank, 0, group) + 0, torch.tensor([0.0, 0, 1, 1]))
same(functional.reduce_scatter_tensor(torch.arange(4.0), "sum", 0, group) + 0, torch.arange(4.0)[2 * rank:2 * rank + 2] * 2)
same(functional.all_to_all_single(torch.arange(2.0) + rank, None, None, group) + 0, torch.arange(2.0) + rank)
same(functional.broadcast(torch.ones(3) * rank, 1, group) + 0, torch.ones(3))
""", preamble=TORCH)


def test_in_compiled_functions(ranks):
    ranks(2, """
@torch.compile(backend="eager")
def step(tensor):
    tensor = tensor * 2
    dist.broadcast(tensor, 1)
    dist.all_reduce(tensor)
    dist.reduce(tensor, 0)
    dist.barrier()
    parts = [torch.empty_like(tensor) for _ in range(2)]
    dist.all_gather(parts, tensor)
    dist.scatter(tensor, parts if rank == 0 else None, 0)
    return tensor + 1
for turn in range(2): same(step(torch.ones(3) * rank), torch.full((3,), 9.0 - 4 * rank))
@torch.compile(backend="eager")
def exchange(tensor):
    if rank == 0: dist.send(tensor + 1, 1)
    else: dist.recv(tensor, 0)
    return tensor * 2
same(exchange(torch.ones(3)), torch.full((3,), 2.0 + 2 * rank))
""", preamble=TORCH)


def test_from_one_rank_to_another(ranks):
    ranks(3, """
import pyddl
left, right = (rank - 1) % size, (rank + 1) % size
for turn in range(3):  # all send first
    mine, theirs = torch.full((2, 3), rank + 10.0 * turn).T, torch.empty(3, 2)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, theirs, left)])
    for each in works: each.wait()
    same(theirs, torch.full((3, 2), left + 10.0 * turn))
if rank == 0:
    dist.send(torch.tensor([1, 2], dtype=torch.int16), 2)
    for tag in (7, 8): dist.isend(torch.tensor([tag]), 2, tag=tag)
    assert dist.isend(torch.empty(0), 1).wait()
if rank == 1: dist.recv(torch.empty(0), 0)
if rank == 2:
    got = torch.zeros(4, dtype=torch.int16)[::2]
    dist.recv(got, 0)
    assert got.tolist() == [1, 2]
    late = [torch.empty(1, dtype=torch.int64) for _ in range(2)]
    for tag in (8, 7):  # by their tags
        work = dist.irecv(late[tag - 7], 0, tag=tag)
        assert work.wait() and late[tag - 7].item() == tag and work._source_rank() == 0
import threading
if rank == 0:
    waits = [dist.isend(torch.full((2,), tag), 2, tag=tag) for tag in range(40)] + [dist.isend(torch.ones(3), 2, tag=40) for _ in range(2)]
    before = threading.active_count()
    for each in waits: each.wait()
    assert threading.active_count() == before  # not one for each tag
if rank == 2:
    before = threading.active_count()
    got = torch.empty(2, dtype=torch.int64)
    for tag in reversed(range(40)):  # all of them but the last come before they are wanted
        dist.recv(got, 0, tag=tag)
        assert got.tolist() == [tag, tag]
    assert threading.active_count() == before
    works = [dist.irecv(torch.empty(3), 0, tag=40)]
    works.append(dist.irecv(got, 0, tag=41))
    works.append(dist.irecv(torch.empty(3), 0, tag=40))
    for each in works[::2]: each.wait()
    works.append(dist.irecv(torch.empty(1), 0, tag=50))
dist.barrier()
if rank == 0:
    for length, tag in ((4, 50), (4, 42), (2, 41)): waits.append(dist.isend(torch.full((length,), tag), 2, tag=tag))
    with refused(pyddl.Mismatch, "send, rank 0", "rank 2 brings"): waits[-3].wait()
    for each in waits[-2:]: each.wait()
if rank == 2:
    with refused(pyddl.Mismatch, "recv, rank 2: rank 0 sent 32 bytes with tag 50, and the tensor has 4"): works[-1].wait()
    works[1].wait()
    assert got.tolist() == [41, 41]
    with refused(pyddl.Mismatch, "recv, rank 2: rank 0 sent 32 bytes with tag 42, and the tensor has 8"): dist.recv(torch.empty(2), 0, tag=42)
if rank == 2: works = [dist.irecv(got, 0, tag=60)]
if rank == 0:
    for value in (1, 2): dist.send(torch.full((2,), value), 2, tag=61)  # are taken in, though nobody wants them yet
dist.barrier()
if rank == 2:
    for value in (1, 2):  # and handed over, though tag 60 is still to come
        dist.recv(more := torch.empty(2, dtype=torch.int64), 0, tag=61)
        assert more.tolist() == [value, value]
dist.barrier()
if rank == 0: dist.send(torch.full((2,), 3), 2, tag=60)
if rank == 2: assert works[0].wait() and got.tolist() == [3, 3]
group = dist.new_group([1, 2])
if rank == 1: dist.send(torch.ones(1) * 5, 2, group=group)
if rank == 2:
    dist.recv(late[0].float(), 1, group=group)
    dist.send_object_list([{"of": rank}], 0)
if rank == 0:
    objects = [None]
    dist.recv_object_list(objects, 2)
    assert objects == [{"of": 2}]
dist.destroy_process_group()
""", preamble=TORCH)
