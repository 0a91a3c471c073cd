# SPDX-License-Identifier: Apache-2.0
"""How groups of the backend ddl begin and end, with and without a launcher, and what is said where that goes wrong."""

import signal
import subprocess
import sys

import pytest

import conftest
import torch_ddl

pytest.importorskip("torch", minversion=torch_ddl.OLDEST)
TORCH = conftest.TORCH
UNSTARTED = TORCH.partition("dist.init_process_group")[0]
here = pytest.mark.skipif(not conftest.HAS_MPI, reason="this build has no MPI")

GROUPS = """
every = dist.new_group()
pair = dist.new_group([0, size - 1])
alone = dist.new_group([0])
import inspect  # whether PyTorch keeps the order of ranks, which older ones sort
in_order = {"sort_ranks": False} if "sort_ranks" in inspect.signature(dist.new_group).parameters else {}
turned = dist.new_group([2, 0], timeout=datetime.timedelta(seconds=60), **in_order)
def check(group, members):
    if rank not in members: return
    assert dist.get_process_group_ranks(group) == list(members) and dist.get_rank(group) == list(members).index(rank)
    tensor = torch.tensor([10.0 ** rank])
    dist.all_reduce(tensor, group=group)
    assert tensor.item() == sum(10.0 ** each for each in members)
    work = dist.broadcast(tensor.fill_(rank), members[-1], group=group, async_op=True)
    work.wait()
    assert tensor.item() == members[-1]
    dist.barrier(group)
for group, members in ((every, range(size)), (pair, [0, size - 1]), (alone, [0]), (turned, [2, 0] if in_order else [0, 2])): check(group, members)
whole = torch.ones(1)
dist.all_reduce(whole)
assert whole.item() == size
if rank in (0, size - 1): dist.destroy_process_group(pair)
by_gloo = dist.new_group(backend="gloo")
if rank == 0: dist.send(torch.ones(2), 1, group=by_gloo)
if rank == 1: dist.recv(whole.expand(2).clone(), 0, group=by_gloo)
mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (size,))
assert mesh.get_group().name() == "ddl" and mesh.get_local_rank() == rank
# the last, for torch 2.14 counts it on these alone; and of two that are in as many groups, of which torch 2.13 makes its name
local = dist.new_group([1, 3], use_local_synchronization=True) if rank in (1, 3) else None
check(local, [1, 3])
dist.barrier()  # rank 0 has the store by which those two have met
dist.destroy_process_group()
say("done")
"""


def test_new_groups(ranks):
    assert ranks(4, GROUPS, preamble=TORCH).count("done") == 4  # Gloo may have lines of its own


@here
@pytest.mark.skipif(not conftest.IS_OPEN_MPI, reason="MPICH's ranks busy-wait")
def test_new_groups_under_mpirun(mpirun):
    done = mpirun(4, GROUPS, preamble=TORCH)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("more", [{}, {"TORCHELASTIC_RUN_ID": "none"}])
def test_groups_beside_another_backend(ranks, more):
    """The world is Gloo's, and some of its ranks, or all, have a group of ddl; afterwards the world is ddl's."""
    ranks(3, """
rank = int(os.environ["RANK"])
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), 3, rank == 0)
def begin(backend): dist.init_process_group(backend, store=dist.PrefixStore(backend, store), rank=rank, world_size=3)
def check(members, group):
    if rank not in members: return
    data = torch.full((2,), rank)
    dist.all_reduce(data, group=group)
    assert data.tolist() == [sum(members)] * 2
    if rank == 0: dist.send(data + 1, 2, group=group)
    if rank == 2: dist.recv(data, 0, group=group)
    assert data[0].item() == sum(members) + (rank == 2)
begin("gloo")
for members in ([0, 2], [0, 1, 2]): check(members, dist.new_group(members, backend="ddl"))
check(range(3), dist.new_group(backend="ddl"))
dist.barrier()
dist.destroy_process_group()
begin("ddl")
check(range(3), None)
""", preamble=UNSTARTED, variables={"DDL_TIMEOUT": "60", **more})


