"""A scripted server: it answers weir's own requests by itself, and clients' requests only with the
bytes that a test sends.

By itself the server answers the first requests of a connection, and ECHO, so tests see whether weir
works. Any other request stays unanswered, and so does all that follows on the connection. The test
expects the request and answers by hand:

    lane = fake.expect(encode("GET", "k"))
    lane.send(b"$5\\r\\nhel")
    lane.reset()
"""

import selectors
import socket
import struct
import threading
from contextlib import contextmanager

from kit.harness import free_port, wait_until
from kit.resp import encode

READ_SIZE = 1 << 16
HELLO = {2: b"*4\r\n+server\r\n+redis\r\n+proto\r\n:2\r\n", 3: b"%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n"}
INFO = b"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"

OWN = {  # what weir sends by itself, and what a client's session consists of
    b"PING": b"+PONG\r\n",
    b"AUTH": b"+OK\r\n",
    b"SELECT": b"+OK\r\n",
    b"READONLY": b"+OK\r\n",
    b"CLIENT": b"+OK\r\n",
    b"RESET": b"+RESET\r\n",
    b"HELLO": HELLO[2],
    b"INFO": b"$%d\r\n%s\r\n" % (len(INFO), INFO),
    b"COMMAND": b"-ERR not today\r\n",  # weir has a table of its own
}


def split_request(data):
    """(arguments, bytes used) of the first multibulk request, or None while it is not whole."""
    head, found, rest = data.partition(b"\r\n")
    if not found:
        return None
    assert head[:1] == b"*", f"weir sent {bytes(head)!r}"
    args = []
    for _ in range(int(head[1:])):
        head, found, rest = rest.partition(b"\r\n")
        if not found or len(rest) < int(head[1:]) + 2:
            return None
        args.append(bytes(rest[: int(head[1:])]))
        rest = rest[int(head[1:]) + 2 :]
    return args, len(data) - len(rest)


