"""Which lines of these bytes are whole?

What a crash, a full disk or a failing one may leave: a last line without its end, and lines that cannot be read. A line
that reads but has another checksum was written by somebody's hand and stays; `verifying` tells of it. What becomes of
the rest, whoever asks decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .line import Line, header_line, read_line
from .record import Header

__all__ = ["Sifted", "headed", "is_ours", "sift"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    lines: tuple[Line, ...]
    corrupt: bytes = b""
    """The lines that cannot be read."""
    places: tuple[int, ...] = ()
    """Theirs, from 1."""
    rest: bytes = b""
    """What stands behind the last line break."""

    @property
    def last(self) -> Line | None:
        """The rest, where it is a line that lacks only its line break."""
        return read_line(self.rest + b"\n") if self.rest else None

    @property
    def is_whole(self) -> bool:
        return not (self.corrupt or self.rest)


def sift(data: bytes) -> Sifted:
    *pieces, rest = data.split(b"\n")
    read = [(piece, read_line(piece + b"\n")) for piece in pieces]
    return Sifted(
        lines=tuple(line for _, line in read if line is not None),
        corrupt=b"".join(piece + b"\n" for piece, line in read if line is None),
        places=tuple(place for place, (_, line) in enumerate(read, start=1) if line is None),
        rest=rest,
    )


def is_ours(lines: Sequence[Line]) -> bool:
    """Whether a file is a session: its first line says so, or, where that is lost, the checksum of any other does."""
    return bool(lines) and (lines[0].header is not None or any(line.sound for line in lines))


def headed(lines: Sequence[Line], header: Header, ts: str) -> tuple[Line, ...]:
    """The same with a header as the first line: the one that is there, or a new one for the session that the lines
    of compactions name."""
    found = next((line for line in lines if line.header is not None), None)
    if found is None:
        named = next((line.generation.session for line in lines if line.generation is not None), header.id)
        found = header_line(replace(header, id=named), ts)
    return found, *(line for line in lines if line is not found)