def test_begin_and_end_again(ranks):
    ranks(2, """
import pyddl, time
mine = pyddl.local_rank()
assert pyddl.initialized() and mine == rank and dist.get_backend() == "ddl" == dist.group.WORLD.name()
data = torch.ones(3)
pyddl.allreduce(data)  # beside the group, over messages of its own
work = dist.all_reduce(data, async_op=True)
pyddl.allreduce(torch.ones(2))
work.wait()
assert data.tolist() == [4, 4, 4]
for turn in range(3):
    if rank == 0: time.sleep(0.2)  # its store is still where the other rank begins again
    dist.destroy_process_group()
    assert pyddl.local_rank() == mine
    dist.init_process_group("DDL", timeout=datetime.timedelta(minutes=1), **({"rank": rank, "world_size": size} if turn else {}))
    dist.barrier()
    if turn == 1: kept = dist.distributed_c10d._get_default_store()
for turn in range(2):  # by a store that another group has used
    dist.destroy_process_group()
    dist.init_process_group("ddl", store=kept, rank=rank, world_size=size)
    (dist.recv if rank else dist.send)(data, 1 - rank)
with refused(ValueError, "name \\"ddl\\" alone"):
    dist.destroy_process_group()
    dist.init_process_group("cpu:gloo,cuda:ddl")
""", preamble=TORCH)


def test_a_script_that_disagrees_with_the_launcher(ranks):
    ranks(2, """
rank = int(os.environ["RANK"])
for more, words in (({"world_size": 3}, ["world_size=3", "the launcher 2"]), ({"rank": 5}, ["rank=5", f"the launcher {rank}"])):
    for init_method in ("env://", "tcp://localhost:1", None):
        with refused(ValueError, f"init_process_group, rank {rank}: the script says", *words):
            dist.init_process_group("ddl", init_method=init_method, **more)
""", preamble=UNSTARTED)


@here
def test_a_rank_that_is_not_that_of_mpi(mpirun):
    done = mpirun(2, """
rank = int(os.environ["OMPI_COMM_WORLD_RANK"] if "OMPI_COMM_WORLD_RANK" in os.environ else os.environ["PMI_RANK"])
os.environ["RANK"] = str(1 - rank)
with refused(ValueError, f"the script says rank {1 - rank} of 2, and ddl's ranks are {rank} of 2"):
    dist.init_process_group("ddl")
say("told")
""", preamble=UNSTARTED)
    assert done.returncode == 0 and done.stdout.count("told") == 2, done.stdout + done.stderr


def test_a_rank_that_ends(ranks):
    ranks(3, """
import pyddl
dist.barrier()
if rank == 2: os._exit(0)
for call in (dist.recv, dist.send):  # though it has not come for any message of theirs
    with refused(pyddl.PeerLost, f"{call.__name__}, rank {rank}: rank 2 has ended"):
        call(torch.ones(1), 2)
with refused(pyddl.PeerLost, f"rank {rank}"):
    dist.all_reduce(torch.ones(10))
with refused(pyddl.Error):
    dist.all_reduce(torch.ones(10), async_op=True).wait()
dist.destroy_process_group()
say("told")
os._exit(0)
""", preamble=TORCH)


def test_the_rank_that_holds_the_store_ends(ranks):
    ranks(2, """
import pyddl
if rank == 0: os._exit(0)
with refused(pyddl.PeerLost): dist.barrier()
for call in (dist.recv, dist.send):
    with refused(pyddl.PeerLost, f"{call.__name__}, rank 1: rank 0 has ended"): call(torch.ones(1), 0)
say("told")
os._exit(0)
""", preamble=TORCH)


@pytest.mark.parametrize("call", ["dist.isend(torch.ones(3), 1)", "work = dist.all_reduce(torch.ones(3), async_op=True)"])
def test_the_end_of_a_process_waits_for_no_other(ranks, call):
    ranks(2, f"""
import time
if rank == 0:
    {call}
    sys.exit(3)
time.sleep(1000)  # ddlrun ends it
""", preamble=TORCH, status=3)


