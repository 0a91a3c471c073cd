# SPDX-License-Identifier: Apache-2.0
"""What several commands are asked for: wrong words are refused before anything is built or measured."""
import argparse
import math
import os
import pathlib


def seconds(words):
    try:
        value = float(words)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"'{words}' is no time; write seconds above 0, such as 0.5")
    return value


def whole(least, told="'{}' is no whole number from {} on"):
    def read(words):
        if not words.isdecimal() or int(words) < least:
            raise argparse.ArgumentTypeError(told.format(words, least))
        return int(words)
    return read


def ranks(least):
    return whole(least, "'{}' is no number of ranks here; write {} or more")


def flags_joined(words):
    """`--flags -O2` as argparse takes it: it would read -O2 as an option of its own."""
    words = list(words)
    for index in range(len(words) - 2, -1, -1):
        if words[index] == "--flags" and words[index + 1].startswith("-") and not words[index + 1].startswith("--"):
            words[index:index + 2] = [f"--flags={words[index + 1]}"]
    return words


def writable(words):
    """A file that can be written; it is left as it was."""
    try:
        there = os.path.lexists(words)
        with open(words, "a", encoding="utf-8"):
            pass
        if not there:
            pathlib.Path(words).unlink(missing_ok=True)  # of several ranks another may have
    except OSError as failure:
        raise argparse.ArgumentTypeError(f"cannot write '{words}': {failure.strerror}") from failure
    return pathlib.Path(words)
