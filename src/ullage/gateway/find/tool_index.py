"""The search index of a view's tools, its embedders and vectors.

`Shelf` keeps an index, the forms of its tools and their total token count. They are built when a view is first searched
or prepared, and afterwards only for what changed. Slow work runs in a worker thread, so that other calls go on.

`Indexing` builds an index. Tools that stayed are taken from the index before; for the others, vectors are loaded from
the cache and missing ones are computed. The computed vectors are returned, to be stored in the background. It blocks;
`Shelf` chooses the thread.

`Embedders` loads the table that comes with the package, or an encoder where the user chose one: on first use, once for
all clients, in the calling thread. A model that cannot be loaded, or fails later, is reported once in the log and
replaced: the encoder by the table, the table by words alone.

`VectorCache` stores vectors between starts as bytes, by the server's name and the hash of the definition as the server
sent it. The bytes contain the embedder's edition, which the cache does not check.

`Latest` keeps the last value with the objects it was computed from, compared by identity: that costs nothing, and an
error can only cause a needless recomputation.
"""

import logging
import operator
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import anyio
import anyio.to_thread

from ullage.errors import UllageError
from ullage.options import IndexKind
from ullage.search import Embedder, EmbedderFailed, load_encoder, load_table
from ullage.thread_pacing import run_in_worker
from ullage.tool import Tool

from ..merge.tool_view import Entry, View
from ..tool_source import Spawn, definition_hash, definition_text
from .tool_forms import Forms, FormsCache, FormsKept

if TYPE_CHECKING:
    from ullage.search import Document, HybridIndex

    from .find_reply import Weigh

__all__ = ["Embedders", "Hashes", "Indexed", "Indexing", "Latest", "Loader", "Shelf", "VectorCache", "VectorKey"]

_log = logging.getLogger(__name__)

Loader = Callable[[], Embedder]

_LOADERS: Mapping[IndexKind, Loader] = {"static": load_table, "encoder": load_encoder}
_INSTEAD: Mapping[IndexKind, tuple[IndexKind, str]] = {
    "encoder": ("static", "tools are searched by the table that comes with the package"),
    "static": ("words", "tools are searched by words alone"),
}


class Embedders:
    """Loads embedders on first use, with fallbacks. Thread-safe."""

    def __init__(self, loaders: Mapping[IndexKind, Loader] = _LOADERS) -> None:
        self._loaders = loaders
        self._turn = threading.Lock()
        self._loaded: dict[IndexKind, Embedder | None] = {}

    def of(self, kind: IndexKind) -> Embedder | None:
        """Return the embedder for an index of that kind, None if there is none. May take long."""
        with self._turn:
            return self._of(kind)

    def give_up(self, failed: Embedder, error: Exception) -> None:
        """Replace a failed embedder until the next start. Logged once for each embedder."""
        with self._turn:
            kinds: list[IndexKind] = [kind for kind, loaded in self._loaded.items() if loaded is failed]
            if kinds:
                instead, loss = _INSTEAD["static" if "static" in kinds else "encoder"]
                _log.warning("search by meaning goes on without what fails: %s; %s", error, loss)
                better = self._of(instead)
                for kind in kinds:
                    self._loaded[kind] = better

    def _of(self, kind: IndexKind) -> Embedder | None:
        if kind not in self._loaded and kind in self._loaders:
            try:
                self._loaded[kind] = self._loaders[kind]()
            except Exception as error:  # noqa: BLE001 - whatever is wrong with an install, words can be searched
                instead, loss = _INSTEAD[kind]
                hint = f" ({error.suggestion})" if isinstance(error, UllageError) and error.suggestion else ""
                _log.warning("search by meaning (`%s`) cannot be loaded: %s%s; %s", kind, error, hint, loss)
                self._loaded[kind] = self._of(instead)
        return self._loaded.get(kind)


VectorKey = tuple[str, str]
"""The server's name, whose words are part of the vector, and the hash of the definition under its own name."""


class VectorCache(Protocol):
    """Interface of a store of vectors. Blocking: to be used from a thread."""

    def load(self, keys: Iterable[VectorKey]) -> Mapping[VectorKey, bytes]:
        """Return the stored vectors among these keys."""
        ...

    def save(self, vectors: Mapping[VectorKey, bytes]) -> None:
        """Store vectors."""
        ...


Made = TypeVar("Made")


