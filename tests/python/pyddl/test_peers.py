# SPDX-License-Identifier: Apache-2.0
"""Ranks that disagree, fail, or let others wait: every rank is told, by name, and nobody hangs."""

import os
import signal
import subprocess
import sys
import time

import conftest
import pytest

WITHOUT_INIT = conftest.PREAMBLE.replace("pyddl.init()\nrank, size = pyddl.rank(), pyddl.size()", "")


def test_ranks_that_disagree(ranks):
    ranks(3, """
def differing(call, *words):
    with refused(pyddl.Mismatch, f"rank {rank}", *words):
        call()
differing(lambda: pyddl.allreduce(np.zeros(100 + (rank == 1), np.float32)), "rank 1 brings 101 elements" if rank != 1 else "elements")
differing(lambda: pyddl.allreduce(np.zeros(4, np.float64 if rank == 2 else np.int64)), "type")
differing(lambda: pyddl.allreduce(np.zeros(4), op=pyddl.DDL_OP_MAX if rank == 0 else pyddl.DDL_OP_SUM), "reduces with")
differing(lambda: pyddl.broadcast(np.zeros(4), root=rank), "names root")
differing(lambda: pyddl.barrier() if rank == 1 else pyddl.allreduce(np.zeros(4)), "calls")
data = np.full(4, rank)
pyddl.allreduce(data)  # all is as good as before
same(data, np.full(4, 3))
""")


def test_the_others_hear_of_a_rank_that_gives_up(ranks):
    ranks(2, """
for why, words in (("", "it does not say why"), ("out of paper \\udcff", "out of paper ?"), (OSError("no ink"), "no ink")):
    part = pyddl.split(0)
    if rank == 1:
        part.abort(why)
    with refused(pyddl.Interrupted if rank == 1 else pyddl.Broken, "interrupted" if rank == 1 else f"rank 1 gave up: {words}"):
        part.allreduce(np.zeros(4))
    pyddl.barrier()
class Odd(Exception):
    def __str__(self): raise KeyError("on purpose")
try:
    raise Odd
except Odd:
    if rank == 1:
        pyddl.finalize()
if rank == 0:
    with refused(pyddl.Broken, "rank 1 gave up: Odd"):
        pyddl.allreduce(np.zeros(4))
""")


@pytest.mark.parametrize("wrong", ["np.zeros(20)[::2]", "[1, 2]", "np.zeros(3, 'U3')", "freed"])
def test_the_others_hear_of_a_rank_whose_argument_is_refused(ranks, wrong):
    ranks(3, f"""
freed = pyddl.malloc(64, 80)[1]
freed.free()
begin = time.monotonic()
with refused(ValueError if rank == 1 and {wrong!r} != "[1, 2]" else TypeError if rank == 1 else pyddl.Mismatch, f"allreduce, rank {{rank}}"):
    pyddl.allreduce({wrong} if rank == 1 else np.zeros(10))
assert time.monotonic() - begin < 100
with refused((ValueError, TypeError)):  # and when all ranks make that mistake, none waits
    pyddl.allreduce({wrong})
data = np.full(4, rank)
pyddl.allreduce(data)
same(data, np.full(4, 3))
""")


def test_the_others_hear_of_what_an_objects_own_code_throws(ranks):
    ranks(3, """
import functools
class Odd:
    @property
    def __array_interface__(self): raise KeyError("on purpose")
class OddNumber:
    def __index__(self): raise KeyError("on purpose")
def broken_list():
    yield np.zeros(10)
    raise KeyError("on purpose")
good = np.full(10, rank)
for wrong, right, kind, words in ((lambda: pyddl.allreduce(Odd()), lambda: pyddl.allreduce(good), KeyError, "on purpose"),
                                  *((functools.partial(pyddl.reduce, good, **{name: OddNumber()}), lambda: pyddl.reduce(good), KeyError, "on purpose")
                                    for name in ("root", "n", "op", "type")),
                                  (lambda: pyddl.allreduce_n(broken_list()), lambda: pyddl.allreduce_n([good]), KeyError, "on purpose"),
                                  (lambda: pyddl.allreduce_n(7), lambda: pyddl.allreduce_n([good]), TypeError,
                                   "allreduce_n, rank 1: tensors is of type int; pass a list of arrays"),
                                  (lambda: pyddl.allreduce_n_async(7), lambda: pyddl.allreduce_n([good]), TypeError, "tensors is of type int")):
    with refused(kind if rank == 1 else pyddl.Mismatch, words if rank == 1 else "rank 1 has called with invalid arguments"):
        wrong() if rank == 1 else right()
    same(good, np.full(10, rank))
pyddl.allreduce(good)
same(good, np.full(10, 3))
""")


