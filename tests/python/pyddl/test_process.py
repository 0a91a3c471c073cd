# SPDX-License-Identifier: Apache-2.0
"""Start and end of a process, and calls outside them; and what is said of the module."""

import os
import re
import subprocess
import sys

import conftest
import pytest

WITHOUT_INIT = conftest.PREAMBLE.replace("pyddl.init()", "")


def test_calls_before_init_and_after_finalize(python):
    python("""
def all_refuse(words):
    words = "pyddl " + words
    data = np.ones(3)
    for name, arguments in (("allreduce", (data,)), ("broadcast", (data,)), ("barrier", ()), ("malloc", (64, 4)),
                            ("allreduce_async", (data,)), ("split", (0,)), ("memsync", ()), ("world", ()),
                            ("plan_allreduce", (data,)), ("set_timeout", (1,))):
        with refused(pyddl.Error, f"{name}: {words}"):
            getattr(pyddl, name)(*arguments)
    same(data, np.ones(3))
all_refuse("is not initialised; call pyddl.init() first")
assert not pyddl.initialized() and pyddl.finalize() == pyddl.DDL_SUCCESS
assert pyddl.init() == pyddl.DDL_SUCCESS and pyddl.initialized()
with refused(RuntimeError, "init: pyddl is already initialised"):
    pyddl.init()
assert pyddl.allreduce(np.ones(3)) == pyddl.DDL_SUCCESS
assert pyddl.finalize() == pyddl.finalize() == pyddl.DDL_SUCCESS
all_refuse("was finalised")
with refused(RuntimeError, "init: pyddl was finalised, and a process starts once"):
    pyddl.init()
""", preamble=WITHOUT_INIT)


def test_a_communicator_that_nobody_has(ranks):
    """It is given back, and what was made of it goes on."""
    ranks(2, """
import gc
from pyddl import communicator
data = np.zeros(3)
def use(part):
    data[:] = rank
    part.allreduce(data)
    same(data, np.full(3, 1))
def everything():
    use(pyddl.split(0))
    part = pyddl.split(0)
    use(part)
    part.itself = part
    del part
    plan = pyddl.split(0).plan_allreduce(data)
    request = pyddl.split(0).allreduce_async(other := np.ones(3))
    gc.collect()
    request.wait()
    same(other, np.full(3, 2))
    for turn in range(2):
        data[:] = rank
        plan()
        same(data, np.full(3, 1))
    pyddl.split(0).barrier_async()
    shown = pyddl.split(0).malloc(24).array(3, np.float64)
    shown[:] = rank
    pyddl.allreduce(shown)
    same(shown, np.full(3, 1))
    parts = [pyddl.split(0)]
    child_does(parts.clear)
    use(parts[0])
def mapped():
    gc.collect()
    with open("/proc/self/maps") as lines: return len(communicator._open), sum(1 for _ in lines)
everything()
before = mapped()
for turn in range(20): everything()
after = mapped()
assert after[0] == before[0] == 1 and after[1] < before[1] + 40, (before, after)
left = pyddl.split(0)  # at the end of the process, too
left.itself = left
""")


def test_things_of_a_communicator_that_is_closed(python):
    python("""
part = pyddl.split(0)
memory, plan = part.malloc(64), part.plan_allreduce(np.ones(3))
part.close()
part.close()
data = np.ones(3)
for act in (lambda: part.allreduce(data), lambda: part.allreduce(data[::2]), lambda: part.barrier(), plan,
            lambda: part.malloc(3), lambda: part.split(0), lambda: part.allreduce_async(data)):
    with refused((pyddl.Error, ValueError)):
        act()
same(data, np.ones(3))
memory.free()
with refused(pyddl.Error, "no open communicator; open one, and use it until it is closed"):
    part.barrier()
assert "closed" in repr(part)
assert (part.rank, part.size, part.local_rank, part.local_size) == (0, 1, 0, 1)
pyddl.allreduce(data)
""")


