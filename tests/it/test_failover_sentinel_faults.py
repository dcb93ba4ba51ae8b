"""Sentinels that lie, hang, know nothing, disagree, move, or want another password. The servers are
real, the sentinels are fakes.
"""

import contextlib
import random

import pytest
from kit.fake_sentinel import BYE, HANG, FakeSentinel
from kit.harness import free_port, wait_until
from kit.sentinel import NAME, Node, follows

pytestmark = pytest.mark.failover

MOST_QUESTIONS = 10  # a second, to any sentinel
WAITS = {"failover_wait": "10s"}


@pytest.fixture
def nodes(farm):
    """Three servers, each a master without replicas."""
    return [farm._start(Node()) for _ in range(3)]


@pytest.fixture
def sentinels(farm, nodes):
    """Three sentinels that name the first server and each other."""
    made = [farm._start(FakeSentinel(master=nodes[0].announced)) for _ in range(3)]
    for sentinel in made:
        sentinel.peers = [other.address for other in made if other is not sentinel]
    yield made
    for sentinel in made:
        assert sentinel.most_in(1.0) <= MOST_QUESTIONS, sentinel.asked


def at(*sentinels):
    return f"sentinel:{NAME}@" + ", ".join("%s:%d" % sentinel.address for sentinel in sentinels)


def start(farm, *sentinels, **settings):
    return farm.weir(at(*sentinels), **{**WAITS, **settings})


def wait_follows(weir, node):
    wait_until(lambda: follows(weir, node), "weir follows")


def stays(weir, node, sentinel, questions=4):
    """Checks that weir asks a few more times, and meanwhile writes to no other server."""
    before = sentinel.n_asked("SENTINEL")
    while sentinel.n_asked("SENTINEL") < before + questions:
        assert follows(weir, node)


def say(sentinels, node, epoch):
    for sentinel in sentinels:
        sentinel.says(node, epoch)


@pytest.mark.parametrize("is_published", [True, False], ids=["published", "polled"])
def test_a_switch(is_published, farm, nodes, sentinels):
    weir = start(farm, *sentinels)
    assert follows(weir, nodes[0])
    say(sentinels, nodes[1], 2)
    if is_published:
        sentinels[0].publishes(nodes[0], nodes[1])
    wait_follows(weir, nodes[1])


def test_never_back_to_an_older_epoch(farm, nodes, sentinels):
    say(sentinels, nodes[1], 7)
    weir = start(farm, *sentinels)
    assert follows(weir, nodes[1])
    sentinels[2].says(nodes[0], 6)
    sentinels[2].publishes(nodes[1], nodes[0])
    stays(weir, nodes[1], sentinels[2])


@pytest.mark.parametrize("epoch", [1, 2, 2**62])
def test_one_that_lies(epoch, farm, nodes, sentinels):
    """weir does not act on what one sentinel alone says. Later answers of the other sentinels still
    count.
    """
    weir = start(farm, *sentinels)
    liar = sentinels[2]
    liar.says(nodes[2], epoch)
    liar.publishes(nodes[0], nodes[2])
    stays(weir, nodes[0], liar)
    say(sentinels[:2], nodes[1], 2)
    wait_follows(weir, nodes[1])
    stays(weir, nodes[1], liar)


def test_a_liar_from_the_start(farm, nodes, sentinels):
    sentinels[0].says(nodes[2], 2**62)
    weir = start(farm, *sentinels)
    wait_follows(weir, nodes[0])
    say(sentinels[1:], nodes[1], 2)
    wait_follows(weir, nodes[1])


@pytest.mark.parametrize("answer", [HANG, BYE, b"*-1\r\n", b"-ERR none\r\n", b"+OK\r\n", b"$3\r\nabc\r\n", b"%9999999\r\n", b"\x00\xff" * 999],
                         ids=["hangs", "closes", "nil", "error", "ok", "bulk", "long", "garbage"])
def test_two_that_are_of_no_use(answer, farm, nodes, sentinels):
    """The third sentinel is enough, at a start and later."""
    for sentinel in sentinels[:2]:
        sentinel.answers["*"] = answer
    weir = start(farm, *sentinels)
    wait_follows(weir, nodes[0])
    sentinels[2].says(nodes[1], 2)
    wait_follows(weir, nodes[1])


