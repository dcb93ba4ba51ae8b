"""Reads src/run/config/config_keys.def: the table of the keys of [weir] and [admin]."""
import os
import re
from dataclasses import dataclass

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TABLE = "src/run/config/config_keys.def"
RELOAD = ("RELOAD", "FILES", "RESTART")


@dataclass
class Key:
    section: str
    name: str
    default: str  # None: no default
    value: str    # in words; a backquoted word is a word of the file
    is_list: bool
    when: str     # one of the words in RELOAD
    about: str


def text_of(argument):
    """The C string literals of an argument, joined. None for NULL."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"', argument)
    return "".join(found) if found else None


def arguments(row):
    """The arguments of a row. Commas within brackets or quotes do not separate."""
    depth, quoted, start = 0, False, 0
    for i, c in enumerate(row):
        if c == '"' and row[i - 1] != "\\":
            quoted = not quoted
        elif not quoted and c == "(":
            depth += 1
        elif not quoted and c == ")":
            depth -= 1
        elif not quoted and c == "," and depth == 0:
            yield row[start:i].strip()
            start = i + 1
    yield row[start:].strip()


def words_of(argument):
    return re.findall(r'"([^"]+)"', argument)


def joined(words):
    """`a`, `b` or `c`"""
    quoted = [f"`{word}`" for word in words]
    return " or ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))


def value_of(argument):
    number = re.match(r'(COUNT|SIZE|TIME)\([^"]*"([^"]+)", "([^"]+)"\)', argument)
    either = re.search(r"\bOR\((.*?)\)", argument)
    if number:
        words = words_of(either[1]) if either else []
        behind = {0: "", 1: ", or "}.get(len(words), ", ") + joined(words)
        return f"{number[1].lower()} from {number[2]} to {number[3]}{behind}"
    if argument.startswith("WORDS("):
        return joined(words_of(argument))
    return text_of(argument)


def rows(macro, source):
    """The arguments of each row. A row ends with a bracket at the end of a line."""
    return [list(arguments(row)) for row in re.findall(rf"^{macro}\((.*?)\)\n", source + "\n", re.M | re.S)]


def read():
    """The keys, and the old names of keys."""
    with open(os.path.join(ROOT, TABLE), encoding="utf-8") as file:
        source = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    keys = []
    for section, name, default, _, value, when, about in rows("KEY", source):
        is_list = bool(re.search(r"\bLIST\b", value))
        keys.append(Key(section.lower(), text_of(name), text_of(default), value_of(value), is_list, when, text_of(about)))
    old = {text_of(row[1]) for row in rows("OLD", source)}
    if len(keys) < 40 or not old or any(key.value is None or key.about is None or key.when not in RELOAD for key in keys):
        raise SystemExit(f"{TABLE}: tests/tools/keys_def.py cannot read it")
    return keys, old
