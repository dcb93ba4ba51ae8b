"""An upstream that moves: servers on several addresses of this machine, and a name that leads to one or more of them."""

import os

from kit.harness import Redis
from kit.tls import TlsRedis

NAME = "redis.test"


class At(Redis):
    """A redis-server at another address of this machine: 127.0.0.`host`, at the port given or one of its own."""

    def __init__(self, host, *options, port=None):
        self.ip = f"127.0.0.{host}"
        super().__init__(*options, "--bind", self.ip)
        self.port = port

    @property
    def address(self):
        return (self.ip, self.port)

    @property
    def upstream(self):
        return f"{self.ip}:{self.port}"


class LoggedInAt(At):
    """The same with users: the tests come in as `admin`."""

    def connect(self):
        conn = super().connect()
        conn.call("AUTH", "admin", "")
        return conn


class TlsAt(TlsRedis):
    """The same with a TLS port, which is at most one of the addresses'."""

    def __init__(self, host, authority, pair, tls_port=None):
        self.ip = f"127.0.0.{host}"
        super().__init__(authority, pair, "--bind", self.ip)
        self.tls_port = tls_port

    @property
    def address(self):
        return (self.ip, self.port)


def two(farm, *options):
    """Two servers at one port of different addresses, each of which knows its name."""
    first = farm._start(At(2, *options))
    second = farm._start(At(3, *options, port=first.port))
    for server, name in ((first, "first"), (second, "second")):
        server.call("SET", "who", name)
    return first, second


class Names:
    """A hosts file that a process started with `prefix` has in the place of the machine's."""

    def __init__(self, folder):
        self.path = folder / "hosts"
        self.path.write_text("127.0.0.1 localhost\n")
        mount = f'mount --bind {self.path} /etc/hosts && exec "$@"'
        self.prefix = ["unshare", "-m", "sh", "-c", mount, "sh"]

    def point(self, *addresses, name=NAME):
        """The name leads to these servers or addresses from now on, and nothing else does. In place, as it is mounted;
        and in one write, as it may be read meanwhile."""
        lines = [f"{getattr(address, 'ip', address)} {name}\n" for address in addresses]
        text = "127.0.0.1 localhost\n" + "".join(lines)
        with open(self.path, "r+b", buffering=0) as file:
            length = os.fstat(file.fileno()).st_size
            file.write(text.encode().ljust(length, b"\n"))