class Latest(Generic[Made]):
    """Cache of the last computed value."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[object, ...], Made] | None = None

    def of(self, parts: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """Return the cached value if it was computed from these same objects, else compute it."""
        if self._kept is None or not all(map(operator.is_, self._kept[0], parts)):
            self._kept = parts, make()
        return self._kept[1]


_SOON = 100
"""Most definitions that an encoder embeds in less than half a second."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """An index, and the vectors computed for it."""

    index: "HybridIndex"
    made: Mapping[VectorKey, bytes]
    """Vectors to store for the next start."""


@dataclass(frozen=True, slots=True)
class Indexing:
    """Builds indexes from entries, with vectors from the cache."""

    embedders: Embedders
    cache: VectorCache | None = None

    def make(self, entries: Sequence[Entry], kind: IndexKind, before: "HybridIndex | None") -> Indexed:
        """Build the index. May take long, and very long where an encoder has many definitions to embed."""
        made = self._make(entries, kind, before, len(entries))
        assert made is not None
        return made

    def make_soon(self, entries: Sequence[Entry], kind: IndexKind, before: "HybridIndex | None") -> Indexed | None:
        """Build the index if that does not take very long; else return None."""
        reads = self.embedders.of(kind) is not self.embedders.of("static")
        return self._make(entries, kind, before, _SOON if reads else len(entries))

    def _make(
        self, entries: Sequence[Entry], kind: IndexKind, before: "HybridIndex | None", most: int
    ) -> Indexed | None:
        """Build the index; None if more than `most` definitions have to be embedded."""
        from ullage.search import HybridIndex, packed, unpacked

        documents, embedder = [_document(entry) for entry in entries], self.embedders.of(kind)
        if embedder is None:
            return Indexed(HybridIndex(documents, before=before), {})
        edition = embedder.edition
        fresh = [*_fresh(entries, documents, edition, before)]
        keys = (
            {}
            if self.cache is None
            else {
                entry.listed: (entry.server, definition_hash(replace(entry.tool, name=entry.original)))
                for entry in fresh
            }
        )
        read = ((listed, unpacked(data, edition)) for listed, data in self._kept(keys))
        vectors = {listed: vector for listed, vector in read if vector is not None}
        if len(fresh) - len(vectors) > most:
            return None
        index = HybridIndex(documents, embedder, vectors=vectors, before=before)
        made = {keys[listed]: packed(one, edition) for listed, one in index.made.items() if listed in keys}
        return Indexed(index, made)

    def keep(self, made: Mapping[VectorKey, bytes]) -> None:
        """Store computed vectors."""
        if self.cache is not None:
            self.cache.save(made)

    def _kept(self, keys: Mapping[str, VectorKey]) -> Iterable[tuple[str, bytes]]:
        if self.cache is None or not keys:
            return ()
        found = self.cache.load(keys.values())
        return ((listed, found[key]) for listed, key in keys.items() if key in found)


def _document(entry: Entry) -> "Document":
    """Return the tool as a document under its original name; the listed name, which contains the server's, is an
    alias."""
    from ullage.search import document_of

    tool = replace(entry.tool, name=entry.original, aliases=(entry.listed, *entry.aliases))
    return document_of(tool, server=entry.server, document_id=entry.listed)


def _fresh(
    entries: Sequence[Entry], documents: "Sequence[Document]", edition: str, before: "HybridIndex | None"
) -> Iterable[Entry]:
    """Return the entries that the index before has no vector of, without Ullage's own tools, which are few and not
    stored."""
    known = None if before is None else before.meaning
    held = {} if known is None or known.edition != edition else {one.id: one for one in known.documents}
    pairs = zip(entries, documents, strict=True)
    return (entry for entry, document in pairs if not entry.member.own and held.get(document.id) != document)


_AT_ONCE = 50
"""Tools whose forms are made in one batch when a view is prepared."""
_HASHES = 20_000


class Hashes:
    """Cache of the hashes of definitions."""

    def __init__(self, most: int = _HASHES) -> None:
        self._most = most
        self._known: dict[int, tuple[Tool, str]] = {}
        """By object identity. The object is kept in the value so that its id stays valid."""

    async def find(self, tools: Iterable[Tool]) -> None:
        """Compute the missing hashes in a worker thread."""
        known = self._known
        absent = [tool for tool in tools if id(tool) not in known]
        if absent:
            await run_in_worker(lambda: [self.of(tool) for tool in absent], items=len(absent))

    def of(self, tool: Tool) -> str:
        """Return the hash of a definition, computing it if it is not cached."""
        known = self._known.get(id(tool))
        if known is None:
            if len(self._known) >= self._most:
                self._known.clear()
            known = self._known[id(tool)] = tool, definition_hash(tool)
        return known[1]


class Shelf:
    """Cache of the index, forms and token counts of the last view."""

    def __init__(
        self, hashes: Hashes, indexing: Indexing, cache: FormsCache | None = None, spawn: Spawn | None = None
    ) -> None:
        self._hashes = hashes
        self._indexing = indexing
        self._forms = FormsKept(cache)
        self._spawn = spawn
        self._lock = anyio.Lock()
        self._index: tuple[str, IndexKind, HybridIndex] | None = None
        self._stand_in: tuple[str, HybridIndex] | None = None
        """The table's index of a view, used while the encoder embeds it."""
        self._weights: dict[tuple[str, str], tuple[int, int]] = {}

    async def index(self, view: View, kind: IndexKind) -> "HybridIndex":
        """Return an index of this kind; while an encoder would take too long, an index of the table."""
        found = self._made_of(view, kind)
        if found is None and kind == "encoder" and self._spawn is not None:
            found = await self._meanwhile(view, self._spawn)
        return await self._whole(view, kind) if found is None else found

    async def give_up(self, error: EmbedderFailed) -> None:
        """Replace the failed embedder and drop the indexes made with it."""
        self._index = self._stand_in = None
        await anyio.to_thread.run_sync(self._indexing.embedders.give_up, error.embedder, error)

    async def _meanwhile(self, view: View, spawn: Spawn) -> "HybridIndex":
        if self._stand_in is None or self._stand_in[0] != view.revision:
            make_soon = partial(self._indexing.make_soon, view.entries, "encoder", self._before)
            soon = await run_in_worker(make_soon, items=len(view.entries))
            if soon is not None:
                return await self._take(view, "encoder", soon)
            make_static = partial(self._indexing.make, view.entries, "static", None)
            instead = await run_in_worker(make_static, items=len(view.entries))
            self._stand_in = view.revision, instead.index

            async def make() -> None:
                await self._whole(view, "encoder")

            spawn(make)
        return self._stand_in[1]

    async def _whole(self, view: View, kind: IndexKind) -> "HybridIndex":
        found = self._made_of(view, kind)
        if found is None:
            async with self._lock:
                found = self._made_of(view, kind)
                # Compared with None: an empty index is false.
                return await self._make(view, kind) if found is None else found
        return found

    def _made_of(self, view: View, kind: IndexKind) -> "HybridIndex | None":
        return self._index[2] if self._index is not None and self._index[:2] == (view.revision, kind) else None

    async def _make(self, view: View, kind: IndexKind) -> "HybridIndex":
        try:
            make = partial(self._indexing.make, view.entries, kind, self._before)
            made = await run_in_worker(make, items=len(view.entries))
        except EmbedderFailed as error:
            await self.give_up(error)
            return await self._make(view, kind)  # with its replacement
        return await self._take(view, kind, made)

    @property
    def _before(self) -> "HybridIndex | None":
        return None if self._index is None else self._index[2]

    async def _take(self, view: View, kind: IndexKind, indexed: Indexed) -> "HybridIndex":
        self._index, self._stand_in = (view.revision, kind, indexed.index), None
        self._weights = {key: value for key, value in self._weights.items() if key[0] == view.revision}
        if indexed.made:
            work = partial(run_in_worker, partial(self._indexing.keep, indexed.made), items=len(indexed.made))
            if self._spawn is None:
                await work()
            else:
                self._spawn(work)
        return indexed.index

    async def weights(self, view: View, model: str, weigh: "Weigh", *, stored: bool) -> tuple[int, int]:
        """Return the tokens of all servers' definitions and of Ullage's own, for a model.

        Args:
            view: The tools.
            model: The model's id, as the key of the cache.
            weigh: Counts tokens for the model.
            stored: Whether the counts in the catalogue are this model's.
        """
        key = view.revision, model
        if key not in self._weights:
            work = partial(_weights, view.entries, weigh, stored=stored)
            self._weights[key] = await run_in_worker(work, items=len(view.entries))
        return self._weights[key]

    async def forms(self, entries: Sequence[Entry]) -> list[Forms]:
        """Return the forms of these tools, in their order."""
        tools = [entry.tool for entry in entries]
        await self._hashes.find(tools)
        keys = [self._hashes.of(tool) for tool in tools]
        # Kept in a local variable: preparing another view meanwhile may drop some of them from the cache.
        found = {key: forms for key in keys if (forms := self._forms.get(key)) is not None}
        absent = {key: tool for key, tool in zip(keys, tools, strict=True) if key not in found}
        if absent:
            found |= await anyio.to_thread.run_sync(self._forms.make, absent)
        return [found[key] for key in keys]

    async def prepare(self, view: View, kind: IndexKind) -> None:
        """Build everything that searches of this view need, in small batches."""
        await self._whole(view, kind)
        await self._hashes.find(entry.tool for entry in view.entries)
        keys, absent = await run_in_worker(partial(self._without_forms, view), items=len(view.entries))
        for some in (absent[start : start + _AT_ONCE] for start in range(0, len(absent), _AT_ONCE)):
            await anyio.to_thread.run_sync(self._forms.make, {key: keys[key] for key in some})

    def _without_forms(self, view: View) -> tuple[Mapping[str, Tool], Sequence[str]]:
        """Return the view's definitions by their hashes, and the hashes of those without forms."""
        keys = {self._hashes.of(entry.tool): entry.tool for entry in view.entries}
        self._forms.keep_only(keys)
        return keys, [key for key in keys if self._forms.get(key) is None]


def _weights(entries: Iterable[Entry], weigh: "Weigh", *, stored: bool) -> tuple[int, int]:
    each = [
        (entry.member.own, (stored and entry.token_count) or weigh(definition_text(entry.tool)).tokens)
        for entry in entries
    ]
    return sum(weight for own, weight in each if not own), sum(weight for own, weight in each if own)
