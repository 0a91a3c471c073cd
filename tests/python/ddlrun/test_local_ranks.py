# SPDX-License-Identifier: Apache-2.0
"""Ranks on this host, started without MPI: what they find, what becomes of their output and status, and how they end."""

import array
import fcntl
import os
import pathlib
import re
import signal
import subprocess
import sys
import termios
import time

import pytest
from ddlrun import outputs

SHOW = """
import os, sys
names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE"
names += " OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE MASTER_ADDR MASTER_PORT DDL_JOB DDL_OPTIONS A"
sys.stdout.write(repr({name: os.environ.get(name) for name in names.split()}) + "\\n")  # one write, one line
"""


def alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until(condition, seconds=200):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


@pytest.fixture
def started(environment, tmp_path):
    """Starts ddlrun and leaves it running; `grace` is how many seconds ranks have to end when they are told to, and `last` how
    many what they wrote has behind their end, and then the last message."""
    running = []

    def start(*words, grace=5, last=1, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more):
        program = ("import sys; from ddlrun import __main__, processes; "
                   f"processes.GRACE, processes.LAST = {grace}, {last}; sys.exit(__main__.main())")
        running.append(subprocess.Popen([sys.executable, "-c", program, *map(str, words)], env=environment, cwd=tmp_path,
                                        text=True, stdout=stdout, stderr=stderr, **more))
        return running[-1]
    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_each_rank_knows_its_place(ddlrun, program, ranks):
    done = ddlrun("--accelerators", ranks, "-x", "A=b c", sys.executable, program(SHOW))
    assert done.returncode == 0, done.stderr
    seen = sorted((eval(line) for line in done.stdout.splitlines()), key=lambda each: each["RANK"])
    assert [each["RANK"] for each in seen] == [str(rank) for rank in range(ranks)]
    for rank, each in enumerate(seen):
        for name in ("LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"):
            assert each[name] == str(rank)
        for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"):
            assert each[name] == str(ranks)
        assert each["MASTER_ADDR"] == "127.0.0.1" and int(each["MASTER_PORT"]) > 0
        assert each["DDL_OPTIONS"] == f"-mode p:{ranks}x1x1x1 "
        assert each["A"] == "b c"
        assert each["DDL_JOB"] and each["DDL_JOB"] == seen[0]["DDL_JOB"]


def test_two_runs_have_jobs_of_their_own(ddlrun, program):
    path = program(SHOW)
    jobs = {eval(ddlrun("--accelerators", 1, sys.executable, path).stdout)["DDL_JOB"] for _ in range(2)}
    assert len(jobs) == 2


def test_no_ddloptions_hides_even_those_of_our_own_environment(ddlrun, program):
    done = ddlrun("--no_ddloptions", "--accelerators", 1, sys.executable, program(SHOW), variables={"DDL_OPTIONS": "-mode r:9"})
    assert eval(done.stdout)["DDL_OPTIONS"] is None


def test_a_variable_without_a_value_is_passed_as_it_is_here(ddlrun, program):
    done = ddlrun("--no_ddloptions", "--accelerators", 1, "-x", "DDL_OPTIONS", "-x", "MASTER_PORT", "-x", "A", sys.executable,
                  program(SHOW), variables={"DDL_OPTIONS": "-mode r:9", "MASTER_PORT": "7"})
    seen = eval(done.stdout)
    assert (seen["DDL_OPTIONS"], seen["MASTER_PORT"], seen["A"]) == ("-mode r:9", "7", None)


def test_a_program_that_the_path_of_the_ranks_holds(ddlrun, environment, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "greet").write_text("#!/bin/sh\necho hello\n")
    (tmp_path / "own" / "greet").chmod(0o755)
    done = ddlrun("--accelerators", 2, "-x", f"PATH={tmp_path / 'own'}:{environment['PATH']}", "greet")
    assert (done.returncode, done.stdout) == (0, "hello\nhello\n"), done.stderr
    done = ddlrun("--accelerators", 2, "-x", "PATH=/nowhere", "true")
    assert done.returncode == 1 and "[ERROR DDL-2-9] no program 'true'" in done.stderr


