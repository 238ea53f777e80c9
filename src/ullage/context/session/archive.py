"""Where do the lines lie that were let go?

In a folder beside the session's file that is named for both the file and the session, so that no two sessions share
one. Each archive is the exact bytes that were replaced, under a name made of the generation and their hash, and is
never changed. A copy of the whole file is laid beside them before an earlier state is brought back.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from .files import Files, put
from .line import Line
from .mending import sift
from .record import Archive, Generation

__all__ = ["Archives", "Kept"]

_NAME = re.compile(r"(\d{4,})-([0-9a-f]{16})(?:\.whole(\d{4,}))?\.jsonl")
_PLAIN = re.compile(r"[0-9A-Za-z]{1,64}")
_DIGITS = 16
"""Of the hash, in a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file of the folder."""

    name: str
    generation: int
    hash: str
    """The beginning of that of its bytes."""
    whole: int
    """The how-many-th copy of the whole file it is; 0 where it is what a generation let go."""


@dataclass(frozen=True, slots=True)
class Archives:
    files: Files
    session: Path
    """The session's file."""
    id: str
    """The session's."""

    @property
    def folder(self) -> Path:
        plain = self.id if _PLAIN.fullmatch(self.id) else sha256(self.id.encode()).hexdigest()[:_DIGITS]
        return self.session.with_name(f"{self.session.name}.archive-{plain}")

    def keep(self, generation: int, lines: tuple[Line, ...], *, whole: int = 0) -> Archive:
        """Returns when they would survive a power cut. For whoever holds the session's lock."""
        data = b"".join(line.raw for line in lines)
        digest = sha256(data).hexdigest()
        name = f"{generation:04}-{digest[:_DIGITS]}{f'.whole{whole:04}' if whole else ''}.jsonl"
        self.files.make_folder(self.folder)
        self.files.sync_folder(self.session.parent)
        put(self.files, self.folder / name, data)
        return Archive(file=name, sha256=digest, lines=len(lines), bytes=len(data))

    def keep_whole(self, generation: int, lines: tuple[Line, ...]) -> None:
        """A copy of the file, as it is before an earlier state is brought back."""
        self.keep(generation, lines, whole=1 + max((kept.whole for kept in self.kept()), default=0))

    def wholes(self) -> Iterator[tuple[Line, ...]]:
        """The copies of the file, the latest first."""
        for kept in sorted(self.kept(), key=lambda kept: -kept.whole):
            if kept.whole:
                yield self.read(kept)

    def lines(self, generation: Generation) -> tuple[Line, ...] | None:
        """What a generation let go, where it is there and what it was."""
        archive = generation.archive
        data = None if archive is None else self._bytes(archive.file)
        is_sound = archive is not None and data is not None and sha256(data).hexdigest() == archive.sha256
        return sift(data).lines if is_sound and data is not None else None

    def fault(self, archive: Archive) -> str | None:
        """What is wrong with it."""
        data = self._bytes(archive.file)
        if data is None:
            return f"the archive `{archive.file}` is not there"
        return None if sha256(data).hexdigest() == archive.sha256 else f"the archive `{archive.file}` was changed"

    def kept(self) -> Iterator[Kept]:
        """Every archive of the folder, the earliest generation first."""
        for name in self.files.names(self.folder):
            found = _NAME.fullmatch(name)
            if found is not None:
                yield Kept(name=name, generation=int(found[1]), hash=found[2], whole=int(found[3] or 0))

    def read(self, kept: Kept) -> tuple[Line, ...]:
        """Its lines, where they are what they were; none otherwise."""
        data = self._bytes(kept.name)
        is_sound = data is not None and sha256(data).hexdigest().startswith(kept.hash)
        return sift(data).lines if is_sound and data is not None else ()

    def is_untidy(self) -> bool:
        return any(self._unfinished())

    def tidy(self) -> None:
        """Removes what a crash left unfinished. For whoever holds the session's lock."""
        for path in self._unfinished():
            self.files.remove(path)

    def _unfinished(self) -> list[Path]:
        return [self.folder / name for name in self.files.names(self.folder) if name.endswith(".tmp")]

    def _bytes(self, name: str) -> bytes | None:
        try:
            return self.files.read(self.folder / name)[0] if _NAME.fullmatch(name) else None
        except FileNotFoundError:
            return None
