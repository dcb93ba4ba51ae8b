"""Programs with client libraries that run through an outage of Redis, each in its own process."""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading

from kit.harness import wait_until

# A connection that is closed, reset or refused is one event. weir listens while Redis does not, and
# reads requests that Redis has not read.
LOST = re.compile(
    r"(?:Error (?:\d+ connecting|while reading|connecting)|Connection (?:closed|lost)|Received connection error|"
    r"Redis server \S+ went away|read error on connection|(?:read|write|dial) tcp|EOF|"
    r"Error (?:connect|read) ECONN|SocketClosedUnexpectedlyError).*"
)
# whether Redis is still reading its file is chance
EARLY = re.compile("LOADING|is loading the dataset")
SECONDS = 30


class Program:
    """A running program: collects its lines as the lines come."""

    def __init__(self, argv, **env):
        self.complaints = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(
            [str(word) for word in argv],
            env={**os.environ, **env},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            start_new_session=True,
        )
        self.lines = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        self.lines.extend(line.rstrip("\n") for line in self.child.stdout)

    def say(self, *lines):
        if not self.has_ended():
            self.child.stdin.write("".join(f"{line}\n" for line in lines))
            self.child.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)  # the program and its child processes
        self.child.wait()
        self.reader.join()
        self.complaints.close()

    def has_ended(self):
        return self.child.poll() is not None

    def until(self, condition, what):
        """Waits until the condition holds, or the program has ended."""
        try:
            wait_until(lambda: condition() or self.has_ended(), what, SECONDS)
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *collapsed(self.lines), self.stderr()])) from None

    def stderr(self):
        self.complaints.seek(0)
        return self.complaints.read()[-3000:]

    def code(self):
        self.until(self.has_ended, "it ends")
        self.reader.join()
        return self.child.returncode


def collapsed(lines):
    """Merges repeated events: how often an event repeats depends on the speed of the machine."""
    events = []
    for line in lines:
        event = LOST.sub("connection lost", line)
        if not EARLY.search(line) and events[-1:] != [event]:
            events.append(event)
    return events