def test_output_is_tagged_by_rank_on_request(ddlrun):
    text = "printf 'out\\nno end'; echo err >&2"
    done = ddlrun("--tag_output", "--accelerators", 2, "sh", "-c", text)
    assert sorted(done.stdout.splitlines()) == ["[0] no end", "[0] out", "[1] no end", "[1] out"]
    assert sorted(done.stderr.splitlines()) == ["[0] err", "[1] err"]
    plain = ddlrun("--accelerators", 2, "sh", "-c", "echo out")
    assert plain.stdout == "out\nout\n" and plain.stderr == ""


def test_much_tagged_output_is_whole(ddlrun):
    for unbuffered in ("", "1"):  # then a write may take a part of what it is given
        done = ddlrun("--tag_output", "--accelerators", 3, "sh", "-c", "seq 1 20000",
                      variables={"PYTHONUNBUFFERED": unbuffered})
        lines = done.stdout.splitlines()
        for rank in range(3):
            assert [line for line in lines if line.startswith(f"[{rank}] ")] == [f"[{rank}] {i}" for i in range(1, 20001)]


def test_a_long_line_comes_out_in_pieces(ddlrun):
    done = ddlrun("--tag_output", "--accelerators", 2, sys.executable, "-c",
                  "import os; print(os.environ['RANK'] * 1_000_000, end='\\nshort\\nno end')")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) < 200_000
    for rank in range(2):
        *pieces, short, last = [line for line in lines if line.startswith(f"[{rank}] ")]
        assert (short, last) == (f"[{rank}] short", f"[{rank}] no end")
        assert "".join(piece[4:] for piece in pieces) == str(rank) * 1_000_000


class Texts(list):
    """Takes what an `outputs.Writer` does, and keeps it."""

    write, failure = list.append, None


@pytest.mark.parametrize("size", [997, 4096, 65535, 65536])
@pytest.mark.parametrize("begin, unit, count", [
    ("", "", 0), ("", "x", 65535), ("", "x", 65536), ("", "x", 65537), ("", "x", 131072),
    ("", "\u00e9", 100_000), ("x", "\u00e9", 100_000), ("xy", "\u20ac", 100_000), ("x", "\U0001f600", 100_000)])
def test_pieces_are_the_same_however_the_reads_fall(begin, unit, count, size):
    line = (begin + unit * count).encode()
    expected = [b"before", *pieces_of(line), b"", b"behind", *(line and pieces_of(line))]
    assert forwarded(b"before\n" + line + b"\n\nbehind\n" + line, size) == [b"[0] " + each for each in expected]


def test_pieces_of_what_is_no_text():
    pieces = [each[4:] for each in forwarded(b"\x80" * 200_000, 4096)]
    assert b"".join(pieces) == b"\x80" * 200_000 and [len(each) for each in pieces[:3]] == 3 * [65533]


def pieces_of(line):
    """The longest of at most 64 KiB that end at a character."""
    pieces = [b""]
    for character in map(str.encode, line.decode()):
        if len(pieces[-1]) + len(character) > 65536:
            pieces.append(b"")
        pieces[-1] += character
    return pieces


def forwarded(text, size):
    """The lines that come of a text whose reads find so many bytes."""
    texts, (end, begin) = Texts(), os.pipe()
    output = outputs.Output(open(end, "rb", buffering=0), texts, "[0] ")
    with open(begin, "wb", buffering=0) as pipe:
        for at in range(0, len(text), size):
            pipe.write(text[at:at + size])
            assert output.forward()
    assert not output.forward()
    output.close()
    *lines, end = b"".join(texts).split(b"\n")
    assert end == b""
    return lines


def is_full(pipe):
    held = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, held)
    return held[0] > fcntl.fcntl(pipe, F_GETPIPE_SZ) - 8192  # the last page may have no room for a line


F_GETPIPE_SZ = 1032
BOTH = [(tag, stderr) for tag in ("--tag_output", "-v") for stderr in (subprocess.PIPE, subprocess.STDOUT)]


