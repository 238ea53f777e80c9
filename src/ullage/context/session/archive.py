"""Archives of compacted messages, and the restoring of earlier states from them.

The archive folder is beside the session file and named for both the file and the session, so that no two sessions share
one. Each archive contains the exact bytes that were replaced, is named after the generation and their hash, and is
never changed. Before an earlier state is restored, a copy of the whole file is stored in the same folder.

`find_region` finds the lines that a compaction replaces in the file as it is now. `composed` returns the lines of the
file afterwards: the compaction's own line, then the new messages, with kept lines among them. Neither writes anything.

`unwind` undoes the latest compaction, then the one before it, and so on: a compaction replaced some lines by others,
and the replaced lines are in its archive. Messages appended since stay behind the restored state. To go forward again,
to the state before a restore, a copy of the whole file is needed.

`verified` checks every line's checksum, the numbers of the messages, and the archives, generation by generation. It
repairs nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from ullage.errors import InvalidArguments

from .session_file import (
    Archive,
    Draft,
    Files,
    Generation,
    Line,
    Pen,
    Record,
    Sifted,
    compaction_line,
    message_line,
    put,
    sift,
)

__all__ = [
    "Archived",
    "Archives",
    "Kept",
    "Region",
    "Unwound",
    "Value",
    "Verified",
    "accounted",
    "composed",
    "find_region",
    "generation_of",
    "narrowed",
    "state_at",
    "unwind",
    "verified",
]

_NAME = re.compile(r"(\d{4,})-([0-9a-f]{16})(?:\.whole(\d{4,}))?\.jsonl")
_PLAIN = re.compile(r"[0-9A-Za-z]{1,64}")
_DIGITS = 16
"""Digits of the hash in a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file in the archive folder."""

    name: str
    generation: int
    hash: str
    """Beginning of the hash of its bytes."""
    whole: int
    """Number of this copy of the whole file; 0 for the archive of a compaction."""


@dataclass(frozen=True, slots=True)
class Archives:
    """The archive folder of a session."""

    files: Files
    session: Path
    """The session file."""
    id: str
    """The session's id."""

    @property
    def folder(self) -> Path:
        plain = self.id if _PLAIN.fullmatch(self.id) else sha256(self.id.encode()).hexdigest()[:_DIGITS]
        return self.session.with_name(f"{self.session.name}.archive-{plain}")

    def keep(self, generation: int, lines: tuple[Line, ...], *, whole: int = 0) -> Archive:
        """Archive lines. Returns when they would survive a power cut. The caller must have the session's lock."""
        data = b"".join(line.raw for line in lines)
        digest = sha256(data).hexdigest()
        name = f"{generation:04}-{digest[:_DIGITS]}{f'.whole{whole:04}' if whole else ''}.jsonl"
        self.files.make_folder(self.folder)
        self.files.sync_folder(self.session.parent)
        put(self.files, self.folder / name, data)
        return Archive(file=name, sha256=digest, lines=len(lines), bytes=len(data))

    def keep_whole(self, generation: int, lines: tuple[Line, ...]) -> None:
        """Archive a copy of the whole file before an earlier state is restored."""
        self.keep(generation, lines, whole=1 + max((kept.whole for kept in self.kept()), default=0))

    def wholes(self) -> Iterator[tuple[Line, ...]]:
        """Yield the copies of the whole file, latest first."""
        for kept in sorted(self.kept(), key=lambda kept: -kept.whole):
            if kept.whole:
                yield self.read(kept)

    def lines(self, generation: Generation) -> tuple[Line, ...] | None:
        """Return the archived lines of a generation; None if the archive is missing or changed."""
        archive = generation.archive
        data = None if archive is None else self._bytes(archive.file)
        is_sound = archive is not None and data is not None and sha256(data).hexdigest() == archive.sha256
        return sift(data).lines if is_sound and data is not None else None

    def fault(self, archive: Archive) -> str | None:
        """Return what is wrong with an archive; None if it is sound."""
        data = self._bytes(archive.file)
        if data is None:
            return f"the archive `{archive.file}` does not exist"
        return None if sha256(data).hexdigest() == archive.sha256 else f"the archive `{archive.file}` was changed"

    def kept(self) -> Iterator[Kept]:
        """Yield every archive in the folder, earliest generation first."""
        for name in self.files.names(self.folder):
            found = _NAME.fullmatch(name)
            if found is not None:
                yield Kept(name=name, generation=int(found[1]), hash=found[2], whole=int(found[3] or 0))

    def read(self, kept: Kept) -> tuple[Line, ...]:
        """Return the archived lines; empty if the bytes do not match the hash."""
        data = self._bytes(kept.name)
        is_sound = data is not None and sha256(data).hexdigest().startswith(kept.hash)
        return sift(data).lines if is_sound and data is not None else ()

    def is_untidy(self) -> bool:
        return any(self._unfinished())

    def tidy(self) -> None:
        """Remove what a crash left unfinished. The caller must have the session's lock."""
        for path in self._unfinished():
            self.files.remove(path)

    def _unfinished(self) -> list[Path]:
        return [self.folder / name for name in self.files.names(self.folder) if name.endswith(".tmp")]

    def _bytes(self, name: str) -> bytes | None:
        try:
            return self.files.read(self.folder / name)[0] if _NAME.fullmatch(name) else None
        except FileNotFoundError:
            return None