def test_all_become_useless(farm, nodes, sentinels):
    """The master in use stays in use."""
    weir = start(farm, *sentinels)
    assert follows(weir, nodes[0])
    for sentinel in sentinels[:2]:
        sentinel.answers["*"] = HANG
    sentinels[2].says(None)
    stays(weir, nodes[0], sentinels[2])
    sentinels[0].refuse()
    stays(weir, nodes[0], sentinels[2])


def test_no_sentinel_knows_the_name(farm, nodes, sentinels):
    """weir starts, is not ready, and logs what is wrong. weir serves as soon as one sentinel knows
    the name.
    """
    for sentinel in sentinels:
        sentinel.says(None)
    weir = start(farm, *sentinels)
    wait_until(lambda: NAME in weir.log() and "but not ready" in weir.log(), "it says so")
    say(sentinels, nodes[0], 1)
    wait_follows(weir, nodes[0])


def test_no_sentinel_is_there(farm, nodes, sentinels):
    for sentinel in sentinels:
        sentinel.refuse()
    weir = start(farm, *sentinels)
    assert "but not ready" in weir.log()
    for sentinel in sentinels:
        sentinel.start()
    wait_follows(weir, nodes[0])


def test_they_disagree(farm, nodes, sentinels):
    """All with one epoch: the master in use stays, and weir does not alternate."""
    weir = start(farm, *sentinels)
    assert follows(weir, nodes[0])
    sentinels[1].says(nodes[1], 1)
    sentinels[2].says(nodes[2], 1)
    stays(weir, nodes[0], sentinels[1], 8)


def test_they_move(farm, nodes, sentinels):
    """Learnt sentinels are enough when the configured one is gone."""
    weir = start(farm, sentinels[0])
    assert follows(weir, nodes[0])
    wait_until(lambda: all(sentinel.n_asked("SENTINEL MASTER") for sentinel in sentinels), "the others are learnt")
    sentinels[0].refuse()
    say(sentinels[1:], nodes[1], 2)
    wait_follows(weir, nodes[1])


def test_one_comes_back_elsewhere(farm, nodes, sentinels):
    """A sentinel changes its address, and the other sentinels tell the new one."""
    weir = start(farm, *sentinels[:2])
    assert follows(weir, nodes[0])
    sentinels[2].refuse()
    sentinels[2].port = free_port()
    sentinels[2].start()
    for sentinel in sentinels[:2]:
        sentinel.peers = [other.address for other in sentinels if other is not sentinel]
    n_before = sentinels[2].n_asked("SENTINEL MASTER")
    wait_until(lambda: sentinels[2].n_asked("SENTINEL MASTER") > n_before, "it is asked where it is now", 30)
    say(sentinels, nodes[1], 2)
    wait_follows(weir, nodes[1])


@pytest.mark.parametrize("user", [None, "weir"])
def test_another_password(user, farm, nodes, sentinels, tmp_path):
    """weir logs the refusal, keeps its master, and follows again with the new password."""
    secret = tmp_path / "secret"
    secret.write_text("first\n")
    secret.chmod(0o600)
    for sentinel in sentinels:
        sentinel.user, sentinel.password = user, "first"
    login = {"sentinel_user": user} if user else {}
    weir = start(farm, *sentinels, sentinel_password_file=secret, **login)
    assert follows(weir, nodes[0])
    for sentinel in sentinels:
        sentinel.password = "second"
        sentinel.end_connections()
    wait_until(lambda: "WRONGPASS" in weir.log(), "it says so")
    assert follows(weir, nodes[0])
    say(sentinels, nodes[1], 2)
    secret.write_text("second\n")
    wait_follows(weir, nodes[1])


def test_a_password_that_weir_has_not(farm, nodes, sentinels):
    for sentinel in sentinels:
        sentinel.password = "secret"
    weir = start(farm, *sentinels)
    wait_until(lambda: "NOAUTH" in weir.log() or "sentinel-password-file" in weir.log(), "it says so")
    assert "but not ready" in weir.log()
    for sentinel in sentinels:
        sentinel.password = None
        sentinel.end_connections()
    wait_follows(weir, nodes[0])


