# SPDX-License-Identifier: Apache-2.0
"""Training over the backend ddl, and scripts of the kinds that IBM DDL's users have."""

import re
import sys

import pytest

import conftest
import torch_ddl

pytest.importorskip("torch", minversion=torch_ddl.OLDEST)
TORCH = conftest.TORCH

DDP = """
from torch.nn.parallel import DistributedDataParallel
def train(model, inputs, targets, steps=4):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    return torch.cat([each.detach().flatten() for each in model.parameters()])
def net(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16, affine=False, momentum=0.0), torch.nn.Tanh(),
                               torch.nn.Linear(16, 4), torch.nn.Linear(4, 1)).eval()
torch.manual_seed(5)
inputs, targets = torch.randn(12, 6), torch.randn(12, 1)
ours = slice(rank * 12 // size, (rank + 1) * 12 // size)
"""


@pytest.mark.parametrize("count", [2, 3, 4])
def test_parallel_training_is_that_of_the_whole_batch(ranks, torch_on, count):
    ranks(count, DDP + """
alone = train(net(), inputs, targets)
for more in ({}, {"bucket_cap_mb": 1e-4}, {"gradient_as_bucket_view": True, "static_graph": True}, {"find_unused_parameters": True}):
    model = DistributedDataParallel(net(1 + rank), **more)  # whose weights are rank 0's
    found = train(model, inputs[ours], targets[ours])
    every = torch.empty(size, len(found))
    dist.all_gather_into_tensor(every, found)
    assert (every == found).all(), "ranks differ"
    assert torch.allclose(found, alone, atol=1e-5), (found, alone)
""", preamble=torch_on)


def test_hooks_of_gradients(ranks, torch_on):
    ranks(2, DDP + """
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
def in_bfloat16(state, bucket):  # torch refuses it by its name where it has no CUDA
    return default_hooks.bf16_compress_hook(state, bucket)
alone = train(net(), inputs, targets)
power = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2, min_compression_rate=0.5)
for state, hook, tolerance in ((None, default_hooks.allreduce_hook, 1e-5), (None, in_bfloat16, 3e-2),
                               (None, default_hooks.fp16_compress_hook, 1e-2), (power, powerSGD_hook.powerSGD_hook, 1.0)):
    model = DistributedDataParallel(net(), bucket_cap_mb=25 if state else 1e-4)  # calls of callbacks have no order among buckets
    model.register_comm_hook(state, hook)
    found = train(model, inputs[ours], targets[ours])
    assert torch.allclose(found, alone, atol=tolerance), (hook, found - alone)
    other = found.clone()
    dist.broadcast(other, 0)
    assert torch.equal(found, other)
unsure = DistributedDataParallel(net())
with unsure.no_sync():
    unsure(inputs[ours]).sum().backward()
unsure(inputs[ours]).sum().backward()
with unsure.join():  # uneven numbers of steps
    for _ in range(1 + rank): unsure(inputs[ours]).sum().backward()
unused = DistributedDataParallel(net(), find_unused_parameters=True)
with unused.join():
    for _ in range(1 + rank): unused(inputs[ours]).sum().backward()
""", preamble=torch_on)


def test_a_gradient_that_a_rank_does_not_bring(ranks):
    """A rank that leaves while the others are in their backward pass: they hear of it as an exception."""
    ranks(2, DDP + """
import pyddl
model = DistributedDataParallel(net())
if rank == 1:
    say("leaves")
    os._exit(0)
with refused(Exception, "rank 1"):
    train(model, inputs, targets)
say("told")
os._exit(0)
""", preamble=TORCH)


