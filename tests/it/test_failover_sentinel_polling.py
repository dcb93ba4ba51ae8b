"""What weir logs about sentinels that lie or refuse weir, and which connections weir makes to
sentinels.
"""

import pathlib
import re

import pytest
from kit.fake_sentinel import HANG, FakeSentinel
from kit.harness import free_port, wait_until
from kit.moving import NAME as HOST, Names
from kit.sentinel import NAME, Deployment, Node, Sentinel, follows
from kit.server import has_tls
from kit.tls import Authority

pytestmark = pytest.mark.failover

MOST_QUESTIONS = 10  # a second, of any kind, to any sentinel


@pytest.fixture
def nodes(farm):
    """Two servers, each a master without replicas."""
    return [farm._start(Node()) for _ in range(2)]


@pytest.fixture
def fakes(farm, nodes):
    """Returns a function that makes sentinels that name the first server. No sentinel may be asked
    too often.
    """
    made = []

    def make(n=1, **how):
        made.extend(farm._start(FakeSentinel(master=nodes[0].announced, **how)) for _ in range(n))
        return made[-n:] if n > 1 else made[-1]

    yield make
    for fake in made:
        assert fake.most_in(1.0, begins="") <= MOST_QUESTIONS, fake.asked


def at(*sentinels):
    return f"sentinel:{NAME}@" + ", ".join("%s:%d" % sentinel.address for sentinel in sentinels)


def says(weir, text):
    return wait_until(lambda: re.search(text, weir.log()), f"the log says {text}")


def count(weir, text):
    return len(re.findall(text, weir.log()))


def wait_asked(fake, questions=3):
    before = fake.n_asked("SENTINEL")
    wait_until(lambda: fake.n_asked("SENTINEL") >= before + questions, "it is asked")


# ---- what weir logs, once per change ----


@pytest.mark.parametrize(
    "words, answer, text",
    [
        ("SENTINEL MASTER", b"-ERR No such master with that name\r\n", f"does not know the name {NAME}"),
        ("SENTINEL MASTER", b"*-1\r\n", f"names no server for {NAME}"),
        ("SENTINEL MASTER", b"-NOPERM this user has no permissions\r\n", "denies weir the commands that it needs: NOPERM"),
        ("SENTINEL MASTER", b"-ERR unknown command 'SENTINEL'\r\n", "is not a sentinel"),
        ("HELLO", b"%1\r\n+mode\r\n+standalone\r\n", "is not a sentinel: standalone"),
        ("HELLO", b"-NOAUTH Authentication required.\r\n", "requires a password: set sentinel-password-file"),
        ("HELLO", HANG, "does not answer: no answer within 300 ms"),
        ("HELLO", b"?\r\n", "sends replies that weir cannot parse"),
    ],
    ids=["name", "nil", "noperm", "unknown", "redis", "noauth", "hangs", "garbage"],
)
def test_what_is_wrong_is_said_once(words, answer, text, farm, nodes, fakes):
    """weir also logs the end of the fault. A good sentinel serves meanwhile."""
    good, bad = fakes(2)
    bad.answers[words] = answer
    weir = farm.weir(at(bad, good), env={"WEIR_HURRY": "4"})
    line = "sentinel 127.0.0.1:%d " % bad.port
    says(weir, line + text)
    assert follows(weir, nodes[0])
    before = bad.n_asked()
    wait_until(lambda: bad.n_asked() > before + 4, "it is tried again")
    assert count(weir, line + text) == 1, weir.log()
    del bad.answers[words]
    says(weir, line + f"names {nodes[0].upstream} as the master of {NAME}, epoch 1")
    bad.answers[words] = answer
    bad.end_connections()
    wait_until(lambda: count(weir, line + text) == 2, "it is said again")


def test_one_that_is_away(farm, nodes, fakes):
    good, bad = fakes(2)
    bad.refuse()
    weir = farm.weir(at(bad, good))
    says(weir, f"sentinel 127.0.0.1:{bad.port} cannot be reached: connection refused")
    assert follows(weir, nodes[0])
    wait_asked(good)
    assert count(weir, "cannot be reached") == 1
    bad.start()
    says(weir, f"sentinel 127.0.0.1:{bad.port} names {nodes[0].upstream}")


def test_sentinels_that_disagree_for_long(farm, nodes, fakes):
    one, other = fakes(2)
    weir = farm.weir(at(one, other), env={"WEIR_HURRY": "4"})
    assert follows(weir, nodes[0])
    other.says(nodes[1], 1)
    first, second = (f"127.0.0.1:{fake.port} names {node.upstream}" for fake, node in zip((one, other), nodes))
    says(weir, f"sentinels disagree about {NAME}: {first}, {second}")
    wait_asked(other, 8)
    assert count(weir, "sentinels disagree") == 1
    assert follows(weir, nodes[0])
    other.says(nodes[0], 1)
    says(weir, f"sentinels agree about {NAME} again")


