"""Types the console sessions of documentation pages, and compares the output.

In a page, in this order:

    ```console         "$ " and a typed line, "> " and its continuation, and below them the output
    ```ini NAME        the file NAME from here on; without a NAME only checked
    (tests/tools/check-docs)
    ```js NAME         the same for any other language

Blocks in any other language, `sh` above all, are not run.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import time
from typing import NamedTuple

from kit.harness import REPO, wait_until

BLOCK = re.compile(r"^```([a-z]+)(?: (\S+))?\n(.*?)^```", re.M | re.S)
END = "--- typed ---"
SECONDS = 30  # for one command
PATIENCE = 15  # for a command that only reads, until its output is as printed
LOOKS = re.compile(r"\b(PING|GET|KEYS|TOP|LIST|EXPLAIN|LOG|DIFF|STATUS|SLOWLOG)\b")


class File(NamedTuple):
    name: str
    text: str


class Typed(NamedTuple):
    command: str
    answer: str


def blocks(path):
    """Returns the steps of each block of a page: a list of File and Typed."""
    for language, name, text in BLOCK.findall((REPO / path).read_text()):
        if language == "console":
            yield console(text)
        elif name:
            yield [File(name, text)]


def console(text):
    steps = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append([[line[2:]], []])
        elif line.startswith("> "):
            steps[-1][0].append(line[2:])
        else:
            steps[-1][1].append(line)
    return [Typed("\n".join(command), "\n".join(answer)) for command, answer in steps]


def transcripts(path):
    """Returns the console blocks alone, each a list of Typed."""
    return [steps for steps in blocks(path) if isinstance(steps[0], Typed)]


def story(path):
    """Returns all steps of a page as one list."""
    return [step for steps in blocks(path) for step in steps]


def shape(text):
    """Returns the text without its numbers; an array of numbers stays an array of numbers."""
    return re.sub(r"\b\d+\b", "N", text.strip())


def shape_but_times(text):
    """Returns the text without remaining times: those with a name, or the last two of a decision's
    five numbers.
    """
    text = re.sub(r"""(_ms(=|":|" => \(integer\) ))[1-9]\d*""", r"\1N", text.strip())
    return re.sub(r"^([45]\) \(integer\) )[1-9]\d*", r"\1N", text, flags=re.M)


class Shell:
    """One bash in a folder. `real` maps printed names and ports to the real ones."""

    def __init__(self, folder, real, path=""):
        self.folder, self.real = folder, real
        # makes redis-cli write as to a terminal
        env = {**os.environ, "FAKETTY": "1", "PATH": f"{path}:{os.environ['PATH']}"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.child = subprocess.Popen(
            [shutil.which("bash"), "--norc"], cwd=folder, env=env, start_new_session=True, **pipes
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends all that was typed."""
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.communicate()

    def as_it_is_here(self, text):
        return re.sub("|".join(map(re.escape, self.real)), lambda printed: str(self.real[printed[0]]), text)

    def write(self, file):
        (self.folder / file.name).write_text(self.as_it_is_here(file.text))

    def type(self, command):
        """Types a command and returns its output; background processes go on."""
        self.child.stdin.write(f"{{\n{self.as_it_is_here(command)}\n}} </dev/null\necho '{END}'\n".encode())
        self.child.stdin.flush()
        out, deadline = b"", time.monotonic() + SECONDS
        while not out.endswith(f"{END}\n".encode()):
            left = max(0, deadline - time.monotonic())
            assert select.select([self.child.stdout], [], [], left)[0], f"{command}: not done in {SECONDS} s\n{out}"
            piece = os.read(self.child.stdout.fileno(), 65536)
            assert piece, f"{command}: the shell has ended\n{out}"
            out += piece
        return out.decode().removesuffix(f"{END}\n").rstrip("\n")

    def answer(self, step, like=shape):
        """Returns the final output. A command that only reads may be typed again until the output
        is like the printed one.
        """
        answers = []

        def is_there():
            answers.append(self.type(step.command))
            return like(answers[-1]) == like(step.answer)

        try:
            wait_until(is_there, step.command, PATIENCE if LOOKS.search(step.command) else 0)
        except AssertionError:
            pass
        return answers[-1]

    def tell(self, steps, like=shape):
        """Runs all steps; each output must be like the printed one."""
        for step in steps:
            if isinstance(step, File):
                self.write(step)
            else:
                found = self.answer(step, like)
                assert like(found) == like(step.answer), f"{step.command}\n{found}"