def test_the_others_hear_of_arguments_that_a_call_does_not_take(ranks):
    ranks(2, """
x, out = np.ones(3), np.ones(3 * size)
for call, good, arguments, more, words in (
        (pyddl.broadcast, (x,), (x,), {"rot": 0}, "got an unexpected keyword argument 'rot'; pass (x, root=0, n=None, type=None)"),
        (pyddl.reduce, (x,), (), {}, "missing a required argument: 'x'; pass (x, root=0, n=None, type=None, op=0)"),
        (pyddl.all_gather, (x, out), (x, out, 0), {}, "too many positional arguments; pass (x, out)"),
        (pyddl.allreduce_n_async, ([x],), ([x],), {"tensors": 1}, "multiple values for argument 'tensors'; pass (tensors, op=0)"),
        (pyddl.barrier, (), (1,), {}, "too many positional arguments; pass ()")):
    name = call.__name__
    with refused(*((TypeError, f"{name}, rank 1: the arguments do not fit: {words}") if rank == 1 else
                   (pyddl.Mismatch, f"{name.replace('_async', '')}, rank 0", "rank 1 has called with invalid arguments"))):
        done = call(*arguments, **more) if rank == 1 else call(*good)
        done.wait()
if rank == 1:  # what is this rank's own affair nobody else hears of
    for call, words in ((lambda: pyddl.block(), "block"), (lambda: pyddl.set_timeout(3, 4), "set_timeout"), (lambda: pyddl.set_schedule(), "set_schedule"),
                        (lambda: pyddl.plan_allreduce(), "plan_allreduce")):
        with refused(TypeError, f"{words}, rank 1: the arguments do not fit: "):
            call()
pyddl.allreduce(x)
same(x, np.full(3, 2))
""", variables={"DDL_TIMEOUT": "20"})


def test_plans_are_made_without_the_others(ranks):
    """So a mistake is nobody else's affair, and what they call next is not taken for a part of it."""
    ranks(2, """
data = np.ones(10)
if rank == 0:
    for x, n, type, op, kind in ((data[::2], None, None, 0, ValueError), (data, 11, None, 0, ValueError), (data, None, 99, 0, ValueError),
                                 (data, None, None, "sum", TypeError), (data, None, None, 99, pyddl.Error), ([1], None, None, 0, TypeError)):
        with refused(kind, "allreduce, rank 0"):
            pyddl.plan_allreduce(x, n, type, op)
    open("refused", "w").close()
else:
    while not os.path.exists("refused"): time.sleep(0.02)
pyddl.barrier()
pyddl.plan_allreduce(data)()
same(data, np.full(10, 2))
""")


def test_a_rank_that_does_not_come(ranks):
    ranks(2, """
pyddl.set_timeout(0.3)
if rank == 0:
    with refused(TimeoutError, "allreduce, rank 0", "rank 1 did not arrive within 0.3 s"):
        pyddl.allreduce(np.zeros(10))
    with refused(pyddl.Broken, "is broken since"):
        pyddl.allreduce(np.zeros(10))
    open("seen", "w").close()
else:
    while not os.path.exists("seen"): time.sleep(0.02)
""")


def test_a_rank_that_ends(ddlrun, program):
    done = ddlrun("--accelerators", 3, sys.executable, program("""
import os, sys, time
import numpy as np, pyddl
from programs import *
pyddl.init()
rank = pyddl.rank()
if rank == 1:
    os._exit(0)
with refused(ConnectionError, f"allreduce, rank {rank}", "rank 1 has ended"):
    pyddl.allreduce(np.zeros(10))
say("told")
"""))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "told\ntold\n"


