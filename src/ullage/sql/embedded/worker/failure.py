"""What does a worker say when it cannot answer?"""

from typing import Literal

__all__ = ["Failure"]

Kind = Literal["query", "source", "deadline", "memory"]
"""The statement's fault, the file's, time's, or memory's; after the last the process ends."""

_MOST = 1_500
"""Characters of an engine's words; some repeat the whole statement."""


class Failure(Exception):
    def __init__(self, kind: Kind, text: str, *, code: str | None = None) -> None:
        super().__init__(text)
        self.kind: Kind = kind
        self.text = text if len(text) <= _MOST else text[:_MOST] + "…"
        self.code = code
        """The engine's own, such as `SQLITE_ERROR`."""
