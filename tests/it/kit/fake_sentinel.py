"""A sentinel that says what a test wants."""

import contextlib
import socket
import threading
import time

from kit.fake import split_request
from kit.harness import free_port
from kit.relay import shut
from kit.resp import encode
from kit.sentinel import NAME

HANG = object()  # an answer that never comes
BYE = object()  # the connection is closed instead


class FakeSentinel:
    """A sentinel that says what a test wants: of each name a master, its epoch, replicas and other sentinels.

    `answers` goes before all: by the words of the question in upper case ("SENTINEL MASTER", "HELLO", "PING", or "*" for
    all of them), bytes, HANG, BYE, or a function of the arguments that returns one of these.
    """

    def __init__(self, name=NAME, master=None, epoch=1, password=None, user=None):
        self.masters = {name: (master, epoch)} if master else {}
        self.replicas, self.peers = [], []  # addresses
        self.password, self.user = password, user
        self.flags = "master"
        self.answers = {}
        self.asked = []  # (time, words in upper case)
        self.subscribers, self.socks = [], []
        self.n_lost = 0  # connections that ended
        self.lock = threading.Lock()
        self.port = free_port()
        self.name = "fake sentinel"
        self.listener = None

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.forget()

    def start(self):
        self.listener = socket.create_server(self.address, backlog=128)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        return self

    def refuse(self):
        """Connections are refused from now on, and those that stand end."""
        if self.listener:
            shut(self.listener)
            self.listener.close()
            self.listener = None
        self.end_connections()

    def end_connections(self):
        with self.lock:
            socks, self.socks = self.socks, []
        for sock in socks:
            shut(sock)

    forget = refuse

    # ---- what it says ----

    def says(self, master, epoch=None, name=NAME):
        """From now on this is the master: a node or an address. None: it knows no such name."""
        address = getattr(master, "announced", master)
        if address is None:
            self.masters.pop(name, None)
        else:
            self.masters[name] = (address, self.masters.get(name, (None, 0))[1] if epoch is None else epoch)

    def publishes(self, old, new, name=NAME):
        """+switch-master to all subscribers."""
        words = [name]
        for address in (getattr(old, "announced", old), getattr(new, "announced", new)):
            words += [address[0], str(address[1])]
        with self.lock:
            for sock, is_push in self.subscribers:
                with contextlib.suppress(OSError):
                    sock.sendall(_list(["message", "+switch-master", " ".join(words)], b">" if is_push else b"*"))

    def most_in(self, seconds=1.0, begins="SENTINEL"):
        """How many questions came in that much time at most."""
        moments = [at for at, words in self.asked if words.startswith(begins)]
        return max((sum(1 for at in moments if first <= at < first + seconds) for first in moments), default=0)

    def n_asked(self, begins=""):
        return sum(words.startswith(begins) for _, words in self.asked)

    # ---- its threads ----

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.socks.append(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        data, state = bytearray(), {"proto": 2, "is_in": self.password is None}
        with contextlib.suppress(OSError), sock:
            while more := sock.recv(1 << 16):
                data += more
                while request := split_request(data):
                    args, used = request
                    del data[:used]
                    answer = self._answer(sock, state, [arg.decode() for arg in args])
                    if answer is BYE:
                        return
                    if answer is not HANG:
                        sock.sendall(answer)
        self.n_lost += 1

    def _answer(self, sock, state, args):
        n_words = 2 if args[0].upper() in ("SENTINEL", "CLIENT") else 1
        words = " ".join(args[:n_words]).upper()
        self.asked.append((time.monotonic(), words))
        given = self.answers.get(words, self.answers.get("*"))
        if callable(given):
            given = given(args)
        if given is not None:
            return given
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
            return b"".join(_list([words.lower(), name, n + 1], kind) for n, name in enumerate(args[1:]))
        if words == "ROLE":
            return b"*2\r\n" + _bulk("sentinel") + _list(list(self.masters))
        if words == "INFO":
            return _bulk("# Server\r\nredis_version:7.0.15\r\nredis_mode:sentinel\r\n")
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
        return _map(hello, state["proto"])

    def _told(self, state, words, name):
        known = self.masters.get(name)
        if words == "SENTINEL GET-MASTER-ADDR-BY-NAME":
            return _list([known[0][0], str(known[0][1])]) if known else (b"_\r\n" if state["proto"] == 3 else b"*-1\r\n")
        if not known:
            return b"-ERR No such master with that name\r\n"
        if words == "SENTINEL MASTER":
            return _map(self._instance(name, known[0], self.flags, known[1]), state["proto"])
        others = {"SENTINEL REPLICAS": ("slave", self.replicas), "SENTINEL SLAVES": ("slave", self.replicas),
                  "SENTINEL SENTINELS": ("sentinel", self.peers)}
        if words not in others:
            return b"-ERR Unknown sentinel subcommand\r\n"
        flags, addresses = others[words]
        found = [self._instance("%s:%d" % address, address, flags, 0) for address in addresses]
        return b"*%d\r\n" % len(found) + b"".join(_map(instance, state["proto"]) for instance in found)

    def _instance(self, name, address, flags, epoch):
        return {
            "name": name, "ip": address[0], "port": address[1], "runid": "f" * 40, "flags": flags,
            "link-pending-commands": 0, "link-refcount": 1, "last-ping-sent": 0, "last-ok-ping-reply": 1,
            "last-ping-reply": 1, "down-after-milliseconds": 1000, "info-refresh": 1, "role-reported": flags,
            "role-reported-time": 1, "config-epoch": epoch, "num-slaves": len(self.replicas),
            "num-other-sentinels": len(self.peers), "quorum": 2, "failover-timeout": 10000, "parallel-syncs": 1,
            "master-link-status": "ok", "slave-priority": 100,
        }  # fmt: skip


def _bulk(word):
    return encode(str(word))[4:]


def _list(words, kind=b"*"):
    items = [b":%d\r\n" % word if isinstance(word, int) else _bulk(word) for word in words]
    return kind + b"%d\r\n" % len(items) + b"".join(items)


def _map(pairs, proto):
    """All values are bulks but numbers of HELLO: as a sentinel says them."""
    is_hello = "proto" in pairs
    words = [item if is_hello and isinstance(item, int) else _bulk(item) for pair in pairs.items() for item in pair]
    items = b"".join(b":%d\r\n" % word if isinstance(word, int) else word for word in words)
    return (b"%%%d\r\n" % len(pairs) if proto == 3 else b"*%d\r\n" % (2 * len(pairs))) + items
