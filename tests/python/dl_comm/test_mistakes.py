# SPDX-License-Identifier: Apache-2.0
"""What one rank does wrong, all ranks hear of soon: the others by an error that names it. Then they go on."""

CRAY = """
import os, time
import numpy as np
from programs import *
import dl_comm as cdl
import ml_comm as mc
import pyddl
begin = time.monotonic()
cdl.init()
rank, size = cdl.get_rank(), cdl.get_nranks()
good = [np.full(5, rank, np.float32), np.full(3, rank, np.float64)]
def one_errs(wrong, right, kind, words, told="rank 1 has called with invalid arguments; see its own error"):
    "Rank 1 does what is wrong, the others what is right."
    before = [each.copy() for each in good]
    if rank == 1:
        with refused(kind, words):
            wrong()
    else:
        with refused(pyddl.Error, f"rank {rank}", told):
            right()
    for each, old in zip(good, before):
        same(each, old)
def broken_list():
    yield good[0]
    raise KeyError("on purpose")
bad_lists = (([np.ones(3, np.int8)], ValueError, "tensor 0 has elements of type int8"), (good + [3], TypeError, "tensor 2 is of type int"),
             (7, TypeError, "rank 1: tensors is of type int; pass a list of arrays"),
             (np.ones(5, np.float32), TypeError, "rank 1: tensors is one array; pass a list of arrays"),
             (np.float64(3), TypeError, "rank 1: tensors is of type float64; pass a list of arrays"),
             ([np.float64(3)], ValueError, "rank 1: tensor 0 is a NumPy scalar"),
             ([np.ones(6)[::2]], ValueError, "strided"), (broken_list(), KeyError, "on purpose"))
"""


def test_of_gradients_and_broadcast(ranks):
    ranks(3, """
cdl.create_team(0, 2, 0)
cdl.create_team(1, 1, 0)
for tensors, kind, words in bad_lists:
    one_errs(lambda: cdl.gradients(tensors, 1), lambda: cdl.gradients(good, 1), kind, words)
for tensors, kind, words in bad_lists[:-1]:
    one_errs(lambda: cdl.broadcast(tensors), lambda: cdl.broadcast(good), kind, words)
for root, kind in ((3, ValueError), ("a", TypeError)):
    one_errs(lambda: cdl.broadcast(good, root), lambda: cdl.broadcast(good), kind, "broadcast, rank 1: root is")
one_errs(lambda: cdl.create_team(7, 0), lambda: cdl.create_team(7, 1), ValueError, "create_team, rank 1: nthreads_in_team is 0")
other = 0 if rank == 1 else 1
for act in (cdl.gradients, cdl.broadcast):
    for lists in ([np.ones(4 + (rank == 1), np.float32)], [np.ones(4, np.float64 if rank == 1 else np.float32)],
                  [np.ones(4)] * (1 + (rank == 1))):
        with refused(pyddl.Error, f"rank {rank}: rank {other} ", "brings other lists; pass equal ", "lengths and types on every rank"):
            act(lists)
with refused(pyddl.Error, f"{'barrier' if rank == 1 else 'broadcast'}: rank {rank}: rank {other} brings other lists"):
    cdl.barrier() if rank == 1 else cdl.broadcast(good)
same(cdl.gradients(good, 1)[0], np.full(5, 1))
same(cdl.broadcast(good, 2)[1], np.full(3, 1))
cdl.finalize()
assert time.monotonic() - begin < 100
""", preamble=CRAY)


def test_of_the_number_of_the_only_team(ranks):
    ranks(2, """
for team in (-1, "a", 5000):  # before there is one
    one_errs(lambda: cdl.gradients(good, team), lambda: cdl.gradients(good), (TypeError, ValueError), "gradients, rank 1: teamID is")
mc.init(1, 1, 10)
for team in (-1, "a", 5000):
    one_errs(lambda: cdl.gradients(good, team), lambda: cdl.gradients(good), (TypeError, ValueError), "gradients, rank 1: teamID is")
one_errs(lambda: cdl.gradients(good, 3), lambda: cdl.gradients(good), pyddl.Error, "there is no team 3; pass the number of one")
one_errs(lambda: mc.gradients(good, 3), lambda: mc.gradients(good, 0), ValueError, "gradients, rank 1: teamID is 3; pass 0 to 0")
one_errs(lambda: mc.gradients(7, 0), lambda: mc.gradients(good, 0), TypeError, "rank 1: tensors is of type int; pass a list")
one_errs(lambda: mc.gradients(good[0], 0), lambda: mc.gradients(good, 0), TypeError, "rank 1: tensors is one array; pass a list")
one_errs(lambda: mc.broadcast(good[0], 0), lambda: mc.broadcast(good, 0), TypeError, "rank 1: tensors is one array; pass a list")
one_errs(lambda: mc.average(good[0].mean()), lambda: mc.average(good[0]), ValueError, "average, rank 1: tensor 0 is a NumPy scalar")
one_errs(lambda: mc.average(np.array(["a"])), lambda: mc.average(good[0]), ValueError, "has dtype")
one_errs(lambda: mc.check_buffers_match(7), lambda: mc.check_buffers_match(good), TypeError, "rank 1: tensors is of type int; pass a list of arrays")
same(mc.gradients(good, 0)[0], np.full(5, 0.5))
cdl.finalize()
assert time.monotonic() - begin < 100
""", preamble=CRAY)


def test_of_the_number_of_one_of_several_teams(ranks):
    ranks(2, """
cdl.create_team(0, 1, 0)
cdl.create_team(1, 1, 0)
one_errs(lambda: cdl.gradients(good, 2), lambda: cdl.gradients(good, 1), pyddl.Error, "there is no team 2")
for team in (0, 1):  # nobody knows which was meant: both have ended
    one_errs(lambda: cdl.gradients(good, team), lambda: cdl.gradients(good, team), pyddl.Error, "has named a team that is none", "rank 1")
cdl.finalize()
assert time.monotonic() - begin < 100
""", preamble=CRAY)


def test_of_the_environment(ranks):
    ranks(2, """
if rank == 1: os.environ["DL_COMM_DEFAULT_NTHREADS"] = "many"
one_errs(lambda: cdl.gradients(good), lambda: cdl.gradients(good), pyddl.Error, 'DL_COMM_DEFAULT_NTHREADS is "many"')
os.environ.pop("DL_COMM_DEFAULT_NTHREADS", None)
one_errs(lambda: cdl.gradients(7, 0), lambda: cdl.gradients(good, 0), TypeError, "rank 1: tensors is of type int; pass a list of arrays")
same(cdl.gradients(good)[0], np.full(5, 0.5))
cdl.finalize()
""", preamble=CRAY)
