# SPDX-License-Identifier: Apache-2.0
"""The judge: what it takes for one state of the machine, for two, and for no sensible figure at all."""
import argparse
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import argument_types
import cells
import judge
import peers
import report


HERE = pathlib.Path(__file__).resolve().parent
SPEC = importlib.util.spec_from_file_location("command", HERE / "__main__.py")
command = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(command)


def probes(middle, count=1000, spread=0.05):
    source = random.Random(middle)
    return [1e-9 * middle * source.lognormvariate(0, spread) for _ in range(count)]


class Judge(unittest.TestCase):
    def test_probes_that_lie_close_together_are_one_state(self):
        found = judge.states_of(probes(200))
        self.assertEqual(len(found.medians), 1)
        self.assertEqual(found.doubts, [])

    def test_two_clusters_are_two_states_however_rare_one_is(self):
        for slow in (40, 500, 3000):
            found = judge.states_of(probes(46) + probes(200, slow))
            self.assertEqual(len(found.medians), 2, slow)
            self.assertEqual(found.doubts, [])
            self.assertEqual([found.of(46e-9), found.of(200e-9)], [0, 1])

    def test_what_spreads_without_a_gap_cannot_be_told_apart(self):
        self.assertTrue(judge.states_of([1e-9 * (50 + each) for each in range(400)]).doubts)

    def test_a_few_outliers_are_no_state_and_belong_to_none(self):
        found = judge.states_of(probes(200) + probes(300_000, 60))
        self.assertEqual((len(found.medians), found.doubts), (1, []))
        self.assertIsNone(found.of(300e-6))

    def test_many_outliers_are_doubted(self):
        self.assertTrue(judge.states_of(probes(200) + probes(300_000, 300)).doubts)

    def test_a_cell_is_told_for_each_state_with_samples_enough(self):
        fast, slow = [46e-9] * 50, [200e-9] * 50
        peer = {"name": "peer", "seconds": [1e-6] * 5 + [4e-6] * 2, "probes": fast[:5] + slow[:2]}
        other = {"name": "peer", "seconds": [1e-6] * 100, "probes": fast + slow}
        states = judge.judged({"cells": [{"contenders": [peer]}, {"contenders": [other]}]}, crowded=False)
        self.assertEqual(len(states.medians), 2)
        self.assertEqual(peer["states"][0]["median_us"], 1)
        self.assertIsNone(peer["states"][1])

    def test_what_one_contender_leaves_behind_is_no_state(self):
        contenders = [{"name": name, "seconds": [1e-6] * 50, "probes": [1e-9 * probe] * 50}
                      for name, probe in (("peer", 300), ("ddl private", 900), ("ddl mapped", 310))]
        self.assertEqual(len(judge.judged({"cells": [{"contenders": contenders}]}, crowded=False).medians), 1)

    def test_work_of_others_is_doubted(self):
        load = judge.Load()
        load.own, load.busy, load.idle = 10, 12, 8
        self.assertEqual(len(list(load.doubts())), 1)


class Report(unittest.TestCase):
    def test_the_best_peer_is_taken_cell_by_cell(self):
        def run(name, times):
            figures = [{"name": "peer", "all": None, "wrong": 0, "states": [{"median_us": time}]} for time in times]
            ours = {"name": "ddl private", "all": None, "wrong": 0, "states": [{"median_us": 1.0}]}
            return {"name": name, "cells": [
                {"collective": "allreduce", "element": "float", "op": "sum", "place": "in", "bytes": size, "offset": 0,
                 "contenders": [peer, ours]} for size, peer in zip((4, 8), figures)]}
        lines = "\n".join(report.summary([run("a", [2, 9]), run("b", [8, 4.5])], lambda run: 0))
        self.assertRegex(lines, r"the best +3.00x")

    def test_sizes_are_told_in_whole_units_only(self):
        self.assertEqual([report.size_text(each) for each in (4, 1024, 1028, 1 << 28)], ["4", "1 Ki", "1028", "256 Mi"])