def test_an_exception_on_one_rank_ends_the_run(ddlrun, program):
    done = ddlrun("--accelerators", 3, sys.executable, program("""
import numpy as np, pyddl
pyddl.init()
if pyddl.rank() == 2:
    raise SystemExit(4)
pyddl.allreduce(np.zeros(10))
"""))
    assert done.returncode in (1, 4)


def _until(condition):
    end = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


WAITING = """
import signal, sys, time
import numpy as np, pyddl
from programs import *
{before}
pyddl.init()
rank = pyddl.rank()
data = pyddl.zeros(10)
part = pyddl.split(0)
part.set_timeout(10_000)
if rank == 0:
    try:
        open("up", "w").close()
        {wait}
        say("came back")
    except KeyboardInterrupt:
        say("interrupted")
    try:
        pyddl.set_timeout(5)  # should that have come before the wait
        pyddl.barrier()
    except pyddl.Error as why:
        say(type(why).__name__)
    {after}
else:
    time.sleep(1000)
"""


@pytest.fixture
def waiting(environment, tmp_path):
    """Rank 0 of two waits for the other; returns its process."""
    running = []

    def start(wait="pyddl.allreduce(data)", before="", after=""):
        (tmp_path / "waiting.py").write_text(WAITING.format(wait=wait, before=before, after=after))
        for rank in range(2):
            running.append(subprocess.Popen(
                [sys.executable, "waiting.py"], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**environment, "RANK": str(rank), "WORLD_SIZE": "2", "DDL_JOB": f"waiting-{tmp_path}"[-60:]}))
        _until(lambda: (tmp_path / "up").exists())
        time.sleep(0.3)
        return running[0]
    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("wait", ["pyddl.allreduce(data)", "pyddl.barrier()", "pyddl.broadcast(data, 1)",
                                  "pyddl.plan_allreduce(data)()", "pyddl.allreduce_async(data).wait()",
                                  "pyddl.set_timeout(10_000); started = pyddl.allreduce_async(data); pyddl.finalize()",
                                  "part.barrier_async(); part.close()"])
def test_ctrl_c_ends_a_wait(waiting, wait):
    process = waiting(wait)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=290)
    assert out.splitlines()[0] == "interrupted"
    assert process.returncode == 0


INTERRUPTED_INIT = WITHOUT_INIT + """
import signal, threading
from pyddl import process
def opens(place):
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    return opening(place)
opening, process.functions.open_environment = process.functions.open_environment, opens
if pyddl.rank() == 0:
    with refused(KeyboardInterrupt):
        pyddl.init()
    assert not pyddl.initialized()
process.functions.open_environment = opening
"""


def test_ctrl_c_ends_the_wait_for_ranks_that_do_not_come(python):
    python("", INTERRUPTED_INIT, variables={"RANK": "0", "WORLD_SIZE": "2", "DDL_JOB": f"alone-{os.getpid()}", "DDL_TIMEOUT": "10000"})


@pytest.mark.parametrize("come", ["late", "meanwhile"])
def test_an_init_behind_one_that_ctrl_c_ended(ranks, come):
    """The others meet this rank once, be it that they come while it waits again, or before."""
    ranks(2, INTERRUPTED_INIT + f"""
if pyddl.rank() == 0:
    open("left", "w").close()
    while {come!r} == "meanwhile" and not os.path.exists("met"): time.sleep(0.02)
else:
    while not os.path.exists("left"): time.sleep(0.02)
    if {come!r} == "late": time.sleep(0.5)
pyddl.init()
open("met", "w").close()
data = np.ones(3)
pyddl.allreduce(data)
same(data, np.full(3, 2))
""", preamble="")


