"""A Redis Cluster of real servers. The cluster is built without redis-cli, its slots move step by
step, and its masters fail over or are killed.

A node that answers as a test says is in kit/fake_node.py. REDIS_SERVER chooses the server of all
nodes: with REDIS_SERVER=valkey-server the nodes are Valkey's.

    made = Cluster(farm, masters=3, replicas=1)
    weir = weir_before(made, workers=2)
    first, second = made.masters[:2]
    key = made.key_at(first)
    slot = slot_of(key)
    made.begin_move(slot, second)   # MIGRATING and IMPORTING: ASK for absent keys
    made.move_keys(slot, 3)         # three of its keys: TRYAGAIN for several of the keys
    made.end_move(slot)             # the other keys, and the slot
"""

import binascii
import contextlib
import itertools
import signal
import socket
import time

from kit.harness import Redis, free_port, wait_until
from kit.relay import Relay
from kit.resp import Closed, Conn, Error
from kit.server import at_least, options

SLOTS = 16384
# deadline of what a cluster does by itself; a failover takes node_timeout and about a second
SECONDS = 30
BUS = 10000  # the port of the cluster's bus is the client port plus this
# A master serves nothing in its first two seconds unless it served before it became a master. A new
# node therefore begins as the replica of an absent master, which reports ok at once. CLUSTER RESET
# then makes the node a master.
REPLICA_OF_NONE = (
    "e%039d 127.0.0.1:%d@%d myself,slave f000000000000000000000000000000000000000 0 0 0 connected\n"
    "f000000000000000000000000000000000000000 127.0.0.1:1@2 master - 0 0 1 connected 0\n"
    "vars currentEpoch 1 lastVoteEpoch 0\n"
)


def tag_of(key):
    """Returns the part of a key that decides its slot: the text between the first `{` and the next
    `}`, unless that text is empty.
    """
    key = key if isinstance(key, bytes) else str(key).encode()
    start = key.find(b"{")
    end = key.find(b"}", start + 1) if start >= 0 else -1
    return key[start + 1 : end] if end > start + 1 else key


def slot_of(key):
    return binascii.crc_hqx(tag_of(key), 0) % SLOTS


def keys_in(slot, form="k{%d}"):
    """Yields tagged keys of one slot without end. The n-th key has the n-th tag of the slot."""
    return (key for n in itertools.count() if slot_of(key := form % n) == slot)


def ranges(slots):
    """Returns slots as [first, last] of each run of neighbours."""
    slots = sorted(slots)
    starts = [slot for slot, before in zip(slots, [None, *slots]) if before != slot - 1]
    ends = [slot for slot, behind in zip(slots, [*slots[1:], None]) if behind != slot + 1]
    return list(zip(starts, ends))


def cluster_port():
    """Returns a free port with a free bus port. Both are below the ports that the kernel assigns.
    """
    while True:
        port = free_port()
        if port + BUS >= 32768:
            continue
        with socket.socket() as sock:
            with contextlib.suppress(OSError):
                sock.bind(("127.0.0.1", port + BUS))
                return port