class Cells(unittest.TestCase):
    def test_sizes_are_words_and_nonsense_is_refused(self):
        self.assertEqual([cells.size_of(each) for each in ("4", "1K", "2m", "7G")], [4, 1024, 2 << 20, 7 << 30])
        for words in ("x4", "", "\u00b2", "2\u00b2", "K", "8G", "8589934592", "9" * 20):
            with self.assertRaises(cells.Wrong, msg=words):
                cells.size_of(words)
        self.assertEqual(cells.sizes_of("8,4,8"), [8, 4])

    def test_the_whole_has_every_collective_model_element_and_op(self):
        found = list(cells.whole(2, cells.sizes(), cells.sizes(step=2)))
        self.assertEqual({(element, op) for element, op, _ in found},
                         {(element, op) for element in cells.ELEMENT_BYTES for op in cells.OPS})
        self.assertEqual({word.split(":")[0] for _, _, words in found for word in words},
                         {*cells.COLLECTIVES, *cells.MODELS})

    def test_an_odd_vector_has_one_element_more_and_all_to_all_blocks_stay_equal(self):
        self.assertEqual(cells.rows("allreduce", [1024], ["in"], "float", 2, odd=True), ["allreduce:257:0:in"])
        self.assertEqual(cells.rows("all_to_all", [1024], ["out"], "float", 3), ["all_to_all:255:0:out"])

    def test_places_are_as_asked_where_they_make_a_difference_and_else_the_usual_ones(self):
        def places(collective, asked):
            return [word.split(":")[-1] for word in cells.rows(collective, [1024], asked, "float", 2)]
        self.assertEqual([places(each, None) for each in ("allreduce", "all_to_all", "all_gather")],
                         [["in"], ["out"], ["out"]])
        self.assertEqual([places(each, ["in", "out"]) for each in ("allreduce", "all_to_all", "all_gather", "broadcast")],
                         [["in", "out"], ["in", "out"], ["out"], ["in"]])


class Arguments(unittest.TestCase):
    def refused(self, read, *all_words):
        for words in all_words:
            with self.assertRaises(argparse.ArgumentTypeError, msg=words):
                read(words)

    def test_seconds_are_finite_and_above_0(self):
        self.assertEqual(argument_types.seconds("1e-4"), 1e-4)
        self.refused(argument_types.seconds, "0", "-1", "nan", "inf", "long", "")

    def test_ranks_are_as_many_as_make_sense(self):
        self.assertEqual([argument_types.ranks(least)(str(least)) for least in (1, 2)], [1, 2])
        self.refused(argument_types.ranks(1), "0", "-2", "two", "1.5", "")
        self.refused(argument_types.ranks(2), "1")

    def test_a_file_that_can_be_written_is_left_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            there, new = pathlib.Path(folder) / "there", pathlib.Path(folder) / "new"
            there.write_text("figures", encoding="ascii")
            self.assertEqual([argument_types.writable(str(each)) for each in (there, new)], [there, new])
            self.assertEqual((there.read_text(encoding="ascii"), new.exists()), ("figures", False))
            self.refused(argument_types.writable, folder, str(new / "x"), str(there / "x"))

    def test_a_build_tree_that_cannot_be_made_is_told(self):
        with self.assertRaisesRegex(peers.Missing, "/dev/null/x.*--build"):
            peers.built_target(peers.Peer("x"), pathlib.Path("/dev/null/x"), "nothing", "")

    def test_flags_may_stand_behind_a_space(self):
        for words in (["--flags", "-O2"], ["--flags=-O2"]):
            with mock.patch.object(sys, "argv", ["compare", *words, "--quick"]):
                asked = command.arguments()
            self.assertEqual((asked.flags, asked.quick), ("-O2", True), words)
        for words in ([], ["--flags"], ["--flags", "--json", "x"], ["--flags", "O2"], ["--json", "-O2"]):
            self.assertEqual(argument_types.flags_joined(words), words)

    def test_the_commands_refuse_them_before_they_build(self):
        wrong = (("--seconds", "0"), ("--seconds", "nan"), ("--json", "/dev/null/x"))
        sizes = (("--sizes", ""), ("--sizes", "\u00b2"))
        hosts = (("--layout", "2\u00b2x1"), ("--layout", "2x\u00b2"), ("--rate", "fast"), ("--rate", "0gbit"))
        for program, pairs in ((HERE, (*wrong, *sizes, ("--ranks", "0"))), (HERE.parent / "hosts", (*wrong, *sizes, *hosts))):
            for pair in pairs:  # if they did build, they could not, and would say something else
                done = subprocess.run([sys.executable, program, "--build", "/dev/null/x", *pair], capture_output=True,
                                      text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""), pair)
                self.assertIn(f"argument {pair[0]}: ", done.stderr)

    def test_options_that_contradict_each_other_are_refused(self):
        for words, told in (("--sizes 3", "--sizes 3: allreduce of float takes 4 bytes or more"),
                            ("--sizes 4,3", "--sizes 3"),
                            ("--sizes 4 --collective all_gather", "all_gather of float takes 8 bytes"),
                            ("--sizes 4 --element double", "allreduce of double takes 8 bytes"),
                            ("--sizes 4 --whole", "takes 8 bytes"),
                            ("--collective all_gather --place in", "all_gather is measured out of place only"),
                            ("--collective reduce_scatter --place both", "reduce_scatter is measured out of place only"),
                            ("--collective broadcast --place out", "broadcast is measured in place only"),
                            *((f"--whole {each}", f"leave out --{each[2:].split()[0]}") for each in (
                                "--collective reduce", "--element float", "--op sum", "--place in", "--odd", "--unaligned"))):
            with mock.patch.object(sys, "argv", ["compare", *words.split()]), self.assertRaises(SystemExit), \
                    contextlib.redirect_stderr(io.StringIO()) as heard:
                command.arguments()
            self.assertIn(told, heard.getvalue(), words)

    def test_what_is_named_twice_is_measured_once(self):
        for words in ("--collective reduce --collective reduce", "--sizes 1K,1K", "--sizes 1K,1025",
                      "--collective all_to_all --odd --sizes 1K", "--peer openmpi --peer openmpi --sizes 1K"):
            with mock.patch.object(sys, "argv", ["compare", *words.split()]):
                asked = command.arguments()
            self.assertEqual(len(asked.peer) - ("--peer" not in words), 1, words)
            for _, _, cell_words in asked.programs:
                self.assertEqual(len(set(cell_words)), len(cell_words), words)