def test_what_a_communicator_is_told_makes_sense(python):
    python("""
for seconds in ("1", None, [1], 1j):
    with refused(TypeError, f"set_timeout, rank 0: seconds is {seconds!r}; pass a number"):
        pyddl.set_timeout(seconds)
for name in (None, 3, b"ring"):
    with refused(TypeError, f"set_schedule, rank 0: name is {name!r}; pass a word such as \\"tuned\\""):
        pyddl.set_schedule(name)
for name in ("\\udcff", "tuned\\0y"):  # a word that is not UTF-8 arrives so
    with refused(pyddl.Unsupported, "set_schedule"):
        pyddl.set_schedule(name)
started = pyddl.barrier_async()
for seconds in ("1", None, [1], 1j):
    with refused(TypeError, f"is_over, rank 0: seconds is {seconds!r}; pass a number"):
        started.is_over(seconds)
for name, act in (("set_timeout", pyddl.set_timeout), ("is_over", started.is_over)):
    with refused(ValueError, f"{name}, rank 0: seconds is more than a float can be; pass math.inf for no limit"):
        act(10**400)
assert started.is_over(np.float32(100))
pyddl.set_timeout(np.float32(100))
pyddl.set_schedule("tuned")
pyddl.allreduce(np.ones(3))
""")


def test_what_has_a_handle_is_of_one_process(python):
    python("""
import copy, pickle
data = np.ones(3)
for thing, words in ((pyddl.world(), "a communicator is of one process; call pyddl.init() in each"),
                     (pyddl.plan_allreduce(data), "a collective is of one process, which waits for it; make another one"),
                     (pyddl.allreduce_async(data), "a collective is of one process, which waits for it; make another one")):
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with refused(TypeError, words):
            act(thing)
""")


def test_options(ranks, python):
    for words, said in (("-mode q:1", "q"), ("-mode b:3x2", "init, rank 0: invalid dim size="), ("-nonsense 1", "-nonsense"),
                        ("-mode", "-mode"), ("-dev_sync 7", "7")):
        python(f"""
with refused(ValueError, {said!r}):
    pyddl.init({words!r})
assert not pyddl.initialized()
os.environ["DDL_OPTIONS"] = {words!r}
with refused(ValueError, {said!r}):
    pyddl.init()
assert pyddl.init("-mode r:1") == 0  # the process is as good as before
pyddl.allreduce(np.ones(3))
""", preamble=WITHOUT_INIT)
    python("""
with refused(TypeError, "init: options is 3"):
    pyddl.init(3)
for words, said in (("-mode \\udcff", "\\\\udcff"), ("-mode r:1\\0x", "r:1\\\\0x")):  # what C does not read as it is arrives so
    with refused(ValueError, said):
        pyddl.init(words)
pyddl.init()
""", preamble=WITHOUT_INIT)
    for mode in ("b:2x2x1x1 ", "p:4x1x1x1 ", "r:4", "n:2x2", "c:4x1", "m:1x4", "2x2"):
        ranks(4, f"""
pyddl.init("-mode {mode}")
data = np.arange(1000, dtype=np.float32) + pyddl.rank()
pyddl.allreduce(data)
same(data, np.arange(1000) * 4 + 6)
""", preamble=WITHOUT_INIT)


def test_options_that_ask_for_figures(ddlrun, program):
    path = program("""
import numpy as np, pyddl
pyddl.init("-mode r:2 -dump_iter 2 -dbg_level 1")
for _ in range(2):
    pyddl.allreduce(np.ones(1000, np.float32))
pyddl.finalize()
""")
    done = ddlrun("--accelerators", 2, sys.executable, path)
    assert done.returncode == 0, done.stderr
    assert '[DDL] 2 ranks over shared_memory, options "-mode r:2 -dump_iter 2 -dbg_level 1", schedule rings' in done.stderr
    assert "[DDL] call 2: slowest learner " in done.stderr


def test_numbers_before_init_are_the_launchers(ranks, python):
    lines = ranks(2, "say(pyddl.rank(), pyddl.size(), pyddl.local_rank(), pyddl.local_size())", preamble=WITHOUT_INIT)
    assert sorted(lines) == ["0 2 0 2", "1 2 1 2"]
    assert python("say(rank, size, pyddl.local_rank(), pyddl.local_size())", preamble=WITHOUT_INIT) == "0 1 0 1\n"
    script = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}  # which no srun has made 8 of
    assert python("say(rank, size)\npyddl.init()\nsay(pyddl.size())", preamble=WITHOUT_INIT, variables=script) == "0 1\n1\n"
    variables = {"OMPI_COMM_WORLD_LOCAL_RANK": "3"}
    assert python("say(pyddl.local_rank())", preamble=WITHOUT_INIT, variables=variables) == "3\n"