CLIENT = """
import argparse, os
import torch, torch.distributed as dist, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset
parser = argparse.ArgumentParser()
parser.add_argument("--dist-backend", default="ddl")
parser.add_argument("--dist-url", default="env://")
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()
"""
MNIST = CLIENT + """
class Partition(Dataset):
    def __init__(self, data, index): self.data, self.index = data, index
    def __len__(self): return len(self.index)
    def __getitem__(self, i): return self.data[self.index[i]]
def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size
if __name__ == "__main__":  # workers may import the script
    dist.init_process_group(args.dist_backend)
    torch.manual_seed(args.seed)
    data = TensorDataset(torch.randn(32, 8), torch.randint(0, 3, (32,)))
    size, rank = dist.get_world_size(), dist.get_rank()
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    for param in model.parameters(): dist.broadcast(param.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    for x, y in DataLoader(Partition(data, range(rank, 32, size)), batch_size=4, num_workers=WORKERS):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        average_gradients(model)
        optimizer.step()
    print("sum %.6f" % sum(float(p.sum()) for p in model.parameters()), flush=True)
"""
MNIST_DDP = CLIENT + """
dist.init_process_group(args.dist_backend, init_method=args.dist_url)
import pyddl
assert int(pyddl.local_rank()) == dist.get_rank() == int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
torch.manual_seed(args.seed)
data = TensorDataset(torch.randn(32, 8), torch.randint(0, 3, (32,)))
sampler = torch.utils.data.distributed.DistributedSampler(data, dist.get_world_size(), dist.get_rank())
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
for x, y in DataLoader(data, batch_size=4, shuffle=False, sampler=sampler, pin_memory=False):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
print("sum %.6f" % sum(float(p.sum()) for p in model.parameters()), flush=True)
dist.barrier()
"""
IMAGENET = CLIENT + """
args.world_size = int(os.environ["OMPI_COMM_WORLD_SIZE"])
dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url, world_size=args.world_size)
dist.barrier()
import pyddl
assert pyddl.local_rank() == dist.get_rank()
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 3))
model(torch.ones(2, 8)).sum().backward()
print("sum %.6f" % sum(float(p.grad.sum()) for p in model.parameters()), flush=True)
dist.destroy_process_group()
assert pyddl.local_rank() == int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
"""


def check(said, count):
    sums = re.findall(r"sum (-?\d+\.\d{6})", said)  # lines of two ranks may run together
    assert len(sums) == count and len(set(sums)) == 1, said


@pytest.mark.parametrize("text, words", [
    (MNIST.replace("WORKERS", "0"), ()), (MNIST.replace("WORKERS", "2"), ()), (MNIST_DDP, ["--dist-backend", "ddl"]),
    (IMAGENET, ["--dist-url", "tcp://224.66.41.62:23456"])], ids=["mnist", "with workers", "mnist_ddp", "imagenet"])
def test_scripts_under_ddlrun(ddlrun, program, text, words):
    done = ddlrun("--accelerators", 2, sys.executable, "-u", program(text), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    check(done.stdout, 2)


@pytest.mark.skipif(not conftest.IS_OPEN_MPI, reason="the scripts read the variables of Open MPI")
@pytest.mark.parametrize("text", [MNIST.replace("WORKERS", "0"), MNIST_DDP, IMAGENET], ids=["mnist", "mnist_ddp", "imagenet"])
def test_scripts_under_mpirun(mpirun, text):
    done = mpirun(2, text, preamble="")
    assert done.returncode == 0, done.stdout + done.stderr
    check(done.stdout, 2)


def test_the_benchmark(ddlrun):
    done = ddlrun("--accelerators", 2, sys.executable, conftest.ROOT / "benchmarks" / "torch_bench.py", "--max-bytes", 4096, "--calls", 3)
    assert done.returncode == 0 and len(re.findall(r"^ +\d+ .*\d$", done.stdout, re.M)) == 4, done.stdout + done.stderr


@pytest.mark.parametrize("option, value", [("--max-bytes", 7), ("--max-bytes", "1M"), ("--calls", 0), ("--device", "cuda")])
def test_the_benchmark_refuses_what_makes_no_sense(ddlrun, option, value):
    done = ddlrun("--accelerators", 1, sys.executable, conftest.ROOT / "benchmarks" / "torch_bench.py", option, value,
                  variables={"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode != 0 and f"argument {option}: " in done.stderr
    assert "ranks" not in done.stdout
