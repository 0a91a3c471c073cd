# SPDX-License-Identifier: Apache-2.0
"""The methods of a process group in each of the ways in which torch lets them be called, beside Gloo's."""

import pytest

import conftest
import torch_ddl

torch = pytest.importorskip("torch", minversion=torch_ddl.OLDEST)
have_timeouts = "timeout" in torch.distributed.ProcessGroup.allreduce.__doc__  # with them came most of the ways
TORCH = conftest.TORCH

BOTH = """
Group, c10d, second = dist.ProcessGroup, dist.distributed_c10d, datetime.timedelta(seconds=100)
by_gloo = dist.new_group(backend="gloo")
def outcome(group, call, tensors):
    made = tensors()
    call(group, *made).wait()
    return made
def flat(tensors): return [part for each in tensors for part in ([each] if isinstance(each, torch.Tensor) else flat(each))]
def alike(tensors, *calls):
    found = [flat(outcome(group, call, tensors)) for group in (by_gloo, dist.group.WORLD) for call in calls]
    for each in found[1:]:
        for here, there in zip(each, found[0]): same(here, there)
mine = lambda: of(rank, (2, 3))
parts = lambda: [torch.zeros(2, 3) for _ in range(size)]
many = lambda: [of(10 * rank + each, (2, 3)) for each in range(size)]
row = lambda n: torch.arange(float(n)) + rank
"""


@pytest.mark.skipif(not have_timeouts, reason="a PyTorch whose methods have other ways")
@pytest.mark.parametrize("count", [2, 3])
def test_each_way_of_each_method(ranks, count):
    ranks(count, BOTH + """
o = dist.AllreduceOptions()
o.reduceOp = ReduceOp.MAX
alike(lambda: [mine()], lambda g, x: g.allreduce(x, ReduceOp.MAX), lambda g, x: g.allreduce([x], ReduceOp.MAX, second),
      lambda g, x: g.allreduce(tensor=x, op=ReduceOp.MAX, timeout=None), lambda g, x: g.allreduce(tensors=(x,), op=ReduceOp.MAX),
      lambda g, x: g.allreduce([x], o), lambda g, x: g.allreduce(tensors=[x], opts=o))
alike(lambda: [mine()], lambda g, x: g.allreduce(x), lambda g, x: g.allreduce([x]), lambda g, x: g.allreduce(x, timeout=second),
      lambda g, x: g.allreduce_coalesced([x]), lambda g, x: g.allreduce_coalesced(tensors=[x], opts=dist.AllreduceCoalescedOptions()))
o = dist.BroadcastOptions()
o.rootRank = 1
alike(lambda: [mine()], lambda g, x: g.broadcast(x, 1), lambda g, x: g.broadcast(x, 1, second), lambda g, x: g.broadcast([x], o),
      lambda g, x: g.broadcast(tensor=x, root=1, timeout=second), lambda g, x: g.broadcast(tensors=[x], opts=o))
alike(lambda: [mine()], lambda g, x: g.broadcast([x]), lambda g, x: g.broadcast(x, root=0))
o = dist.ReduceOptions()
o.rootRank, o.reduceOp = 1, ReduceOp.MAX
class OnRoot:  # elsewhere Gloo leaves anything
    def __init__(self, group): self.group = group
    def reduce(self, *given, **more):
        x = next(each[0] if isinstance(each, list) else each for each in (*given, *more.values()) if isinstance(each, (list, torch.Tensor)))
        self.group.reduce(*given, **more).wait()
        if rank != 1: x.zero_()
        return self
    def wait(self): pass
alike(lambda: [mine()], *[lambda g, x, call=call: call(OnRoot(g), x) for call in (
      lambda g, x: g.reduce(x, 1, ReduceOp.MAX), lambda g, x: g.reduce(tensor=x, root=1, op=ReduceOp.MAX, timeout=second),
      lambda g, x: g.reduce([x], o), lambda g, x: g.reduce(x, 1, timeout=None, op=ReduceOp.MAX))])
alike(lambda: [parts(), mine()], lambda g, out, x: g.allgather(out, x), lambda g, out, x: g.allgather([out], [x]),
      lambda g, out, x: g.allgather(out, x, second), lambda g, out, x: g.allgather(output_tensors=out, input_tensor=x, timeout=second),
      lambda g, out, x: g.allgather(output_tensors=[out], input_tensors=[x], opts=c10d.AllgatherOptions()),
      lambda g, out, x: g.allgather_coalesced(output_lists=[[each] for each in out], input_list=[x])
                      if g is not by_gloo else g.allgather(out, x))
o = dist.GatherOptions()
o.rootRank = 1
alike(lambda: [parts() if rank == 1 else [], mine()], lambda g, out, x: g.gather(out, x, 1), lambda g, out, x: g.gather(out, x, 1, second),
      lambda g, out, x: g.gather([out] if rank == 1 else [], [x], o), lambda g, out, x: g.gather(output_tensors=out, input_tensor=x, root=1))
o = dist.ScatterOptions()
o.rootRank = 1
alike(lambda: [mine(), many() if rank == 1 else []], lambda g, x, i: g.scatter(x, i, 1), lambda g, x, i: g.scatter(x, i, 1, second),
      lambda g, x, i: g.scatter([x], [i] if rank == 1 else [], o),
      lambda g, x, i: g.scatter(output_tensor=x, input_tensors=i, root=1, timeout=second))
o = dist.ReduceScatterOptions()
o.reduceOp = ReduceOp.MAX
alike(lambda: [mine(), many()], lambda g, x, i: g.reduce_scatter(x, i, ReduceOp.MAX), lambda g, x, i: g.reduce_scatter([x], [i], o),
      lambda g, x, i: g.reduce_scatter(output=x, input=i, op=ReduceOp.MAX, timeout=second),
      lambda g, x, i: g.reduce_scatter(output_tensors=[x], input_tensors=[i], opts=o))
alike(lambda: [mine(), many()], lambda g, x, i: g.reduce_scatter(x, i), lambda g, x, i: g.reduce_scatter(x, i, timeout=second))
alike(lambda: [parts(), many()], lambda g, x, i: g.alltoall(x, i), lambda g, x, i: g.alltoall(output_tensors=x, input_tensors=i))
splits = [2] * size
for name in [each for each in ("alltoall_base", "all_to_all_single") if hasattr(Group, each)]:
    alike(lambda: [row(2 * size), row(2 * size)], lambda g, x, i: getattr(g, name)(x, i, [], []),
          lambda g, x, i: getattr(g, name)(x, i, [], [], second), lambda g, x, i: getattr(g, name)(x, i, splits, splits, timeout=second),
          lambda g, x, i: getattr(g, name)(output=x, input=i, output_split_sizes=splits, input_split_sizes=[], timeout=None))
alike(lambda: [row(2 * size), row(2)], lambda g, x, i: g._allgather_base(output=x, input=i),
      lambda g, x, i: g.allgather_into_tensor_coalesced(outputs=[x], inputs=[i]))
alike(lambda: [row(2), row(2 * size)], lambda g, x, i: g._reduce_scatter_base(outputTensor=x, inputTensor=i),
      lambda g, x, i: g.reduce_scatter_tensor_coalesced(outputs=[x], inputs=[i]))
alike(lambda: [], lambda g: g.barrier(), lambda g: g.barrier(second), lambda g: g.barrier(timeout=second),
      lambda g: g.barrier(c10d.BarrierOptions()))
if rank < 2:
    alike(lambda: [mine()], lambda g, x: g.send(tensors=[x], dstRank=1, tag=3) if rank == 0 else g.recv(tensors=[x], srcRank=0, tag=3))
""", preamble=TORCH)


