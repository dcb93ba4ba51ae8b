"""An upstream that moves: servers on several addresses of this machine, and a name that resolves to
one or more of the servers.
"""

import os

from kit.harness import Redis
from kit.tls import TlsRedis

NAME = "redis.test"


class At(Redis):
    """A redis-server at another address of this machine: 127.0.0.`host`, at the given port or a
    port of its own.
    """

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
    """As At, with users: the tests log in as `admin`."""

    def connect(self):
        conn = super().connect()
        conn.call("AUTH", "admin", "")
        return conn


class TlsAt(TlsRedis):
    """As At, with a TLS port, which exists on at most one of the addresses."""

    def __init__(self, host, authority, pair, tls_port=None):
        self.ip = f"127.0.0.{host}"
        super().__init__(authority, pair, "--bind", self.ip)
        self.tls_port = tls_port

    @property
    def address(self):
        return (self.ip, self.port)


def two(farm, *options):
    """Returns two servers at one port of different addresses. Each server stores its name under a
    key.
    """
    first = farm._start(At(2, *options))
    second = farm._start(At(3, *options, port=first.port))
    for server, name in ((first, "first"), (second, "second")):
        server.call("SET", "who", name)
    return first, second


class Names:
    """A hosts file that replaces the machine's for a process started with `prefix`."""

    def __init__(self, folder):
        self.path = folder / "hosts"
        self.path.write_text("127.0.0.1 localhost\n")
        mount = f'mount --bind {self.path} /etc/hosts && exec "$@"'
        self.prefix = ["unshare", "-m", "sh", "-c", mount, "sh"]

    def point(self, *addresses, name=NAME):
        """From now on the name resolves to these servers or addresses only. The file is written in
        place, as it is mounted, and in one write, as a process may read it meanwhile.
        """
        lines = [f"{getattr(address, 'ip', address)} {name}\n" for address in addresses]
        text = "127.0.0.1 localhost\n" + "".join(lines)
        with open(self.path, "r+b", buffering=0) as file:
            length = os.fstat(file.fileno()).st_size
            file.write(text.encode().ljust(length, b"\n"))
