#!/usr/bin/env python3
"""Prints src/limit/commands.def from the answer of the installed redis-server to COMMAND.

    tests/tools/gen-commands.py > src/limit/commands.def

The tool starts a server of its own in a temporary folder, without a port, and stops it.
"""
import json
import os
import subprocess
import tempfile

HEAD = """\
/*
 * What COMMAND of Redis {version} says: made by tests/tools/gen-commands.py, not edited by hand.
 * ROW(name, arity, flags, first key, last key, key step, categories)
 */
"""


def rows(commands):
    for command in commands:
        yield command
        yield from rows(command[9])


def line(command):
    name, arity, flags, first, last, step, categories = command[:7]
    flags = " ".join(flags)
    categories = " ".join(category.lstrip("@") for category in categories)
    return f'ROW("{name}", {arity}, "{flags}", {first}, {last}, {step}, "{categories}")'


def main():
    with tempfile.TemporaryDirectory() as folder:
        sock = os.path.join(folder, "s")
        pipe = {"stdout": subprocess.PIPE, "text": True}
        options = ["--port", "0", "--unixsocket", sock, "--save", "", "--dir", folder]
        server = subprocess.Popen(["redis-server", *options], **pipe)
        try:
            for said in server.stdout:
                if "ready to accept connections" in said.lower():
                    break
            cli = ["redis-cli", "-s", sock]
            reply = subprocess.run([*cli, "--json", "COMMAND"], check=True, **pipe).stdout
            info = subprocess.run([*cli, "INFO", "server"], check=True, **pipe).stdout
        finally:
            server.terminate()
            server.communicate()
    version = next(text.split(":")[1].strip() for text in info.splitlines() if text.startswith("redis_version"))
    print(HEAD.format(version=version) + "\n".join(sorted(line(command) for command in rows(json.loads(reply)))))


if __name__ == "__main__":
    main()