@pytest.mark.parametrize("tag, stderr", BOTH)
def test_a_reader_that_stops_reading_holds_up_no_end(started, tmp_path, tag, stderr):
    run = started(tag, "--accelerators", 2, "sh", "-c",
                  "[ $RANK = 1 ] || { trap '' TERM; exec yes; }; until [ -f go ]; do sleep 0.05; done; exit 3",
                  grace=0.3, stderr=stderr)
    wait_until(lambda: is_full(run.stdout))
    (tmp_path / "go").touch()
    assert run.wait(200) == 3


@pytest.mark.parametrize("tag, stderr", BOTH)
def test_a_signal_ends_what_nobody_reads(started, tag, stderr):
    run = started(tag, "--accelerators", 1, "sh", "-c", "trap '' TERM; exec yes", grace=0.3, stderr=stderr)
    wait_until(lambda: is_full(run.stdout))
    run.send_signal(signal.SIGTERM)
    assert run.wait(200) == 128 + signal.SIGKILL


def test_a_reader_that_stops_reading_holds_up_the_ranks(started, tmp_path):
    """As a pipe does: what they write is kept by nobody."""
    (tmp_path / "writes.py").write_text("""
import os, select, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.set_blocking(1, False)
left = 64 << 20
while left > 0 and select.select([], [1], [], 2)[1]:
    left -= os.write(1, b"y\\n" * 2048)
with open("left", "w") as file:
    file.write(f"{left}\\n")
""")
    run = started("--tag_output", "--accelerators", 1, sys.executable, "writes.py", grace=0.3, last=10)
    wait_until(lambda: (tmp_path / "left").exists() and (tmp_path / "left").read_text().endswith("\n"))
    assert int((tmp_path / "left").read_text()) > 32 << 20
    run.send_signal(signal.SIGTERM)
    assert run.wait(200) == 1
    assert "[ERROR DDL-2-8] output cannot be written: nobody reads it; " in run.stderr.read()


def test_what_ranks_wrote_before_their_end_has_time_behind_it(started, tmp_path):
    """Even where the end comes when the time of the ranks is over."""
    line = "x" * 99 + "\n"
    run = started("--tag_output", "--accelerators", 1, sys.executable, "-c",
                  f"import os; os.write(1, {line!r}.encode() * 2000); open('pid', 'w').write(f'{{os.getpid()}}\\n'); os._exit(3)",
                  grace=0, last=100)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
    wait_until(lambda: not pathlib.Path("/proc", (tmp_path / "pid").read_text().strip()).exists())
    assert run.stdout.read() == ("[0] " + line) * 2000
    assert run.wait(200) == 3
    assert run.stderr.read() == ""


def test_a_reader_may_have_made_the_pipe_non_blocking(started):
    end, begin = os.pipe()
    os.set_blocking(begin, False)
    with open(end, encoding="ascii") as reader:
        with open(begin, "wb"):
            run = started("--tag_output", "--accelerators", 1, "seq", 1, 200_000, stdout=begin)
            wait_until(lambda: is_full(reader))
        lines = reader.read().splitlines()
    assert run.wait(200) == 0, run.stderr.read()
    assert lines == [f"[0] {i}" for i in range(1, 200_001)]


def test_lines_of_both_streams_stay_whole_where_they_come_to_the_same(started):
    line = "x" * 10_000
    run = started("--tag_output", "--accelerators", 2, "sh", "-c",
                  f"i=0; while [ $i -lt 100 ]; do echo {line}; echo {line} >&2; i=$((i + 1)); done", stderr=subprocess.STDOUT)
    lines = run.stdout.read().splitlines()
    assert run.wait(200) == 0
    assert sorted(lines) == 200 * [f"[0] {line}"] + 200 * [f"[1] {line}"]


def test_ranks_that_have_ended_are_read_to_their_end(started, tmp_path):
    run = started("--tag_output", "--accelerators", 2, "sh", "-c", f"seq 1 10000; echo > {tmp_path}/ended.$RANK")
    wait_until(lambda: all((tmp_path / f"ended.{rank}").exists() for rank in range(2)) and is_full(run.stdout))
    lines = run.stdout.read().splitlines()
    assert run.wait(200) == 0
    for rank in range(2):
        assert [line for line in lines if line.startswith(f"[{rank}] ")] == [f"[{rank}] {i}" for i in range(1, 10001)]