class Peers(unittest.TestCase):
    """One that cannot be had is told, and the others go on."""

    def told(self, peer, words):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(peers.Missing, words):
            peers.built_target(peer, pathlib.Path(folder), "nothing", "")

    def test_a_machine_without_cmake_is_told(self):
        with mock.patch("shutil.which", lambda program: None if program == "cmake" else program):
            self.told(peers.Peer("x"), "x: there is no cmake")

    def test_a_python_without_ensurepip_is_told(self):
        failure = subprocess.CalledProcessError(1, "ensurepip")
        with mock.patch("venv.create", side_effect=failure):
            self.told(peers.Peer("x", wheels=["y"]), "x: .*install python3-venv")

    def test_headers_alone_are_no_boost_mpi(self):
        with mock.patch("shutil.which", str), mock.patch("glob.glob", lambda words: ["/usr/include"] * words.endswith("hpp")):
            self.told(peers.PEERS["boost"], "boost: there is no .*install libboost-mpi-dev")


class Interrupted(unittest.TestCase):
    def test_ranks_end_with_the_command(self):
        program = ("import pathlib, peers\npeers.exit_when_ended()\nprint('begins', flush=True)\n"
                   "peers.run_ranks(peers.Peer('x'), pathlib.Path('/'), 2, ['sleep', '60'])")
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with subprocess.Popen([sys.executable, "-c", program], cwd=HERE, stdout=subprocess.PIPE, start_new_session=True,
                                  stderr=subprocess.DEVNULL) as started:
                started.stdout.readline()
                time.sleep(0.2)
                started.send_signal(number)
                self.assertNotEqual(started.wait(20), 0)
            with self.assertRaises(ProcessLookupError, msg=number):
                os.killpg(started.pid, signal.SIGKILL)


    def test_so_does_what_builds_their_program(self):
        begin = "import pathlib, peers, sys\npeers.exit_when_ended()\nfolder = pathlib.Path(sys.argv[1])\n"
        build = "peers.built_target(peers.Peer('x'), folder, 'x', '')"
        with tempfile.TemporaryDirectory() as folder:
            cmake, compiler = (pathlib.Path(folder) / name for name in ("cmake", "compiler"))
            cmake.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {compiler}.new\nmv {compiler}.new {compiler}\nwait\n",
                             encoding="ascii")
            cmake.chmod(0o755)
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                with subprocess.Popen([sys.executable, "-c", begin + build, folder], cwd=HERE, stderr=subprocess.DEVNULL,
                                      env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}) as started:
                    while not compiler.exists():
                        self.assertIsNone(started.poll())
                        time.sleep(0.01)
                    started.send_signal(number)
                    self.assertNotEqual(started.wait(20), 0)
                compiles = pathlib.Path("/proc") / compiler.read_text(encoding="ascii").strip()
                compiler.unlink()
                for _ in range(200):  # it has been told, and ends when it is its turn
                    if not compiles.exists() or (compiles / "cmdline").read_bytes() == b"":
                        break
                    time.sleep(0.01)
                else:
                    self.fail(f"{number}: the compiler goes on")

    def test_the_commands_end_quietly(self):
        for folder in ("compare", "hosts"):
            program = (f"import runpy, sys, unittest.mock\nsys.path.insert(0, '.')\nimport peers\nsys.argv[1:] = []\n"
                       "peers.built = unittest.mock.Mock(side_effect=KeyboardInterrupt)\n"
                       f"runpy.run_path('../{folder}', run_name='__main__')")
            done = subprocess.run([sys.executable, "-c", program], cwd=HERE, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (130, ""), folder)


