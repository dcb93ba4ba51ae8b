"""The redis-server under test. REDIS_SERVER=path chooses another server than the installed one.

Tests ask this module, or the server itself, for the expected behaviour. No table lists the answers
of releases.
"""

import functools
import os
import re
import subprocess

REDIS_SERVER = os.environ.get("REDIS_SERVER", "redis-server")
FORKED_AT = (7, 2, 4)  # the Redis version that every Valkey reports


@functools.cache
def _says():
    return subprocess.run([REDIS_SERVER, "--version"], capture_output=True, text=True, check=True).stdout


@functools.cache
def is_valkey():
    """True if the server is Valkey. The first Valkey did not report its name."""
    return not _says().startswith("Redis")


@functools.cache
def _own_version():
    return tuple(map(int, re.search(r" v=(\d+)\.(\d+)\.(\d+)", _says()).groups()))


def at_least(*version):
    """True if the server does what Redis does since this version."""
    return (FORKED_AT if is_valkey() else _own_version()) >= version


def valkey_at_least(*version):
    return is_valkey() and _own_version() >= version


def quoted(text):
    """Returns the text as the server quotes it in an error."""
    return f"'{text}'" if at_least(7, 0) else f"`{text}`"


@functools.cache
def has_tls():
    """True if the server speaks TLS: started with a missing certificate, it complains of the
    certificate, not of the port.
    """
    wish = ["--port", "0", "--tls-port", "1", "--tls-cert-file", "/nowhere"]
    done = subprocess.run([REDIS_SERVER, *wish], capture_output=True, text=True, timeout=60)
    return "Failed to configure TLS" in done.stdout


def options(since, *words):
    """Returns options that servers know from this version on, and nothing for an older server."""
    return list(words) if at_least(*since) else []