def test_rank_0_alone_reads_the_input(ddlrun):
    done = ddlrun("--tag_output", "--accelerators", 3, "cat", input="hello\n")
    assert done.stdout == "[0] hello\n"


def test_a_failure_ends_all_and_gives_its_status(ddlrun, tmp_path):
    text = (f"echo $$ > {tmp_path}/pid.$RANK; [ $RANK = 1 ] || exec sleep 1000; "
            f"until [ -s {tmp_path}/pid.0 ] && [ -s {tmp_path}/pid.2 ]; do sleep 0.05; done; exit 7")
    begin = time.monotonic()
    done = ddlrun("--accelerators", 3, "sh", "-c", text)
    assert done.returncode == 7
    assert "[ERROR DDL-2-10] rank 1 ended with status 7" in done.stderr
    assert time.monotonic() - begin < 250
    assert not any(alive(int((tmp_path / f"pid.{rank}").read_text())) for rank in range(3))


def test_a_signal_that_ends_a_rank_is_named(ddlrun):
    done = ddlrun("--accelerators", 2, "sh", "-c", "[ $RANK = 0 ] && kill -SEGV $$; exec sleep 100")
    assert done.returncode == 128 + signal.SIGSEGV
    assert "rank 0 ended with signal 11 (Segmentation fault)" in done.stderr


def test_a_rank_that_ignores_the_end_is_killed(ddlrun):
    done = ddlrun("--accelerators", 2, "sh", "-c", "[ $RANK = 0 ] && { sleep 0.5; exit 3; }; trap '' TERM; while :; do sleep 1; done")
    assert done.returncode == 3


def test_one_rank_passes_its_status_on(ddlrun):
    done = ddlrun("--accelerators", 1, "sh", "-c", "exit 5")
    assert done.returncode == 5 and done.stderr == ""


@pytest.mark.parametrize("number, ranks", [("SIGINT", 1), ("SIGUSR1", 3)])
def test_a_signal_reaches_ranks_that_are_being_started(python, tmp_path, number, ranks):
    rank = ["sh", "-c", f"trap 'exit 0' {number[3:]}; echo > {tmp_path}/up.$RANK; while :; do sleep 0.05; done"]
    python(f"""
import os, signal, subprocess, sys, time
from ddlrun import messages, processes
class Slow(subprocess.Popen):
    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        rank = more["env"]["RANK"]
        while not os.path.exists("up." + rank): time.sleep(0.01)
        if rank == "0": signal.raise_signal(signal.{number})
processes.subprocess.Popen = Slow
sys.exit(processes.run([processes.Child({rank!r}, dict(os.environ, RANK=str(i)), "rank") for i in range({ranks})], messages.Log()))
""", preamble="")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_the_ranks(started, tmp_path, number):
    short = signal.Signals(number).name[3:]
    text = f"trap 'echo got > {tmp_path}/got.$RANK; exit 0' {short}; echo > {tmp_path}/up.$RANK; while :; do sleep 0.05; done"
    run = started("--accelerators", 2, "sh", "-c", text)
    wait_until(lambda: all((tmp_path / f"up.{rank}").exists() for rank in range(2)))
    run.send_signal(number)
    assert run.wait(200) == 0
    assert all((tmp_path / f"got.{rank}").exists() for rank in range(2))


def test_signals_that_are_blocked_where_ddlrun_is_started(started, ddlrun, tmp_path):
    def blocked(*numbers):
        return lambda: signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    done = ddlrun("--accelerators", 2, "sh", "-c", "exit 3", timeout=60, preexec_fn=blocked(signal.SIGCHLD))
    assert done.returncode == 3, done.stderr
    text = f"import signal; open('{tmp_path}/up', 'w'); print(signal.sigwait([signal.SIGTERM]))"  # which needs it blocked
    run = started("--accelerators", 1, sys.executable, "-c", text, preexec_fn=blocked(signal.SIGCHLD, signal.SIGTERM))
    wait_until((tmp_path / "up").exists)
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 0
    assert int(run.stdout.read()) == signal.SIGTERM
    python = "import signal; print({signal.SIGCHLD, signal.SIGTERM} & signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    assert ddlrun("--accelerators", 2, sys.executable, "-c", python).stdout == "set()\n" * 2


