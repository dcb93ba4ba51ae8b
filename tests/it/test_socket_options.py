"""The socket options of weir, many connections at once, and large values that pass from one socket
to another.
"""

import contextlib
import ctypes
import errno
import os
import random
import socket

import pytest
from kit.resp import dial, pipeline

SYS_PIDFD_OPEN, SYS_PIDFD_GETFD = 434, 438  # the same on every architecture

libc = ctypes.CDLL(None, use_errno=True)


def syscall(*args):
    result = libc.syscall(*args)
    if result < 0:
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EPERM):
            pytest.skip("the system does not let one process look at another's sockets")
        raise OSError(number, os.strerror(number))
    return result


@contextlib.contextmanager
def sockets_of(pid):
    """Returns copies of a process' sockets: options of a copy are those of the original."""
    with contextlib.ExitStack() as stack:
        process = syscall(SYS_PIDFD_OPEN, pid, 0)
        stack.callback(os.close, process)
        found = []
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
                    found.append(stack.enter_context(socket.socket(fileno=syscall(SYS_PIDFD_GETFD, process, int(fd), 0))))
        yield found


def peer_of(sock):
    with contextlib.suppress(OSError):
        return sock.getpeername()


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0"])
def test_a_client_is_answered_at_once_and_missed_when_it_is_gone(address, farm):
    weir = farm.weir(farm.redis(), workers=1, listen=address)
    with weir.connect() as client:
        assert client.call("PING") == "PONG"
        with sockets_of(weir.child.pid) as found:
            (mine,) = [sock for sock in found if peer_of(sock) == client.sock.getsockname()]
            assert mine.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
            assert mine.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
            assert mine.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60


def test_all_who_come_at_once_are_served(farm):
    """Far more connections than weir accepts in one event."""
    weir = farm.weir(farm.redis(), workers=1)
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(contextlib.closing(dial(weir.address))) for _ in range(300)]
        for sock in socks:
            sock.sendall(b"PING\r\n")
        for sock in socks:
            assert sock.recv(64) == b"+PONG\r\n"


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "unix:{folder}/socket"])
def test_large_values_pass_unharmed(listen, farm):
    """In both directions, to a reader that reads little at a time, so the splice has to wait in
    between.
    """
    weir = farm.weir(farm.redis(), workers=1, listen=listen, sections="[policy default]\nbytes-in = 1gb/s\nbytes-out = 1gb/s\n")
    value = random.Random(1).randbytes(5_000_001)
    with weir.connect() as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
        for key in ("a", "b"):
            assert client.call("SET", key, value) == "OK"
        client.send(pipeline("GET a", "GET b", "PING"))
        assert [client.read() for _ in range(3)] == [value, value, "PONG"]