def test_a_launcher_that_makes_no_sense(python):
    for variables, words in (({"RANK": "2", "WORLD_SIZE": "2"}, "RANK is 2 and WORLD_SIZE is 2"),
                             ({"RANK": "0"}, "WORLD_SIZE is not set"), ({"DDL_TRANSPORT": "pigeon"}, "init: DDL_TRANSPORT"),
                             ({"RANK": "0", "WORLD_SIZE": "2", "DDL_TIMEOUT": "0.2"}, "did not start within")):
        python(f"""
with refused(pyddl.Error, {words!r}):
    pyddl.init()
assert not pyddl.initialized()
""", preamble=WITHOUT_INIT, variables=variables)


def test_without_the_library_the_import_says_what_to_do(environment):
    script = "import importlib.util, sys; sys.path.insert(0, sys.argv[1])\nimport pyddl"
    done = subprocess.run([sys.executable, "-c", script, str(conftest.PACKAGES)], capture_output=True, text=True, timeout=300,
                          env={**environment, "DDL_LIBRARY_PATH": "/nowhere", "LD_LIBRARY_PATH": ""}, check=False)
    if done.returncode == 0:  # it is installed where the system looks
        return
    assert "ImportError: libddl.so cannot be loaded" in done.stderr and "DDL_LIBRARY_PATH" in done.stderr
    assert "/nowhere/libddl.so: cannot open shared object file" in done.stderr


