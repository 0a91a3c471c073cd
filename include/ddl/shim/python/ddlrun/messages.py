# SPDX-License-Identifier: Apache-2.0
"""Errors and warnings of ddlrun, by number, and the log of a run.

A message is one line, `[ERROR DDL-2-<id>] text` or `[WARN DDL-2-<id>] text`, and after it a line with the log.
"""

import contextlib
import os
import random
import shutil
import string
import sys
import tempfile
import time

UNEXPECTED = 0
COMMAND_LINE = 1
UNREACHABLE = 2
UNKNOWN_HOST = 3
OTHER_DDL = 4
OTHER_HARDWARE = 5
SHAPE = 6
NO_MPI = 7
FILE = 8
PROGRAM = 9
RANK_FAILED = 10
CHECKS_SKIPPED = 28
MANY_HOSTS = 39


class Problem(Exception):
    """An error that ends the run: `number` is its id, the text says what is, and what to do."""

    def __init__(self, number, text):
        super().__init__(text)
        self.number = number


def tell(text):
    """On stderr, if it is open, and somebody reads it."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)


class Log:
    """The folder of one run, `<temporary>/DDLRUN/DDLRUN.<12 characters>`: its log, and its rank file.

    The folder is made when something is first written, and stays where a message names it; else `close` removes it.
    """

    def __init__(self):
        self._folder = None
        self._lines = []
        self._kept = False
        self._tell = tell

    @property
    def folder(self):
        if self._folder is None:
            parent = os.path.join(tempfile.gettempdir(), "DDLRUN")
            try:
                os.mkdir(parent)
                os.chmod(parent, 0o1777)  # as the temporary folder itself: for all users, none of whom can remove others'
            except FileExistsError:
                pass
            letters = string.ascii_letters + string.digits
            while self._folder is None:
                name = "DDLRUN." + "".join(random.SystemRandom().choices(letters, k=12))
                try:
                    os.mkdir(os.path.join(parent, name), 0o700)
                    self._folder = os.path.join(parent, name)
                except FileExistsError:
                    pass
        return self._folder

    @property
    def path(self):
        return os.path.join(self.folder, "ddlrun.log")

    def write(self, text):
        """A line for the log alone."""
        self._lines.append(time.strftime("%Y-%m-%d %H:%M:%S ") + text)
        if self._kept:
            with contextlib.suppress(OSError):  # what the ranks come to counts for more
                self._save()

    def keep(self):
        """From here on the folder stays."""
        self._kept = True
        self._save()

    def warn(self, number, text):
        self._message("WARN", number, text)

    def error(self, number, text):
        self._message("ERROR", number, text)

    @contextlib.contextmanager
    def told_by(self, act):
        """Meanwhile messages are passed to `act`, in place of `tell`, which waits for a reader."""
        self._tell = act
        try:
            yield
        finally:
            self._tell = tell

    def close(self):
        if self._folder is not None and not self._kept:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _message(self, level, number, text):
        line = f"[{level} DDL-2-{number}] {text}"
        self.write(line)
        try:
            self.keep()
            where = f"Please see {self.path} for detailed log."
        except OSError as refusal:
            where = f"No log could be written: {refusal}"
        self._tell(f"{line}\n{where}")

    def _save(self):
        with open(self.path, "w", encoding="utf-8", errors="backslashreplace") as log:  # words of a command line may be any bytes
            log.write("".join(line + "\n" for line in self._lines))
