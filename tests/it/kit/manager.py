"""A service manager as weir sees it: the socket of sd_notify(3)."""

import os
import socket
import tempfile
import time
import uuid


class Manager:
    """Receives what a service tells. `watchdog_us` sets the watchdog's time."""

    def __init__(self, *, abstract=False, watchdog_us=None):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-it-manager-")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = f"@weir-{uuid.uuid4()}" if abstract else os.path.join(self.folder.name, "notify")
        self.sock.bind(path.replace("@", "\0", 1) if abstract else path)
        self.env = {"NOTIFY_SOCKET": path}
        if watchdog_us:
            self.env["WATCHDOG_USEC"] = str(watchdog_us)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()
        self.folder.cleanup()

    def hear(self, seconds=20.0):
        """Returns the next message, as its lines; None if no message came in time."""
        self.sock.settimeout(seconds)
        try:
            return self.sock.recv(4096).decode().split("\n")
        except (TimeoutError, BlockingIOError):
            return None

    def wait_for(self, line, seconds=20.0):
        """Reads messages until one has this line, and returns that message. Other messages are
        discarded.
        """
        until = time.monotonic() + seconds
        heard = []
        while (left := until - time.monotonic()) > 0:
            message = self.hear(left)
            heard.append(message)
            if message and line in message:
                return message
        raise AssertionError(f"not within {seconds} s: {line}; but {heard}")

    def forget(self):
        """Discards the messages that have come."""
        while self.hear(0):
            pass