Value = Record | Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Adjacent lines, and the lines before and after them."""

    before: tuple[Line, ...]
    old: tuple[Line, ...]
    after: tuple[Line, ...]

    @property
    def last(self) -> int:
        """Greatest number among the lines."""
        return max(line.seq for line in self.old)


def narrowed(old: Sequence[Record], new: Sequence[Value]) -> tuple[tuple[Record, ...], tuple[Value, ...]]:
    """Remove unchanged records at either end. At least one old record remains, to mark the place."""
    kept = [value.id for value in new if isinstance(value, Record)]
    foreign = set(kept) - {record.id for record in old}
    if not old or foreign or len(set(kept)) < len(kept):
        raise InvalidArguments(
            "only records that are replaced can be kept among the new ones, each once",
            suggestion="give the records of the snapshot from `first` to before `last`, and drafts",
        )
    if list(old) == list(new):
        raise InvalidArguments("nothing would be replaced")
    first, last = 0, 0
    while first < len(old) - 1 and first < len(new) and new[first] == old[first]:
        first += 1
    while last < min(len(old) - first - 1, len(new) - first) and new[-1 - last] == old[-1 - last]:
        last += 1
    return tuple(old[first : len(old) - last]), tuple(new[first : len(new) - last])


def find_region(lines: Sequence[Line], records: Sequence[Record]) -> Region | None:
    """Find the records as adjacent lines, byte for byte; None if they are not there any more.

    Lines of earlier compactions right before them belong to the region.
    """
    start = next((at for at, line in enumerate(lines) if line.raw == records[0].line), None)
    if start is None:
        return None
    end, wanted = start, list(reversed(records))
    while wanted:
        if end == len(lines) or not _goes_on(lines[end], wanted):
            return None
        end += 1
    while start and lines[start - 1].generation is not None:
        start -= 1
    return Region(before=tuple(lines[:start]), old=tuple(lines[start:end]), after=tuple(lines[end:]))


def composed(region: Region, values: Sequence[Value], generation: Generation) -> tuple[Line, ...]:
    """Return the lines of the whole file after a compaction, with the ids of its lines filled in."""
    pen = Pen(session=generation.session, ts=generation.ts, generation=generation.number)
    numbers = {line.id: line.seq for line in region.old}
    kept = {line.id: line for line in region.old}
    new = [
        kept[value.id]
        if isinstance(value, Record)
        else message_line(pen, value, seq=numbers.get(value.of or "", region.last), place=place)
        for place, value in enumerate(values)
    ]
    # Lines of an unknown type are kept, since it is unknown what would be lost with them.
    new += [line for line in region.old if line.record is None and line.generation is None]
    marked = compaction_line(replace(generation, ids=tuple(line.id for line in new)), seq=region.last)
    return *region.before, marked, *new, *region.after


def _goes_on(line: Line, wanted: list[Record]) -> bool:
    """Return whether a line is the next wanted record, which is then removed from `wanted`, or is not a message."""
    if line.record is None:
        return True
    return line.raw == wanted.pop().line


Archived = Callable[[Generation], Sequence[Line] | None]
"""Returns the lines that a compaction dropped, in order; None if they are unavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwound:
    """A state that undoing compactions restored."""

    lines: tuple[Line, ...]
    generation: int
    """Generation of the state; greater than the wanted one if an archive is missing."""
    undone: tuple[Generation, ...]
    """The compactions that were undone, latest first."""
    missing: Generation | None = None


def generation_of(lines: Sequence[Line]) -> int:
    return max((line.generation.number for line in lines if line.generation), default=0)


