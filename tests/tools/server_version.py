"""The name and version of a server program."""

import functools
import re
import subprocess


@functools.cache
def said_version(program):
    """Like "Redis 7.4.1" or "Valkey 8.0.1". A milestone has its own number: "Redis 7.9.224"."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    maker, number = re.match(r"(?:(\w+) )?[Ss]erver v=(\S+)", said).groups()
    return f"{maker or 'Valkey'} {number}"  # Valkey 7.2 does not print its name here
