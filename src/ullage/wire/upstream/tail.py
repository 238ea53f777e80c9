"""The end of what a server writes on standard error, bounded whatever it floods us with.

Nothing is read from anywhere, and secrets are removed where it is shown.
"""

from dataclasses import dataclass, field

__all__ = ["Tail"]

_KEPT = 64 * 1024
_LAST_LINE = 4096


@dataclass(slots=True)
class Tail:
    """The last of a stream of bytes."""

    _bytes: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        self._bytes += chunk[-_KEPT:]
        if len(self._bytes) > 2 * _KEPT:
            del self._bytes[:-_KEPT]

    def text(self) -> str:
        return bytes(self._bytes[-_KEPT:]).decode("utf-8", "replace")

    def last_line(self) -> str:
        """The last line that says something, or the end of it."""
        lines = bytes(self._bytes[-_LAST_LINE:]).decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1] if said else ""