def unwind(lines: Sequence[Line], archived: Archived, to: int = 0) -> Unwound:
    """Undo compactions down to the wanted generation, as far as the archives allow."""
    undone: list[Generation] = []
    while (latest := _latest(lines)) is not None and latest.number > to:
        before = archived(latest)
        if before is None or generation_of(before) >= latest.number:
            return Unwound(lines=tuple(lines), generation=latest.number, undone=tuple(undone), missing=latest)
        # Compared by ids, so that a lost line does not affect its neighbours.
        replaced = frozenset(latest.ids)
        result: list[Line] = []
        for line in lines:
            if line.generation is latest:
                result += before
            elif line.id not in replaced:
                result.append(line)
        lines = result
        undone.append(latest)
    return Unwound(lines=tuple(lines), generation=generation_of(lines), undone=tuple(undone))


def _latest(lines: Sequence[Line]) -> Generation | None:
    found = [line.generation for line in lines if line.generation is not None]
    return max(found, key=lambda generation: generation.number, default=None)


_Lines = Sequence[Line]


def state_at(lines: _Lines, generation: int, archived: Archived, wholes: Iterable[_Lines]) -> tuple[Line, ...] | None:
    """Return the lines of an earlier state, with messages appended since behind it; None if no archive leads there.
    `wholes` are copies of the whole file, latest first."""
    back = unwind(lines, archived, generation)
    if back.generation == generation:
        return back.lines
    origin = unwind(lines, archived).lines
    found = (_continued(whole, generation, archived, origin) for whole in wholes)
    return next((state for state in found if state is not None), None)


def _continued(whole: _Lines, generation: int, archived: Archived, origin: _Lines) -> tuple[Line, ...] | None:
    """Return the state that a copy leads to, followed by what was appended after the copy was made."""
    there, begun = unwind(whole, archived, generation), unwind(whole, archived).lines
    is_same = [line.raw for line in begun] == [line.raw for line in origin[: len(begun)]]
    return (*there.lines, *origin[len(begun) :]) if there.generation == generation and is_same else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Result of the check of a session."""

    messages: int
    """Number of active messages."""
    originals: int
    """Number of messages that are active or archived."""
    generations: int
    """Number of compactions that can be undone."""
    faults: tuple[str, ...]
    """What is wrong, in sentences."""
    notes: tuple[str, ...]
    """What is intended but worth knowing, in sentences."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def verified(sifted: Sifted, unwound: Unwound, fault: Callable[[Archive], str | None]) -> Verified:
    """Check a file as it is on disk and what its archives restore. `fault` checks one archive."""
    seen = {line.raw: line for line in (*sifted.lines, *unwound.lines)}
    numbers = [line.seq for line in unwound.lines if line.record is not None and not line.record.generation]
    missing = unwound.missing
    faults = list[str]()
    if sifted.corrupt:
        faults.append(f"{len(sifted.corrupt.splitlines())} lines cannot be read")
    if sifted.rest:
        faults.append(f"the last {len(sifted.rest)} bytes are no whole line")
    faults += [f"message {line.seq} has another checksum than its bytes" for line in seen.values() if not line.sound]
    if missing is not None and missing.archive is not None:
        why = fault(missing.archive) or "it leads nowhere"
        faults.append(f"generation {missing.number} cannot be undone: {why}")
    faults += _of_numbers(numbers, complete=missing is None)
    return Verified(
        messages=sum(line.record is not None for line in sifted.lines),
        originals=len(numbers),
        generations=len(unwound.undone),
        faults=tuple(faults),
        notes=()
        if missing is None or missing.archive
        else (f"what generation {missing.number} removed was not archived",),
    )


def accounted(unwound: Unwound) -> frozenset[int]:
    """Return the numbers of the archived messages and of those that a missing archive may contain."""
    held = frozenset(line.seq for line in unwound.lines if line.record is not None)
    unknown = (line.seq for line in unwound.lines if unwound.missing is not None and line.generation is unwound.missing)
    return held | frozenset(range(1, 1 + max(unknown, default=0)))


def _of_numbers(numbers: Sequence[int], *, complete: bool) -> Iterator[str]:
    """Yield errors in the numbers: they must be in order, and without gaps if every original is at hand."""
    for before, number in zip([0, *numbers], numbers, strict=False):
        if number <= before:
            yield f"message {number} stands behind message {before}"
        elif complete and number > before + 1:
            lost = f"message {before + 1}" if number == before + 2 else f"messages {before + 1} to {number - 1}"
            yield f"{lost} cannot be found"
