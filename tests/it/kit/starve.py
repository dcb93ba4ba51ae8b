"""Makes allocations of weir fail while weir runs: starve.c, preloaded, and the file by which a test
controls it.
"""

import mmap
import os
import struct
import subprocess
from pathlib import Path

from kit.harness import WEIR

SOURCE = Path(__file__).with_suffix(".c")
PLENTY, EACH_SITE_ONCE, SOME_SITES, BY_CHANCE = range(4)
# words of the file, as in starve.c
MODE, CHANCE, SEED, SHARE, SALT, SEEN, FAILED, LOST, N_EXEMPT, EXEMPT = range(10)
EXEMPT_MAX, N_SITES = 16, 1024
SITES = EXEMPT + 2 * EXEMPT_MAX
WORDS = SITES + 3 * N_SITES


def functions(*names):
    """Returns the address range (from, to) of each of these functions."""
    table = subprocess.run(["nm", "-S", "--defined-only", WEIR], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in table.splitlines()]
    found = [(int(row[0], 16), int(row[0], 16) + int(row[1], 16)) for row in rows if row[-1] in names and len(row) == 4]
    assert len(found) == len(names), f"{WEIR} has not all of {names}"
    return found


class Starver:
    """Controls a process that is started with `env`. Nothing fails at first. Allocations in
    functions of `exempt` never fail.
    """

    def __init__(self, folder, exempt=()):
        library, file = folder / "starve.so", folder / "starve"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, SOURCE, "-ldl"], check=True)
        file.write_bytes(bytes(8 * WORDS))
        with open(file, "r+b") as opened:
            self.shared = mmap.mmap(opened.fileno(), 8 * WORDS)
        ranges = functions(*exempt)
        self.failed_sites = set()
        self.set(N_EXEMPT, len(ranges))
        for i, (start, end) in enumerate(ranges):
            self.set(EXEMPT + 2 * i, start)
            self.set(EXEMPT + 2 * i + 1, end)
        options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        self.env = {"LD_PRELOAD": str(library), "STARVE_FILE": str(file), "ASAN_OPTIONS": options}

    def get(self, word):
        return struct.unpack_from("<Q", self.shared, 8 * word)[0]

    def set(self, word, value):
        struct.pack_into("<Q", self.shared, 8 * word, value)

    def starve(self, mode, chance, seed, share=0.0):
        """From now on allocations fail in this mode with this chance; `share` is the share of call
        sites.
        """
        self.set(SEED, seed)
        self.set(SALT, seed << 20)
        self.set(SHARE, int(share * (1 << 32)))
        self.set(CHANCE, int(chance * (1 << 32)))
        self.set(MODE, mode)

    def stop(self):
        self.set(MODE, PLENTY)

    def begin_anew(self):
        """Each call site may fail once more."""
        self.failed_sites |= {at for at, failed in self._rows() if failed}
        for i in range(N_SITES):
            self.set(SITES + 3 * i + 2, 0)

    def _rows(self):
        rows = [(self.get(SITES + 3 * i), self.get(SITES + 3 * i + 2)) for i in range(N_SITES)]
        return [row for row in rows if row[0]]

    def sites(self):
        """Returns two sets of addresses: the call sites that have allocated, and the call sites
        that were refused.
        """
        assert self.get(LOST) == 0
        rows = self._rows()
        return {at for at, _ in rows}, self.failed_sites | {at for at, failed in rows if failed}

    def names(self, sites):
        """Returns these addresses as function and line."""
        argv = ["addr2line", "-fse", WEIR, *(hex(at - 1) for at in sites)]
        lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
        return [f"{name} ({line})" for name, line in zip(lines[::2], lines[1::2])]
