# SPDX-License-Identifier: Apache-2.0
"""The public calls of torch.distributed over ddl and over Gloo: of each dtype, layout and length, waited for at once or later."""

import pytest

import conftest
import torch_ddl

pytest.importorskip("torch", minversion=torch_ddl.OLDEST)

CALLS = """
import itertools
by_gloo = dist.new_group(backend="gloo")
left, right, root = (rank - 1) % size, (rank + 1) % size, size - 1
layouts = (lambda t: t.contiguous(), lambda t: t.mT.contiguous().mT, lambda t: t.repeat_interleave(2, -1)[..., ::2])
on_root = lambda value: value if rank == root else None
integers = [torch.uint8, torch.int8, torch.int32, torch.int64]
dtypes = [*integers, torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64]  # those of which Gloo has all
probe = torch.tensor([rank])  # an older Gloo scatters the sum, whatever the op, and has no all_to_all of lists
dist.reduce_scatter_tensor(probe, torch.ones(size, dtype=probe.dtype), ReduceOp.MAX, group=by_gloo)
is_older = probe.item() != 1
ops = lambda dtype: [ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX] + (
    [ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR] if dtype in integers else [])

class Call:  # over one group; `made` are all of its tensors, those of Gloo in their order
    def __init__(self, group, dtype, layout, rows, later):
        self.made, self.dtype, self.rows = [], dtype, rows
        self.layout = layouts[0] if group is by_gloo else layout
        self.how, self.group = {"group": group, "async_op": later}, group
    def one(self, parts=1):
        shape, number = (self.rows * parts, 3), 100 * rank + len(self.made)
        self.made.append(self.layout(of(number, shape, self.dtype)))
        return self.made[-1]
    def each(self): return [self.one() for _ in range(size)]
    def forget(self): self.made.pop()  # what Gloo leaves of it is no result

def combine(name):
    def call(c, op):
        if name == "all_reduce": return dist.all_reduce(c.one(), op, **c.how)
        if name == "reduce_scatter": return dist.reduce_scatter(c.one(), c.each(), op, **c.how)
        if name == "reduce_scatter_tensor": return dist.reduce_scatter_tensor(c.one(), c.one(size), op, **c.how)
        work = dist.reduce(c.one(), root, op, **c.how)
        if rank != root: c.forget()
        return work
    return call
def round_trip(c):
    mine, theirs = c.one(), c.one()
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, right, c.group), dist.P2POp(dist.irecv, theirs, left, c.group)])
    for each in works[1:]: each.wait()
    return works[0]
combinations = [combine(name) for name in ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor")]
movements = [
    round_trip,
    lambda c: dist.broadcast(c.one(), root, **c.how), lambda c: dist.all_gather(c.each(), c.one(), **c.how),
    lambda c: dist.all_gather_into_tensor(c.one(size), c.one(), **c.how), lambda c: dist.gather(c.one(), on_root(c.each()), root, **c.how),
    lambda c: dist.scatter(c.one(), on_root(c.each()), root, **c.how), lambda c: dist.all_to_all_single(c.one(size), c.one(size), **c.how)]
if not is_older: movements.append(lambda c: dist.all_to_all(c.each(), c.each(), **c.how))

def compare(call, dtype, layout, rows, later, *more):
    found = []
    for group in (by_gloo, dist.group.WORLD):
        c = Call(group, dtype, layout, rows, later)
        work = call(c, *more)
        if work is not None: work.wait()
        found.append(c.made)
    for here, there in zip(*found):
        assert here.dtype == there.dtype and torch.equal(here, there), (call, dtype, layouts.index(layout), rows, later, more, here, there)

for dtype, layout, rows, later in itertools.product(dtypes, layouts, (2, 0), (False, True)):
    for op, call in itertools.product(ops(dtype), combinations[:2 if is_older else None]):
        compare(call, dtype, layout, rows, later, op)
    for call in movements: compare(call, dtype, layout, rows, later)
"""


@pytest.mark.parametrize("count", [2, 3])
def test_calls_over_both(ranks, count):
    ranks(count, CALLS, preamble=conftest.TORCH)
