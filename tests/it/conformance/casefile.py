"""Reads and writes the files of cases. docs/algorithms.md describes their lines."""

import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"
UNITS = {"us": 1, "ms": 10**3, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}
LATE_US = 60_000  # a step may be late by this much if the clock cannot be set
START = 1_763_714_040_000_000  # us since 1970: the beginning of a minute


@dataclass
class Step:
    """A line `at`, `holds` or `lives`."""

    kind: str
    words: list  # of the call; of `holds` and `lives` the key
    at: int = 0  # us since the case's beginning
    when: str = "0"  # `at` as it is written in the file
    expected: list = None


@dataclass
class Case:
    name: str
    sentences: list
    where: str = None
    steps: list = field(default_factory=list)

    @property
    def calls(self):
        return [step for step in self.steps if step.kind == "at"]


def read_time(text):
    number, unit = re.fullmatch(r"(\d+)(us|ms|s|m|h|d)?", text).groups()
    return int(number) * UNITS[unit or "us"]


def read_value(word):
    """Returns a value of a reply: an integer, nil, or a word (OK, the name of a key, of a token).
    """
    return None if word == "nil" else int(word) if re.fullmatch(r"-?\d+", word) else word


def read_reply(text):
    if text.startswith("-") and not re.match(r"-\d", text):
        return text
    words = text.split()
    values = [read_value(word) for word in words]
    return values[0] if len(values) == 1 else values


def write_reply(reply):
    if isinstance(reply, str):
        return reply
    return " ".join("nil" if one is None else str(one) for one in (reply if isinstance(reply, list) else [reply]))


def write_string(value):
    """Returns the stored form of a value: as bytes if more than a letter follows a penalty."""
    letter = re.sub(rb"^p[\d:]+", b"", value)
    is_binary = letter[:1] in (b"f", b"b", b"g") and len(letter) > 1
    return f"hex {value.hex()}" if is_binary else f"text {value.decode('latin1')}"


def key_places(words):
    """Returns the indices of the words that name keys."""
    name = words[1].upper()
    if name == "RESET":
        return list(range(2, len(words)))
    if name == "ALL":
        return [3, *(at + 2 for at, word in enumerate(words) if word.upper() == "AND")]
    return [3 if name in ("BAN", "UNBAN") else 2]


def read_step(line):
    kind, rest = line.split(" ", 1)
    if kind == "at":
        call, _, reply = rest.partition(" = ")
        when, *words = call.split()
        return Step(kind, words, read_time(when), when, read_reply(reply) if reply else None)
    key, *expected = rest.split(" ", 1)
    return Step(kind, [key], expected=expected[0] if expected else None)


def read_file(path):
    """Returns [Case], and the comments before the first case."""
    cases, head = [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            if not line or line.startswith("#"):
                head += [line] if line and not cases else []
            elif line.startswith("case "):
                name, sentences = line[5:].split(" of ")
                cases.append(Case(name, sentences.split()))
            elif line.startswith("where "):
                cases[-1].where = line[6:]
            else:
                cases[-1].steps.append(read_step(line))
        except (ValueError, AttributeError, IndexError):
            raise SystemExit(f"{path}:{number}: not understood: {line}")
    return cases, head


def write_step(step):
    if step.kind == "at":
        return f"at {step.when} {' '.join(step.words)} = {write_reply(step.expected)}"
    return f"{step.kind} {step.words[0]} {step.expected}"


def write_file(cases, head):
    """Returns the text of a file."""
    blocks = ["\n".join(head)]
    for case in cases:
        lines = [f"case {case.name} of {' '.join(case.sentences)}", f"where {case.where}", *map(write_step, case.steps)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def files():
    return sorted(FOLDER.glob("*.cases"))


def all_cases():
    return [case for path in files() for case in read_file(path)[0]]


# ---- replies under a clock that cannot be set ----


def follows_clock(words):
    """True if the call's windows are those of the calendar."""
    upper = [word.upper() for word in words]
    return ("FIXED" in upper[1:3] and "FIRST" not in upper) or "APPROX" in upper or upper[1] == "ALL"


def time_fields(words):
    """Returns which fields of an array are times, and the unit of each in ms."""
    return {"ACQUIRE": ([4], 1), "THROTTLE": ([3, 4], 1000)}.get(words[1].upper(), ([3, 4], 1))


def is_same(step, reply, late_ms):
    """True if the reply is right for a call that was late by at most `late_ms`. By
    docs/algorithms.md a call may be late, and a remembered denial may answer it with the times of
    an earlier call.
    """
    if not isinstance(reply, list) or not isinstance(step.expected, list):
        return reply == step.expected
    places, unit = time_fields(step.words)
    for place, (found, expected) in enumerate(zip(reply, step.expected)):
        if place not in places or expected <= 0 or found <= 0:
            if found != expected:
                return False
        elif not follows_clock(step.words) and abs(found - expected) * unit > 2 * late_ms + unit:
            return False
    return len(reply) == len(step.expected)
