# SPDX-License-Identifier: Apache-2.0
"""dl_comm and ml_comm under mpirun, on one node and as if on several."""

import pytest

import conftest

pytestmark = pytest.mark.skipif(not conftest.HAS_MPI, reason="this build has no MPI")
PREAMBLE = "import os, sys\nimport numpy as np\nfrom programs import *\nimport dl_comm as cdl\nimport ml_comm as mc\nimport pyddl\n"


@pytest.mark.parametrize("count, per_node", [(1, ""), (2, ""), (3, ""), (4, ""), (5, ""), (1, "1"), (2, "1"), (3, "1")])
def test_a_training_script(mpirun, count, per_node):
    # where several threads call MPI at once, MPICH 4.0.2 over UCX left messages unmatched
    threads = 1 if per_node and not conftest.IS_OPEN_MPI else 2
    done = mpirun(count, """
cdl.init_mpi()
rank, size = cdl.get_rank(), cdl.get_nranks()
mc.init(int(os.environ["THREADS"]), 2, 100_000)
weights = [np.full((3, 4), rank, np.float32), np.full(70_000, rank, np.float64), np.full(7, rank, np.int64)]
cdl.broadcast(weights, size - 1)
for each in weights: same(each, np.full(each.shape, size - 1))
assert mc.check_buffers_match(weights) == 0
mean = sum(range(size)) / size
for step in range(3):
    for team in (0, 1):
        gradients = cdl.gradients([np.full(100_000, rank, np.float32), np.full(3, 2.0 * rank)], team)
        same(gradients[0], np.full(100_000, np.float32(mean)))
        same(gradients[1], np.full(3, 2 * mean))
        same(mc.gradients([np.full(9, rank)], team)[0], np.full(9, int(mean)))
if size > 1:
    for act in (cdl.gradients, cdl.broadcast):
        with refused(ValueError if rank == 0 else pyddl.Error, "tensor 0" if rank == 0 else "rank 0 has called with invalid arguments"):
            act([np.ones(10)[::2] if rank == 0 else np.ones(10)])
cdl.barrier()
say("done", rank, size)
cdl.finalize()
""", preamble=PREAMBLE, variables={"THREADS": str(threads), **({"DDL_RANKS_PER_NODE": per_node} if per_node else {})})
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"done {rank} {count}" for rank in range(count)]


@pytest.mark.parametrize("end", ["raise KeyError('on purpose')", "sys.exit(3)", "sys.exit(0)"])
def test_the_others_hear_of_a_rank_that_ends(mpirun, end):
    done = mpirun(2, f"""
cdl.init()
cdl.create_team(0, 2, 0)
cdl.gradients([np.ones(5)])
if cdl.get_rank() == 1:
    {end}
try:
    cdl.gradients([np.ones(5)])
except pyddl.Error as told:
    say(told)
""", preamble=PREAMBLE, variables={"DDL_TIMEOUT": "20"})
    assert "rank 1 has ended" in done.stdout, done.stdout + done.stderr
    assert (done.returncode == 0) == (end == "sys.exit(0)") and ("on purpose" in done.stderr) == ("on purpose" in end)