class Lane:
    """A connection from weir."""

    def __init__(self, fake, sock):
        self.fake, self.sock = fake, sock
        self.data = bytearray()  # received and unanswered
        self.by_hand = False  # the server answers nothing by itself any more
        self.greeted = False  # HELLO or AUTH has been answered
        self.is_control = False  # weir's control connection: COMMAND was asked here
        self.is_gone = False  # weir or the test has closed the connection

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            pass  # weir has closed: shows in is_gone

    def send_slowly(self, data):
        """Sends each byte in a packet of its own."""
        for i in range(len(data)):
            self.send(data[i : i + 1])

    def answer_again(self):
        """Answers by itself again."""
        with self.fake.lock:
            self.by_hand = False
            self._answer_own()

    def finish(self):
        """Half-closes the connection; weir may still send."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def reset(self):
        """Breaks the connection with a RST."""
        self._leave(struct.pack("ii", 1, 0))

    def close(self):
        self._leave(struct.pack("ii", 0, 0))

    def _leave(self, linger):
        with self.fake.lock:
            if not self.is_gone:
                self.fake.drop(self, linger)

    def take(self, data):
        """True if exactly these bytes have come. Then the bytes count as seen."""
        with self.fake.lock:
            if not self.data.startswith(data):
                return False
            del self.data[: len(data)]
            self.by_hand = True
            return True

    def expect(self, data):
        """As Fake.expect, of this connection only."""
        wait_until(lambda: self.take(data), f"weir sends {data!r} here")

    def wait_gone(self, seconds=10.0):
        """Waits until weir closes the connection."""
        wait_until(lambda: self.is_gone, "weir closes this connection", seconds)

    # ---- on the fake's thread ----

    def on_readable(self):
        try:
            data = self.sock.recv(READ_SIZE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.fake.drop(self, None)
            return
        self.data += data
        self._answer_own()

    def _answer_own(self):
        while not self.by_hand and (request := split_request(self.data)):
            args, used = request
            name = args[0].upper()
            answer = self.fake.answer(name, args)
            if answer is None:
                return
            del self.data[:used]
            self.greeted = self.greeted or name in (b"HELLO", b"AUTH")
            self.is_control = self.is_control or name == b"COMMAND"
            self.send(answer)


@contextmanager
def blackhole(address):
    """Makes `address` swallow connection attempts: nothing accepts, and a SYN gets no answer."""
    socks = []
    try:
        listener = socket.socket()
        socks.append(listener)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(0)
        # a backlog of 0 holds one connection; the next connection waits in vain
        while len(socks) < 3:
            sock = socket.socket()
            socks.append(sock)
            sock.setblocking(False)
            sock.connect_ex(address)
        yield
    finally:
        for sock in reversed(socks):
            sock.close()


class Fake:
    def __init__(self):
        self.lock = threading.RLock()
        self.own = dict(OWN)
        self.lanes = []  # open lanes
        self.accepted = 0
        self.on_accept = None  # called with each new lane instead of serving the lane
        self.pipe = socket.socketpair()
        self.listener = None
        self.address = None
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.pipe[0], selectors.EVENT_READ)
        self.ends = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.listen()
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pipe[1].send(b"x")
        self.ends = True
        self.thread.join()
        self.refuse()
        for lane in list(self.lanes):
            lane.close()
        for sock in self.pipe:
            sock.close()
        self.selector.close()

    @property
    def upstream(self):
        """The value of weir's `upstream`."""
        return "%s:%d" % self.address

    # ---- accepting connections ----

    def listen(self):
        """Accepts connections, at the same address as before."""
        with self.lock:
            self.listener = socket.create_server(self.address or ("127.0.0.1", free_port()), backlog=128)
            self.listener.setblocking(False)
            self.address = self.listener.getsockname()
            self.selector.register(self.listener, selectors.EVENT_READ)

    def refuse(self):
        """Refuses new connections from now on; established connections stay."""
        with self.lock:
            if self.listener:
                self.selector.unregister(self.listener)
                self.listener.close()
                self.listener = None

    @contextmanager
    def blackhole(self):
        """Neither accepts nor refuses connections: a SYN of weir's gets no answer."""
        self.refuse()
        try:
            with blackhole(self.address):
                yield
        finally:
            self.listen()

    def drop(self, lane, linger):
        """Closes a lane. The caller has the lock."""
        lane.is_gone = True
        self.lanes.remove(lane)
        self.selector.unregister(lane.sock)
        if linger:
            lane.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        lane.sock.close()

    # ---- requests ----

    def expect(self, data, seconds=10.0):
        """Takes these bytes, the oldest unanswered bytes of a connection. Returns that connection,
        which the test answers by hand from now on.
        """

        def find():
            with self.lock:
                return next((lane for lane in self.lanes if lane.take(data)), None)

        try:
            return wait_until(find, f"weir sends {data!r}", seconds)
        except AssertionError:
            raise AssertionError(f"weir sent not {data!r} but {[bytes(lane.data) for lane in self.lanes]}") from None

    def answer(self, name, args):
        if name == b"ECHO":
            return encode(args[1])[4:]
        if name == b"WEIR.NONCE" and name not in self.own:
            return b"-ERR unknown command '%s', with args beginning with: '%s' \r\n" % (args[0], args[1])
        if name == b"HELLO" and args[1:2] == [b"3"] and self.own.get(name) == HELLO[2]:
            return HELLO[3]
        return self.own.get(name)

    def greeted(self):
        """Returns the connections with an answered greeting."""
        with self.lock:
            return [lane for lane in self.lanes if lane.greeted]

    def unanswered(self):
        """Returns all unanswered bytes."""
        with self.lock:
            return b"".join(bytes(lane.data) for lane in self.lanes)

    # ---- its thread ----

    def _run(self):
        while not self.ends:
            for key, _ in self.selector.select():
                with self.lock:
                    if key.fileobj is self.listener:
                        self._accept()
                    elif key.data and not key.data.is_gone:
                        key.data.on_readable()

    def _accept(self):
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return  # closed again
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(10)
        lane = Lane(self, sock)
        self.lanes.append(lane)
        self.accepted += 1
        self.selector.register(sock, selectors.EVENT_READ, lane)
        if self.on_accept:
            self.on_accept(lane)


def hang(lane):
    """A handler for on_accept: never answers."""
    lane.by_hand = True


def say_and_close(data):
    """A handler for on_accept: answers the first request with `data`, then closes."""

    def on_accept(lane):
        lane.by_hand = True
        lane.send(data)
        lane.finish()

    return on_accept