def test_what_a_sentinel_says_does_not_reach_the_terminal(farm, fakes):
    bad = fakes()
    bad.answers["SENTINEL MASTER"] = b"-ERR \x1b[2J\x07 gone\r\n"
    weir = farm.weir(at(bad))
    says(weir, r"names no server for mymaster: ERR \?\[2J\? gone")
    assert "\x1b" not in weir.log()


# ---- which sentinels are asked, and how often ----


def test_hurry_and_storm_together(farm, nodes, fakes):
    """No master, endless messages, a failover that never ends, lists that are always due: at most
    ten questions a second.
    """
    three = fakes(3)
    for fake in three:
        fake.says(("127.0.0.1", 1), 5)
        fake.flags = "master,failover_in_progress"
        fake.peers = [other.address for other in three if other is not fake]
    weir = farm.weir(at(*three), reads="replicas", env={"WEIR_HURRY": "100"})
    before = three[0].n_asked("SENTINEL MASTER")
    while three[0].n_asked("SENTINEL MASTER") < before + 8:
        for fake in three:
            fake.publishes(nodes[0], nodes[1])
    for fake in three:
        fake.end_connections()
    wait_asked(three[0], 8)
    assert weir.is_running()


def test_one_sentinel_under_two_addresses(farm, nodes, fakes):
    """weir asks the sentinel at one of the addresses, and its answer counts once."""
    twin, other = fakes(2)
    twin.answers["SENTINEL MYID"] = b"$4\r\ntwin\r\n"
    other.answers["SENTINEL MYID"] = b"$5\r\nother\r\n"
    weir = farm.weir(f"sentinel:{NAME}@127.0.0.1:{twin.port}, localhost:{twin.port}, 127.0.0.1:{other.port}")
    assert follows(weir, nodes[0])
    wait_until(lambda: twin.n_asked("SENTINEL MYID") >= 2, "it is known by both addresses")
    wait_asked(twin, 2)
    first = len(twin.asked)
    wait_asked(twin, 4)
    moments = [moment for moment, words in twin.asked[first:] if words == "SENTINEL MASTER"]
    assert all(later - earlier > 0.5 for earlier, later in zip(moments, moments[1:])), moments
    twin.says(nodes[1], 2)
    wait_asked(twin, 4)
    assert follows(weir, nodes[0])
    other.says(nodes[1], 2)
    wait_until(lambda: follows(weir, nodes[1]), "both name the other")


def test_a_list_that_is_too_long(farm, nodes, fakes):
    """weir does not ask for the list again, and serves without it."""
    fake = fakes()
    fake.peers = [("a" * 200 + str(i), 1000 + i) for i in range(200)]
    weir = farm.weir(at(fake))
    wait_asked(fake, 6)
    assert fake.n_asked("SENTINEL SENTINELS") == 1
    fake.says(nodes[1], 2)
    wait_until(lambda: follows(weir, nodes[1]), "weir follows")
    assert "sends what" not in weir.log()


def test_at_most_sixteen_are_learnt(farm, nodes, fakes):
    """weir drops learnt sentinels that the configured sentinel does not list any more."""
    many = fakes(20)
    many[0].peers = [fake.address for fake in many[1:]]
    weir = farm.weir(at(many[0]), env={"WEIR_HURRY": "20"})
    wait_until(lambda: sum(fake.n_asked("SENTINEL MASTER") > 0 for fake in many) == 16, "sixteen are asked")
    assert re.search(", announced by other sentinels: ([^,]*, ){14}", weir.log())
    many[0].peers = [many[19].address]
    wait_until(lambda: many[19].n_asked("SENTINEL MASTER"), "the one that is left is asked")
    assert re.search("removed, no longer announced by other sentinels: ([^,]*, ){14}", weir.log())
    wait_until(lambda: all(fake.n_lost for fake in many[1:16]), "their connections end")


def test_learnt_ones_tell_of_no_others(farm, nodes, fakes):
    """A learnt sentinel cannot add further sentinels."""
    configured, learnt, stranger = fakes(3)
    configured.peers = [learnt.address]
    learnt.peers = [stranger.address]
    farm.weir(at(configured))
    wait_asked(learnt, 6)
    assert not stranger.asked


def test_a_liar_that_knows_many(farm, nodes, fakes):
    """weir believed a huge epoch, and gives it up, though the lying sentinel lists sentinels that
    do not exist.
    """
    liar, *others = fakes(3)
    liar.says(nodes[0], 2**62)
    liar.peers = [("127.0.0.1", free_port()) for _ in range(14)]
    for other in others:
        other.refuse()
    weir = farm.weir(at(liar, *others))
    assert follows(weir, nodes[0])
    for other in others:
        other.start()
    for other in others:
        wait_asked(other)
    for other in others:
        other.says(nodes[1], 2)
    wait_until(lambda: follows(weir, nodes[1]), "weir follows")