def test_ctrl_c_ends_python_ranks(started, program, tmp_path):
    run = started("--accelerators", 2, sys.executable, program(
        "import os, pathlib, time\npathlib.Path('up.' + os.environ['RANK']).touch()\ntime.sleep(1000)"))
    wait_until(lambda: all((tmp_path / f"up.{rank}").exists() for rank in range(2)))
    run.send_signal(signal.SIGINT)
    assert run.wait(200) == 128 + signal.SIGINT
    assert "KeyboardInterrupt" in run.stderr.read()


def test_a_second_ctrl_c_kills(started, tmp_path):
    run = started("--accelerators", 2, "sh", "-c", f"trap '' INT TERM; echo > {tmp_path}/up.$RANK; while :; do sleep 0.1; done",
                  grace=1000)
    wait_until(lambda: all((tmp_path / f"up.{rank}").exists() for rank in range(2)))

    def ends_at_the_next():  # two that come at once may count as one
        run.send_signal(signal.SIGINT)
        time.sleep(0.3)
        return run.poll() is not None
    wait_until(ends_at_the_next)
    assert run.returncode == 128 + signal.SIGKILL


def test_nothing_outlives_a_killed_ddlrun(started, tmp_path):
    run = started("--accelerators", 2, "sh", "-c", f"echo $$ > {tmp_path}/up.$RANK; exec sleep 100")
    wait_until(lambda: all((tmp_path / f"up.{rank}").exists() and (tmp_path / f"up.{rank}").read_text() for rank in range(2)))
    run.kill()
    pids = [int((tmp_path / f"up.{rank}").read_text()) for rank in range(2)]
    wait_until(lambda: not any(map(alive, pids)))


def test_what_a_rank_leaves_behind_is_ended(ddlrun, tmp_path):
    done = ddlrun("--accelerators", 2, "sh", "-c", f"sleep 100 & echo $! > {tmp_path}/left.$RANK; exit 0")
    assert done.returncode == 0
    wait_until(lambda: not any(alive(int((tmp_path / f"left.{rank}").read_text())) for rank in range(2)))


def test_a_run_without_a_message_leaves_no_file(ddlrun, environment):
    assert ddlrun("--accelerators", 2, "true").returncode == 0
    assert not list(pathlib.Path(environment["TMPDIR"]).glob("DDLRUN/*"))


def test_an_unknown_program_is_told(ddlrun):
    done = ddlrun("--accelerators", 2, "no-such-program")
    assert done.returncode == 1
    assert re.match(r"\[ERROR DDL-2-9\] no program 'no-such-program'", done.stderr)


