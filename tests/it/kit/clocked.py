"""A relay between weir and Redis that sets the clock of weir's LIMIT scripts.

weir passes an empty word to a script for "use Redis' own clock" (upstream/scripts/prelude.lua). The
relay replaces the empty word by the time that `PING clock:US` has set, on any connection. The relay
also replaces the calendar windows that weir computes from weir's clock. The new windows are those
of UTC around the set time.
"""

import re

from conformance.reference import calendar_window
from kit.meddler import Meddler, cut

CLOCK = re.compile(rb"clock:(\d+)")
CALENDAR = re.compile(rb"([dwm])-?\d+(,-?\d+){4}")  # src/upstream/scripts/fixed.lua
COMMAND = "PING clock:{us}"  # sent by weir's client


def windows_around(letter, now_us):
    """Returns when the previous window begins, when the present one begins, and when the next three
    begin.
    """
    begin = calendar_window(letter, now_us)[0]
    begins = [calendar_window(letter, begin - 1)[0], begin]
    while len(begins) < 5:
        begins.append(calendar_window(letter, begins[-1])[1])
    return letter + ",".join(str(one // 10**6) for one in begins)


def bulk(word):
    return b"$%d\r\n%s\r\n" % (len(word), word)


class Requests:
    """Splits a byte stream into multibulk requests."""

    def __init__(self):
        self.buffer = bytearray()

    def take(self, data):
        """Returns the complete requests as lists of words."""
        self.buffer += data
        found = []
        while (words := self.next()) is not None:
            found.append(words)
        return found

    def next(self):
        words, at = [], 0
        end = self.buffer.find(b"\r\n")
        if end < 0:
            return None
        n, at = int(self.buffer[1:end]), end + 2
        for _ in range(n):
            end = self.buffer.find(b"\r\n", at)
            if end < 0:
                return None
            start = end + 2
            at = start + int(self.buffer[at + 1 : end]) + 2
            if at > len(self.buffer):
                return None
            words.append(bytes(self.buffer[start : at - 2]))
        del self.buffer[:at]
        return words


class Clocked(Meddler):
    now = b""  # Redis' own clock

    def _requests(self, weir, redis):
        requests = Requests()
        try:
            while data := weir.recv(1 << 16):
                redis.sendall(b"".join(self._told(words) for words in requests.take(data)))
        except OSError:
            pass
        cut(weir, redis)

    def _calendar(self, word):
        found = CALENDAR.fullmatch(word)
        return windows_around(found[1].decode(), int(self.now)).encode() if found else word

    def _told(self, words):
        set_to = CLOCK.fullmatch(words[-1])
        if set_to:
            self.now = set_to[1]
        if words[0].upper() in (b"EVALSHA", b"EVAL"):
            at = 3 + int(words[2]) + 1
            if len(words) > at and words[at] == b"":
                words[at] = self.now
                if self.now:
                    words = [self._calendar(word) for word in words]
        return b"*%d\r\n" % len(words) + b"".join(map(bulk, words))