class ClusterNode(Redis):
    """A server of a cluster. With a relay, clients (weir, replicas) reach the server only through
    the relay; the bus stays direct.
    """

    def __init__(self, *more, relay=None, node_timeout=1000, password=None):
        self.relay = relay
        words = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", str(node_timeout)]
        words += ["--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0"]
        words += ["--repl-diskless-sync-delay", "0", "--repl-timeout", "10"]
        # a master without slots stays a master
        words += options((7, 0), "--cluster-allow-replica-migration", "no")
        words += ["--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port", str(relay.port)] if relay else []
        words += ["--masteruser", "admin", "--masterauth", "any"] if password else []
        super().__init__(*words, *more, password=password)
        self.id = None
        self.is_quick = False

    def _launch(self, where):
        if self.is_quick and self.id is None:
            (self.folder / "nodes.conf").write_text(REPLICA_OF_NONE % (self.port, self.port, self.port + BUS))
        return super()._launch(where)

    def start(self):
        """Starts the node, or starts the node again with its saved view of the cluster."""
        if self.port is None:
            for _ in range(10):
                self.port = cluster_port()
                with contextlib.suppress(AssertionError):
                    super().start()
                    break
        else:
            super().start()
        assert self.is_running(), self.log()
        if self.relay:
            self.relay.target = self.address
        self.id = self.call("CLUSTER", "MYID").decode()

    @property
    def announced(self):
        return ("127.0.0.1", self.relay.port) if self.relay else self.address

    @property
    def upstream(self):
        return "%s:%d" % self.announced

    def cluster_info(self):
        return dict(line.split(":", 1) for line in self.call("CLUSTER", "INFO").decode().split("\r\n") if ":" in line)

    def rows(self):
        """Returns the node's CLUSTER NODES: by id a dict of address, flags (a set), master (an id
        or None), epoch, slots (a set).
        """
        found = {}
        for line in self.call("CLUSTER", "NODES").decode().splitlines():
            id, address, flags, master, _, _, epoch, _, *slots = line.split(" ")
            mine = set()
            for word in slots:
                if not word.startswith("["):
                    first, _, last = word.partition("-")
                    mine.update(range(int(first), int(last or first) + 1))
            found[id] = {
                "address": address.split("@")[0], "flags": set(flags.split(",")), "master": None if master == "-" else master,
                "epoch": int(epoch), "slots": mine,
            }  # fmt: skip
        return found

    def epochs(self):
        """Returns by id the config epoch of every node, as this node knows it."""
        lines = [line.split(" ") for line in self.call("CLUSTER", "NODES").decode().splitlines()]
        return {words[0]: int(words[6]) for words in lines}

    def role(self):
        """Returns "master", "slave", or None if the node does not answer."""
        try:
            with self.connect() as conn:
                return conn.call("ROLE")[0].decode()
        except (OSError, Closed):
            return None

    def keys(self):
        """Returns all keys of the node."""
        return self.call("KEYS", "*")


