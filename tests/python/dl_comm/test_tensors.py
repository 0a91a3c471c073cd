# SPDX-License-Identifier: Apache-2.0
"""Tensors of frameworks, by stand-ins that speak their protocols: the frameworks need not be there."""

CRAY = "import numpy as np\nfrom programs import *\nfrom tensors import *\nimport dl_comm as cdl\nimport ml_comm as mc\nimport pyddl\n"
PYDDL = "import numpy as np\nfrom programs import *\nfrom tensors import *\nimport pyddl\npyddl.init()\nrank = pyddl.rank()\n"


def test_dlpack(ranks):
    ranks(2, """
for versioned in (True, False):
    for dtype in "bool int8 uint16 int64 float16 float32 float64 complex64".split():
        tensor = Tensor(np.ones((4, 5), dtype), versioned=versioned, skip=64)
        pyddl.allreduce(tensor, op=pyddl.DDL_OP_LOGICAL_AND if dtype == "bool" else pyddl.DDL_OP_SUM)
        same(tensor.array, np.full((4, 5), 1 if dtype == "bool" else 2, dtype))
    bits = Tensor(np.full(7, 0x3F80, np.uint16), "bfloat16", versioned)  # 1.0
    pyddl.allreduce(bits)
    same(bits.array, np.full(7, 0x4000))
    parts = Tensor(np.full((3, 4), rank, np.float32).T, versioned=versioned)
    pyddl.broadcast(parts, 1)
    same(parts.array, np.ones((4, 3)))
for tensor, words in ((Tensor(np.ones(3), requires_grad=True), "use tensor.detach()"),
                      (Tensor(np.ones(3), device=ROCM), "lies on a device of DLPack type 10; copy it to the host"),
                      (Tensor(np.ones(3), major=2), "speaks DLPack 2.0"), (Tensor(np.ones((4, 4))[:, ::2]), "is strided"),
                      (Tensor(np.ones(3, np.complex128).astype(np.longdouble)), "elements of DLPack type float128")):
    with refused(ValueError, f"allreduce, rank {rank}: x ", words):
        pyddl.allreduce(tensor)
eager = EagerTensor(np.ones(3, np.float32))
with refused(ValueError, "is read-only, and the result would replace it; pass a copy"):
    pyddl.allreduce(eager)
mine = eager.numpy()
pyddl.allreduce(mine)
same(mine, np.full(3, 2))
pyddl.finalize()
""", preamble=PYDDL)


def test_arrays_of_one_value_whose_axes_lie_differently(ranks):
    """As that which one rank loaded from a file, and the others made."""
    ranks(2, """
mc.init(1, 1, 10)
rank = cdl.get_rank()
value = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
def mine(): return value.copy() if rank == 0 else np.asfortranarray(value)
same(mc.gradients([mine()], 0)[0], value)
assert mc.check_buffers_match([mine(), mine().T]) == 0
for root in (0, 1):
    first = mine() if rank == root else mine() * 0
    assert cdl.broadcast([first], root)[0] is first
    same(first, value)
average = mine() + rank
assert average.flags.c_contiguous == (rank == 0) and mc.average(average) is average
same(average, value + 0.5)
turned = np.matrix(np.eye(3) + [[0, rank, 0]] * 3).T
cdl.gradients([np.ones(3), turned])
same(turned, (np.eye(3) + [[0, 0.5, 0]] * 3).T)
with refused(ValueError, "tensor 0 is read-only"):
    turned.flags.writeable = False
    cdl.gradients([turned])
cdl.finalize()
""", preamble=CRAY)


def test_lists_of_them(ranks):
    ranks(2, """
cdl.init()
rank = cdl.get_rank()
cdl.create_team(0, 1, 1)
tensors = [Tensor(np.full((2, 3), rank, np.float32)), Tensor(np.full(5, 0x3F80 * rank, np.uint16), "bfloat16"),
           np.full(4, rank, np.float64)]
assert cdl.gradients(tensors)[0] is tensors[0]
same(tensors[0].array, np.full((2, 3), 0.5))
same(tensors[1].array, np.full(5, 0x3F00))  # 0.5
same(tensors[2], np.full(4, 0.5))
tensors[0].array[:] = rank
cdl.broadcast(tensors, 1)
same(tensors[0].array, np.ones((2, 3)))
fixed = np.ones(3)
fixed.flags.writeable = False
with refused(ValueError, f"gradients, rank {rank}: tensor 1 is read-only"):
    cdl.gradients([tensors[0], fixed])
eager = EagerTensor(np.full(3, rank, np.float32))
for act, expected in ((cdl.gradients, 0.5), (lambda list: cdl.broadcast(list, 1), 1)):  # what cannot change is replaced in the list
    given = [eager, tensors[0]]
    first, second = act(given)
    assert second is tensors[0] and given[0] is eager
    same(first, np.full(3, expected, np.float32))
    same(eager.numpy(), np.full(3, rank))
with refused(ValueError, f"broadcast, rank {rank}: tensor 0 has elements of type uint8"):
    cdl.broadcast([Tensor(np.ones(3, np.uint8))])
cdl.finalize()
mc.finalize()
""", preamble=CRAY)


