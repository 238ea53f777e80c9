"""A server in front of a server, which can fall silent."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

__all__ = ["Silent", "between"]


class Silent:
    """Passes on what comes, until it is told to say nothing more; new callers are let in, and not answered."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._speaks = threading.Event()
        self._speaks.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        self._speaks.clear()

    def speak(self) -> None:
        self._speaks.set()

    def close(self) -> None:
        self._speaks.set()
        for one in (self._listening, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listening.accept()
                server = socket.create_connection(self._target)
                self._sockets += [caller, server]
                for pair in ((caller, server), (server, caller)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._speaks.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@contextmanager
def between(host: str, port: int) -> Generator[Silent]:
    silent = Silent(host, port)
    try:
        yield silent
    finally:
        silent.close()
