"""What does a worker read from?"""

from typing import Any, Protocol

from .answering import Send
from .asked import Message

__all__ = ["Described", "Source"]

Described = dict[str, Any]
"""JSON, read by whoever started the worker."""


class Source(Protocol):
    """Each method opens what it needs, locks it, and leaves nothing open. Raises `Failure`."""

    @property
    def file_bytes(self) -> int:
        """The size beyond which no file may be written while it is read."""
        ...

    def ask(self, message: Message, send: Send) -> None: ...

    def structure(self, message: Message) -> Described: ...

    def functions(self, message: Message) -> dict[str, str]: ...

    def take(self, message: Message) -> None:
        """Something to be kept for the next question."""
        ...
