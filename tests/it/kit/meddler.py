"""A relay between weir and Redis that can cut, change, add or lose replies."""

import socket
import threading

from kit.harness import free_port
from kit.resp import dial


class Meddler:
    def __init__(self, address):
        self.redis_address = address
        self.change = None  # bytes of replies -> bytes, or None: the connection is closed
        self.piece = 1 << 16  # the most bytes of replies that are passed on at once
        self.links = []  # (weir's side, Redis' side)
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def upstream(self):
        return "127.0.0.1:%d" % self.listener.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for link in self.links:
            cut(*link)

    def inject(self, data):
        """Sends an unsolicited reply on every connection."""
        for weir, _ in self.links:
            try:
                weir.sendall(data)
            except OSError:
                pass  # the connection has ended

    def _accept(self):
        while True:
            try:
                weir, _ = self.listener.accept()
            except OSError:
                return
            weir.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            redis = dial(self.redis_address, None)
            self.links.append((weir, redis))
            threading.Thread(target=self._requests, args=(weir, redis), daemon=True).start()
            threading.Thread(target=self._replies, args=(weir, redis), daemon=True).start()

    def _requests(self, weir, redis):
        try:
            while data := weir.recv(1 << 16):
                redis.sendall(data)
        except OSError:
            pass
        cut(weir, redis)

    def _replies(self, weir, redis):
        try:
            while data := redis.recv(1 << 16):
                if self.change:
                    data = self.change(data)
                if data is None:
                    break
                for i in range(0, len(data), self.piece):
                    weir.sendall(data[i : i + self.piece])
        except OSError:
            pass
        cut(weir, redis)


def cut(*socks):
    for sock in socks:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