def test_timeouts(ranks):
    ranks(2, """
import pyddl
rank = int(os.environ["RANK"])
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), 2, rank == 0)  # which itself waits for longer
dist.init_process_group("ddl", timeout=datetime.timedelta(seconds=1), store=store, rank=rank, world_size=2)
other = dist.new_group(timeout=datetime.timedelta(minutes=5))
if rank == 0:
    with refused(pyddl.Timeout, "rank 0"):
        dist.all_reduce(torch.ones(3))
    with refused(pyddl.Broken):
        dist.barrier()
    store.set("told", "1")
else:
    store.wait(["told"], datetime.timedelta(minutes=4))
dist.barrier(other)  # which is as good as ever
""", preamble=UNSTARTED)


def test_a_message_behind_one_that_did_not_come(ranks):
    """The two ranks meet for it, whoever of them has waited in vain before, and how often."""
    ranks(2, """
import pyddl
store = dist.distributed_c10d._get_default_store()
def alone(who, group, words):
    other = dist.new_group()
    if rank == who:
        for turn in range(2):
            with refused(pyddl.Timeout, words): (dist.recv if rank else dist.send)(torch.ones(1), 1 - rank, group=group)
    dist.barrier(other)
receives, sends = "recv, rank 1: rank 0 did not come within 0.3 s", "send, rank 0: rank 1 did not come within 0.3 s"
for alone_first in ([(1, receives)], [(0, sends)], [(1, receives), (0, sends)], [(0, sends), (1, receives)]):
    group, got = dist.new_group(), torch.zeros(1)
    group.set_timeout(datetime.timedelta(seconds=0.3))
    for who, words in alone_first: alone(who, group, words)
    group.set_timeout(datetime.timedelta(minutes=3))
    if rank == 0: dist.send(torch.full((1,), 5.0), 1, group=group)
    else: dist.recv(got, 0, group=group)
    assert rank == 0 or got.item() == 5
# where they have met, the pair is as broken as a group is behind a timeout, and says so at once
group.set_timeout(datetime.timedelta(seconds=0.3))
if rank:
    with refused(pyddl.Timeout, "recv, rank 1, round 0: rank 0 did not arrive within 0.3 s"): dist.recv(got, 0, group=group)
dist.barrier()
for words in ["a peer gave up"] * (rank == 0) + ["the communicator is broken since an earlier call"]:
    with refused(pyddl.Error, words, "[recv, rank 1, round 0: rank 0 did not arrive"):
        (dist.recv if rank else dist.send)(torch.ones(1), 1 - rank, group=group)
""", preamble=TORCH)


def test_a_signal_ends_no_wait_with_a_timeout(ranks):
    ranks(2, """
import signal
signal.signal(signal.SIGALRM, lambda *_: open("seen", "w").close())
if rank == 0:
    work = dist.all_reduce(torch.ones(3), async_op=True)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    assert work.wait(datetime.timedelta(seconds=150))
    class Request:
        def is_over(self, seconds): return given.append(seconds) is None
        def wait(self): pass
    given = []
    from torch_ddl.work import Work
    assert Work([Request(), Request()], []).is_over(10) and 10 > given[0] > given[1] > 0  # one limit for all
else:
    while not os.path.exists("seen"): time.sleep(0.02)
    dist.all_reduce(torch.ones(3))
""", preamble=TORCH.replace("import datetime,", "import datetime, time,"))


