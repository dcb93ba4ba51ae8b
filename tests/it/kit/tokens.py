"""A service that issues short-lived passwords, in front of a redis-server. A connection is closed
once its password is too old.
"""

import contextlib
import itertools
import socket
import threading
import time

from kit.harness import free_port
from kit.meddler import cut
from kit.resp import Closed, dial


class Tokens:
    """Passwords of one user, and a relay to Redis that closes connections with an expired password.
    """

    def __init__(self, redis, user, seconds):
        self.redis, self.user, self.seconds = redis, user, seconds
        self.issued = {}  # password -> time of issue; guarded by lock
        self.numbers = itertools.count()
        self.n_closed = 0
        self.links = []
        self.lock = threading.Lock()
        self.is_over = False
        self.listener = socket.create_server(("127.0.0.1", free_port()), backlog=512)
        threading.Thread(target=self._accept, daemon=True).start()
        threading.Thread(target=self._lapse, daemon=True).start()

    @property
    def upstream(self):
        return "127.0.0.1:%d" % self.listener.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over = True
        cut(self.listener)
        self.listener.close()
        for link in list(self.links):
            cut(*link[:2])

    def issue(self):
        token = f"token-{next(self.numbers)}"
        self.redis.call("ACL", "SETUSER", self.user, "on", f">{token}", "~*", "&*", "+@all")
        with self.lock:
            self.issued[token] = time.monotonic()
        return token

    def _lapse(self):
        while not self.is_over:
            time.sleep(0.05)
            now = time.monotonic()
            with self.lock:
                old = [token for token, at in self.issued.items() if now - at > self.seconds]
                for token in old:
                    del self.issued[token]
            for token in old:
                with contextlib.suppress(Closed, OSError):  # Redis may have been stopped
                    self.redis.call("ACL", "SETUSER", self.user, f"<{token}")
            for link in list(self.links):
                if link[2] is not None and link[2] not in self.issued:
                    self.n_closed += 1
                    self.links.remove(link)
                    cut(*link[:2])

    def _accept(self):
        while True:
            try:
                weir, _ = self.listener.accept()
            except OSError:
                return
            weir.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = [weir, dial(self.redis.address, None), None]
            self.links.append(link)
            threading.Thread(target=self._requests, args=(link,), daemon=True).start()
            threading.Thread(target=self._replies, args=(link,), daemon=True).start()

    def _requests(self, link):
        """Relays requests, and notes in link[2] the last issued password that the connection has
        sent.
        """
        try:
            while data := link[0].recv(1 << 16):
                said = [word for word in data.split(b"\r\n") if word.startswith(b"token-")]
                if said and said[-1].decode() in self.issued:
                    link[2] = said[-1].decode()
                link[1].sendall(data)
        except OSError:
            pass
        cut(*link[:2])

    def _replies(self, link):
        try:
            while data := link[1].recv(1 << 16):
                link[0].sendall(data)
        except OSError:
            pass
        cut(*link[:2])
