# SPDX-License-Identifier: Apache-2.0
"""What is said where there can be no hosts."""
import pathlib
import signal
import tempfile
import unittest
from unittest import mock

import network


class Refusals(unittest.TestCase):
    def test_a_machine_that_refuses_files_is_told(self):
        with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as folder, \
                mock.patch.multiple(network, FILES=pathlib.Path(file.name) / "netns", command=lambda *_, **__: ""), \
                mock.patch("os.geteuid", lambda: 0), mock.patch("shutil.which", str):
            before = signal.getsignal(signal.SIGTERM)
            with self.assertRaisesRegex(network.Impossible, "this machine refuses .*netns"):
                with network.Hosts(2, "1gbit", folder):
                    self.fail("there are hosts")
            self.assertIs(signal.getsignal(signal.SIGTERM), before)


if __name__ == "__main__":
    unittest.main()
