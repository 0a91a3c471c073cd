# SPDX-License-Identifier: Apache-2.0
"""dl_comm and ml_comm, in the order of calls of programs written for them."""

import pydoc

import pytest

import conftest

CRAY = "import os, threading\nimport numpy as np\nfrom programs import *\nimport dl_comm as cdl\nimport ml_comm as mc\nimport pyddl\n"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_training_script(ranks, count):
    ranks(count, """
cdl.init_mpi()
rank, size = cdl.get_rank(), cdl.get_nranks()
assert size == int(os.environ["WORLD_SIZE"]) and rank == cdl.localrank() == int(os.environ["RANK"])
cdl.init()
cdl.create_team(0, 2, 0)
cdl.create_team(1, 1, 1)
weights = [np.full((3, 4), rank, np.float32), np.full(7, rank, np.float64)]
assert cdl.broadcast(weights, size - 1)[0] is weights[0]
same(weights[0], np.full((3, 4), size - 1))
for team in (0, 1):
    gradients = [np.full((100, 4), rank, np.float32), np.full(3, 2.0 * rank), np.zeros(0, np.float32)]
    result = cdl.gradients(gradients, team)
    assert result[0] is gradients[0]
    same(gradients[0], np.full((100, 4), np.float32(sum(range(size)) / size)))
    same(gradients[1], np.full(3, 2.0 * sum(range(size)) / size))
with refused(pyddl.Error, "there is no team 2; pass the number of one that dl_create_team made"):
    cdl.gradients([np.ones(3, np.float32)], 2)
cdl.barrier()
cdl.finalize()
cdl.finalize()
""", preamble=CRAY)


def test_teams_side_by_side(ranks):
    ranks(2, """
cdl.init()
for team in (0, 1): cdl.create_team(team, 2, 0)
found = {}
def train(team):
    for step in range(30):
        found[team] = cdl.gradients([np.full(1000, cdl.get_rank() + team, np.float32)], team)[0]
threads = [threading.Thread(target=train, args=(team,)) for team in (0, 1)]
for each in threads: each.start()
for each in threads: each.join()
for team in (0, 1): same(found[team], np.full(1000, team + 0.5))
cdl.finalize()
""", preamble=CRAY)


def test_the_older_module(ranks):
    lines = ranks(2, """
mc.init_mpi()
rank = mc.get_rank()
weights = [np.full((2, 2), 1.0 + rank, np.float32), np.full(5, 3.0 + rank, np.float32)]
mc.init(2, 2, sum(each.size for each in weights), "tensorflow")
mc.config_team(0, 0, ksteps=100, max_steps=100, verbosity=2, perf_freq=2)
mc.config_team(1, 0, -.055 * 100, 100, 0, 100)
assert mc.check_buffers_match(weights, 1) == 2
mc.broadcast(weights, 0)
assert mc.check_buffers_match(weights, 0) == 0
for step in range(2):
    gradients = [np.full((2, 2), rank, np.float32), np.full(5, 1.0, np.float32)]
    averages = mc.gradients(gradients, 0)
    same(gradients[0], np.full((2, 2), rank))  # the originals stay
    same(averages[0] * mc.get_nranks(), np.ones((2, 2)))
same(mc.gradients(gradients, 1)[1], np.ones(5))
loss = np.array([rank], np.float32)
mc.average(loss)
same(loss, [0.5])
mc.barrier()
mc.finalize()
mc.finalize()
""", preamble=CRAY)
    assert any("team 0, step 2" in line for line in lines)
    assert any("arrays [0, 1] differ" in line for line in lines)


def test_init_without_init_mpi(ranks):
    ranks(2, "mc.init(1, 1, 10)\nassert mc.get_nranks() == 2\nmc.finalize()\n", preamble=CRAY)


