# SPDX-License-Identifier: Apache-2.0
"""Several hosts on this machine: network namespaces with a name and an address each, and a link of a given speed to a
switch.

Of root only. Nothing of this machine's own network is touched. All of it goes when the `with` ends, and what a killed run
has left when the next one begins.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

PREFIX = "ddlhosts"
FILES = pathlib.Path("/etc/netns")  # `ip netns exec` shows a namespace its own files of /etc from here


class Impossible(Exception):
    """There can be no such hosts here; the words say what is needed."""


def rate(words):
    """As tc writes it."""
    if not re.fullmatch(r"(?=.*[1-9])[0-9]+(\.[0-9]+)?(([kmgt]i?)?(bit|bps))?", words, re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"'{words}' is no rate; write 1gbit or 100mbit, as tc does")
    return words


def command(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    if check and done.returncode != 0:
        raise Impossible(f"this machine refuses '{' '.join(words)}': {done.stderr.strip()}; "
                         "it takes root, with leave to make network namespaces, veth pairs and tbf queues")
    return done.stdout


def remove_space(space):
    for pid in command("ip", "netns", "pids", space, check=False).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    command("ip", "netns", "del", space, check=False)
    shutil.rmtree(FILES / space, ignore_errors=True)


def remove_left_over():
    """What runs that no longer run have left."""
    for line in command("ip", "netns", "list", check=False).splitlines():
        parts = (line.split() or [""])[0].split("-")
        if parts[0] == PREFIX and len(parts) == 3 and parts[1].isdigit() and not os.path.exists(f"/proc/{parts[1]}"):
            remove_space("-".join(parts))


class Hosts:
    """`count` hosts, host1 and so on. To be used in a `with`."""

    def __init__(self, count, rate, folder):
        self.names = [f"host{index}" for index in range(1, count + 1)]
        self.rate, self.folder = rate, pathlib.Path(folder)
        self.prefix = f"{PREFIX}-{os.getpid()}-"
        self.switch = self.prefix + "switch"

    def __enter__(self):
        if os.geteuid() != 0:
            raise Impossible("hosts are network namespaces, which only root can make; run it as root")
        missing = [tool for tool in ("ip", "tc", "unshare") if shutil.which(tool) is None]
        if missing:
            raise Impossible(f"there is no {' and no '.join(missing)}; on Debian install iproute2 and util-linux")
        remove_left_over()
        # a plain kill must clean up, too, and so must the end of the terminal, unless nohup has it ignored
        self.old_handlers = {number: signal.signal(number, lambda number, _: sys.exit(128 + number))
                             for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN}
        try:
            self.make()
        except BaseException as failure:
            self.__exit__()
            if isinstance(failure, OSError):
                raise Impossible(f"this machine refuses a file: {failure}") from None
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            remove_space(self.prefix + name)
        remove_space(self.switch)
        for number, handler in self.old_handlers.items():
            signal.signal(number, handler)

    def make(self):
        inside = ("ip", "-n", self.switch)
        command("ip", "netns", "add", self.switch)
        command(*inside, "link", "add", "switch", "type", "bridge")
        command(*inside, "link", "set", "switch", "up")
        names = [f"10.78.0.{index} {name}\n" for index, name in enumerate(self.names, 1)]
        table = "127.0.0.1 localhost\n" + "".join(names)
        for index, name in enumerate(self.names, 1):
            space, port = self.prefix + name, f"port{index}"
            command("ip", "netns", "add", space)
            (FILES / space).mkdir(parents=True)
            (FILES / space / "hosts").write_text(table, encoding="ascii")
            command(*inside, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            command(*inside, "link", "set", port, "master", "switch", "up")
            command("ip", "-n", space, "addr", "add", f"10.78.0.{index}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                command("ip", "-n", space, "link", "set", device, "up")
            for where, device in ((space, "eth0"), (self.switch, port)):
                command("tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf", "rate", self.rate,
                        "burst", "256kb", "latency", "100ms")
        # as ssh does, it leaves out options, joins the words, and has a shell of the host read them
        self.shell = self.folder / "enter_host"
        self.shell.write_text("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\n"
                              f"exec ip netns exec {self.prefix}\"$host\" unshare --uts sh -c "
                              "'hostname \"$0\"; eval \"$1\"' \"$host\" \"$*\"\n", encoding="ascii")
        self.shell.chmod(0o755)

    def start(self, host, words, **more):
        """Starts words on a host, as `subprocess.Popen` does."""
        return subprocess.Popen(["ip", "netns", "exec", self.prefix + host, "unshare", "--uts", "sh", "-c",
                                 'hostname "$0"; exec "$@"', host, *map(str, words)], stdin=subprocess.DEVNULL, **more)

    def speed(self):
        """Bytes a second from host2 to host1 through a plain socket, with as much going the other way meanwhile."""
        amount = 128 << 20
        talk = ("import socket, sys, threading, time\n"
                "serves, there = sys.argv[1] == 'host2', ('host2', 5099)\n"
                "s = socket.create_server(there).accept()[0] if serves else socket.create_connection(there)\n"
                "begin = time.monotonic()\n"
                f"sender = threading.Thread(target=s.sendall, args=(bytes({amount}),)); sender.start()\n"
                f"left = {amount}\n"
                "while left: left -= len(s.recv(min(left, 1 << 20)))\n"
                "print(time.monotonic() - begin)\n"
                "sender.join()\n")
        server = self.start("host2", [sys.executable, "-c", talk, "host2"], stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        client = self.start("host1", [sys.executable, "-c", talk, "host1"], stdout=subprocess.PIPE, text=True)
        try:
            printed, _ = client.communicate(timeout=60)
            reached = client.returncode == 0 and server.wait(60) == 0
        except subprocess.TimeoutExpired:
            raise Impossible(f"links of {self.rate} do not move {amount >> 20} MiB in 60 s; name a greater --rate") from None
        if not reached:
            raise Impossible("host1 cannot reach host2 through a plain socket")
        return amount / float(printed)