# ---- how weir speaks to a sentinel ----


def test_a_sentinel_without_resp3(farm, nodes, fakes):
    """weir polls the sentinel, without subscriptions."""
    old = fakes()
    old.answers["HELLO"] = b"-ERR unknown command 'HELLO'\r\n"
    weir = farm.weir(at(old))
    assert follows(weir, nodes[0])
    assert not old.n_asked("SUBSCRIBE")
    old.says(nodes[1], 2)
    wait_until(lambda: follows(weir, nodes[1]), "weir follows")


def test_the_leader_of_a_failover(farm, nodes, fakes):
    """During a failover the leader gives the new master first in SENTINEL GET-MASTER-ADDR-BY-NAME.
    """
    leader = fakes()
    weir = farm.weir(at(leader))
    assert follows(weir, nodes[0])
    leader.flags = "master,failover_in_progress"
    leader.says(nodes[0], 2)
    words = [b"127.0.0.1", b"%d" % nodes[1].announced[1]]
    leader.answers["SENTINEL GET-MASTER-ADDR-BY-NAME"] = b"*2\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
    wait_until(lambda: follows(weir, nodes[1]), "weir follows")


def test_a_name_that_leads_elsewhere(farm, nodes, fakes, tmp_path):
    """weir finds a sentinel that is configured by name at its new address."""
    names = Names(tmp_path)
    fake = fakes()
    names.point("127.0.0.1")
    weir = farm.weir(
        f"sentinel:{NAME}@{HOST}:{fake.port}", prefix=names.prefix, env={"WEIR_HURRY": "20"}, upstream_resolve="1s"
    )
    assert follows(weir, nodes[0])
    names.point("127.0.0.9")
    wait_until(lambda: fake.n_lost, "the connection is given up")
    names.point("127.0.0.1")
    wait_asked(fake)


def test_sentinels_in_tls_and_behind_a_login(farm, tmp_path):
    """Real sentinels, which give weir's user exactly the rights in docs."""
    if not has_tls():
        pytest.skip("this redis-server is built without TLS")
    ca = Authority(tmp_path)
    pair = ca.issue("redis", "/CN=redis")
    files = {"tls-cert-file": pair.cert, "tls-key-file": pair.key, "tls-ca-cert-file": ca.cert, "tls-auth-clients": "no"}
    tls = [word for name, value in files.items() for word in (f"--{name}", str(value))]
    lines = [f"{name} {value}" for name, value in files.items()]
    secret = tmp_path / "secret"
    secret.write_text("sesame\n")
    secret.chmod(0o600)
    tls_port, port = free_port(), free_port()
    node = farm._start(Node("--tls-port", str(tls_port), *tls))
    docs = pathlib.Path(__file__).parents[2] / "docs" / "failover.md"
    user = re.search("^user weir on >sesame .*", docs.read_text(), re.M)[0]
    sentinel = Sentinel(node, f"tls-port {port}", *lines, user, quorum=1)
    sentinel = farm._start(sentinel)
    wait_until(lambda: sentinel.names() == node.announced, "it names the master")
    weir = farm.weir(
        f"sentinel:{NAME}@tls:localhost:{port}",
        upstream_tls_ca_file=ca.cert,
        upstream_map=f"127.0.0.1:{node.announced[1]}=localhost:{tls_port}",
        sentinel_user="weir",
        sentinel_password_file=secret,
    )
    says(weir, f"names tls:127.0.0.1:{node.announced[1]}|names 127.0.0.1:{node.announced[1]}")
    with weir.connect() as conn:
        assert conn.call("SET", "key", "value") == "OK"
    assert node.call("GET", "key") == b"value"
    wait_until(lambda: b"user=weir" in (found := sentinel.call("CLIENT", "LIST")) and b"sub=1" in found, "it subscribes")
    assert "denies weir the commands" not in weir.log()


def test_real_sentinels_are_learnt(farm):
    """One of three is configured. weir learns the other two from it, and knows each once."""
    deployment = Deployment(farm, n_replicas=1)
    first = deployment.sentinels[0]
    weir = farm.weir(at(first))
    assert follows(weir, deployment.master)
    for sentinel in deployment.sentinels:
        wait_until(lambda: b"sub=1" in sentinel.call("CLIENT", "LIST"), "weir subscribes")
    for sentinel in deployment.sentinels[1:]:
        assert count(weir, f", announced by other sentinels: .*127.0.0.1:{sentinel.port}") == 1
