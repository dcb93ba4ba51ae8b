"""A TCP relay that can be cut, as a network can."""

import contextlib
import socket
import threading
import time

from kit.harness import free_port


class Relay:
    """Passes connections on to `target`. While the relay is cut nothing passes: connections stay
    open, new ones are not answered. Bytes sent meanwhile arrive when the relay is healed, as after
    a network partition.
    """

    def __init__(self, target=None):
        self.name = "relay"
        self.target = target
        self.delay = 0.0  # seconds by which each piece of at most 64 KiB is delayed
        self.gate = threading.Event()
        self.gate.set()
        self.lock = threading.Lock()
        self.pairs = []
        self.port = None

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def upstream(self):
        return "%s:%d" % self.address

    def start(self):
        self.port = free_port()
        self._listen()
        return self

    def _listen(self):
        self.listener = socket.create_server(self.address, backlog=512)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def _stop_listening(self):
        shut(self.listener)
        self.listener.close()

    def cut(self):
        self.gate.clear()

    def heal(self):
        self.gate.set()

    @contextlib.contextmanager
    def parted(self):
        self.cut()
        try:
            yield
        finally:
            self.heal()

    @contextlib.contextmanager
    def refusing(self):
        """Refuses new connections meanwhile; established ones go on."""
        self._stop_listening()
        try:
            yield
        finally:
            self._listen()

    def retarget(self, address):
        """New connections go to `address`; established ones are closed."""
        self.target = address
        self.reset()

    def reset(self):
        """Closes every connection now."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for sock in (sock for pair in pairs for sock in pair):
            shut(sock)

    def forget(self):
        self._stop_listening()
        self.reset()
        self.gate.set()

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near):
        self.gate.wait()
        try:
            far = socket.create_connection(self.target, 10)
        except (OSError, TypeError):
            near.close()
            return
        for sock in (near, far):
            sock.settimeout(None)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.lock:
            self.pairs.append((near, far))
        back = threading.Thread(target=self._pass_on, args=(far, near), daemon=True)
        back.start()
        self._pass_on(near, far)
        back.join()
        with self.lock:
            self.pairs = [pair for pair in self.pairs if pair[0] is not near]
        near.close()
        far.close()

    def _pass_on(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                time.sleep(self.delay)
                self.gate.wait()
                sink.sendall(data)
            self.gate.wait()
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self.gate.wait()
            shut(source)
            shut(sink)


def shut(sock):
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
