"""What is one connection to a server, and how does any thread end it?

A `Session` is a driver's connection, used by one thread at a time and waiting as long as it takes. `Held` lets another
thread end it at once, whatever the server does, without taking a connection from under the thread that uses it.
"""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Protocol, TypeVar

from ullage.errors import SourceFailed

from ..engine import Answer, Limits, Probe, Question, Stability
from ..structure import Structure

__all__ = ["Held", "Session"]

_Result = TypeVar("_Result")


class Session(Protocol):
    """Raises `QueryFailed`, after which it can be cleaned, or `SourceFailed`, after which it is of no use."""

    def begin(self, seconds: float, rows: int | None) -> None:
        """A transaction that only reads, with limits of the server's own, before each piece of work; `rows` that an
        answer takes, None for all."""
        ...

    def ask(self, question: Question, limits: Limits) -> Answer: ...

    def structure(self) -> Structure: ...

    def functions(self) -> Mapping[str, Stability]: ...

    def probe(self, limits: Limits) -> Probe: ...

    def clean(self) -> bool:
        """Ends what is going on and takes back whatever was done to the session; False where another is needed."""
        ...

    def interrupt(self) -> None:
        """Has the server stop, from another thread and by another connection; tries within seconds."""
        ...

    def fileno(self) -> int | None:
        """Of its socket, where it has one."""
        ...

    def close(self) -> None: ...


class Held:
    def __init__(self, session: Session) -> None:
        self.session = session
        number = session.fileno()
        # A copy of its own: the driver may close its number at any time, and another file take it.
        self._socket = None if number is None else socket.socket(fileno=os.dup(number))
        self._lock = Lock()
        self._is_busy = False
        self._is_severed = False

    def run(self, work: Callable[[Session], _Result]) -> _Result:
        with self._lock:
            if self._is_severed:
                raise SourceFailed("the connection is closed")
            self._is_busy = True
        try:
            return work(self.session)
        finally:
            with self._lock:
                self._is_busy = False
                is_severed = self._is_severed
            if is_severed:
                self._close()

    def sever(self) -> None:
        """Ends it without waiting; who reads from it fails at once."""
        with self._lock:
            was_severed, self._is_severed = self._is_severed, True
            is_busy = self._is_busy
        if was_severed:
            return
        if not is_busy:
            self._close()
        elif self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        self.session.close()
        if self._socket is not None:
            self._socket.close()
