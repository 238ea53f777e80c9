"""Is everything there, and as it was written?

Looks at every line's checksum, at the numbers of the messages and at the archives, one generation after the other.
Mends nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .mending import Sifted
from .record import Archive, Generation
from .unwinding import Unwound

__all__ = ["Verified", "accounted", "verified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    messages: int
    """That are active."""
    originals: int
    """That are active or lie in archives."""
    generations: int
    """That can be undone."""
    faults: tuple[str, ...]
    """In sentences."""
    notes: tuple[str, ...]
    """What is as it was wished but should be known."""

    @property
    def ok(self) -> bool:
        return not self.faults


def verified(sifted: Sifted, unwound: Unwound, fault: Callable[[Archive], str | None]) -> Verified:
    """Of the file as it lies there, and of what its archives make of it. `fault` looks at one of them."""
    seen = {line.raw: line for line in (*sifted.lines, *unwound.lines)}
    numbers = [line.seq for line in unwound.lines if line.record is not None and not line.record.generation]
    missing = unwound.missing
    faults = (
        *_of_bytes(sifted),
        *(f"message {line.seq} has another checksum than its bytes" for line in seen.values() if not line.sound),
        *_of_archive(missing, fault),
        *_of_numbers(numbers, complete=missing is None),
    )
    return Verified(
        messages=sum(line.record is not None for line in sifted.lines),
        originals=len(numbers),
        generations=len(unwound.undone),
        faults=faults,
        notes=() if missing is None or missing.archive else (f"what generation {missing.number} let go was not kept",),
    )


def accounted(unwound: Unwound) -> frozenset[int]:
    """The numbers of the messages that the archives hold, and of those of which nobody can say whether they would."""
    held = frozenset(line.seq for line in unwound.lines if line.record is not None)
    unknown = (line.seq for line in unwound.lines if unwound.missing is not None and line.generation is unwound.missing)
    return held | frozenset(range(1, 1 + max(unknown, default=0)))


def _of_bytes(sifted: Sifted) -> Iterator[str]:
    if sifted.corrupt:
        yield f"{len(sifted.corrupt.splitlines())} lines cannot be read"
    if sifted.rest:
        yield f"the last {len(sifted.rest)} bytes are no whole line"


def _of_archive(missing: Generation | None, fault: Callable[[Archive], str | None]) -> Iterator[str]:
    """Why a generation that should be undone cannot be."""
    if missing is not None and missing.archive is not None:
        yield f"generation {missing.number} cannot be undone: {fault(missing.archive) or 'it leads nowhere'}"


def _of_numbers(numbers: Sequence[int], *, complete: bool) -> Iterator[str]:
    """Without gaps where every original is at hand; in order in any case."""
    for before, number in zip([0, *numbers], numbers, strict=False):
        if number <= before:
            yield f"message {number} stands behind message {before}"
        elif complete and number > before + 1:
            lost = f"message {before + 1}" if number == before + 2 else f"messages {before + 1} to {number - 1}"
            yield f"{lost} cannot be found"
