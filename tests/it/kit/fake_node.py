"""A cluster node that answers as a test says. All else is answered by a real node, or by a few
fixed lines.

    made = Cluster(farm, is_relayed=True)
    with FakeNode(made.nodes[0]) as fake:              # all traffic to this node passes here
        fake.answers["GET"] = moved(slot, "10.9.9.9:6379")
        fake.answers["CLUSTER NODES"] = nodes_reply(row("a" * 40, "?:7000", slots="0-16383"))
"""

import contextlib

from kit.fake_server import BYE, HANG, FakeServer, bulk, list_of, map_of
from kit.resp import Closed, Recorder, encode

__all__ = ["BYE", "HANG", "FakeNode", "ask", "moved", "node_id", "nodes_reply", "row"]

FIXED = {
    "PING": b"+PONG\r\n",
    "AUTH": b"+OK\r\n",
    "SELECT": b"+OK\r\n",
    "READONLY": b"+OK\r\n",
    "READWRITE": b"+OK\r\n",
    "ASKING": b"+OK\r\n",
    "RESET": b"+RESET\r\n",
    "ROLE": b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
    "CLUSTER MYID": bulk("f" * 40),
    "CLUSTER INFO": bulk("cluster_state:ok\r\ncluster_slots_assigned:16384\r\n"),
    "SET": b"+OK\r\n",
    "GET": bulk("from the fake node"),
}  # fmt: skip
INFO = "# Server\r\nredis_version:7.0.15\r\nredis_mode:cluster\r\n# Replication\r\nrole:master\r\n# Cluster\r\ncluster_enabled:1\r\n"


def moved(slot, address):
    """Returns a MOVED error. `address` is any text that a node might write."""
    return b"-MOVED %d %s\r\n" % (slot, address.encode())


def ask(slot, address):
    return b"-ASK %d %s\r\n" % (slot, address.encode())


def node_id(n):
    return "%040x" % n


def row(id, address, flags="master", master="-", epoch=1, slots="", link="connected", bus=None, more=""):
    """Returns a line of CLUSTER NODES. `address` is text: host:port, "?:0", ":7000",
    "fe80::1:7000". The bus is at port + 10000 unless given. `more` follows the bus port:
    ",host.name" or ",,tls-port=0,shard-id=...".
    """
    port = address.rpartition(":")[2]
    bus = bus if bus is not None else int(port) + 10000 if port.isdigit() else 0
    return f"{id} {address}@{bus}{more} {flags} {master} 0 1 {epoch} {link}" + (f" {slots}" if slots else "")


def nodes_reply(*rows):
    return bulk("".join(f"{line}\n" for line in rows))


class FakeNode(FakeServer):
    """`behind` is the real node that answers what `answers` lacks. The real node has a relay, and
    is reached only through this fake while the fake runs. Without `behind` the fixed lines above
    are the answers.
    """

    def __init__(self, behind=None):
        super().__init__("fake node")
        self.behind = behind
        self.id = node_id(self.port)

    def start(self):
        super().start()
        if self.behind is not None and getattr(self.behind, "relay", None):
            self.behind.relay.retarget(self.address)
        return self

    def forget(self):
        if self.behind is not None and getattr(self.behind, "relay", None):
            self.behind.relay.retarget(self.behind.address)
        super().forget()

    def row(self, slots="0-16383", **more):
        """Returns this node as a line of CLUSTER NODES."""
        return row(self.id, self.upstream, slots=slots, **more)

    def begin(self):
        return {"proto": 2, "conn": None}

    def end(self, state):
        if state["conn"]:
            state["conn"].close()

    def usual(self, sock, state, words, args):
        if self.behind is not None:
            return self._real(state, args)
        if words == "HELLO":
            return self._greet(state, args)
        if words == "INFO":
            return bulk(INFO)
        if words == "ECHO":
            return encode(args[1])[4:]
        if words == "CLUSTER NODES":
            return nodes_reply(self.row(flags="myself,master"))
        if words.startswith("CLIENT"):
            return b"+OK\r\n"
        if words == "WEIR.NONCE":
            return b"-ERR unknown command '%s', with args beginning with: '%s' \r\n" % (args[0], args[1])
        return FIXED.get(words, b"-ERR unknown command\r\n")

    def _greet(self, state, args):
        state["proto"] = 3 if args[1:2] == [b"3"] else 2
        hello = {"server": "redis", "version": "7.0.15", "proto": state["proto"], "id": 1, "mode": "cluster", "role": "master"}
        modules = list_of([])
        body = map_of({**hello, "modules": ""}, state["proto"])
        return body.removesuffix(bulk("")) + modules

    def _real(self, state, args):
        try:
            if state["conn"] is None:
                state["conn"] = Recorder(getattr(self.behind, "address", self.behind), None)
            state["conn"].send(encode(*args))
            return state["conn"].frame()
        except (OSError, Closed):
            with contextlib.suppress(AttributeError):
                state["conn"].close()
            return BYE