def test_a_master_that_says_replica(farm, nodes, sentinels):
    """The sentinels name a server too early. weir serves the server once it reports itself as
    master.
    """
    assert nodes[1].call("REPLICAOF", *nodes[0].announced) == "OK"
    wait_until(lambda: nodes[1].follows(nodes[0]), "it follows")
    say(sentinels, nodes[1], 2)
    weir = start(farm, *sentinels)
    assert "but not ready" in weir.log()
    with weir.connect() as conn:
        conn.send(b"SET k v\r\n")
        wait_until(lambda: sentinels[0].n_asked("SENTINEL MASTER") > 3, "weir looks again")
        assert nodes[1].call("REPLICAOF", "NO", "ONE") == "OK"
        assert conn.read() == "OK"
    assert nodes[1].call("GET", "k") == b"v" and nodes[0].call("GET", "k") is None


def test_they_name_weir_itself(farm, nodes, sentinels):
    port = free_port()
    weir = start(farm, *sentinels, listen=f"127.0.0.1:{port}")
    assert follows(weir, nodes[0])
    for host in ("127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"):
        say(sentinels, (host, port), sentinels[0].masters[NAME][1] + 1)
        sentinels[0].publishes(nodes[0], (host, port))
        before = sentinels[1].n_asked("SENTINEL")
        wait_until(lambda: sentinels[1].n_asked("SENTINEL") > before + 3, "weir asks again")
    say(sentinels, nodes[1], 9)
    wait_follows(weir, nodes[1])


@pytest.mark.parametrize("address", [("127.0.0.1", 0), ("", 6379), ("127.0.0.1", 70000), ("none.such.invalid", 6379), ("127.0.0.1", -1)])
def test_they_name_nothing(address, farm, nodes, sentinels):
    weir = start(farm, *sentinels)
    assert follows(weir, nodes[0])
    say(sentinels, address, 2)
    before = sentinels[1].n_asked("SENTINEL")
    wait_until(lambda: sentinels[1].n_asked("SENTINEL") > before + 3, "weir asks again")
    say(sentinels, nodes[1], 3)
    wait_follows(weir, nodes[1])


def test_a_storm_of_messages(farm, nodes, sentinels):
    """Endless messages of a sentinel cause no more questions than usual; the fixture has counted
    them.
    """
    weir = start(farm, *sentinels)
    for _ in range(300):
        sentinels[0].publishes(nodes[0], nodes[1])
        sentinels[1].publishes(nodes[0], nodes[2])
    stays(weir, nodes[0], sentinels[0], 8)


def test_all_at_random(farm, nodes, sentinels):
    """One random fault after the other. At the end weir follows the master that all sentinels name.
    """
    dice = random.Random(36)
    weir = start(farm, *sentinels)
    epoch = 1
    for _ in range(40):
        sentinel = dice.choice(sentinels)
        fault = dice.randrange(7)
        sentinel.answers.pop("*", None)
        if fault == 0:
            sentinel.answers["*"] = dice.choice([HANG, BYE, b"*-1\r\n", b"-ERR x\r\n", dice.randbytes(20)])
        elif fault == 1:
            sentinel.end_connections()
        elif fault == 2:
            sentinel.says(dice.choice([*nodes, None]), dice.randrange(1 << dice.randrange(1, 63)))
        elif fault == 3:
            sentinel.publishes(*dice.sample(nodes, 2))
        elif fault == 4:
            sentinel.peers = [("127.0.0.1", free_port()) for _ in range(dice.randrange(40))]
        else:
            before = sentinel.n_asked()
            with contextlib.suppress(AssertionError):
                wait_until(lambda: sentinel.n_asked() > before, "it is asked", 0.3)
    epoch = max([n for sentinel in sentinels for _, n in sentinel.masters.values()], default=1) + 1
    for sentinel in sentinels:
        sentinel.answers.clear()
        sentinel.peers = [other.address for other in sentinels if other is not sentinel]
    say(sentinels, nodes[1], epoch)
    wait_follows(weir, nodes[1])
