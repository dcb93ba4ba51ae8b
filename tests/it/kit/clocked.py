"""A Redis whose clock, for LIMIT, is in the test's hand: something between weir and Redis that tells weir's scripts the time.

A script is called with an empty word where Redis' own clock is to be taken (upstream/scripts/prelude.lua); here that word
becomes the time that `PING clock:US` has set, on whatever connection. So do the windows of the calendar that weir sends along, by
its own clock: they are those of UTC around that time."""

import re

from conformance.reference import calendar_window
from kit.meddler import Meddler, cut

CLOCK = re.compile(rb"clock:(\d+)")
CALENDAR = re.compile(rb"([dwm])-?\d+(,-?\d+){4}")  # src/upstream/scripts/fixed.lua
COMMAND = "PING clock:{us}"  # of weir's client


def windows_around(letter, now_us):
    """When the window before begins, the present one, and the three behind it."""
    begin = calendar_window(letter, now_us)[0]
    begins = [calendar_window(letter, begin - 1)[0], begin]
    while len(begins) < 5:
        begins.append(calendar_window(letter, begins[-1])[1])
    return letter + ",".join(str(one // 10**6) for one in begins)


def bulk(word):
    return b"$%d\r\n%s\r\n" % (len(word), word)


class Requests:
    """Cuts a stream of multibulk requests."""

    def __init__(self):
        self.buffer = bytearray()

    def take(self, data):
        """Whole requests: lists of words."""
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
    now = b""  # Redis' own

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