def test_arguments_of_no_way(ranks):
    """Those that Gloo refuses, too; the group is as good as before."""
    ranks(2, BOTH + """
x, all_reduce = torch.ones(2), f"all_reduce, rank {rank}: the arguments are none that allreduce has: "
for words, call in (("op is 3", lambda g: g.allreduce(x, 3)), ("tensors holds what is no tensor", lambda g: g.allreduce([[x]])),
                    ("tensors holds what is no tensor", lambda g: g.allreduce(3)), ("'bogus'", lambda g: g.allreduce(x, bogus=1)),
                    ("multiple values", lambda g: g.allreduce(x, ReduceOp.MAX, op=ReduceOp.MAX)),
                    ("'tensors'", lambda g: g.allreduce())):
    with refused(TypeError): call(by_gloo)
    with refused(TypeError, all_reduce, words): call(dist.group.WORLD)
for call in (lambda g: g.broadcast(x, "1"), lambda g: g.barrier(7), lambda g: g.allgather(x, 3), lambda g: g.alltoall([x], [3])):
    with refused(TypeError): call(by_gloo)
    with refused(TypeError, f"rank {rank}: the arguments are none"): call(dist.group.WORLD)
import pyddl
with refused(pyddl.Mismatch if rank else TypeError, "rank 0 has called with invalid arguments" if rank else "timeout is 7"):
    dist.group.WORLD.barrier(7 if rank == 0 else None).wait()
dist.barrier()
""", preamble=TORCH)


def test_the_timeout_of_a_call(ranks):
    ranks(2, """
import pyddl, time
soon = datetime.timedelta(seconds=0.2)
def check(call, kind=pyddl.Timeout, words=("rank 0: not done within 0.2 s, which was its timeout", "rank 0 gave up")):
    group = dist.new_group()
    if rank == 0:
        with refused(kind, words[0]): call(group)
        with refused(pyddl.Error): dist.barrier(group)
    dist.barrier()
    if rank == 1:
        with refused(pyddl.Error, words[1]): dist.barrier(group)
check(lambda g: g.barrier(timeout=soon).wait())
check(lambda g: g.allreduce(torch.ones(2), timeout=soon).get_future().wait(), RuntimeError)
check(lambda g: g.alltoall_base(torch.ones(2), torch.ones(2), [1, 1], [1, 1], soon).wait())
def options():
    opts = dist.AllreduceOptions()
    opts.timeout, opts.asyncOp = soon, False
    return opts
late = ["round 0: rank 1 did not arrive within 0.2 s"] * 2
if hasattr(dist.AllreduceOptions, "asyncOp"): check(lambda g: g.allreduce([torch.ones(2)], options()), words=late)  # of torch 2.8
check(lambda g: g.monitored_barrier(soon), words=late)
def polled(group):
    before = group.allreduce(torch.ones(2), timeout=datetime.timedelta(minutes=3))
    with refused(pyddl.Timeout, "wait: the collective was not done within 0.001 s"): before.wait(datetime.timedelta(seconds=0.001))
    work = group.allreduce(torch.ones(2), timeout=soon)
    while not work.is_completed(): time.sleep(0.01)
    assert not work.is_success()
    with refused(pyddl.Interrupted): before.wait()
    raise work.exception()
check(polled)
data = torch.ones(2)
dist.group.WORLD.allreduce(data, timeout=datetime.timedelta(seconds=200)).wait()  # which is long enough
same(data, torch.full((2,), 2.0))
dist.group.WORLD.monitored_barrier()
group = dist.new_group()
group.set_timeout(soon)
group.monitored_barrier(timeout=datetime.timedelta(minutes=3))
if rank == 0:  # later calls are by the group's own again
    with refused(pyddl.Timeout, *late): dist.barrier(group)
dist.barrier()
""", preamble=TORCH)
