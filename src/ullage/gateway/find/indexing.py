"""How does a view become an index, with nothing embedded twice?

What the index before has of tools that stayed is taken over; of the rest, vectors that wait in the cache are taken and
those that are missing are made. What was made is handed back, to be kept when nobody waits for it. Blocking: in which
thread it runs, `index` decides.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ullage.options import IndexKind

from ..definition import definition_hash
from ..merge.view import Entry
from .embedders import Embedders
from .vectors import VectorCache, VectorKey

if TYPE_CHECKING:
    from ullage.search import Document, HybridIndex

__all__ = ["Indexed", "Indexing"]

_SOON = 100
"""Definitions that an encoder reads in less than half a second."""


@dataclass(frozen=True, slots=True)
class Indexed:
    index: "HybridIndex"
    made: Mapping[VectorKey, bytes]
    """To be kept for the next start."""


@dataclass(frozen=True, slots=True)
class Indexing:
    embedders: Embedders
    cache: VectorCache | None = None

    def make(self, entries: Sequence[Entry], kind: IndexKind, before: "HybridIndex | None") -> Indexed:
        """May take long, and very long where an encoder has much to read."""
        made = self._make(entries, kind, before, len(entries))
        assert made is not None
        return made

    def make_soon(self, entries: Sequence[Entry], kind: IndexKind, before: "HybridIndex | None") -> Indexed | None:
        """The same where it does not take very long; else None."""
        reads = self.embedders.of(kind) is not self.embedders.of("static")
        return self._make(entries, kind, before, _SOON if reads else len(entries))

    def _make(
        self, entries: Sequence[Entry], kind: IndexKind, before: "HybridIndex | None", most: int
    ) -> Indexed | None:
        """None where more than so many have to be embedded."""
        from ullage.search import HybridIndex, packed, unpacked

        documents, embedder = [_document(entry) for entry in entries], self.embedders.of(kind)
        if embedder is None:
            return Indexed(HybridIndex(documents, before=before), {})
        edition = embedder.edition
        fresh = [*_fresh(entries, documents, edition, before)]
        keys = {} if self.cache is None else _keys(fresh)
        read = ((listed, unpacked(data, edition)) for listed, data in self._kept(keys))
        vectors = {listed: vector for listed, vector in read if vector is not None}
        if len(fresh) - len(vectors) > most:
            return None
        index = HybridIndex(documents, embedder, vectors=vectors, before=before)
        made = {keys[listed]: packed(one, edition) for listed, one in index.made.items() if listed in keys}
        return Indexed(index, made)

    def keep(self, made: Mapping[VectorKey, bytes]) -> None:
        if self.cache is not None:
            self.cache.save(made)

    def _kept(self, keys: Mapping[str, VectorKey]) -> Iterable[tuple[str, bytes]]:
        if self.cache is None or not keys:
            return ()
        found = self.cache.load(keys.values())
        return ((listed, found[key]) for listed, key in keys.items() if key in found)


def _document(entry: Entry) -> "Document":
    """Searched under the tool's own name; the listed one, which holds the server's too, is known when asked for."""
    from ullage.search import document_of

    tool = replace(entry.tool, name=entry.original, aliases=(entry.listed, *entry.aliases))
    return document_of(tool, server=entry.server, document_id=entry.listed)


def _fresh(
    entries: Sequence[Entry], documents: "Sequence[Document]", edition: str, before: "HybridIndex | None"
) -> Iterable[Entry]:
    """Those of whose meaning the index before knows nothing. Our own tools stand in no catalogue and are few."""
    known = None if before is None else before.meaning
    held = {} if known is None or known.edition != edition else {one.id: one for one in known.documents}
    pairs = zip(entries, documents, strict=True)
    return (entry for entry, document in pairs if not entry.member.own and held.get(document.id) != document)


def _keys(entries: Iterable[Entry]) -> dict[str, VectorKey]:
    """By listed name; the hash is that of the definition as its server has it."""
    return {
        entry.listed: (entry.server, definition_hash(replace(entry.tool, name=entry.original))) for entry in entries
    }
