# SPDX-License-Identifier: Apache-2.0
"""The thresholds: what they are drawn from, and what does not move them."""
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import header
import thresholds

SIZES = [1 << shift for shift in range(6, 18)]


def line(start, each_byte):
    return {size: start + each_byte * size for size in SIZES}


class Limits(unittest.TestCase):
    def test_the_crossing_of_two_lines_is_found(self):
        quick, broad = line(1, 1 / 1000), line(3, 1 / 4000)  # they meet at 2667
        self.assertEqual(thresholds.last_below(quick, broad, 16384), 2048)
        self.assertEqual(thresholds.first_above(quick, broad, 16384), 4096)

    def test_one_noisy_cell_moves_nothing(self):
        for noisy in SIZES:
            quick, broad = line(1, 1 / 1000), line(3, 1 / 4000)
            quick[noisy] *= 2.5
            self.assertIn(thresholds.last_below(quick, broad, 16384), (1024, 2048, 4096))
            if noisy not in (1024, 2048, 4096):
                self.assertEqual(thresholds.last_below(quick, broad, 16384), 2048, noisy)

    def test_the_limit_stays_where_another_wins_nothing(self):
        self.assertEqual(thresholds.last_below(line(1, 1e-3), line(1.001, 1e-3), 4096), 4096)
        self.assertEqual(thresholds.first_above(line(1, 1e-3), line(1.001, 1e-3), 1000), 1000)

    def test_a_way_that_is_never_quicker_is_never_taken(self):
        self.assertEqual(thresholds.last_below(line(2, 1e-3), line(1, 1e-4), 4096), 0)
        self.assertEqual(thresholds.first_above(line(2, 1e-3), line(1, 1e-4), 1024), 64)
        self.assertEqual(thresholds.first_above(line(1, 1e-4), line(2, 1e-3), 1024), 2 * SIZES[-1])

    def test_a_segment_must_win_everywhere(self):
        curves = {"65536": line(1, 1), "32768": line(0.9, 0.9), "16384": {**line(0.5, 0.5), SIZES[-1]: 1e9}}
        self.assertEqual(thresholds.best_of({name: curves[name] for name in ("65536", "32768")}, "65536"), "32768")
        self.assertEqual(thresholds.best_of({name: curves[name] for name in ("65536", "16384")}, "65536"), "65536")

    def test_a_pair_of_schedules_is_judged_at_its_own_limit(self):
        curves = {"a": line(1, 1e-3), "b": line(2, 2.5e-4), "c": line(8, 1e-4)}
        self.assertEqual(thresholds.pair_of(curves, ["a"], ["c", "b"], 4096), ("a", 1024, "b"))

    def test_a_schedule_that_never_lost_is_taken_for_all(self):
        curves = {"a": line(1, 1e-4), "b": line(2, 1e-3)}
        quick, limit, broad = thresholds.pair_of(curves, ["a"], ["b"], 4096)
        self.assertIn("ddl::selected<ddl::otherwise<ddl::a>>", "\n".join(header.selection("mpi", quick, limit, broad)))

    def test_a_link_is_found_again(self):
        moves = {size << 6: 2e-6 + (size << 6) / 2 * 1e-10 for size in SIZES}
        reduces = {size: 2 * seconds + size / 2 * 3e-11 for size, seconds in moves.items()}
        message, byte, combined = thresholds.link_of(moves, reduces, 2)
        self.assertAlmostEqual(message, 2e-6, delta=1e-6)
        self.assertAlmostEqual(byte, 1e-10, delta=1e-11)
        self.assertAlmostEqual(combined, 3e-11, delta=1e-12)


class Header(unittest.TestCase):
    def test_schedules_are_qualified(self):
        self.assertEqual(header.qualified("hierarchical<direct, ring>"), "ddl::hierarchical<ddl::direct, ddl::ring>")

    def test_a_selection_always_has_a_schedule_for_the_rest(self):
        self.assertIn("ddl::selected<ddl::otherwise<ddl::ring>>", "\n".join(header.selection("mpi", "tree", 0, "ring")))
        self.assertIn("ddl::at_most<8, ddl::tree>", "\n".join(header.selection("mpi", "tree", 8, "ring")))

    def test_what_was_refused_stops_the_compiler(self):
        self.assertIn("#error", "\n".join(header.refusal(["the machine is loaded"])))

    def test_whatever_ends_the_command_early_stops_the_compiler(self):
        tune = pathlib.Path(__file__).resolve().parent
        for words in (["--ranks", "1"], ["--ranks", "-1"], ["--seconds", "nan"], ["--samples", "/dev/null/x"], ["--x"],
                      ["--transport", "threads"],
                      ["--transport", "mpi", "--launcher", "/dev/null/x"], ["--transport", "mpi", "--launcher", "'"]):
            done = subprocess.run([sys.executable, tune, "--programs", "/dev/null/x", *words], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("#error", done.stdout, words)
            self.assertNotIn("Traceback", done.stderr, words)

    def test_so_do_the_end_of_the_terminal_and_ctrl_c(self):
        tune = pathlib.Path(__file__).resolve().parent
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "tune_memory"
            program.write_text("#!/bin/sh\nexec sleep 10\n", encoding="ascii")  # alone, if the signal comes while it is made
            program.chmod(0o755)
            for number in (signal.SIGHUP, signal.SIGINT):
                with subprocess.Popen([sys.executable, tune, "--programs", folder, "--transport", "threads"], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
                    started.stderr.readline()  # it begins
                    started.send_signal(number)
                    printed, heard = started.communicate(timeout=60)
                self.assertIn("#error", printed)
                self.assertEqual((started.returncode, heard), (128 + number, ""))

    def test_options_that_would_be_ignored_are_refused(self):
        tune = pathlib.Path(__file__).resolve().parent
        for words, told in (("--transport threads --launcher x", "--launcher and --mpi are for"),
                            ("--mpi mpich", "--launcher and --mpi are for"),
                            ("--transport mpi --launcher x --ranks 3", "leave out --ranks")):
            done = subprocess.run([sys.executable, tune, "--programs", "/dev/null/x", *words.split()], capture_output=True,
                                  text=True, check=False)
            self.assertIn(told, done.stderr, words)

    def test_help_is_no_header_and_no_error(self):
        done = subprocess.run([sys.executable, pathlib.Path(__file__).resolve().parent, "--help"], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, "#error" in done.stdout), (0, False))


sys.exit(not unittest.main(exit=False).result.wasSuccessful())
