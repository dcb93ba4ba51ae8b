"""Measures the event-loop iterations of weir's workers: iterations.c, preloaded, and the file with
its results.
"""

import mmap
import os
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
ROOM = 16  # struct largest in iterations.c


class Iterations:
    """Measures a process that is started with `env`."""

    def __init__(self, folder):
        library, file = folder / "iterations.so", folder / "iterations"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, SOURCE, "-ldl"], check=True)
        file.write_bytes(bytes(ROOM))
        with open(file, "r+b") as opened:
            self.shared = mmap.mmap(opened.fileno(), ROOM)
        options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        self.env = {"LD_PRELOAD": str(library), "ITERATIONS_FILE": str(file), "ASAN_OPTIONS": options}

    def clear(self):
        self.shared[:ROOM] = bytes(ROOM)

    def largest(self):
        """Returns (processor seconds, mutexes locked): the most of each in one iteration since the
        last clear.
        """
        ns, locks = struct.unpack_from("<QQ", self.shared)
        return ns / 1e9, locks
