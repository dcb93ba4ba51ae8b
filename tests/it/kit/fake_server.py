"""A server made of rules: the answer to each question, and a record of what was asked. FakeSentinel
and FakeNode derive from it.
"""

import contextlib
import socket
import threading
import time

from kit.fake import split_request
from kit.harness import free_port
from kit.relay import shut
from kit.resp import encode

HANG = object()  # an answer that never comes
BYE = object()  # an answer that closes the connection


class FakeServer:
    """`answers` comes first. A key of `answers` is the words of the question in upper case
    ("SENTINEL MASTER", "HELLO", "GET", or "*" for every question). A value is bytes, HANG, BYE, or
    a function of the arguments. The function returns one of these, or None for the usual answer.
    """

    # commands with a name of two words
    containers = ("SENTINEL", "CLIENT", "CLUSTER", "CONFIG", "COMMAND")

    def __init__(self, name):
        self.name = name
        self.answers = {}
        self.asked = []  # (time, words in upper case)
        self.requests = []  # all arguments, as bytes
        self.socks = []
        self.n_taken = 0  # connections accepted since the start
        self.n_lost = 0  # connections that have ended
        self.lock = threading.Lock()
        self.port = free_port()
        self.listener = None

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def upstream(self):
        return "%s:%d" % self.address

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.forget()

    def start(self):
        self.listener = socket.create_server(self.address, backlog=128)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        return self

    def refuse(self):
        """Refuses connections from now on, and closes established connections."""
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

    def forget(self):
        self.refuse()

    def most_in(self, seconds=1.0, begins=""):
        """Returns the largest number of questions in any interval of `seconds`."""
        moments = [at for at, words in self.asked if words.startswith(begins)]
        return max((sum(1 for at in moments if first <= at < first + seconds) for first in moments), default=0)

    def n_asked(self, begins=""):
        return sum(words.startswith(begins) for _, words in self.asked)

    # ---- for subclasses ----

    def begin(self):
        """Returns the state of a new connection."""
        return {}

    def end(self, state):
        """Called when a connection has ended."""

    def usual(self, sock, state, words, args):
        """Returns the answer to a question that `answers` lacks; args are bytes."""
        raise NotImplementedError

    # ---- threads ----

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.socks.append(sock)
                self.n_taken += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        data, state = bytearray(), self.begin()
        with contextlib.suppress(OSError), sock:
            while more := sock.recv(1 << 16):
                data += more
                while request := split_request(data):
                    args, used = request
                    del data[:used]
                    answer = self._answer(sock, state, args)
                    if answer is BYE:
                        break
                    if answer is not HANG:
                        sock.sendall(answer)
                else:
                    continue
                break
        self.end(state)
        self.n_lost += 1

    def _answer(self, sock, state, args):
        name = args[0].decode(errors="replace").upper()
        words = " ".join([name, *(arg.decode(errors="replace").upper() for arg in args[1:2])]) if name in self.containers else name
        self.asked.append((time.monotonic(), words))
        self.requests.append(args)
        given = self.answers.get(words, self.answers.get("*"))
        if callable(given):
            given = given(args)
        return self.usual(sock, state, words, args) if given is None else given


def bulk(word):
    return encode(str(word))[4:]


def list_of(words, kind=b"*"):
    items = [b":%d\r\n" % word if isinstance(word, int) else bulk(word) for word in words]
    return kind + b"%d\r\n" % len(items) + b"".join(items)


def map_of(pairs, proto):
    """Encodes a map as a sentinel does: all values are bulks, except numbers of HELLO."""
    is_hello = "proto" in pairs
    words = [item if is_hello and isinstance(item, int) else bulk(item) for pair in pairs.items() for item in pair]
    items = b"".join(b":%d\r\n" % word if isinstance(word, int) else word for word in words)
    return (b"%%%d\r\n" % len(pairs) if proto == 3 else b"*%d\r\n" % (2 * len(pairs))) + items
