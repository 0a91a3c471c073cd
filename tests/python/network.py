# SPDX-License-Identifier: Apache-2.0
"""Several hosts on this machine: network namespaces with an address and a host name each, joined by a switch.

Of root only. Nothing of this machine's own network is touched, and all of it goes with `remove`; what a killed run has left
goes when the next one begins.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PREFIX = "ddltest"
FILES = pathlib.Path("/etc/netns")  # `ip netns exec` shows a namespace its own files of /etc from here


def _ip(*words, check=True):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False, timeout=120)
    if check and done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def why_not():
    """Why there can be no such hosts here; empty if there can be."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    missing = [tool for tool in ("ip", "unshare") if shutil.which(tool) is None]
    if missing:
        return f"no {' and no '.join(missing)}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            trial = Hosts(["trial"], folder)
        except OSError as refusal:
            return f"this machine refuses network namespaces: {refusal}"
        try:
            done = trial.run("trial", ["hostname"], dict(os.environ))
            return "" if done.stdout == "trial\n" else f"this machine refuses host names of one's own: {done.stderr.strip()}"
        finally:
            trial.remove()


class Hosts:
    """`names` are hosts that reach each other; `shell` is their remote shell: `<shell> <host> <words>`."""

    def __init__(self, names, folder):
        _remove_left_over()
        self.names = list(names)
        self._spaces = {name: f"{PREFIX}-{os.getpid()}-{name}" for name in self.names}
        self._switch = f"{PREFIX}-{os.getpid()}-switch"
        try:
            self._make(pathlib.Path(folder))
        except BaseException:
            self.remove()
            raise

    def _make(self, folder):
        _remove(self._switch)
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "switch", "up")
        table = "127.0.0.1 localhost\n" + "".join(f"10.77.0.{i} {name}\n" for i, name in enumerate(self.names, 1))
        for index, (name, space) in enumerate(self._spaces.items(), 1):
            _remove(space)  # of a process with our number, which was killed
            _ip("netns", "add", space)
            (FILES / space).mkdir(parents=True, exist_ok=True)
            (FILES / space / "hosts").write_text(table)
            _ip("-n", self._switch, "link", "add", f"port{index}", "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("-n", self._switch, "link", "set", f"port{index}", "master", "switch", "up")
            _ip("-n", space, "addr", "add", f"10.77.0.{index}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", space, "link", "set", device, "up")
        self.shell = folder / "enter_host"
        # as ssh does, it leaves out options, joins the words, and has a shell of the host read them
        self.shell.write_text("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\n"
                              f"exec ip netns exec {PREFIX}-{os.getpid()}-\"$host\" unshare --uts sh -c "
                              "'hostname \"$0\"; eval \"$1\"' \"$host\" \"$*\"\n")
        self.shell.chmod(0o755)

    def run(self, host, words, environment, timeout=300, **more):
        """Runs words on a host, as `subprocess.run` does."""
        inside = ["ip", "netns", "exec", self._spaces[host], "unshare", "--uts", "sh", "-c",
                  'hostname "$0"; exec "$@"', host, *map(str, words)]
        with subprocess.Popen(inside, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL, start_new_session=True, **more) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(inside, process.returncode, out, err)

    def await_quiet(self):
        """Returns when no process lives on these hosts: of those that were told to end, some take a moment."""
        end = time.monotonic() + 120
        while any(_ip("netns", "pids", space, check=False).split() for space in self._spaces.values()):
            assert time.monotonic() < end, "processes have outlived their run"
            time.sleep(0.1)

    def remove(self):
        for space in [*self._spaces.values(), self._switch]:
            _remove(space)


def _remove(space):
    for pid in _ip("netns", "pids", space, check=False).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    _ip("netns", "del", space, check=False)
    shutil.rmtree(FILES / space, ignore_errors=True)


def _remove_left_over():
    for line in _ip("netns", "list", check=False).splitlines():
        name = line.split()[0]
        parts = name.split("-")
        if parts[0] == PREFIX and len(parts) == 3 and parts[1].isdigit() and not os.path.exists(f"/proc/{parts[1]}"):
            _remove(name)


if __name__ == "__main__":  # network.py HOST HOST -- WORDS: runs words on the first of such hosts
    cut = sys.argv.index("--")
    made = Hosts(sys.argv[1:cut], "/tmp")
    try:
        print(f"remote shell: {made.shell}", file=sys.stderr)
        done = made.run(sys.argv[1], sys.argv[cut + 1:], dict(os.environ), timeout=600)
        print(done.stdout + done.stderr)
    finally:
        made.remove()
