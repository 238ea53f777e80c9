"""What is kept of the bytes a server writes?

Whole lines, no longer than a bound, and the end of standard error. Everything here is bounded, whatever a server floods
us with. Nothing is read from anywhere, and secrets are taken out by whoever shows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Lines", "Tail", "TooLong"]

_KEPT = 64 * 1024
_LAST_LINE = 4096


class TooLong(Exception):
    """A line exceeds what is held of one."""


@dataclass(slots=True)
class Lines:
    """Bytes in, whole lines out."""

    longest: int
    _parts: list[bytes] = field(default_factory=list[bytes])
    _length: int = 0

    def split(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that `chunk` completes; its rest is kept for the next."""
        first, *more = chunk.split(b"\n")
        self._keep(first)
        for part in more:
            line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts, self._length = [], 0
            self._keep(part)
            yield line

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._length += len(part)
        if self._length > self.longest:
            self._parts, self._length = [], 0
            raise TooLong


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
