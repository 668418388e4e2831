"""Somebody who listens on this machine."""
import socket
import threading

import pytest


class Listener:
    """Takes connections, keeps what comes first on each, and answers nothing."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.heard = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                peer, _ = self.server.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(20)
                try:
                    self.heard.append(peer.recv(65536))
                except OSError:
                    self.heard.append(b"")

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


def listening():
    server = Listener()
    yield server
    server.close()


listener = pytest.fixture(listening)
other_listener = pytest.fixture(listening)