def test_what_makes_no_sense_is_refused(ranks):
    ranks(1, """
import pyddl
data = [np.ones(3, np.float32)]
for act in (lambda: cdl.gradients(data), lambda: cdl.get_rank(), lambda: cdl.create_team(0, 1, 0), lambda: cdl.broadcast(data),
            lambda: cdl.barrier(), lambda: mc.average(data[0]), lambda: mc.gradients(data, 0), lambda: mc.config_team(0, 0, 0, 0, 0, 0)):
    with refused(pyddl.Error, "is not started; call init() first"):
        act()
cdl.init()
with refused(pyddl.Error, "no team; call init"):
    mc.gradients(data, 0)
mc.init(1, 1, 10)
locked = np.ones(3, np.float32)
locked.flags.writeable = False
for tensors, kind, words in (([np.ones(6, np.float32)[::2]], ValueError, "gradients, rank 0: tensor 0 is strided"),
                             (data + [locked], ValueError, "tensor 1 is read-only"), ([3], TypeError, "tensor 0 is of type int"),
                             ([np.ones(3, np.int8)], ValueError, "tensor 0 has elements of type int8"), (7, TypeError, "tensors is of type int; pass a list")):
    with refused(kind, words):
        cdl.gradients(tensors)
for act, words in ((lambda: cdl.gradients(data, -1), "teamID is -1"), (lambda: cdl.create_team(1, 0, 0), "nthreads_in_team is 0"),
                   (lambda: cdl.create_team(1, 1, 2), "prec_level is 2"), (lambda: cdl.create_team(-1, 1, 0), "teamID is -1"),
                   (lambda: cdl.broadcast(data, 1), "root is 1; pass 0 to 0"), (lambda: cdl.broadcast(data, -1), "root is -1"),
                   (lambda: mc.init(0, 1, 1), "nthreads_per_team is 0"), (lambda: mc.init(1, 0, 1), "nteams is 0"),
                   (lambda: mc.init(1, 1, -1), "max_len is -1")):
    with refused(ValueError, words):
        act()
with refused(TypeError, "teamID is 'a'"):
    cdl.gradients(data, "a")
with refused(ValueError, "teamID is 1; pass 0 to 0"):
    mc.gradients(data, 1)
with refused(ValueError, "ksteps is 11"):
    mc.config_team(0, 0, 11, 10, 0, 0)
with refused(ValueError, "verbosity is 3"):
    mc.config_team(0, 0, 1, 10, 3, 0)
same(cdl.gradients(data, 0)[0], np.ones(3))
cdl.finalize()
for name, act in (("init", cdl.init), ("init", lambda: mc.init(1, 1, 10)), ("init_mpi", cdl.init_mpi), ("get_rank", cdl.get_rank),
                  ("gradients", lambda: cdl.gradients(data))):
    with refused(pyddl.Error, f"{name}: dl_comm was finalised"):
        act()
""", preamble=CRAY)


def test_help():
    import dl_comm
    import ml_comm
    for module in (dl_comm, ml_comm):
        text = pydoc.plain(pydoc.render_doc(module))
        for name in module.__all__:
            assert name in text and getattr(module, name).__doc__
    assert "teamID" in pydoc.plain(pydoc.render_doc(dl_comm.gradients))
    assert conftest.PACKAGES.joinpath("dl_comm", "py.typed").exists()


def test_pytorch(ranks):
    pytest.importorskip("torch")
    ranks(2, """
import torch
import dl_comm.torch as cdl
torch.set_num_threads(1)
rank = cdl.get_rank()
torch.manual_seed(rank)
model = torch.nn.Linear(3, 1)
optimizer = cdl.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), nteam=1, nthread_per_team=1)
assert isinstance(optimizer, torch.optim.SGD)
start = [each.detach().clone() for each in model.parameters()]
loss = model(torch.full((4, 3), float(rank))).sum()
optimizer.zero_grad()
loss.backward()
optimizer.step()
same(model.weight.detach(), (start[0] - 0.1 * torch.full((1, 3), 2.0)))  # (0 + 4) / 2
same(model.bias.detach(), start[1] - 0.1 * 4)
shared = [each.detach().clone() for each in model.parameters()]
import dl_comm
dl_comm.broadcast(shared, 0)
for mine, first in zip(model.parameters(), shared):
    same(mine.detach(), first)
""", preamble=CRAY)
