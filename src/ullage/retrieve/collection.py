"""Which passages are known, and are they still what they were?

Holds the places of every passage in some folders, with the index over them, and brings both up to date in steps, so
that a large folder can be gone through in several goes. What is beyond a bound is left out and counted. For one thread
at a time; when to look again, `folder` decides.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import nsmallest

from ullage.search import Document, Index

from .cutting import Span, cut
from .patterns import Patterns
from .reading import Stamp, Unread, read_lines
from .retriever import Passage, Place
from .settings import RetrieveSettings
from .walking import File, Walk, roots_of

__all__ = ["Collection"]

_NEAR = 0.3
"""Of the best passage's score, that others must have: what shares less with the query is not worth its tokens."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as it was when it was read."""

    file: File
    citations: tuple[str, ...] = ()
    """Of its passages: their ids in the index."""
    unread: Unread | None = None

    @property
    def stamp(self) -> Stamp:
        return self.file.stamp


@dataclass(slots=True)
class Collection:
    settings: RetrieveSettings
    index: Index
    """Empty, and nobody else's."""
    _known: dict[str, _Known] = field(default_factory=dict[str, _Known])
    _passages: int = 0
    _bytes: int = 0
    _beyond: int = 0
    """Files that were left out at the last look because of a bound."""
    _missing: tuple[str, ...] = ()

    @property
    def files(self) -> int:
        return len(self._known)

    def refresh(self) -> Iterator[None]:
        """Goes through the folders and takes over what changed, a file a step; may be left off at any step."""
        walk = Walk(self.settings, roots_of(self.settings))
        seen: dict[str, File] = {}
        beyond = 0
        for file in walk.files():
            yield
            if file is not None and len(seen) < self.settings.bounds.files:
                seen.setdefault(file.path, file)
            else:
                beyond += file is not None
        yield from self._take_over(seen, beyond)
        self._missing = tuple(walk.missing)
        self._beyond += walk.was_cut

    def ranked(self, query: str, path: str | None, limit: int) -> tuple[Place, ...]:
        """The places nearest to a query, best first; equal ones in the order of their citations."""
        scores = self.index.scores(query).items()
        if path is not None:
            meant = self._meant(path)
            scores = [(citation, score) for citation, score in scores if _path(citation) in meant]
        best = nsmallest(limit, ((-score, citation) for citation, score in scores))
        return tuple(_place(citation) for score, citation in best if score <= _NEAR * best[0][0])

    def holds(self, path: str) -> bool:
        """Whether some file that is searched lies there."""
        return bool(self._meant(path))

    def tops(self) -> tuple[str, ...]:
        """The first parts of the paths that are searched."""
        return tuple(sorted({path.split("/")[0] for path, known in self._known.items() if known.citations}))

    def read(self, places: tuple[Place, ...]) -> tuple[Passage, ...]:
        """What stands there now."""
        texts = {path: self._lines(path) for path in dict.fromkeys(place.path for place in places)}
        passages = [Passage(place, tuple(texts[place.path][place.first - 1 : place.last])) for place in places]
        return tuple(_as_long(passage) for passage in passages if passage.lines)

    def notes(self) -> tuple[str, ...]:
        """What was left out at the last look, in sentences."""
        bounds, most = self.settings.bounds, self.settings.max_file_bytes
        large = Counter(known.unread for known in self._known.values())[Unread.LARGE]
        held = f"{bounds.files} files, {bounds.bytes} bytes and {bounds.passages} passages are held at the most"
        notes = {
            f"at least {self._beyond} files are left out: {held}": self._beyond,
            f"{large} files of more than {most} bytes are left out": large,
            f"cannot be read: {', '.join(self._missing)}": len(self._missing),
        }
        return tuple(note for note, number in notes.items() if number)

    def _meant(self, pattern: str) -> frozenset[str]:
        """The paths that are searched and meant by a pattern."""
        within = Patterns((pattern,))
        return frozenset(
            path for path, known in self._known.items() if known.citations and within.covers(tuple(path.split("/")))
        )

    def _lines(self, path: str) -> list[str]:
        known = self._known.get(path)
        if known is None:
            return []
        lines = read_lines(known.file.root.folder, known.file.parts, self.settings.max_file_bytes)
        return [] if isinstance(lines, Unread) else lines

    def _take_over(self, seen: dict[str, File], beyond: int) -> Iterator[None]:
        for path in [path for path in self._known if path not in seen]:
            self._forget(path)
            yield
        changed = [file for file in seen.values() if self._is_new(file)]
        self._beyond = beyond
        for file in changed:
            self._beyond += not self._take(file)
            yield

    def _is_new(self, file: File) -> bool:
        known = self._known.get(file.path)
        return known is None or known.stamp != file.stamp or known.file.root != file.root

    def _take(self, file: File) -> bool:
        """Whether there was room for it."""
        self._forget(file.path)
        if self._is_full(file.stamp.size):
            return False
        lines = read_lines(file.root.folder, file.parts, self.settings.max_file_bytes)
        if isinstance(lines, Unread):
            self._known[file.path] = _Known(file, unread=lines)
            return True
        self._keep(file, lines)
        return True

    def _is_full(self, size: int) -> bool:
        bounds = self.settings.bounds
        fits = size > self.settings.max_file_bytes or self._bytes + size <= bounds.bytes
        return not fits or self._passages >= bounds.passages

    def _keep(self, file: File, lines: list[str]) -> None:
        texts = {span: "\n".join(lines[span.start : span.end]) for span in cut(lines, _suffix(file.parts[-1]))}
        citations = tuple(self._add(file.path, span, text) for span, text in texts.items() if text.strip())
        self._known[file.path] = _Known(file, citations)
        self._passages += len(citations)
        self._bytes += file.stamp.size if citations else 0

    def _add(self, path: str, span: Span, text: str) -> str:
        citation = Place(path=path, first=span.start + 1, last=span.end).citation
        self.index.add(Document(id=citation, name="\n".join(span.titles), server=path, description=text))
        return citation

    def _forget(self, path: str) -> None:
        known = self._known.pop(path, None)
        if known is None:
            return
        for citation in known.citations:
            self.index.remove(citation)
        self._passages -= len(known.citations)
        self._bytes -= known.stamp.size if known.citations else 0


def _path(citation: str) -> str:
    return citation.rpartition(":")[0]


def _place(citation: str) -> Place:
    path, _, lines = citation.rpartition(":")
    first, _, last = lines.partition("-")
    return Place(path=path, first=int(first), last=int(last))


def _suffix(name: str) -> str:
    return name.rpartition(".")[2] if "." in name.lstrip(".") else ""


def _as_long(passage: Passage) -> Passage:
    """Cited as long as it is, where the text has become shorter."""
    place, number = passage.place, len(passage.lines)
    return Passage(Place(path=place.path, first=place.first, last=place.first + number - 1), passage.lines)
