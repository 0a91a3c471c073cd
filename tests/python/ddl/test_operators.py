# SPDX-License-Identifier: Apache-2.0
"""The operators of ddl_MDR.so in TensorFlow itself, called by scripts that load the library and do not import ddl."""

import os
import pathlib
import sys

import pytest

import conftest

pytest.importorskip("tensorflow")

LOADED = conftest.TENSORFLOW + """
from pyddl import library
PATH = next(path for path in library.candidates("ddl_MDR.so") if os.path.exists(path))
operators = tf.load_op_library(PATH)
"""
STARTED = LOADED + """
with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto(device_count={"GPU": 0})) as session:
    rank, size, local_rank, local_size, gpuid = session.run(operators.init(int(os.environ.get("OMPI_COMM_WORLD_SIZE", 2)), mode=""))
of = lambda rank, shape: np.random.default_rng(rank).integers(0, 4, shape)
ADDED = [tf.float32, tf.float16, tf.bfloat16, tf.float64, tf.int32, tf.int64]
MOVED = ADDED + [tf.bool, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.uint32, tf.uint64, tf.complex64, tf.complex128]
"""
COLLECTIVES = """
assert (local_rank, local_size, gpuid) == (rank, size, rank)
everyone = [of(each, (2, 3)) for each in range(size)]
mine = everyone[rank]
total, mean = sum(everyone), sum(everyone) / size
for dtype in ADDED:
    given = tf.cast(mine, dtype)
    for more in ({}, {"check": 0.01}, {"mpi": True}):
        result = operators.all_reduce(given, op="sum", **more)
        assert result.dtype == dtype
        same(tf.cast(result, tf.float64), total)
        result = tf.cast(operators.all_reduce(given, op="avg", **more), tf.float64)
        assert np.allclose(result, np.trunc(mean) if dtype.is_integer else mean, rtol=1e-2), (dtype, result, mean)
    same(tf.cast(given, tf.float64), mine)  # a tensor stays as it is
for dtype in MOVED:
    same(operators.bcast(tf.cast(mine, dtype)), tf.cast(everyone[0], dtype))
several = operators.all_reduce_n([tf.cast(mine, tf.float32), tf.zeros([0]), tf.ones([])], op="sum")
same(several[0], total)
assert several[1].shape == [0] and several[2].numpy() == size

@tf.function
def step(x):
    y = operators.bcast(x)
    z = operators.all_reduce(x, op="sum")
    operators.all_reduce(x, op="avg")  # whose result nobody wants: it runs all the same
    assert y.shape == x.shape and z.shape == x.shape, "shapes are inferred"
    return y, z
for _ in range(3):
    y, z = step(tf.cast(mine, tf.float32))
    same(y, everyone[0])
    same(z, total)

with tf.Graph().as_default(), v1.Session() as session:
    fed = v1.placeholder(tf.float32, [None, 3])
    first = operators.all_reduce(fed, op="sum")
    with tf.control_dependencies([first]):
        second = operators.all_reduce_n([fed, 2 * fed], op="avg")
    with tf.control_dependencies(second):
        third = operators.bcast(fed)
    with tf.control_dependencies([third]):
        constant = operators.all_reduce(tf.constant([1.0]), op="sum")  # is not folded, and not joined with the next
    with tf.control_dependencies([constant]):
        again = operators.all_reduce(tf.constant([1.0]), op="sum")
    assert first.shape.as_list() == [None, 3] and second[1].shape.as_list() == [None, 3]
    for _ in range(2):
        results = session.run([first, second[0], second[1], third], {fed: mine})
        for found, expected in zip(results, (total, mean, 2 * mean, everyone[0])):
            assert np.allclose(found, expected)
        same(session.run(again, {fed: mine}), [size])
"""


@pytest.mark.parametrize("count", [1, 2, 3])
def test_collectives(ranks, count):
    ranks(count, COLLECTIVES, preamble=STARTED)


