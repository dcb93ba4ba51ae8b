"""A Redis client on one socket: sends bytes, and reads replies as Python values or as bytes.

Simple strings become str, bulks bytes, nulls None, errors Error, pushes Push. An attribute is read
and dropped.
"""

import select
import socket

TIMEOUT = 15.0
CHUNK = 1 << 16  # malloc maps much larger buffers anew each time, and most replies are small


class Error(str):
    """An error reply, without the '-'. An Error is equal to no str, so a test cannot take an error
    for a value.
    """

    def __eq__(self, other):
        return isinstance(other, Error) and str(self) == str(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self):
        return f"Error({str(self)!r})"


class Push(list):
    """A RESP3 push."""


def encode(*args):
    """Returns one multibulk request."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def pipeline(*commands):
    """Returns many requests in one. A command is a string of words or a sequence of arguments."""
    return b"".join(encode(*(c.split() if isinstance(c, str) else c)) for c in commands)


def dial(address, timeout=TIMEOUT):
    """Returns a connected socket. An address is (host, port) or the path of a unix socket."""
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
    else:
        sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(timeout)
    sock.connect(address)
    return sock


class Closed(Exception):
    """The other side has closed the connection."""


class Conn:
    def __init__(self, address, timeout=TIMEOUT):
        self.sock = dial(address, timeout)
        self.buffer = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    @property
    def name(self):
        """The client's own address, as a server's log prints it."""
        return "%s:%d" % self.sock.getsockname()[:2]

    # ---- requests ----

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the error shows at the next read

    def ask(self, *commands):
        """Sends commands in one write; returns their replies."""
        self.send(pipeline(*commands))
        return [self.read() for _ in commands]

    def call(self, *args):
        """Sends one command; returns its reply."""
        self.send(encode(*args))
        return self.read()

    # ---- replies ----

    def more(self):
        try:
            data = self.sock.recv(CHUNK)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed
        self.buffer += data

    def line(self):
        while (end := self.buffer.find(b"\r\n")) < 0:
            self.more()
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 2]
        return line

    def _exactly(self, n):
        while len(self.buffer) < n:
            self.more()
        data = bytes(self.buffer[:n])
        del self.buffer[:n]
        return data

    def _bulk(self, n):
        data = self._exactly(n + 2)
        assert data.endswith(b"\r\n")
        return data[:-2]

    def read(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode("latin1")
        if kind == b"-":
            return Error(rest.decode("latin1"))
        if kind in b":(":
            return int(rest)
        if kind == b"_":
            return None
        if kind == b",":
            return float(rest)
        if kind == b"#":
            return rest == b"t"
        n = int(rest)
        if kind in b"$=!":
            data = None if n < 0 else self._bulk(n)
            return Error(data.decode("latin1")) if kind == b"!" else data
        if kind in b"*~":
            return None if n < 0 else [self.read() for _ in range(n)]
        if kind == b">":
            return Push(self.read() for _ in range(n))
        if kind == b"%":
            return {self.read(): self.read() for _ in range(n)}
        if kind == b"|":
            for _ in range(2 * n):
                self.read()
            return self.read()
        raise AssertionError(f"not RESP: {line!r}")

    def read_bytes(self, n):
        return self._exactly(n)

    def read_to_end(self):
        """Returns all bytes until the other side closes."""
        try:
            while True:
                self.more()
        except Closed:
            data = bytes(self.buffer)
            self.buffer.clear()
            return data

    def is_closed(self):
        """True if the other side has closed. Bytes that came before the end are buffered. Does not
        wait.
        """
        while select.select([self.sock], [], [], 0)[0]:
            try:
                self.more()
            except Closed:
                return True
        return False


class Recorder(Conn):
    """A connection that reads replies as bytes."""

    def __init__(self, *args):
        super().__init__(*args)
        self.seen = b""

    def line(self):
        line = super().line()
        self.seen += line + b"\r\n"
        return line

    def _exactly(self, n):
        data = super()._exactly(n)
        self.seen += data
        return data

    def frame(self):
        self.seen = b""
        self.read()
        return self.seen
