# SPDX-License-Identifier: Apache-2.0
"""What is said where there can be no hosts, and what is left of them."""
import argparse
import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest
from unittest import mock

import network

SPEC = importlib.util.spec_from_file_location("command", pathlib.Path(__file__).resolve().parent / "__main__.py")
command = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(command)


class Refusals(unittest.TestCase):
    def test_a_machine_that_refuses_files_is_told(self):
        with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as folder, \
                mock.patch.multiple(network, FILES=pathlib.Path(file.name) / "netns", command=lambda *_, **__: ""), \
                mock.patch("os.geteuid", lambda: 0), mock.patch("shutil.which", str):
            before = self.handlers()
            with self.assertRaisesRegex(network.Impossible, "this machine refuses .*netns"):
                with network.Hosts(2, "1gbit", folder):
                    self.fail("there are hosts")
            self.assertEqual(self.handlers(), before)

    @staticmethod
    def handlers():
        return [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]

    def test_a_kill_and_the_end_of_the_terminal_take_the_hosts_away(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with mock.patch("os.geteuid", lambda: 0), mock.patch("shutil.which", str), \
                    mock.patch.object(network.Hosts, "make"), mock.patch.object(network, "remove_left_over"), \
                    mock.patch.object(network, "remove_space") as removed:
                before = self.handlers()
                with self.assertRaises(SystemExit) as ended, network.Hosts(2, "1gbit", "/"):
                    self.assertFalse(removed.called)
                    os.kill(os.getpid(), number)
                self.assertEqual((ended.exception.code, removed.call_count), (128 + number, 3))
                self.assertEqual(self.handlers(), before)

    def test_what_nohup_ignores_stays_ignored(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with mock.patch("os.geteuid", lambda: 0), mock.patch("shutil.which", str), mock.patch.object(network.Hosts, "make"), \
                    mock.patch.multiple(network, remove_left_over=lambda: None, remove_space=lambda _: None), \
                    network.Hosts(2, "1gbit", "/"):
                self.assertEqual(signal.getsignal(signal.SIGHUP), signal.SIG_IGN)
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_the_way_to_a_host_is_found_where_the_folder_has_a_space(self):
        with tempfile.TemporaryDirectory(suffix=" b") as folder, \
                mock.patch.multiple(network, FILES=pathlib.Path(folder), command=lambda *_, **__: ""), \
                mock.patch.object(network.Hosts, "start") as start, mock.patch("peers.all_end_well", return_value=False):
            hosts = network.Hosts(2, "1gbit", folder)
            hosts.make()
            with self.assertRaises(network.Impossible):
                command.measured(hosts, 1, "program", "defaults", mock.Mock(seconds=1, quick=True, sizes=[]))
            words = start.call_args.args[1]
            agent = str(words[words.index("plm_rsh_agent") + 1])
            self.assertEqual(agent.split(), [agent])
            self.assertEqual(shutil.which(agent, path=start.call_args.kwargs["env"]["PATH"]), str(hosts.shell))

    def test_links_that_are_too_slow_to_be_measured_are_told(self):
        late = mock.Mock(**{"communicate.side_effect": subprocess.TimeoutExpired("socket", 60)})
        with mock.patch.object(network.Hosts, "start", return_value=late), mock.patch("time.sleep"), \
                self.assertRaisesRegex(network.Impossible, "links of 10mbit .*--rate"):
            network.Hosts(2, "10mbit", "/").speed()

    def test_a_rate_is_one_that_tc_knows(self):
        for words in ("1gbit", "100mbit", "2.5Gbit", "10MiBps", "1000000", "0.5gbit"):
            self.assertEqual(network.rate(words), words)
        for words in ("fast", "", "1 gbit", "gbit", "-1gbit", "0gbit", "1gigabit", "1k"):
            with self.assertRaises(argparse.ArgumentTypeError, msg=words):
                network.rate(words)


if __name__ == "__main__":
    unittest.main()