def test_an_init_behind_one_that_ctrl_c_ended_and_that_failed(python):
    """It looks for the others anew, and for as long as any other does; in a child, too, which has no part in its parent's."""
    python("""
begin = time.monotonic()
child_does(lambda: os.environ.update(WORLD_SIZE="1", DDL_JOB=os.environ["DDL_JOB"] + "-child") or pyddl.init())
with refused(TimeoutError, "rank 1 did not start within 2 s"):
    pyddl.init()
assert 2 < time.monotonic() - begin
os.environ["WORLD_SIZE"] = "1"
pyddl.init()
""", INTERRUPTED_INIT, variables={"RANK": "0", "WORLD_SIZE": "2", "DDL_JOB": f"failed-{os.getpid()}", "DDL_TIMEOUT": "2"})


@pytest.mark.parametrize("program", ["work()",
                                     "try:\n    work()\nfinally:\n    pyddl.finalize()",
                                     "try:\n    work()\nexcept KeyboardInterrupt:\n    raise SystemExit(130) from None"])
def test_ctrl_c_ends_what_nobody_waits_for_any_more(ranks, program):
    ranks(2, """
import signal
pyddl.set_timeout(10_000)
if rank == 1:
    time.sleep(10_000)
def work():
    started = pyddl.allreduce_async(np.zeros(10))
    signal.raise_signal(signal.SIGINT)
""" + program, status=130)


DROPPED = """
import signal
from pyddl.pending import functions
class Late(BaseException):
    pass
def late(*_):
    raise Late
signal.signal(signal.SIGTERM, late)
if rank == 0:
    def frees(request):
        ends.append(functions.test_request(request, pyddl.pending.ctypes.byref(over)) != 0 and over.value)
        return free(request)
    ends, said, over = [], [], pyddl.pending.ctypes.c_int()
    free, functions.free_request = functions.free_request, frees
    sys.unraisablehook = lambda what: said.append(what.exc_type)
"""


@pytest.mark.parametrize("number, kind", [("SIGINT", "KeyboardInterrupt"), ("SIGTERM", "Late")])
def test_a_signal_while_a_dropped_request_waits(ranks, number, kind):
    """What its handler throws comes out, and not before the peers have let go of the arrays."""
    ranks(2, DROPPED + f"""
    def waits(*arguments):
        signal.raise_signal(signal.{number})
        raise AssertionError("no exception")
    functions.wait_request_for = waits
    started = pyddl.allreduce_async(np.zeros(10))
    del started
    assert ends == [1] and said == [{kind}], (ends, said)
    open("seen", "w").close()
else:
    while not os.path.exists("seen"): time.sleep(0.02)
    with refused(pyddl.Error):
        pyddl.allreduce(np.zeros(10))
""")


def test_a_signal_while_a_request_starts(ranks):
    """The request is waited for, though nobody has got it."""
    ranks(2, DROPPED + """
    def starts(*arguments):
        status = start(*arguments)
        signal.raise_signal(signal.SIGTERM)  # as if it had come meanwhile
        return status
    def waits(*arguments):
        open("seen", "w").close()  # and then the other comes
        return wait(*arguments)
    start, functions.start_allreduce = functions.start_allreduce, starts
    wait, functions.wait_request_for = functions.wait_request_for, waits
    data = np.ones(10)
    with refused(Late):
        pyddl.allreduce_async(data)
    same(data, np.full(10, 2))
    assert len(ends) == 1 and not said, (ends, said)
else:
    while not os.path.exists("seen"): time.sleep(0.02)
    pyddl.allreduce(np.ones(10))
""")


def test_a_signal_ends_no_wait_with_a_limit(ranks):
    ranks(2, """
import signal
signal.signal(signal.SIGALRM, lambda *_: open("seen", "w").close())
if rank == 0:
    started = pyddl.allreduce_async(np.ones(10))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    assert started.is_over(150)
    started.wait()
else:
    while not os.path.exists("seen"): time.sleep(0.02)
    pyddl.allreduce(np.ones(10))
""")


def test_a_handler_of_the_programs_own_decides(waiting):
    process = waiting(before="signal.signal(signal.SIGINT, lambda *_: say('handled'))")
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None  # it did not raise, so the wait goes on
    for _ in range(50):  # the first may have come before the wait
        process.send_signal(signal.SIGINT)
        try:
            process.wait(3)
            break
        except subprocess.TimeoutExpired:
            pass
    out, err = process.communicate(timeout=60)
    assert "handled" in out and "Interrupted" in err