def test_types_and_ops_have_the_numbers_of_the_c_header():
    import pyddl
    text = (conftest.ROOT / "include/ddl/shim/ddl.hpp").read_text()
    found = {name: int(value) for name, value in re.findall(r"(DDL_(?:TYPE|OP)_\w+) = (\d+)", text)}
    assert len(found) >= 16
    for name, value in found.items():
        assert getattr(pyddl, name) == value
    text = (conftest.ROOT / "include/ddl/shim/ddl.h").read_text()
    numbers = {name: int(value) for name, value in re.findall(r"(DDL_[A-Z0-9_]+) = (\d+)", text)}
    for kind in pyddl.errors.BY_STATUS.values():
        name = {"SystemRefusal": "SYSTEM"}.get(kind.__name__, re.sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).upper())
        assert numbers["DDL_" + name] == kind.status
    for element, name in enumerate(pyddl.elements.NAMES):
        known = pyddl.library.functions.size_element(element)
        assert known == pyddl.elements.SIZES[element], name
    for name in ("AVERAGE", "AVERAGE_IN_DOUBLE", "BIT_AND", "BIT_OR", "BIT_XOR", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR"):
        assert getattr(pyddl, "DDL_OP_" + name) == numbers["DDL_" + name]


def test_help_and_hints():
    import inspect
    import pydoc
    import typing
    import pyddl
    text = pydoc.plain(pydoc.render_doc(pyddl))
    for name in pyddl.__all__:
        thing = getattr(pyddl, name)
        if callable(thing):
            assert inspect.getdoc(thing), name
            assert name in text
        if inspect.isfunction(thing):
            assert inspect.signature(thing).return_annotation is not inspect.Signature.empty, name
            assert "return" in typing.get_type_hints(thing), name
    assert "self" not in str(inspect.signature(pyddl.broadcast))
    assert os.path.exists(os.path.join(os.path.dirname(pyddl.__file__), "py.typed"))
    assert pyddl.__version__ == pyddl.version()
    from ddlrun.version import __version__
    assert __version__ == pyddl.__version__


def test_what_is_public():
    """Readers of the text, who run nothing, see it too."""
    import ast
    import types
    import pyddl
    public = {name for name, thing in vars(pyddl).items() if name[0] != "_" and not isinstance(thing, types.ModuleType)}
    assert sorted(pyddl.__all__) == sorted(public)
    written = []
    for module in (pyddl, pyddl.elements):
        with open(module.__file__, encoding="utf-8") as file:
            written += next(ast.literal_eval(each.value) for each in ast.parse(file.read()).body
                            if isinstance(each, ast.Assign) and each.targets[0].id == "__all__")
    assert written == pyddl.__all__


def test_types_for_a_checker(tmp_path, program):
    pytest.importorskip("mypy")
    good = ("import numpy\nimport pyddl\npyddl.init()\ndata = numpy.ones(3)\nnumber: int = pyddl.broadcast(data, 1)\n"
            "number = pyddl.allreduce(data, 3, pyddl.DDL_TYPE_DOUBLE, pyddl.DDL_OP_MAX)\nrequest: pyddl.Request = pyddl.allreduce_async(data)\n"
            "plan: pyddl.Plan = pyddl.plan_allreduce(data)\nwith pyddl.split(0) as part: part.barrier()\n"
            "shown = pyddl.malloc(64, 8)[1].array(2)\n")
    wrong = ("pyddl.broadcast(data, 'x')", "pyddl.allreduce(data, op='x')", "pyddl.set_timeout('x')", "pyddl.nothing()")
    path = program(good + "\n".join(wrong) + "\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "kept"), str(path)], text=True, timeout=500,
                          capture_output=True, env={**os.environ, "MYPYPATH": str(conftest.PACKAGES)}, check=False, cwd=tmp_path)
    said = [int(line.split(":")[1]) for line in done.stdout.splitlines() if line.startswith(path.name) and ": error:" in line]
    first = good.count("\n") + 1
    assert said == list(range(first, first + len(wrong))), done.stdout


def test_nothing_is_loaded_that_is_not_needed():
    done = subprocess.run([sys.executable, "-c", "import pyddl; pyddl.init(); print(open('/proc/self/maps').read())"],
                          capture_output=True, text=True, timeout=300, check=True,
                          env={**os.environ, "PYTHONPATH": str(conftest.PACKAGES)})
    assert "libddl.so" in done.stdout
    assert "libmpi" not in done.stdout and "libcuda" not in done.stdout


def test_threads_of_ours_take_no_signal_of_the_process(python, ranks):
    """A program may keep it for `sigwait`."""
    text = """
import signal
pyddl.init()
pyddl.allreduce(np.ones(3))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.kill(os.getpid(), signal.SIGTERM)
assert signal.sigwait({signal.SIGTERM}) == signal.SIGTERM
assert signal.pthread_sigmask(signal.SIG_SETMASK, ()) == {signal.SIGTERM}
"""
    python(text, preamble=WITHOUT_INIT)
    ranks(2, """
import signal
from pyddl import process
def opens(place):
    masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    return opening(place)
opening, process.functions.open_environment, masks = process.functions.open_environment, opens, []
""" + text + """
assert {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD} < masks[0] and signal.SIGSEGV not in masks[0]
""", preamble=WITHOUT_INIT)


UNDONE = """
import signal, threading
def undone():
    assert not pyddl.initialized()
    assert signal.getsignal(signal.SIGINT) is python_handler and signal.default_int_handler is python_handler
    assert signal.set_wakeup_fd(-1) == -1
    with refused(pyddl.Error, "is not initialised"): pyddl.barrier()
python_handler = signal.getsignal(signal.SIGINT)
"""


@pytest.mark.parametrize("count", [1, 3])
def test_a_rank_that_can_start_no_thread(ranks, count):
    ranks(count, UNDONE + f"""
last = os.environ["RANK"] == "{count - 1}"
if last:
    threading.stack_size(1 << 47)  # more than there are addresses
    with refused(pyddl.SystemRefusal, "init, rank {count - 1}: no thread", "ulimit -u"): pyddl.init()
    undone()
else:
    pyddl.init()
    with refused(pyddl.Broken, "rank {count - 1} gave up: SystemRefusal: init, rank {count - 1}: no thread"): pyddl.barrier()
if {count} == 1:
    threading.stack_size(0)
    pyddl.init()
    pyddl.barrier()
    pyddl.finalize()
""", preamble=WITHOUT_INIT.partition("rank, size")[0])


def test_a_process_that_has_few_descriptors_left(python):
    seen = {python(UNDONE + f"""
import resource
used = len(os.listdir("/proc/self/fd")) - 1
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (used + {left}, hard))
try:
    pyddl.init()
    say("none")
except pyddl.SystemRefusal as why:
    say("ours" if "init, rank 0: no descriptors" in str(why) and "ulimit -n" in str(why) else "the library's")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    undone()
    pyddl.init()
pyddl.allreduce(np.ones(3))
pyddl.finalize()
""", preamble=WITHOUT_INIT.partition("rank, size")[0]).strip() for left in range(8)}
    assert {"none", "ours"} <= seen <= {"none", "ours", "the library's"}


def test_closed_streams_stay_closed(python):
    """The library, and others, write to them all the same: into a socket that nobody empties, until there is no more room."""
    python("""
streams = [os.dup(each) for each in range(3)]
for each in range(3):
    os.close(each)
pyddl.init()
taken = [each for each in range(3) if os.path.exists(f"/proc/self/fd/{each}")]
for each, stream in enumerate(streams):
    os.dup2(stream, each)
assert not taken, taken
pyddl.finalize()
""", preamble=WITHOUT_INIT.partition("rank, size")[0])
