# SPDX-License-Identifier: Apache-2.0
"""PyTorch and TensorFlow themselves, where they are installed; test_tensors.py has stand-ins for where they are not."""

import pytest

COMMON = """
import os
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
import numpy as np
import pyddl
import dl_comm as cdl
from programs import *
"""
TORCH = COMMON + "import torch\nimport dl_comm.torch as ct\nrank = ct.get_rank()\n"
TENSORFLOW = COMMON + "import tensorflow as tf\ncdl.init()\nrank = cdl.get_rank()\n"


def test_pytorch_in_place(ranks):
    pytest.importorskip("torch")
    ranks(2, """
pyddl.init()
for name in "int8 uint8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split():
    tensor = torch.ones(3, 4).to(getattr(torch, name))
    pyddl.allreduce(tensor)
    assert torch.equal(tensor, torch.full((3, 4), 2).to(tensor.dtype)), tensor
whole = torch.arange(12.0).reshape(3, 4)
for part in (whole[1], whole.T, whole.numpy()):
    expected = 2 * part
    pyddl.allreduce(part)
    assert (part == expected).all(), part
parameter = torch.nn.Parameter(torch.full((3,), float(rank)))
pyddl.broadcast(parameter.detach(), 1)
assert parameter.tolist() == [1, 1, 1]
for tensor, words in ((torch.ones(4, 4)[:, ::2], "is strided"), (torch.ones(1).expand(4), "is strided"),
                      (parameter, "use tensor.detach()"), (torch.ones(3, dtype=torch.complex64).conj(), "conjugate"),
                      (torch.ones(3, device="meta"), "meta"), (torch.eye(3).to_sparse(), "layout")):
    with refused(ValueError, f"allreduce, rank {rank}: x ", words):
        pyddl.allreduce(tensor)
pyddl.finalize()
""", preamble=TORCH)


def test_an_optimizer_of_pytorch(ranks):
    pytest.importorskip("torch")
    ranks(2, """
def train(model, optimizer, closure_too, inputs):
    for step in range(3):
        def closure():
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            return loss
        if closure_too: optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return torch.cat([each.detach().flatten() for each in model.parameters()])
inputs = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
for closure_too in (False, True):
    torch.manual_seed(7)
    alone = torch.nn.Linear(2, 1)
    expected = train(alone, torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9), closure_too, inputs)
    torch.manual_seed(7 + rank)  # rank 0's weights are those of all
    model = torch.nn.Linear(2, 1)
    optimizer = ct.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), nteam=2)
    assert isinstance(optimizer, torch.optim.SGD)
    found = train(model, optimizer, closure_too, inputs[rank:rank + 1])
    assert torch.allclose(found, expected), (found, expected)
def stepped(before):
    weight = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    if not before: optimizer = ct.DistributedOptimizer(optimizer, nteam=2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    if before: optimizer = ct.DistributedOptimizer(optimizer, nteam=2)
    for _ in range(2):
        weight.grad = torch.full((2,), rank + 1.0)
        optimizer.step()
        scheduler.step()
    return weight.tolist()
import warnings
warnings.simplefilter("error")
assert stepped(False) == stepped(True) == [-2.25] * 2, (stepped(False), stepped(True))
warnings.simplefilter("default")
mixed = [torch.full((2, 3), float(rank)), torch.full((5,), float(rank)).bfloat16(), np.full(4, rank, np.float64)]
assert [each.tolist() for each in cdl.gradients(mixed)] == [[[0.5] * 3] * 2, [0.5] * 5, [0.5] * 4]
""", preamble=TORCH)


def test_tensorflow(ranks):
    pytest.importorskip("tensorflow")
    ranks(2, """
weights = tf.Variable([5.0 * rank, 7.0])
for variable, value in zip([weights], cdl.broadcast([weights], 1)): variable.assign(value)
same(weights.numpy(), [5, 7])
with tf.GradientTape() as tape: loss = tf.reduce_sum(weights * (1.0 + rank))
given = tape.gradient(loss, [weights]) + [tf.cast(tf.fill([3], rank), tf.bfloat16)]
averages = cdl.gradients(given)
same(averages[0], [1.5, 1.5])
same(averages[1].astype(np.float32), [0.5] * 3)
same(given[0].numpy(), [1.0 + rank] * 2)  # tensors do not change
tf.keras.optimizers.SGD(2.0).apply_gradients(zip(averages, [weights]))
same(weights.numpy(), [2, 4])
pyddl.init()
with refused(ValueError, "x is read-only, and the result would replace it; pass a copy"):
    pyddl.allreduce(given[0])
cdl.finalize()
""", preamble=TENSORFLOW)