class Cluster:
    """`masters` masters that share the slots in equal runs, each with `replicas` replicas. The
    cluster is ready when every node reports ok.

    `more` are options of every node. `make` makes a node of the test's own class. `is_relayed`:
    clients reach each node through a relay, so a test can cut clients off while the cluster notices
    nothing.
    """

    def __init__(
        self, farm, *more, masters=3, replicas=0, node_timeout=1000, is_relayed=False, full_coverage=False, password=None,
        make=ClusterNode,
    ):
        self.farm = farm
        self.moves = {}  # slot -> (source, target)
        self._new = lambda: make(
            *more, relay=farm._start(Relay()) if is_relayed else None, node_timeout=node_timeout, password=password
        )
        self.nodes = [self._new() for _ in range(masters * (1 + replicas))]
        first = self.nodes[:masters]
        bounds = [SLOTS * n // masters for n in range(masters + 1)]
        for n, node in enumerate(first):
            node.is_quick = True
            farm._start(node)
            wait_until(lambda: node.cluster_info()["cluster_state"] == "ok", "a replica of nothing is content", SECONDS)
            with node.connect() as conn:
                done = conn.ask("CLUSTER RESET SOFT", add_slots(range(bounds[n], bounds[n + 1])), f"CLUSTER SET-CONFIG-EPOCH {n + 1}")
            assert done == ["OK"] * 3, done
        for node in self.nodes[masters:]:
            farm._start(node)
        for node in self.nodes[1:]:
            self._meet(node, self.nodes[0])
        wait_until(self._all_know_all, "every node knows every node", SECONDS)
        for n, node in enumerate(self.nodes[masters:]):
            assert node.call("CLUSTER", "REPLICATE", first[n % masters].id) == "OK"
        self.wait_ok()
        if full_coverage:
            for node in self.nodes:
                assert node.call("CONFIG", "SET", "cluster-require-full-coverage", "yes") == "OK"
            self.wait_ok()

    def _meet(self, node, other):
        assert node.call("CLUSTER", "MEET", "127.0.0.1", other.port) == "OK"

    # ---- state ----

    @property
    def upstream(self):
        """The value of weir's `upstream`: two of the nodes are entry points."""
        return "cluster:" + ", ".join(node.upstream for node in self.nodes[:2])

    def entries(self, *nodes):
        return "cluster:" + ", ".join(node.upstream for node in nodes)

    def live(self):
        return [node for node in self.nodes if node.is_running()]

    def table(self):
        """Returns the node table, by id, as a running node reports it."""
        return self.live()[0].rows()

    def node(self, id):
        return next(node for node in self.nodes if node.id == id)

    @property
    def masters(self):
        """Returns the masters that have slots, in the order of `nodes`."""
        rows = self.table()
        return [node for node in self.live() if rows.get(node.id, {}).get("slots")]

    def replicas_of(self, master):
        rows = self.table()
        return [node for node in self.live() if rows.get(node.id, {}).get("master") == master.id]

    def slots_of(self, node):
        return self.table()[node.id]["slots"]

    def owner(self, slot):
        """Returns the master of a slot, or None."""
        return next((self.node(id) for id, row in self.table().items() if slot in row["slots"]), None)

    def agreed_owner(self, slot):
        """Returns the owner once all running nodes agree: the news of the last move may still be on
        its way.
        """

        def found():
            named = {next((id for id, row in node.rows().items() if slot in row["slots"]), None) for node in self.live()}
            return named.pop() if len(named) == 1 else None

        return self.node(wait_until(found, "all agree on the node of a slot", SECONDS))

    def _all_know_all(self):
        ids = {node.id for node in self.live()}
        return all(
            ids <= rows.keys() and not any(row["flags"] & {"handshake", "noaddr"} for row in rows.values())
            for rows in (node.rows() for node in self.live())
        )

    def is_ok(self):
        """True if every running node reports ok, all nodes report the same owners and masters, and
        replicas are linked to their masters.
        """
        if not self._all_know_all():
            return False
        tables, lost = [], {"fail", "fail?"}
        for node in self.live():
            rows = node.rows()
            if node.cluster_info()["cluster_state"] != "ok" or any(rows[one.id]["flags"] & lost for one in self.live()):
                return False
            if "slave" in rows[node.id]["flags"] and node.info("master_link_status") != "up":
                return False
            owners = {slot: id for id, row in rows.items() for slot in row["slots"]}
            tables.append((owners, {one.id: rows[one.id]["master"] for one in self.live()}))
        return all(table == tables[0] for table in tables)

    def wait_ok(self, seconds=SECONDS):
        wait_until(self.is_ok, "every node of the cluster is content", seconds)

    # ---- keys ----

    def tag_at(self, node, n=0):
        """Returns the n-th tag of the slots that this node serves: `{tag}anything` lies at the
        node.
        """
        slots = self.slots_of(node)
        return next(itertools.islice((f"t{i}" for i in itertools.count() if slot_of(f"t{i}") in slots), n, None))

    def key_at(self, node, n=0):
        """Returns the n-th key that this node serves. Each key has its own slot."""
        return f"k{n}{{{self.tag_at(node, n)}}}"

    def keys_everywhere(self, n):
        """Returns n keys of different slots, spread over the nodes in turn."""
        masters = self.masters
        return [self.key_at(masters[i % len(masters)], i // len(masters)) for i in range(n)]

    # ---- slots that move ----

    def begin_move(self, slot, target, source=None):
        """From now on the source answers ASK for keys that it does not have."""
        source = source or self.owner(slot)
        assert source is not target
        self.moves[slot] = (source, target)
        for node, *how in ((target, "IMPORTING", source.id), (source, "MIGRATING", target.id)):
            done = node.call("CLUSTER", "SETSLOT", slot, *how)
            assert done == "OK", (node.upstream, how, done)

    def move_keys(self, slot, n=None, keys=None):
        """Moves the given keys, or n keys of the slot, or all keys; returns how many."""
        source, target = self.moves[slot]
        with source.connect() as conn:
            keys = conn.call("CLUSTER", "GETKEYSINSLOT", slot, 1 << 20 if n is None else n) if keys is None else keys
            login = ["AUTH2", "admin", "any"] if source.has_password else []
            for start in range(0, len(keys), 100):
                some = keys[start : start + 100]
                done = conn.call("MIGRATE", "127.0.0.1", target.port, "", 0, 10000, *login, "KEYS", *some)
                assert not isinstance(done, Error), done
        return len(keys)

    def end_move(self, slot):
        """Moves the remaining keys and the slot itself. Returns when every master knows the new
        owner.
        """
        source, target = self.moves[slot]
        while self.move_keys(slot):
            pass
        del self.moves[slot]
        for node in (target, source, *(node for node in self.masters if node not in (source, target))):
            done = node.call("CLUSTER", "SETSLOT", slot, "NODE", target.id)
            # the source has lost its last slot
            assert done == "OK" or "only with masters" in done and not at_least(7, 0), done
        self.wait_epochs()

    def wait_epochs(self):
        """Waits until all nodes know the target's new epoch. The next target takes a higher epoch
        than it has heard of. A target that missed this epoch may lose its slot again to a late
        message, and two nodes then name each other for ever.
        """

        def are_known():
            tables = [node.epochs() for node in self.live()]
            return all(table.get(node.id) == tables[0].get(node.id) for table in tables for node in self.live())

        wait_until(are_known, "all know the epochs", SECONDS)

    def cancel_move(self, slot):
        """The slot stays at its source; moved keys come back."""
        source, target = self.moves[slot]
        assert source.call("CLUSTER", "SETSLOT", slot, "STABLE") == "OK"
        self.moves[slot] = (target, source)
        while self.move_keys(slot):
            pass
        del self.moves[slot]
        assert target.call("CLUSTER", "SETSLOT", slot, "STABLE") == "OK"

    def move(self, slot, target, source=None):
        """Moves a slot with all its keys."""
        self.begin_move(slot, target, source)
        self.end_move(slot)

    # ---- nodes that come and go ----

    def failover(self, replica, *how):
        """Sends CLUSTER FAILOVER [FORCE | TAKEOVER] and waits until all nodes know the result.
        Retries while the other masters do not vote: a master votes for a replica of one master only
        once in a while.
        """
        asked = time.monotonic() - 6

        def is_done():
            nonlocal asked
            if time.monotonic() - asked > 6 and replica.call("CLUSTER", "FAILOVER", *how) == "OK":
                asked = time.monotonic()
            return all(node.rows()[replica.id]["slots"] for node in self.live())

        wait_until(is_done, "a failover", SECONDS)

    def kill(self, node):
        """Sends kill -9; start() restarts the node. Returns the slots that the node served."""
        slots = self.slots_of(node)
        node.signal(signal.SIGKILL)
        node.wait()
        return slots

    def wait_served(self, slots, seconds=SECONDS):
        """Waits until every running node names one running owner for all of these slots. Returns
        that owner.
        """

        def found():
            named = set()
            for table in [node.rows() for node in self.live()]:
                named.add(tuple(id for id, row in table.items() if row["slots"] & slots and "fail" not in row["flags"]))
            ids = named.pop() if len(named) == 1 else ()
            return next((node for node in self.live() if len(ids) == 1 and node.id == ids[0]), None)

        return wait_until(found, "all know which master serves the slots", seconds)

    def add_master(self):
        """Adds a master that serves no slot yet."""
        node = self.farm._start(self._new())
        self._meet(node, self.live()[0])
        self.nodes.append(node)
        self.wait_ok()
        return node

    def move_all(self, source, target, slots=None):
        """Moves many slots of one node, with all their keys. Slots without keys move in one write
        to each node.
        """
        slots = sorted(self.slots_of(source) if slots is None else slots)
        with source.connect() as conn:
            counts = conn.ask(*(["CLUSTER", "COUNTKEYSINSLOT", slot] for slot in slots))
        for slot, count in zip(slots, counts):
            if count:
                self.move(slot, target)
        empty = [slot for slot, count in zip(slots, counts) if not count]
        masters = self.masters
        for node in (target, source, *(node for node in masters if node not in (source, target))):
            with node.connect() as conn:
                assert set(conn.ask(*(["CLUSTER", "SETSLOT", slot, "NODE", target.id] for slot in empty))) <= {"OK"}
        # SETSLOT NODE alone makes no new epoch: without a newer epoch the old owner's claim may win
        # again
        assert not empty or not isinstance(target.call("CLUSTER", "BUMPEPOCH"), Error)

    def remove(self, node):
        """Moves the node's slots to another master. Then all nodes forget the node, and the node
        ends.
        """
        target = next(other for other in self.masters if other is not node)
        self.move_all(node, target)
        self.nodes.remove(node)
        node.kill()
        for other in self.live():
            assert other.call("CLUSTER", "FORGET", node.id) == "OK"


def add_slots(slots):
    """Returns the CLUSTER ADDSLOTS command for these slots."""
    if at_least(7, 0):
        return ["CLUSTER", "ADDSLOTSRANGE", *(bound for pair in ranges(slots) for bound in pair)]
    return ["CLUSTER", "ADDSLOTS", *slots]


def weir_before(cluster, **config):
    """Returns a ready weir in front of a cluster; `config` as for kit.harness.Weir."""
    return cluster.farm.weir(cluster.upstream, **config)
