"""A sentinel that answers as a test says."""

import contextlib

from kit.fake_server import BYE, HANG, FakeServer, bulk, list_of, map_of
from kit.sentinel import NAME

__all__ = ["BYE", "HANG", "FakeSentinel"]


class FakeSentinel(FakeServer):
    """A sentinel that answers as a test says: for each name a master, its epoch, replicas and other
    sentinels.
    """

    def __init__(self, name=NAME, master=None, epoch=1, password=None, user=None):
        super().__init__("fake sentinel")
        self.masters = {name: (master, epoch)} if master else {}
        self.replicas, self.peers = [], []  # addresses
        self.password, self.user = password, user
        self.flags = "master"
        self.subscribers = []

    # ---- answers ----

    def says(self, master, epoch=None, name=NAME):
        """Sets the master, a node or an address, from now on. None: the sentinel does not know the
        name.
        """
        address = getattr(master, "announced", master)
        if address is None:
            self.masters.pop(name, None)
        else:
            self.masters[name] = (address, self.masters.get(name, (None, 0))[1] if epoch is None else epoch)

    def publishes(self, old, new, name=NAME):
        """Publishes +switch-master to all subscribers."""
        words = [name]
        for address in (getattr(old, "announced", old), getattr(new, "announced", new)):
            words += [address[0], str(address[1])]
        with self.lock:
            for sock, is_push in self.subscribers:
                with contextlib.suppress(OSError):
                    sock.sendall(list_of(["message", "+switch-master", " ".join(words)], b">" if is_push else b"*"))

    def most_in(self, seconds=1.0, begins="SENTINEL"):
        return super().most_in(seconds, begins)

    def begin(self):
        return {"proto": 2, "is_in": self.password is None}

    def usual(self, sock, state, words, args):
        args = [arg.decode() for arg in args]
        if words in ("HELLO", "AUTH"):
            return self._greet(state, args)
        if not state["is_in"]:
            return b"-NOAUTH Authentication required.\r\n"
        if words == "PING":
            return b"+PONG\r\n"
        if words.startswith("CLIENT"):
            return b"+OK\r\n"
        if words in ("SUBSCRIBE", "PSUBSCRIBE"):
            with self.lock:
                self.subscribers.append((sock, state["proto"] == 3))
            kind = b">" if state["proto"] == 3 else b"*"
            return b"".join(list_of([words.lower(), name, n + 1], kind) for n, name in enumerate(args[1:]))
        if words == "ROLE":
            return b"*2\r\n" + bulk("sentinel") + list_of(list(self.masters))
        if words == "INFO":
            return bulk("# Server\r\nredis_version:7.0.15\r\nredis_mode:sentinel\r\n")
        return self._told(state, words, args[2] if len(args) > 2 else None)

    def _greet(self, state, args):
        words = [word.upper() for word in args]
        if "AUTH" in words:
            login = args[words.index("AUTH") + 1 :]
            given = (login[0], login[1]) if words[0] == "HELLO" or len(login) > 1 else ("default", login[0])
            if self.password is not None and given != (self.user or "default", self.password):
                return b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
            state["is_in"] = True
        if words[0] == "AUTH":
            return b"+OK\r\n"
        if not state["is_in"]:
            return b"-NOAUTH HELLO must be called with the client already authenticated.\r\n"
        state["proto"] = 3 if words[1:2] == ["3"] else 2
        hello = {"server": "redis", "version": "7.0.15", "proto": state["proto"], "id": 1, "mode": "sentinel"}
        return map_of(hello, state["proto"])

    def _told(self, state, words, name):
        known = self.masters.get(name)
        if words == "SENTINEL GET-MASTER-ADDR-BY-NAME":
            return list_of([known[0][0], str(known[0][1])]) if known else (b"_\r\n" if state["proto"] == 3 else b"*-1\r\n")
        if not known:
            return b"-ERR No such master with that name\r\n"
        if words == "SENTINEL MASTER":
            return map_of(self._instance(name, known[0], self.flags, known[1]), state["proto"])
        others = {"SENTINEL REPLICAS": ("slave", self.replicas), "SENTINEL SLAVES": ("slave", self.replicas),
                  "SENTINEL SENTINELS": ("sentinel", self.peers)}
        if words not in others:
            return b"-ERR Unknown sentinel subcommand\r\n"
        flags, addresses = others[words]
        found = [self._instance("%s:%d" % address, address, flags, 0) for address in addresses]
        return b"*%d\r\n" % len(found) + b"".join(map_of(instance, state["proto"]) for instance in found)

    def _instance(self, name, address, flags, epoch):
        return {
            "name": name, "ip": address[0], "port": address[1], "runid": "f" * 40, "flags": flags,
            "link-pending-commands": 0, "link-refcount": 1, "last-ping-sent": 0, "last-ok-ping-reply": 1,
            "last-ping-reply": 1, "down-after-milliseconds": 1000, "info-refresh": 1, "role-reported": flags,
            "role-reported-time": 1, "config-epoch": epoch, "num-slaves": len(self.replicas),
            "num-other-sentinels": len(self.peers), "quorum": 2, "failover-timeout": 10000, "parallel-syncs": 1,
            "master-link-status": "ok", "slave-priority": 100,
        }  # fmt: skip