def test_an_interrupted_call(ranks):
    ranks(2, """
import pyddl, threading
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    work = dist.all_reduce(torch.ones(3), async_op=True)
    message = dist.irecv(torch.ones(1), 1)  # that never comes
    dist.group.WORLD.abort()
    with refused(pyddl.Interrupted, "rank 0"): work.wait()
    with refused(pyddl.Interrupted, "the program gave up"): message.wait()
    from torch_ddl import pairs
    class Opened:
        def _run(self, *_): raise AssertionError("given up before")
        def close(self): pass
    def met_meanwhile(*_):
        pair.interrupt()
        return Opened()
    opened = dist.HashStore()
    opened.set("process/1", "elsewhere 1 1")
    pairs.meet, pair = met_meanwhile, pairs._Sender(opened, 0, 1, 1.0)
    with refused(pyddl.Interrupted, "send, rank 0: the program gave up"): pair.carry(pairs.Message(torch.ones(1), 0)).wait()
    pair.close()
    store.set("over", "1")
else:
    store.get("over")
    with refused(pyddl.Error): dist.all_reduce(torch.ones(3))
""", preamble=TORCH)


def test_a_group_ends_though_a_message_does_not_come(ranks):
    ranks(2, """
import pyddl
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    got = torch.zeros(1)
    works = [dist.irecv(got, 1, tag=tag) for tag in (0, 1, 2)]
    works[0].wait()  # so they have met
    over = works[1].get_future()
else:
    dist.send(torch.ones(1), 0)
if rank == 1:  # whose end would be what rank 0 hears of
    store.get("over")
    store.set("heard", "1")
dist.destroy_process_group()
if rank == 0:
    store.set("over", "1")
    for wait in (over.wait, works[1].wait, works[2].wait):
        with refused(RuntimeError, "recv, rank 0"): wait()
    assert got.item() == 1
    with refused(pyddl.Interrupted, "the program"): works[1].wait()
    store.get("heard")  # before the store ends
""", preamble=TORCH)


def test_a_message_to_or_from_a_rank_that_has_left(ranks):
    ranks(2, """
import pyddl, time
sent, kept = (dist.new_group(timeout=datetime.timedelta(seconds=30)) for _ in range(2))
for turn in range(2):  # before the two have met for messages, and after
    if rank == 0: work = dist.isend(torch.ones(1), 1, group=sent)
    dist.barrier()
    dist.destroy_process_group(sent)
    dist.barrier()  # so rank 1 lives on
    if rank == 0:
        with refused(pyddl.Error, "send, rank 0"): work.wait()
        assert isinstance(work.exception(), pyddl.PeerLost), work.exception()
    sent = dist.new_group(timeout=datetime.timedelta(seconds=30))
    (dist.recv if rank else dist.send)(torch.ones(1), 1 - rank, group=sent)
if rank == 0: dist.isend(torch.full((1,), 5.0), 1, group=kept)
if rank == 1:
    time.sleep(0.2)
    dist.recv(got := torch.zeros(1), 0, group=kept)  # for which rank 0 has waited
    assert got.item() == 5
if rank == 0: dist.destroy_process_group(kept)
dist.barrier()
if rank == 1:
    for call in (dist.send, dist.recv):
        with refused(pyddl.Error): call(got, 0, group=kept)
""", preamble=TORCH)


def test_a_work_that_nobody_keeps(ranks):
    ranks(2, """
import weakref
one, other = (dist.new_group(timeout=datetime.timedelta(seconds=30)) for _ in range(2))
first, second, parts = torch.ones(3), torch.ones(3), [torch.zeros(2, 2).T for _ in range(2)]
def start():
    dist.all_reduce(first, group=one, async_op=True)
    dist.all_gather(parts, of(rank, (2, 2)), group=one, async_op=True)
if rank == 0: start()  # and waits for nobody, or the ranks wait for each other
dist.all_reduce(second, group=other)
if rank == 1: start()
dist.barrier(one)
for each in (first, second): same(each, torch.full((3,), 2.0))
for each in range(2): same(parts[each], of(each, (2, 2)))
def start():
    temporary = torch.ones(3)
    dist.all_reduce(temporary, async_op=True)
    return weakref.ref(temporary)
seen = start()
dist.barrier()
assert seen() is None
dist.all_gather(parts, of(rank + 2, (2, 2)), async_op=True)  # before one that is waited for, which comes behind it
dist.barrier(async_op=True).wait()
for each in range(2): same(parts[each], of(each + 2, (2, 2)))
dist.all_gather(parts, of(rank + 4, (2, 2)), async_op=True)
dist.barrier(async_op=True).get_future().wait()
for each in range(2): same(parts[each], of(each + 4, (2, 2)))
dist.all_reduce(view := torch.ones(3, 2).T, async_op=True)
dist.destroy_process_group()
same(view, torch.full((2, 3), 2.0))
""", preamble=TORCH)