def test_the_older_module_averages_copies(ranks):
    ranks(2, """
mc.init(1, 1, 10)
eager = EagerTensor(np.full(3, mc.get_rank(), np.float32))
same(mc.gradients([eager], 0)[0], np.full(3, 0.5))
same(eager.numpy(), np.full(3, mc.get_rank()))
mc.finalize()
""", preamble=CRAY)


def test_a_distributed_optimizer(ranks):
    ranks(2, """
import dl_comm.torch as torch
rank = torch.get_rank()
weights = [Tensor(np.full((2, 2), 1.0 + rank), requires_grad=True), Tensor(np.full(3, 5.0 * rank, np.float32), requires_grad=True)]
own = SGD(weights, 0.5)
optimizer = torch.DistributedOptimizer(own, nteam=2, nthread_per_team=1)
assert optimizer is own and isinstance(own, SGD) and type(own).__name__ == "DistributedSGD"
same(weights[0].array, np.ones((2, 2)))  # those of rank 0
same(weights[1].array, np.zeros(3))
weights[0].grad = Tensor(np.full((2, 2), 2.0 * rank))
assert optimizer.step() == "stepped"
same(weights[0].array, np.full((2, 2), 0.5))
same(weights[1].array, np.zeros(3))
other = torch.DistributedOptimizer(SGD([weights[1]], 1.0), nteam=2)
def closure(): weights[1].grad = Tensor(np.full(3, 4.0 * rank, np.float32))
closure()
other.step()
same(weights[1].array, np.full(3, -2))
other.step(closure)  # the averages are those of what it computes
same(weights[1].array, np.full(3, -4))
with refused(ValueError, "nteam is 0; pass 1 or more"):
    torch.DistributedOptimizer(own, nteam=0)
# a scheduler of before puts a step into the object, and knows it by a mark
scheduled = SGD([weights[1]], 1.0)
def counted(*arguments, step=scheduled.step):
    counted.calls += 1
    return step(*arguments)
counted.calls, counted._wrapped_by_lr_sched, scheduled.step = 0, True, counted
assert torch.DistributedOptimizer(scheduled, nteam=2) is scheduled and scheduled.step._wrapped_by_lr_sched
closure()
assert scheduled.step() == "stepped"
same(weights[1].array, np.full(3, -6))
scheduled.step(closure)
same(weights[1].array, np.full(3, -8))
assert counted.calls == 2 and not hasattr(other.step, "_wrapped_by_lr_sched")
""", preamble=CRAY)


def test_arrays_on_a_gpu_by_a_double_of_the_driver(ranks, cuda_double):
    ranks(2, cuda_double + """
def on_device(value, shape=(3, 1000), dtype=np.float32, **more): return OnDevice(np.full(shape, value, dtype), **more)
mc.init(2, 1, 10)
rank = cdl.get_rank()
there, turned, here = on_device(rank), OnDevice(np.full((4, 5), rank, np.float64, "F")), np.full(7, rank, np.float32)
given = [there, turned, here, on_device(rank, 0)]
assert all(one is other for one, other in zip(cdl.gradients(given, 0), given))
for each in (there.get(), turned.get(), here): same(each, np.full(each.shape, 0.5))
mixed = [on_device(rank, 9) if rank == 0 else np.full(9, rank, np.float32), on_device(rank, 9, np.int64)]
cdl.broadcast(mixed, 1)
same(mixed[0].get() if rank == 0 else mixed[0], np.ones(9))
same(mixed[1].get(), np.ones(9))
# the older module averages copies, in the memory of the host
own = OnDevice(np.arange(6.0, dtype=np.float32).reshape(2, 3).T + rank)
averages = mc.gradients([own, on_device(rank, 0)], 0)
same(averages[0], np.arange(6).reshape(2, 3).T + 0.5)
assert averages[1].shape == (0,)
same(own.get(), np.arange(6).reshape(2, 3).T + rank)
assert mc.check_buffers_match([here, own]) == 1
assert mc.average(own) is own and mc.check_buffers_match([own]) == 0
same(own.get(), np.arange(6).reshape(2, 3).T + 0.5)
# what one rank does wrong the other hears of
strided, locked, odd, busy = on_device(1, 6), on_device(1, 6), on_device(1, 6, np.int8), on_device(1, 6, stream=78)
strided.__cuda_array_interface__.update(shape=(3,), strides=(8,))
locked.__cuda_array_interface__["data"] = (locked.__cuda_array_interface__["data"][0], True)
for wrong, kind, words in ((strided, ValueError, "rank 1: tensor 0 is strided"), (locked, ValueError, "tensor 0 is read-only"),
                           (odd, ValueError, "tensor 0 has elements of type int8"), (busy, RuntimeError, "cuStreamSynchronize failed")):
    for act in (cdl.gradients, cdl.broadcast):
        with refused(kind if rank == 1 else pyddl.Error, words if rank == 1 else "rank 1 has called with invalid arguments"):
            act([wrong if rank == 1 else here])
fails_at = (ctypes.c_int * 5).in_dll(pyddl.cuda.memory()._driver, "double_of_cuda")
fails_at[4] = rank == 1
with refused(pyddl.Error, "the CUDA driver says 700" if rank == 1 else "see its own error"):
    cdl.gradients([there])
same(cdl.gradients([there])[0].get(), np.full((3, 1000), 0.5))
cdl.finalize()
""", preamble=CRAY)
