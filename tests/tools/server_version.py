"""Which server a program is."""

import functools
import re
import subprocess


@functools.cache
def said_version(program):
    """Such as "Redis 7.4.1" or "Valkey 8.0.1". A milestone says what it says of itself: "Redis 7.9.224"."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    maker, number = re.match(r"(?:(\w+) )?[Ss]erver v=(\S+)", said).groups()
    return f"{maker or 'Valkey'} {number}"  # Valkey 7.2 has no name for itself here