def test_a_world_of_named_devices(ranks):
    """Nothing is put on them."""
    ranks(2, """
dist.destroy_process_group()
if hasattr(torch, "accelerator"):  # whom later versions of torch ask
    torch.accelerator.current_accelerator, torch.accelerator.device_count = lambda *_: torch.device("cuda"), lambda: size
dist.init_process_group("ddl", device_id=torch.device("cuda", rank))
for group in (None, dist.new_group()):
    tensor = of(rank, (3,))
    dist.all_reduce(tensor, group=group)
    same(tensor, of(0, (3,)) + of(1, (3,)))
""", preamble=TORCH)


ALONE = """
import sys, torch, torch.distributed as dist
{first}
def work(rank, size, url):
    data = torch.ones(3) * rank
    if rank < 3:
        dist.init_process_group("ddl", init_method=url, rank=rank, world_size=3)
        dist.all_reduce(data)
        import pyddl
        assert data.tolist() == [3.0] * 3 and pyddl.local_rank() == rank and pyddl.size() == 3
        dist.destroy_process_group()
    for count in (size, 2):  # other worlds, of other ranks
        if rank >= count: return
        mine = count - 1 - rank
        dist.init_process_group("ddl", init_method=f"{{url}}{{count}}", rank=mine, world_size=count)
        assert (dist.get_rank(), dist.get_world_size()) == (mine, count)
        last = [each for each in range(count) if each != 1]  # as many as there were at first
        for members, group in ((range(count), None), (range(count), dist.new_group()), (last, dist.new_group(last))):
            if mine in members:
                dist.all_reduce(data.fill_(mine), group=group)
                assert data.tolist() == [sum(members)] * 3
        dist.destroy_process_group()
if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (4, "file://" + sys.argv[1]), nprocs=4)
"""


@pytest.mark.parametrize("autoload, more", [("0", {}), ("1", {"TORCHELASTIC_RUN_ID": "none", "PMIX_RANK": "0", "PMI_RANK": "0",
                                                              "DDL_HOST_LIST": "here", "DDL_OPTIONS": "-mode p:1",
                                                              "DDL_TRANSPORT": "mpi"})])
