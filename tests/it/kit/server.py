"""What the redis-server under test is. REDIS_SERVER=path chooses another than the installed one.

Tests ask here, or the server itself, what to expect; what a release answers is written down nowhere.
"""

import functools
import os
import re
import subprocess

REDIS_SERVER = os.environ.get("REDIS_SERVER", "redis-server")
FORKED_AT = (7, 2, 4)  # the Redis that every Valkey says it is


@functools.cache
def _says():
    return subprocess.run([REDIS_SERVER, "--version"], capture_output=True, text=True, check=True).stdout


@functools.cache
def is_valkey():
    """The first of them called itself a server without a name."""
    return not _says().startswith("Redis")


@functools.cache
def _own_version():
    return tuple(map(int, re.search(r" v=(\d+)\.(\d+)\.(\d+)", _says()).groups()))


def at_least(*version):
    """Does it do what Redis does since this version?"""
    return (FORKED_AT if is_valkey() else _own_version()) >= version


def valkey_at_least(*version):
    return is_valkey() and _own_version() >= version


def quoted(text):
    """As it quotes what it repeats in an error."""
    return f"'{text}'" if at_least(7, 0) else f"`{text}`"


@functools.cache
def has_tls():
    """Asked for a port with a certificate that is not there, it complains of the certificate or of the port."""
    wish = ["--port", "0", "--tls-port", "1", "--tls-cert-file", "/nowhere"]
    done = subprocess.run([REDIS_SERVER, *wish], capture_output=True, text=True, timeout=60)
    return "Failed to configure TLS" in done.stdout


def options(since, *words):
    """Options of a server from this version on; before it they were not there."""
    return list(words) if at_least(*since) else []
