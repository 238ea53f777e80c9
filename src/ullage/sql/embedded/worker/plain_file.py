"""How is a file asked, whichever engine reads it?

Each question by a connection of its own, and only where there is a file. What a connection is and which locks it has,
each engine knows.
"""

import os
import stat
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, NamedTuple, TypeVar

from .answering import Send
from .asked import Asked, Message
from .failure import Failure
from .source import Described

__all__ = ["PlainFile"]

Connection = TypeVar("Connection")


class PlainFile(NamedTuple, Generic[Connection]):
    path: str
    file_bytes: int
    opened: Callable[[float], AbstractContextManager[Connection]]
    """Given the deadline, by the monotonic clock."""
    asked_of: Callable[[Connection, Asked, Send], None]
    structure_of: Callable[[Connection], Described]
    functions_of: Callable[[Connection], dict[str, str]]

    def ask(self, message: Message, send: Send) -> None:
        asked = Asked.read(message)
        with self._until(asked.deadline) as connection:
            self.asked_of(connection, asked, send)

    def structure(self, message: Message) -> Described:
        with self._until(time.monotonic() + message["seconds"]) as connection:
            return self.structure_of(connection)

    def functions(self, message: Message) -> dict[str, str]:
        with self._until(time.monotonic() + message["seconds"]) as connection:
            return self.functions_of(connection)

    def take(self, message: Message) -> None:
        raise Failure("query", f"a file does not take `{message['do']}`")

    def _until(self, deadline: float) -> AbstractContextManager[Connection]:
        _refuse_unless_file(self.path)
        return self.opened(deadline)


def _refuse_unless_file(path: str) -> None:
    """Opening a pipe or a device would wait for ever."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - pathlib would be loaded for this alone
    except FileNotFoundError:
        raise Failure("source", "there is no such file") from None
    except OSError as error:
        raise Failure("source", error.strerror or "it cannot be looked at") from None
    if not stat.S_ISREG(mode):
        raise Failure("source", "it is not a file")