def test_without_a_launcher(environment, program, tmp_path, autoload, more):
    """The ranks are those that the script names; where PyTorch loads no backends by itself, it says one word more. What srun or
    mpirun or ddlrun leaves below torchrun does not count."""
    text = ALONE.format(first="import pyddl.torch" if autoload == "0" else "")
    done = subprocess.run([sys.executable, program(text), tmp_path / "meeting"], capture_output=True, text=True, timeout=300,
                          env={**environment, **more, "TORCH_DEVICE_BACKEND_AUTOLOAD": autoload}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_threads_that_begin_at_once(ranks):
    """The first messages of two ranks, and the first futures of a group, come from several threads of each."""
    ranks(2, """
import pyddl, threading
failures = []
def carry(tag):
    try:
        for turn in range(20):
            data = torch.full((5,), tag + 10 * turn)
            if rank == 0: dist.send(data, 1, tag=tag)
            else:
                got = torch.empty_like(data)
                dist.recv(got, 0, tag=tag)
                assert torch.equal(got, data), (got, data)
    except Exception as why: failures.append(why)
def together(calls):
    threads = [threading.Thread(target=each) for each in calls]
    for each in threads: each.start()
    for each in threads: each.join()
together([lambda tag=tag: carry(tag) for tag in range(4)])
assert not failures, failures
for turn in range(10):
    group = dist.new_group()
    ready = threading.Barrier(2)
    def reduce_all():
        work = dist.all_reduce(torch.ones(1), group=group, async_op=True)
        ready.wait()
        work.get_future().wait()
    def message():
        work = dist.isend(torch.ones(1), 1, group=group) if rank == 0 else dist.irecv(torch.empty(1), 0, group=group)
        ready.wait()
        work.get_future().wait()
    together([reduce_all, message])
    dist.destroy_process_group(group)
with refused(pyddl.Broken, f"recv, rank {rank}: this group was destroyed"): group.recv([torch.empty(1)], 1 - rank, 0)
""", preamble=TORCH)


def test_a_message_of_a_forked_child(ranks):
    """It is refused at once, and its parent's go on."""
    ranks(2, """
import pyddl
child = os.fork()
if child == 0:
    with refused(pyddl.Broken, f"send, rank {rank}: this process was made by fork"): dist.isend(torch.ones(1), 1 - rank)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
got = torch.empty(1)
if rank == 0: dist.send(torch.full((1,), 7.0), 1)
else: dist.recv(got, 0)
assert rank == 0 or got.item() == 7
""", preamble=TORCH)


def test_a_rank_outside_of_the_world(python):
    python("""
with refused(ValueError, "rank is 5, and the world has 1 ranks"):
    dist.init_process_group("ddl", rank=5, world_size=1, store=dist.HashStore(), timeout=datetime.timedelta(seconds=600))
""", preamble=UNSTARTED)


def test_one_process(python):
    said = python("dist.init_process_group('ddl', rank=0, world_size=1, store=dist.HashStore())\n"
                  "data = torch.ones(2)\ndist.all_reduce(data)\nassert data.tolist() == [1, 1]\nsay('done')", preamble=UNSTARTED)
    assert "done" in said.splitlines()


def test_a_group_that_cannot_end_keeps_no_other_from_it(python):
    said = python("""
import atexit, pyddl
def refuse(): raise RuntimeError("on purpose")
atexit.register(lambda: say("ended", not pyddl.initialized(), first._ranks._handle is None))  # runs last
first = dist.init_process_group("ddl", rank=0, world_size=1, store=dist.HashStore()) or dist.group.WORLD
dist.new_group([0]).shutdown = refuse
""", preamble=UNSTARTED.replace("assert", "#"))
    assert "ended True True" in said.splitlines()


def test_a_host_that_is_another(python):
    python("""
from torch_ddl.meeting import open_job
store = dist.HashStore()
store.set("1/host/1", "elsewhere 1")
with refused(ValueError, "rank 0 of 2: these ranks are on ", "elsewhere", "ddlrun -H or mpirun"):
    open_job(store, 0, 2, 1.0, None)
import pyddl
with refused(ValueError, "rank 1 of 2"):
    open_job(store, 1, 2, 1.0, None)
with refused(pyddl.Timeout, "rank 0 of 2: rank 1 did not come within 0.01 s; see what it does"):
    open_job(dist.HashStore(), 0, 2, 0.01, None)
""", preamble=UNSTARTED)


def test_ranks_that_miss_each_other(python):
    python("""
import ctypes, pyddl, threading, time
from torch_ddl import meeting
store, place = dist.HashStore(), ctypes.c_void_p()
with refused(pyddl.Timeout, "rank 1 did not come within 500 s"):  # which are over, and began with a call before this one
    meeting.open_job(store, 0, 2, 500.0, None, begun=time.monotonic() - 501)
store.set("1/host/1", meeting._host())  # of a rank that has gone when rank 0 comes
with refused(pyddl.Timeout, "rank 0 of 2: rank 1 did not come within 0.1 s; see what it does"):
    meeting.open_job(store, 0, 2, 0.1, ctypes.byref(place))
with refused(pyddl.PeerLost, "rank 0 of 2: rank 1 has ended, or left the group"):
    meeting.open_job(store, 0, 2, 200.0, ctypes.byref(place), ended=lambda: True)
with refused(pyddl.Timeout, "rank 1 of 2: rank 0 did not come within 0.1 s; see what it does"):
    meeting.open_job(store, 1, 2, 0.1, ctypes.byref(place))
ranks = [None, None]
def come(rank): ranks[rank] = meeting.meet(store, rank, 2, 200.0)
threads = [threading.Thread(target=come, args=(rank,)) for rank in range(2)]
for each in threads: each.start()
for each in threads: each.join()
assert [each.rank for each in ranks] == [0, 1]
for each in ranks: each.close()
""", preamble=UNSTARTED)


def test_an_older_torch_is_refused(python):
    python("""
import torch, torch.distributed as dist
import pyddl.torch
from programs import *
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.__version__ = torch.torch_version.TorchVersion("2.6.0+cu124")
for call in (lambda: dist.new_group(backend="ddl"), lambda: dist.init_process_group("ddl")):
    with refused(pyddl.Unsupported, "init_process_group: this is PyTorch 2.6.0+cu124, and ddl's backend is for 2.7 and later"): call()
dist.destroy_process_group()
""", preamble="")


def test_torch_imports_whatever_ddl_lacks(python, tmp_path):
    """Neither a missing library nor another backend is in the way of a script that wants none of ddl."""
    python("dist.init_process_group('gloo', rank=0, world_size=1, store=dist.HashStore())\ndist.all_reduce(torch.ones(1))\n"
           "dist.destroy_process_group()\nassert 'pyddl' not in sys.modules\n"
           "with refused(ImportError, 'libddl.so cannot be loaded'):\n"
           "    dist.init_process_group('ddl', rank=0, world_size=1, store=dist.HashStore())\n",
           preamble=UNSTARTED, variables={"DDL_LIBRARY_PATH": str(tmp_path)})
    python("import warnings, torch.distributed as dist\nwith warnings.catch_warnings(record=True) as said:\n"
           "    del dist.Backend.DDL, dist.Backend.register_backend\n    import torch_ddl\n    torch_ddl.register()\n"
           "assert 'has no backend ddl' in str(said[0].message)\n", preamble="")


def test_an_exception_on_one_rank_ends_the_run(ddlrun, program):
    done = ddlrun("--accelerators", 2, sys.executable, program(TORCH + "if rank == 1: raise ValueError('on purpose')\n"
                                                               "dist.all_reduce(torch.ones(3))\n"))
    assert done.returncode != 0 and "on purpose" in done.stderr


@here
def test_an_exception_on_one_rank_ends_the_run_of_mpi(mpirun):
    done = mpirun(2, "if rank == 1: raise ValueError('on purpose')\ndist.all_reduce(torch.ones(3))\n", preamble=TORCH)
    assert done.returncode != 0 and "on purpose" in done.stderr


def test_ctrl_c(environment, program):
    """One process of two is interrupted in its wait for the other."""
    text = TORCH.replace('init_method="env://"', 'rank=0, world_size=2, store=dist.FileStore(sys.argv[1], 2)')
    waits = program(text + "try:\n    say('waits')\n    dist.all_reduce(torch.ones(3))\nexcept KeyboardInterrupt:\n"
                    "    say('interrupted')\nos._exit(0)\n")
    comes = program(text.replace("rank=0", "rank=1") + "dist.distributed_c10d._get_default_store().wait(['never'])\n", "comes.py")
    meeting = str(waits.parent / "meeting")
    other = subprocess.Popen([sys.executable, comes, meeting], env=environment, stderr=subprocess.DEVNULL)
    one = subprocess.Popen([sys.executable, waits, meeting], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert "waits\n" in one.stdout
        one.send_signal(signal.SIGINT)
        assert "interrupted\n" in one.stdout
    finally:
        for each in (one, other):
            each.kill()
            each.communicate()
