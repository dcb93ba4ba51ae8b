"""A host of a test's own: a network namespace behind a pair of interfaces. The test can take the
link down.

The host runs a client of weir, which reports its steps on standard output. Needs root.
"""

import os
import random
import shutil
import subprocess
import sys

CLIENT = """
import socket, sys
conns = []
for line in sys.stdin:
    word, *rest = line.split()
    if word == "connect":
        conns.append(socket.create_connection((rest[0], int(rest[1])), 10))
        conns[-1].settimeout(10)
    elif word == "send":
        conns[-1].sendall(bytes.fromhex(rest[0]))
    elif word == "expect":
        wanted, heard = bytes.fromhex(rest[0]), b""
        while len(heard) < len(wanted):
            data = conns[-1].recv(len(wanted) - len(heard))
            if not data:
                break
            heard += data
        if heard != wanted:
            print("heard", heard[:100], flush=True)
            continue
    elif word == "take":
        left = int(rest[0])
        while left > 0:
            data = conns[-1].recv(min(left, 1 << 16))
            if not data:
                break
            left -= len(data)
        if left > 0:
            print("missing", left, flush=True)
            continue
    print("done", flush=True)
"""


def is_possible():
    return os.geteuid() == 0 and shutil.which("ip") is not None and _try("ip", "netns", "list")


def _try(*argv):
    return subprocess.run(argv, capture_output=True).returncode == 0


def _run(*argv):
    subprocess.run(argv, check=True, capture_output=True)


class FarHost:
    """`address` is this machine as the host reaches it, `far_address` is the host."""

    def __init__(self):
        for _ in range(20):
            n = random.randrange(1 << 14)
            self.name = f"weir{n}"
            if _try("ip", "netns", "add", self.name):
                break
        near, far = f"w{n}a", f"w{n}b"
        subnet = f"10.{200 + (n >> 12)}.{n >> 4 & 255}.{(n & 15) * 16}"
        first = subnet.rsplit(".", 1)[0] + "." + str((n & 15) * 16 + 1)
        second = subnet.rsplit(".", 1)[0] + "." + str((n & 15) * 16 + 2)
        self.address, self.far_address, self.far = first, second, far
        _run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", self.name)
        _run("ip", "address", "add", first + "/28", "dev", near)
        _run("ip", "link", "set", near, "up")
        self._inside("ip", "address", "add", second + "/28", "dev", far)
        self._inside("ip", "link", "set", far, "up")
        argv = ["ip", "netns", "exec", self.name, sys.executable, "-c", CLIENT]
        self.client = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _inside(self, *argv):
        _run("ip", "netns", "exec", self.name, *argv)

    def do(self, *words):
        """Runs the client's next step: connect HOST PORT, send HEX, expect HEX, or take N bytes."""
        self.client.stdin.write(" ".join(map(str, words)) + "\n")
        self.client.stdin.flush()
        said = self.client.stdout.readline().strip()
        assert said == "done", (words[0], said)

    def vanish(self):
        self._inside("ip", "link", "set", self.far, "down")

    def close(self):
        self.client.kill()
        self.client.wait()
        _try("ip", "netns", "del", self.name)
