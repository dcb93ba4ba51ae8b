"""Every command through weir in front of a cluster gets what one server answers, or is a row of
docs/cluster.md.

The corpus of test_every_command.py is played on one server directly, and through weir on three
masters.
`tagged`: the keys of each command share a tag, as in applications. `untagged`: the keys lie in any
slots. Both servers get the same bytes.
"""

import re

import pytest
from kit.cluster import Cluster, weir_before
from kit.corpus import GROUPS
from kit.resp import Closed, Error, Recorder, encode
from test_every_command import FORMS, FRESH, OPTIONS, Names, differences, logins_apart, play, split

pytestmark = pytest.mark.cluster

TAG = b"{t}"


@pytest.fixture(scope="module")
def pair(shared_farm):
    direct = shared_farm.redis(*OPTIONS)
    made = Cluster(shared_farm, *OPTIONS)
    return direct, made, weir_before(made, workers=1)


@pytest.fixture(scope="module")
def names(pair):
    return Names(pair[0])


def words_of(data):
    """Returns the arguments of one encoded request."""
    found, rest = [], data[data.index(b"\r\n") + 2 :]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        n = int(size[1:])
        found.append(rest[:n])
        rest = rest[n + 2 :]
    return found


def tagged(conn, request):
    """Returns the request with a tag before each key. A word that looks like a key gets the tag
    too; both servers get the same bytes.
    """
    name, data = request
    words = words_of(data)
    keys = conn.call("COMMAND", "GETKEYS", *words)
    if isinstance(keys, Error):
        return request
    return name, encode(words[0], *(TAG + word if word in keys else word for word in words[1:]))


@pytest.fixture(scope="module")
def groups(pair, names):
    requests = {title: list(split(text, names)) for title, text in GROUPS.items()}
    requests["wrong numbers of arguments"] = list(names.wrong_numbers())
    with pair[0].connect() as conn:
        return {
            "untagged": requests,
            "tagged": {title: [tagged(conn, request) for request in some] for title, some in requests.items()},
        }


def forget(server):
    with server.connect() as conn:
        conn.ask(*FRESH)


CLOSED = b"-CLOSED\r\n"  # in place of a reply; no server sends this


def play_on(address, batches, proto):
    """Plays like test_every_command.play. A closed connection is noted, and the next request gets a
    new connection.
    """
    frames, end = [], [("echo", encode("ECHO", "the end"))]
    conn = None
    for batch in [*batches, end]:
        if conn is None:
            conn = Recorder(address)
            if proto == 3:
                conn.call("HELLO", 3)
        conn.send(b"".join(data for _, data in batch))
        for _ in batch:
            try:
                frames.append(conn.frame() if conn else CLOSED)
            except Closed:
                frames.append(CLOSED)
                conn = None
    if conn:
        conn.close()
    return frames


# Not played: after these commands sessions would differ. REFUSED has their replies. The cluster
# commands have tests of their own.
LEFT_OUT = [
    ("select", rb"\r\n(?!0\r\n$)[^\r]*\r\n$"),
    ("swapdb|move|debug|client\\|tracking|client\\|caching|readonly|readwrite|asking", rb""),
    ("replicaof|slaveof|failover|cluster.*", rb""),
]
REFUSED = {
    "SELECT 1": "ERR SELECT is not allowed in cluster mode",
    "SWAPDB 0 1": "ERR SWAPDB is not allowed in cluster mode",
    "MOVE k 1": "ERR MOVE is not allowed in cluster mode",
    "REPLICAOF NO ONE": "ERR REPLICAOF not allowed in cluster mode.",
    "DEBUG SLEEP 0": "ERR DEBUG is not supported in front of a Redis Cluster: ask its nodes directly",
    "CLIENT TRACKING ON": "ERR CLIENT TRACKING is not supported in front of a Redis Cluster: ask its nodes directly",
    "MONITOR": "ERR MONITOR is not supported in front of a Redis Cluster: ask its nodes directly",
    "SYNC": "ERR SYNC is not supported in front of a Redis Cluster: ask its nodes directly",
    "PSYNC ? -1": "ERR PSYNC is not supported in front of a Redis Cluster: ask its nodes directly",
}
# (commands, a pattern of weir's reply, the reason: a row of docs/cluster.md, or a server's own
# answer in cluster mode)
EXPECTED = [
    ("scan", rb"^\*2\r\n\$\d+\r\n[1-9]", "the cursor tells the master"),
    ("sort|sort_ro", rb"denied in [Cc]luster mode", "keys of other slots"),
    ("eval.*|fcall.*", rb"non local key", "undeclared keys"),
    ("client\\|reply", rb"not allowed inside MULTI", "MULTI is weir's"),
    ("exec", rb"EXECABORT", "of the one before"),
    ("multi|watch", rb"nested|WATCH inside MULTI", "said by weir as Redis says it: Valkey from 8.0 aborts the transaction"),
    ("exec", rb"(?s)^\*\d.*\+PONG", "of the one before: no other transaction has a PING"),
    ("object|stralgo.*", rb"UPSTREAM moved", "Redis 6.2 looks for a key where it knows no subcommand, or where weir knows no command"),
    ("info", rb"# weir", "it names the home node"),
    ("memory\\|(usage|stats)", rb"", "a key of a cluster takes more, and there is no more than one database"),
    ("latency.*|slowlog.*", rb"", "without DEBUG there is nothing that was slow; and all nodes have it"),
    ("p?sync|monitor|replconf", rb"not supported in front of a Redis Cluster", "refused by name"),
    (".*", rb"CROSSSLOT", "keys of several slots"),
]

# Untagged: commands that read what an earlier command changed; the earlier command got CROSSSLOT
# (MSET, COPY, BZPOPMIN of two keys, SMOVE).
BEHIND = "mget|unlink|bzmpop|srem|sscan"


def is_left_out(request):
    return any(re.fullmatch(names, request[0]) and re.search(pattern, request[1]) for names, pattern in LEFT_OUT)


def is_expected(keys, name, reply):
    return (keys == "untagged" and re.fullmatch(BEHIND, name)) or any(re.fullmatch(names, name) and re.search(pattern, reply) for names, pattern, _ in EXPECTED)


def compared(keys, title, batches, wanted, got):
    """Returns the differences that no rule explains."""
    requests = [item for batch in batches for item in batch] + [("echo", encode("ECHO", "the end"))]
    explained = [want if is_expected(keys, name, have) else have for (name, _), want, have in zip(requests, wanted, got)]
    return differences(title, batches, wanted, explained)


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(words, pair):
    with pair[2].connect() as conn:
        assert conn.call(*words.split()) == Error(REFUSED[words])
        assert conn.call("PING") == "PONG"


@pytest.mark.parametrize("form", ["alone", "pipelined"])
@pytest.mark.parametrize("proto", [2, 3])
@pytest.mark.parametrize("keys", ["tagged", "untagged"])
def test_every_command(keys, proto, form, pair, groups):
    direct, made, weir = pair
    different = []
    for title, requests in groups[keys].items():
        forget(direct)
        for node in made.nodes:
            forget(node)
        batches = FORMS[form]([request for request in requests if not is_left_out(request)])
        different += compared(keys, title, batches, play(direct.address, logins_apart(batches), proto), play_on(weir.address, batches, proto))
    assert not different, "\n".join(different)
