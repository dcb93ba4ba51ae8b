#!/usr/bin/env python3
"""Checks a server that speaks LIMIT against the cases of docs/algorithms.md: weir, or another
implementation.

Without --clock only cases run that take a moment; with --wait also cases of some seconds. Times may
then differ by twice the measured delay of the steps, and 1 ms. With --clock all cases run, and
times are exact. The value of --clock is a command of the server under test that sets its clock,
with {us} in place of the us since 1970. Keys then expire by that clock too: this program deletes
and keeps keys according to PTTL after each call.

Exit code: 0, all cases hold; 1, some do not; 2, the server cannot be asked.
"""

import argparse
import os
import re
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import casefile
from kit.resp import Conn, Error


# a key that has not expired lives this long by Redis' own clock: longer than a step takes, and a
# time that no case has
LEAST_MS = 733


TRIES = 5  # of a case with late steps


class Failed(Exception):
    pass


class Run:
    """One case, on keys of its own."""

    def __init__(self, conn, case, clock=None, prefix="limit:"):
        self.conn, self.case, self.clock, self.prefix = conn, case, clock, prefix
        self.keys = {}  # key of the case: key on the server
        self.tokens = {}  # name: token
        self.ends = {}  # key: us, by the set clock, at which the key has certainly expired
        self.lives = {}  # key: its remaining ms, ...
        self.seen_at = {}  # ... the us at which that was read, ...
        self.set_ms = {}  # ... and the ms that were set before this step
        self.slack_ms = {}  # key: by how much its remaining time may be shorter
        self.late_ms = self.took_ms = 0.0
        self.has_lost = False  # a key may have expired before its time could be set

    def key(self, name):
        return self.keys.setdefault(name, f"{self.case.name}:{os.urandom(6).hex()}:{name}")

    def words(self, step):
        """Returns the words as sent: keys and tokens by their real names."""
        places = casefile.key_places(step.words)
        return [self.key(word) if at in places else self.tokens.get(word, word) for at, word in enumerate(step.words)]

    def read(self, reply):
        """Returns a reply in the form of the file; a new token gets the next name."""
        if isinstance(reply, Error):
            return f"-{reply}"
        if isinstance(reply, dict):
            reply = list(reply.values())
        if isinstance(reply, list):
            return [self.read(one) for one in reply]
        if isinstance(reply, bytes):
            known = [name for name, real in (self.tokens | self.keys).items() if real == reply.decode()]
            if known and known[0] in self.keys:
                return known[0]
            name = known[0] if known else f"${len(self.tokens) + 1}"
            self.tokens[name] = reply.decode()
            return name
        return reply

    def fail(self, step, found):
        late = "" if self.clock else f" (late by up to {self.late_ms:.1f} ms)"
        raise Failed(f"{self.case.name}: {casefile.write_step(step)}\n  found {found}{late}")

    # ---- the clock ----

    def set_clock(self, at):
        """Sets the clock, and ends the keys that have expired by it: keys live by Redis' own clock.
        A RESET of any key clears the denials that weir remembers by its own clock.
        """
        now = casefile.START + at
        commands = [[word.format(us=now) for word in self.clock.split()], ["LIMIT", "RESET", self.key("")]]
        for key, end in list(self.ends.items()):
            left_ms = max(self.lives[key] + (self.seen_at[key] - now) // 1000, LEAST_MS)
            self.set_ms[key] = left_ms
            commands.append(["PEXPIRE", self.prefix + key, left_ms] if end > now else ["DEL", self.prefix + key])
            if end <= now:
                del self.ends[key]
        if isinstance(self.conn.ask(*commands)[0], Error):
            raise SystemExit("the clock cannot be set: see --clock")

    def see_ends(self, at, begun, is_counted):
        """Notes when keys end, if this call has changed that. Keeps the keys until the next step.
        """
        now, keys = casefile.START + at, [key for name, key in self.keys.items() if name]
        replies = self.conn.ask(*(command for key in keys for command in (["PTTL", self.prefix + key], ["PERSIST", self.prefix + key])))
        took_ms = (time.monotonic() - begun) * 1000 + 1
        self.took_ms = max(self.took_ms, took_ms)
        for key, lives_ms in zip(keys, replies[::2]):
            if lives_ms < 0:
                self.has_lost |= lives_ms == -2 and is_counted
                self.ends.pop(key, None)
                continue
            was_ms = self.set_ms.get(key, 0)
            if key not in self.ends or not was_ms - took_ms <= lives_ms <= was_ms:
                self.ends[key], self.lives[key], self.seen_at[key] = now + (lives_ms + took_ms) * 1000, lives_ms, now
                self.slack_ms[key] = took_ms

    # ---- steps ----

    def ask(self, step, begun):
        if self.clock:
            began = time.monotonic()
            self.set_clock(step.at)
            reply = self.read(self.conn.call(*self.words(step)))
            is_counted = isinstance(reply, list) and len(reply) > 4 and isinstance(reply[4], int) and reply[4] > 0
            self.see_ends(step.at, began, is_counted)
            if reply != step.expected:
                self.fail(step, casefile.write_reply(reply))
            return
        time.sleep(max(0.0, begun + step.at / 1e6 - time.monotonic()))
        reply = self.read(self.conn.call(*self.words(step)))
        self.late_ms = max(self.late_ms, (time.monotonic() - begun) * 1000 - step.at / 1000)
        if not casefile.is_same(step, reply, self.late_ms):
            self.fail(step, casefile.write_reply(reply))

    def stored(self, key):
        kind = self.conn.call("TYPE", key)
        if kind == "none":
            return "nothing"
        if kind == "zset":
            pairs = self.conn.call("ZRANGE", key, 0, -1, "WITHSCORES")
            flat = [part for pair in pairs for part in (pair if isinstance(pair, list) else [pair])]
            token = {token.encode(): name.encode() for name, token in self.tokens.items()}
            names = [b"h:" + token[name[2:]] if name[2:] in token else name for name in flat[::2]]
            # the log's end of use, by PTTL
            names = [re.sub(rb"^(p.*:)\d+$", rb"\1*", name) for name in names]
            return "zset " + " ".join(f"{name.decode()} {float(score):.17g}" for name, score in zip(names, flat[1::2]))
        return casefile.write_string(self.conn.call("GET", key))

    def check(self, step):
        """Checks what is stored, and its time to live; only with a set clock."""
        key = self.key(step.words[0])
        if step.kind == "holds":
            is_over = key in self.ends and self.seen_at[key] + self.lives[key] * 1000 <= casefile.START + self.at
            found = "nothing" if is_over else self.stored(self.prefix + key)
            if found != step.expected:
                self.fail(step, found)
        else:
            left_ms = self.lives.get(key, 0) + (self.seen_at.get(key, 0) - casefile.START - self.at) / 1000
            if not int(step.expected) - self.slack_ms.get(key, 0) <= left_ms <= int(step.expected):
                self.fail(step, f"{left_ms:.0f}")

    @property
    def is_too_late(self):
        """True if the steps were later than the case allows: then the case proves nothing."""
        if self.clock:
            return self.has_lost or self.took_ms > LEAST_MS / 2
        return self.late_ms > casefile.LATE_US / 1000

    def run(self):
        begun = time.monotonic()
        for step in self.case.steps:
            if step.kind == "at":
                self.at = step.at
                self.ask(step, begun)
            elif self.clock:
                self.check(step)


def chosen(cases, names, clock, may_wait):
    """Returns the cases that can run."""
    wheres = {"still", "waits", "clock"} if clock else {"still", "waits"} if may_wait else {"still"}
    return [case for case in cases if case.where in wheres and (not names or case.name in names)]


def hold(conn, cases, clock=None, prefix="limit:", say=print):
    """Runs the cases; returns how many do not hold."""
    failed = 0
    for case in cases:
        for left in range(TRIES)[::-1]:
            run = Run(conn, case, clock, prefix)
            try:
                run.run()
            except Failed as why:
                if left and run.is_too_late:
                    continue
                failed += 1
                say(f"FAILED {why}")
            break
    return failed


def by_sentence(cases):
    """Returns {sentence: names of its cases}."""
    found = defaultdict(list)
    for case in cases:
        for sentence in case.sentences:
            found[sentence].append(case.name)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], int(item[0][1:]))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6380)
    parser.add_argument("--clock", metavar="COMMAND", help="sets the server's clock: words with {us} in one of them")
    parser.add_argument("--wait", action="store_true", help="also cases that take some seconds")
    parser.add_argument("--prefix", default="limit:", help="of keys as they are stored; only with --clock (default: limit:)")
    parser.add_argument("--list", action="store_true", help="say which cases hold which sentence, and ask nobody")
    parser.add_argument("cases", nargs="*", help="only these")
    args = parser.parse_args()
    cases = casefile.all_cases()
    if args.list:
        for sentence, names in by_sentence(cases).items():
            print(sentence, *names)
        return 0
    asked = chosen(cases, args.cases, args.clock, args.wait)
    try:
        with Conn((args.host, args.port)) as conn:
            failed = hold(conn, asked, args.clock, args.prefix)
    except OSError as why:
        print(f"{args.host}:{args.port} cannot be asked: {why}", file=sys.stderr)
        return 2
    print(f"{len(asked) - failed} of {len(asked)} cases hold; {len(cases) - len(asked)} were not asked")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
