"""Every command through weir in front of a cluster gets what one server answers, or is a row of docs/cluster.md.

The corpus of test_corpus.py is played on one server directly and through weir on three masters. `tagged`: the keys of each
command have one tag, as an application gives them; `untagged`: they lie in whichever slots. Both servers are sent the same.
"""

import re

import pytest
from kit.cluster import Cluster, weir_before
from kit.corpus import GROUPS, masked
from kit.resp import Closed, Error, Recorder, encode
from test_corpus import FORMS, FRESH, OPTIONS, Names, differences, play, split

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
    """The arguments of one encoded request."""
    found, rest = [], data[data.index(b"\r\n") + 2 :]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        n = int(size[1:])
        found.append(rest[:n])
        rest = rest[n + 2 :]
    return found


def tagged(conn, request):
    """The same with a tag in front of each key. A word that is like a key is taken for one: both servers get the same."""
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


CLOSED = b"-CLOSED\r\n"  # in place of a reply; no server says so


def play_on(address, batches, proto):
    """As test_corpus.play; a connection that ends is told of, and the next request has another."""
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


# (commands, what the request matches, the reason: a row of docs/cluster.md or a law of Redis Cluster)
EXPECTED = []


def is_expected(title, keys, name, data):
    return any(
        re.fullmatch(commands, name) and re.search(request, data) and (wanted is None or wanted == keys)
        for commands, request, wanted, _ in EXPECTED
    )


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
        batches = FORMS[form](requests)
        different += differences(title, batches, play(direct.address, batches, proto), play_on(weir.address, batches, proto))
    assert not different, "\n".join(different)
