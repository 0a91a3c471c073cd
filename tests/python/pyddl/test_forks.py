# SPDX-License-Identifier: Apache-2.0
"""What a process made by fork has of its parent: copies of arrays that NumPy made in mapped memory, and no rank."""


def test_a_child_leaves_its_parents_memory_alone(ranks):
    ranks(2, """
count = 1 << 17  # long enough to go back to the system at once
with pyddl.mapped_arrays():
    def make(value):
        return [np.full(count, value), np.full(600, value)]
    made = make(1.0) + [pyddl.zeros(count, np.float64)]
    made[2][:] = 1
    def drop():
        made[0].resize(2 * count, refcheck=False)
        made[0][:] = 5
        made.clear()
        for each in make(7.0):
            same(each, np.full(each.shape, 7))
        with refused(MemoryError, "a process made by fork"):
            pyddl.zeros(count)
    child_does(drop)
    for each in made:
        same(each, np.ones(each.shape))
    more = make(2.0)
    def write():
        mine = make(9.0)
        same(mine[0], np.full(count, 9))
        for each in more:
            each[:] = 5
        made[2][0] = 3  # which is shared
    child_does(write)
    assert made[2][0] == 3
    made[2][0] = 1
    go, may = os.pipe()
    def look():
        os.read(go, 1)  # the parent has gone on
        for each in more:
            same(each, np.full(each.shape, 2))
    child = fork(look)
    for each in more:
        each[:] = 4
    os.write(may, b"x")
    assert os.waitpid(child, 0)[1] == 0
    for each in more:
        each[:] = 2
    for each in made + more:
        pyddl.allreduce(each)
    for each in made:
        same(each, np.full(each.shape, 2))
    for each in more:
        same(each, np.full(each.shape, 4))
""")


def test_a_grandchild_leaves_both_alone(ranks):
    ranks(2, """
with pyddl.mapped_arrays():
    data, short = np.full(1 << 17, 2.0), np.full(600, 2.0)
    def grandchild():
        same(data, np.full(data.shape, 3))
        data[:] = short[:] = 4
        same(np.full(1 << 17, 5.0), np.full(1 << 17, 5))
    def child():
        data[:] = short[:] = 3
        mine = np.full(1 << 17, 7.0)
        child_does(grandchild)
        same(mine, np.full(1 << 17, 7))
        for each in (data, short):
            same(each, np.full(each.shape, 3))
    child_does(child)
for each in (data, short):
    same(each, np.full(each.shape, 2))
    pyddl.allreduce(each)
    same(each, np.full(each.shape, 4))
""")


def test_a_child_that_is_killed_keeps_nobody_waiting(ranks):
    ranks(2, """
import ctypes, resource, signal
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
libc = ctypes.CDLL(None)
# behind a fork the functions that were registered first come first: this one ends the child before it has copied anything
libc["__register_atfork"](None, None, ctypes.cast(libc.abort, ctypes.c_void_p), None)
import pyddl
pyddl.init()
rank = pyddl.rank()
with pyddl.mapped_arrays():
    data = np.full(1 << 17, rank + 1.0)
open_before = len(os.listdir("/proc/self/fd"))
for _ in range(3):
    assert os.WTERMSIG(os.waitpid(fork(lambda: None), 0)[1]) == signal.SIGABRT
assert len(os.listdir("/proc/self/fd")) == open_before
pyddl.allreduce(data)
same(data, np.full(data.shape, 3))
""", preamble="import os\nimport numpy as np\nfrom programs import *\n")


def test_other_programs_and_their_ends_leave_them_alone(ranks):
    ranks(2, """
import signal, subprocess
with pyddl.mapped_arrays():
    data = np.full(1 << 17, rank + 1.0)
    open_before = len(os.listdir("/proc/self/fd"))
    def change(): data[:] = 9
    for more in ({}, {"preexec_fn": change}, {"close_fds": False}):
        assert subprocess.run(["echo", "x"], stdout=subprocess.PIPE, check=True, **more).stdout == b"x\\n"
    go, may = os.pipe()
    def wait():
        data[:] = 9
        os.read(go, 1)
    child = fork(wait)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    os.close(go)
    os.close(may)
    assert len(os.listdir("/proc/self/fd")) == open_before
same(data, np.full(data.shape, rank + 1))
pyddl.allreduce(data)
same(data, np.full(data.shape, 3))
""")


def test_beside_threads_that_use_them(ranks):
    ranks(2, """
import threading
parts = [pyddl.split(0) for _ in range(2)]
over, right = threading.Event(), []
def reduce(part, steps):
    with pyddl.mapped_arrays():
        for step in range(steps):
            data = np.full(20_000 + step, rank + 1.0)
            part.allreduce(data)
            assert (data == 3).all()  # same() has a lock of NumPy, which a fork would leave taken in the child
    right.append(part)
def make(own):
    with pyddl.mapped_arrays():
        while not over.is_set():
            data = np.full(3000, own)
            assert (data == own).all()
    right.append(own)
threads = [threading.Thread(target=reduce, args=(part, 100)) for part in parts]
threads += [threading.Thread(target=make, args=(own,)) for own in (5, 6)]
with pyddl.mapped_arrays():
    kept = [np.full(30_000, rank + 1.0), np.full(600, rank + 1.0)]
    for each in threads: each.start()
    def child():
        for each in kept:
            assert (each == rank + 1).all()
            each[:] = 9
            assert (np.full(30_000, 8) == 8).all()
    for _ in range(30):
        child_does(child)
over.set()
for each in threads: each.join()
assert len(right) == 4, right
for each in kept:
    pyddl.allreduce(each)
    same(each, np.full(each.shape, 3))
""")


def test_a_fork_beside_threads_that_allocate(python):
    python("""
import threading
over = threading.Event()
def work():
    while not over.is_set():
        pyddl.free(pyddl.malloc(64, 64)[1])
threads = [threading.Thread(target=work) for _ in range(3)]
for each in threads: each.start()
mine = pyddl.zeros(1000)
def child():
    global mine
    del mine
for _ in range(200):
    child_does(child)
over.set()
for each in threads: each.join()
""")


def test_a_child_is_no_rank(ranks):
    ranks(2, """
data = np.ones(1000)
plan = pyddl.plan_allreduce(data)
def child():
    global started, plan
    assert (pyddl.rank(), pyddl.size()) == (rank, 2)
    for act in (lambda: pyddl.allreduce(data), lambda: pyddl.broadcast(data), plan, pyddl.barrier, lambda: pyddl.split(0),
                lambda: pyddl.allreduce_async(data), pyddl.world().interrupt, started.wait):
        with refused(pyddl.Broken, "this process was made by fork"):
            act()
    with refused(ValueError, "is strided"):
        pyddl.allreduce(data[::2])
    started = plan = None  # which waits for nothing
    pyddl.finalize()
if rank == 0:
    started = pyddl.allreduce_async(np.ones(10))  # which the other comes to later
    child_does(child)
    open("seen", "w").close()
else:
    while not os.path.exists("seen"): time.sleep(0.02)
    started = pyddl.allreduce_async(np.ones(10))
started.wait()
plan()
same(data, np.full(1000, 2))
pyddl.finalize()
""")