@pytest.mark.skipif(not conftest.HAS_MPI, reason="MPI is not installed")
def test_collectives_over_mpi(mpirun):
    """Where `mpi=True` and `check` are by MPI_Allreduce."""
    done = mpirun(2, COLLECTIVES, preamble=STARTED)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mistakes(ranks):
    ranks(2, """
with refused(errors.FailedPreconditionError, "Bcast: DDL is not started; run the operator init first"):
    operators.bcast(tf.ones(3))
with refused(errors.InvalidArgumentError, "invalid dim size="):
    operators.init(-1, mode="-mode b:7x7")
rank = int(operators.init(-1, mode="-mode r:2").rank)
assert int(operators.init(-1, mode="-mode r:2").rank) == rank
with refused(errors.FailedPreconditionError, f'Init, rank {rank}: DDL was started with mode "-mode r:2", and now it is ""'):
    operators.init(-1, mode="")
with refused(errors.InvalidArgumentError, f"allreduce, rank {rank}", "elements, this rank"):
    operators.all_reduce(tf.ones(3 + rank), op="sum")
with refused(errors.InvalidArgumentError, f"broadcast, rank {rank}"):
    operators.bcast(tf.ones(3 + rank))
with refused(errors.InvalidArgumentError, f"rank {rank}"):
    operators.all_reduce_n([tf.ones(3), tf.ones(2)][::1 - 2 * rank], op="sum")
with refused((errors.InvalidArgumentError, ValueError), "op"):
    operators.all_reduce(tf.ones(3), op="max")
with refused((errors.InvalidArgumentError, TypeError), "uint8"):
    operators.all_reduce(tf.ones(3, tf.uint8), op="sum")
with refused(errors.InvalidArgumentError, "AllReduce: check is -1; pass 0 or more"):
    operators.all_reduce(tf.ones(3), op="sum", check=-1.0)
with refused(errors.InternalError, f"AllReduce, rank {rank}: 1 of 2 elements", f"all are in ddl.dump.{rank}.0"):
    operators.all_reduce(tf.constant([1.0, float("nan")]), op="sum", check=0.1)
assert len(open(f"ddl.dump.{rank}.0").readlines()) == 3
with refused(errors.InternalError, f"all are in ddl.dump.{rank}.1"):  # a dump of another type is another file
    operators.all_reduce(tf.constant([float("nan")], tf.float64), op="sum", check=0.1)
with tf.Graph().as_default(), v1.Session() as session:
    with refused(errors.InvalidArgumentError, "elements, this rank"):
        session.run(operators.all_reduce(tf.ones(3 + rank), op="sum"))
same(operators.all_reduce(tf.ones(3), op="sum"), [2, 2, 2])
""", preamble=LOADED)


def test_a_rank_that_ends_is_told_to_the_others(ddlrun, program):
    path = program(STARTED + """
operators.all_reduce(tf.ones(3), op="sum")
if rank == 1:
    os._exit(0)
with refused(errors.InternalError, "rank 0", "rank 1"):
    operators.all_reduce(tf.ones(3), op="sum")
with refused(errors.FailedPreconditionError):
    operators.all_reduce(tf.ones(3), op="sum")
say("told")
os._exit(0)
""")
    done = ddlrun("--accelerators", 2, sys.executable, path)
    assert done.returncode == 0 and "told" in done.stdout.splitlines(), done.stdout + done.stderr


def test_an_exception_on_one_rank_ends_the_run(ddlrun, program):
    done = ddlrun("--accelerators", 2, sys.executable, program(STARTED + """
if rank == 1: raise ValueError("on purpose")
operators.all_reduce(tf.ones(3), op="sum")
"""))
    assert done.returncode != 0 and "on purpose" in done.stderr


@pytest.mark.skipif(not conftest.HAS_MPI, reason="MPI is not installed")
def test_an_exception_on_one_rank_of_mpi_is_told_to_the_others(mpirun):
    done = mpirun(2, """
if rank == 1: raise ValueError("on purpose")
with refused(errors.FailedPreconditionError, "rank 1 gave up: its process ended with status 1"):
    operators.all_reduce(tf.ones(3), op="sum")
say("told")
""", preamble=STARTED)
    assert done.returncode != 0 and "told" in done.stdout and "on purpose" in done.stderr, done.stdout + done.stderr


def test_a_folder_where_old_scripts_look(python, tmp_path):
    """They name one path: a link to the folder of the libraries."""
    folders = os.environ.get("DDL_LIBRARY_PATH", "").split(os.pathsep)
    (tmp_path / "lib").symlink_to(next(each for each in folders if (pathlib.Path(each) / "ddl_MDR.so").exists()))
    python(f"""
ddl_MDR = tf.load_op_library({str(tmp_path / "lib" / "ddl_MDR.so")!r})
assert [int(each) for each in ddl_MDR.init(1, mode="")] == [0, 1, 0, 1, 0]
same(ddl_MDR.all_reduce(tf.ones(3), op="avg"), [1, 1, 1])
""", preamble=conftest.TENSORFLOW, variables={"DDL_LIBRARY_PATH": str(tmp_path / "lib")})