def test_a_closed_reader_does_not_hang(environment, tmp_path):
    run = subprocess.run(f"{sys.executable} -m ddlrun --tag_output --accelerators 2 seq 1 200000 | head -1", shell=True,
                         env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert run.stdout.endswith("] 1\n")
    assert "Traceback" not in run.stderr


def test_a_closed_reader_ends_what_writes_to_it(environment, tmp_path):
    for tag in ("", "--tag_output"):
        run = subprocess.run(f"{{ {sys.executable} -m ddlrun {tag} --accelerators 2 yes; echo status $? >&2; }} | head -1", shell=True,
                             env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert run.stdout.endswith("y\n")
        assert run.stderr.splitlines()[-1] == f"status {128 + signal.SIGPIPE}", run.stderr
        assert re.search(r"ERROR DDL-2-10\] rank [01] ended with signal 13 ", run.stderr)
        assert "BrokenPipeError" not in run.stderr


@pytest.fixture
def shell(environment, tmp_path):
    """Runs a line of a shell in which `ddlrun` is ours, and returns what `subprocess.run` does; `status` of the first of a pipe."""
    def run(line):
        text = f"""set -o pipefail; ddlrun() {{ {sys.executable} -m ddlrun --accelerators 2 "$@"; }}; {line}"""
        return subprocess.run(["bash", "-c", text], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300,
                              check=False)
    return run


FAILS = "sh -c 'echo out; [ $RANK = 0 ] && exec sleep 100; exit 7'"


def test_a_log_that_cannot_be_written_changes_nothing_else(shell, tmp_path):
    (tmp_path / "tmp" / "DDLRUN").touch()
    done = shell(f"ddlrun {FAILS}")
    assert done.returncode == 7 and done.stderr.splitlines()[0] == "[ERROR DDL-2-10] rank 1 ended with status 7; the other ranks are ended too"
    assert done.stderr.splitlines()[1].startswith("No log could be written: ")
    (tmp_path / "tmp" / "DDLRUN").unlink()
    # and one that cannot be any more: the program of a rank removes it behind the first message
    done = shell(f"""ddlrun sh -c 'if [ $RANK = 1 ]; then exit 7; fi
        trap "" TERM; while ! [ -f {tmp_path}/tmp/DDLRUN/*/ddlrun.log ]; do sleep 0.02; done; rm -r {tmp_path}/tmp/DDLRUN; exit 0'""")
    assert done.returncode == 7 and "Traceback" not in done.stderr and not (tmp_path / "tmp" / "DDLRUN").exists(), done.stderr


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", "2>&1 >/dev/null | true"])
def test_messages_that_nobody_reads_change_no_status(shell, closed):
    done = shell(f"ddlrun -v {FAILS} {closed}")
    assert done.returncode == 7, done.stderr
    assert "rank 1 ended" not in done.stdout


def test_tagged_output_that_cannot_be_written(shell):
    done = shell(f"ddlrun --tag_output {FAILS} >&-")
    assert done.returncode == 7 and "Traceback" not in done.stderr, done.stderr
    done = shell("ddlrun --tag_output sh -c 'echo out' >/dev/full")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert re.match(r"\[ERROR DDL-2-8\] output cannot be written: .*No space left", done.stderr), done.stderr
    done = shell("ddlrun --tag_output sh -c 'trap \"\" PIPE; echo err >&2; exit 3' 2>&-")
    assert done.returncode == 3


@pytest.fixture
def ddlrun_behind(environment, tmp_path):
    """Runs ddlrun with these words in a process that does `before` first."""
    def run(before, *words):
        return subprocess.run([sys.executable, "-c", f"import sys; {before}; from ddlrun import __main__; sys.exit(__main__.main())",
                               *words], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    return run


def test_output_is_written_where_no_thread_can_be_started(ddlrun_behind):
    no_thread = "import threading; threading.stack_size(1 << 47)"  # more than there are addresses
    done = ddlrun_behind(no_thread, "--tag_output", "--accelerators", "2", "sh", "-c", "echo out; echo err >&2; sleep 0.2; echo out")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] out"] * 2 + ["[1] out"] * 2
    assert sorted(done.stderr.splitlines()) == ["[0] err", "[1] err"]
    done = ddlrun_behind(no_thread, "--accelerators", "2", "sh", "-c", "[ $RANK = 0 ] && exec sleep 100; exit 7")
    assert done.returncode == 7 and done.stderr.startswith("[ERROR DDL-2-10] rank 1 ended with status 7"), done.stderr


@pytest.mark.parametrize("name", ["no-such-host.invalid", "a" * 64])
def test_a_host_whose_own_name_has_no_address(ddlrun_behind, name):
    named = f"import socket; socket.gethostname = lambda: {name!r}"
    for words in ([], ["-H", name], ["-H", "localhost"], ["-H", "127.0.0.1"], ["--launcher", "local"]):
        done = ddlrun_behind(named, "--accelerators", "1", *words, "sh", "-c", "echo $DDL_HOST_LIST")
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{words[1] if words[:1] == ['-H'] else name}:0\n"


@pytest.mark.parametrize("words", ["-h", "--version", "--dry_run true"])
def test_a_reader_that_has_enough_of_a_text(shell, words):
    done = shell(f"{{ ddlrun {words}; echo status $? >&2; }} | true")
    assert done.stderr == "status 0\n"
    done = shell(f"ddlrun {words} >&-")
    assert done.returncode == 0 and done.stderr == ""
    done = shell(f"ddlrun {words} >/dev/full")
    assert done.returncode == 1 and done.stderr.startswith("[ERROR DDL-2-8] output cannot be written: "), done.stderr