def test_each_call_is_a_wait_of_its_own(ranks):
    ranks(2, """
import signal
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
main = np.array([float(os.getpid())])
pyddl.broadcast(main)
data = np.zeros(3)
for turn in range(30):
    if rank == 1:
        time.sleep(0.1)
        if turn in (5, 15):
            os.kill(int(main[0]), signal.SIGINT)
    pyddl.allreduce(data)
assert len(seen) == (2 if rank == 0 else 0)
""")


def test_ctrl_c_between_calls_breaks_nothing(python):
    python("""
import signal
for turn in range(3):
    try:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("no KeyboardInterrupt")
    except KeyboardInterrupt:
        pass
    time.sleep(0.3)
    pyddl.allreduce(np.ones(3))
""")


def test_ctrl_c_that_has_come_breaks_no_later_call(ranks):
    """A call may begin before the thread that listens has looked, and take longer than the moment that a call is given."""
    ranks(2, """
import signal
for turn in range(3):
    try:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("no KeyboardInterrupt")
    except KeyboardInterrupt:
        if rank == 1: time.sleep(0.7)
    data = np.ones(3)
    pyddl.allreduce(data)
    same(data, np.full(3, 2))
""")


def test_pythons_handler_of_ctrl_c_stays_the_default(python):
    """By which asyncio and others know that they may put their own in its place."""
    python("""
import asyncio, signal
ours = signal.getsignal(signal.SIGINT)
assert ours is signal.default_int_handler and ours is not own
async def work():
    assert signal.getsignal(signal.SIGINT) is not ours or sys.version_info < (3, 11)
    try:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(100)
    except asyncio.CancelledError:
        say("cancelled")
        raise
with refused(KeyboardInterrupt):
    asyncio.run(work())
assert signal.getsignal(signal.SIGINT) is ours
child_does(lambda: same(signal.getsignal(signal.SIGINT) is own and signal.default_int_handler is own, True))
signal.signal(signal.SIGINT, len)
pyddl.finalize()
assert signal.getsignal(signal.SIGINT) is len and signal.default_int_handler is own
""", preamble="import signal\nown = signal.default_int_handler\n" + conftest.PREAMBLE)


def test_a_signal_for_a_child_interrupts_nobody_else(ranks):
    ranks(2, """
import signal
if rank == 0:
    ready, here = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(here, b"x")
            for _ in range(20_000):  # the signal may come just before a sleep, which then takes its whole time
                time.sleep(0.05)
        except KeyboardInterrupt:
            os._exit(0)
        os._exit(1)
    os.read(ready, 1)
    os.kill(child, signal.SIGINT)
else:
    time.sleep(1.5)
data = np.ones(3)
pyddl.allreduce(data)  # rank 0 waits here for more than the moment that an interrupted call is given
same(data, np.full(3, 2))
if rank == 0:
    assert os.waitpid(child, 0)[1] == 0
""")


def test_threads_may_interrupt(ranks):
    ranks(2, """
import threading
if rank == 0:
    over = threading.Event()
    def interrupt():
        while not over.wait(0.2):  # the first may come before the call
            pyddl.world().interrupt()
    thread = threading.Thread(target=interrupt)
    thread.start()
    with refused(pyddl.Interrupted, "rank 0"):
        pyddl.allreduce(np.zeros(10))
    over.set()
    thread.join()
    open("seen", "w").close()
else:
    while not os.path.exists("seen"): time.sleep(0.02)
    with refused(pyddl.Error):
        pyddl.allreduce(np.zeros(10))
""")


def test_threads_each_with_ranks_of_their_own(ranks):
    ranks(2, """
import threading
parts = [pyddl.split(0) for _ in range(3)]
found = [None] * 3
def work(i):
    data = np.full(1000, rank + i, np.float32)
    for turn in range(50):
        data[:] = rank + i
        parts[i].allreduce(data)
    found[i] = data
threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for each in threads: each.start()
for each in threads: each.join()
for i in range(3):
    same(found[i], np.full(1000, 1 + 2 * i))
""")
