"""Shared parts of tests about limits: texts of refusals, names of users, and the operators' socket.
"""

import re

from kit.resp import Conn, Error

REFUSED = re.compile(r"THROTTLED retry_in_ms=(-?\d+) limit=(\S+)")
TOO_MANY = Error("ERR max number of clients reached")
EXECABORT = Error("EXECABORT Transaction discarded because of previous errors.")
OPERATOR = "[admin]\nsocket = {folder}/operator.sock\n"
USERS = ["alice", "bob", "vip-1", "vip-2"]
COUNTS = ("admitted", "delayed", "refused", "shadowed")


def refusal(reply):
    """Returns (limit, retry in ms), or None for any other reply."""
    match = isinstance(reply, Error) and REFUSED.fullmatch(reply)
    return (match[2], int(match[1])) if match else None


def limit_of(reply):
    """Returns the limit that refused, or None for any other reply."""
    found = refusal(reply)
    return found[0] if found else None


def passed(replies):
    return sum(limit_of(reply) is None for reply in replies)


def login(server, user):
    conn = server.connect()
    assert conn.call("AUTH", user, "pw") == "OK"
    return conn


def operator(weir):
    """Connects to the socket that OPERATOR in the configuration opens; in RESP3."""
    conn = Conn(str(weir.folder / "operator.sock"))
    conn.call("HELLO", 3)
    return conn


def order(weir, *args):
    """Runs one admin command."""
    with operator(weir) as conn:
        return conn.call("LIMIT", *args)


def plain(value):
    """Returns the value with str for bytes, and dict for RESP2 lists of names and values."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def status(conn, i=0):
    """Returns the state of the limit at index i of the policy that binds conn. conn speaks RESP2 or
    RESP3.
    """
    reply = plain(conn.call("LIMIT", "STATUS"))
    if isinstance(reply, list):
        reply = dict(zip(reply[::2], reply[1::2]))
        limit = reply["limits"][i]
        return dict(zip(limit[::2], limit[1::2]))
    return reply["limits"][i]


def remaining(conn, i=0):
    return status(conn, i)["remaining"]


def tallies(weir):
    """Returns what LIMIT LIST counts, as (label, admitted, delayed, refused, shadowed) in the
    file's order.
    """
    return [(row["limit"], *(row[name] for name in COUNTS)) for row in plain(order(weir, "LIST"))]