class Command(unittest.TestCase):
    """The whole of it, where what ranks would write is written here."""

    def run_with(self, *words, wrong=0, busy=0, wrote=True):
        """What the command ends with, and prints."""
        contenders = [{"name": name, "seconds": [1e-6] * 50, "probes": [2e-7] * 50, "wrong": bad}
                      for name, bad in (("peer", 0), ("ddl private", wrong), ("ddl mapped", 0))]
        lines = [{"peer": "a peer", "ranks": 2, "element": "float", "op": "sum", "host": "here", "caches": "", "compiler": "g++"},
                 {"collective": "allreduce", "bytes": 4096, "offset": 1, "place": "in", "contenders": contenders}]

        def ranks(_peer, _folder, _ranks, program):
            if wrote:
                program[program.index("--out") + 1].write_text("\n".join(map(json.dumps, lines)), encoding="ascii")
            return True

        with mock.patch.object(sys, "argv", ["compare", "--peer", "openmpi", *words]), \
                mock.patch.multiple(peers, built=lambda *_: "program", run_ranks=ranks), \
                mock.patch.object(judge.Load, "foreign", busy), mock.patch.object(judge.Load, "stolen", 0), \
                contextlib.redirect_stdout(io.StringIO()) as printed:
            return command.main(), printed.getvalue()

    def test_it_ends_with_0_where_all_is_well(self):
        status, printed = self.run_with()
        self.assertEqual((status, "WRONG" in printed), (0, False))
        self.assertIn("1.00x", printed)

    def test_wrong_results_are_named_however_loaded_the_machine_was(self):
        for busy in (0, 0.9):
            status, printed = self.run_with(wrong=3, busy=busy)
            self.assertEqual(status, 1)
            self.assertIn("3 elements of ddl private: allreduce of 4 Ki bytes, float, sum, in, offset 1", printed)
            self.assertEqual("there are no figures" in printed, busy > 0)

    def test_a_machine_that_is_loaded_gives_3(self):
        self.assertEqual(self.run_with(busy=0.9)[0], 3)

    def test_a_launcher_that_starts_no_rank_is_told(self):
        status, printed = self.run_with(wrote=False)
        self.assertEqual(status, 2)
        self.assertIn("openmpi: no rank measured", printed)

    def test_figures_are_not_replaced_by_none(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "run.json"
            file.write_text("figures", encoding="ascii")
            for what in ({"wrote": False}, {"busy": 0.9}):
                self.run_with("--json", str(file), **what)
                self.assertEqual(file.read_text(encoding="ascii"), "figures")
            self.run_with("--json", str(file))
            self.assertEqual(len(json.loads(file.read_text(encoding="utf-8"))["runs"]), 1)

    def test_a_full_disk_leaves_the_tables(self):
        with contextlib.redirect_stderr(io.StringIO()) as heard:
            status, printed = self.run_with("--json", "/dev/full")
        self.assertEqual((status, heard.getvalue().count("\n")), (4, 1))
        self.assertIn("cannot write '/dev/full': No space left on device", heard.getvalue())
        self.assertIn("1.00x", printed)

    def test_two_commands_do_not_build_in_a_folder_at_once(self):
        inside, most = [], []

        def build(*_):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.05)
            inside.pop()

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(peers, "build", build):
            started = [threading.Thread(target=peers.built_target, args=(peers.Peer("x"), pathlib.Path(folder), "x", ""))
                       for _ in range(3)]
            for each in started:
                each.start()
            for each in started:
                each.join()
        self.assertEqual(most, [1, 1, 1])


sys.exit(not unittest.main(exit=False).result.wasSuccessful())
