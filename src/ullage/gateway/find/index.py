"""What is made of a view so that it can be searched?

An index, the forms of its tools and what they all weigh: made when a view is first searched or prepared, and again only
for what changed. What takes long is done in a worker thread, so that other calls go on. Nothing is ranked or written
here.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from ullage.options import IndexKind
from ullage.search import EmbedderFailed
from ullage.tool import Tool

from ..definition import definition_hash, definition_text
from ..merge.view import Entry, View
from ..spawn import Spawn, Work
from .forms import Forms, FormsCache, FormsKept
from .indexing import Indexed, Indexing

if TYPE_CHECKING:
    from ullage.search import HybridIndex

    from .reply import Weigh

__all__ = ["Hashes", "Shelf"]

_AT_ONCE = 50
"""Tools whose forms are made in one go when a view is prepared."""
_HASHES = 20_000


class Hashes:
    """The hashes of definitions, each found once."""

    def __init__(self, most: int = _HASHES) -> None:
        self._most = most
        self._known: dict[int, tuple[Tool, str]] = {}
        """By the object's identity, which holds as long as the object is held here."""

    async def find(self, tools: Iterable[Tool]) -> None:
        """Finds those that are not known yet, in a worker thread."""
        absent = [tool for tool in tools if id(tool) not in self._known]
        if absent:
            await anyio.to_thread.run_sync(lambda: [self.of(tool) for tool in absent])

    def of(self, tool: Tool) -> str:
        known = self._known.get(id(tool))
        if known is None:
            if len(self._known) >= self._most:
                self._known.clear()
            known = self._known[id(tool)] = tool, definition_hash(tool)
        return known[1]


class Shelf:
    """Keeps what was made of the last view."""

    def __init__(
        self, hashes: Hashes, indexing: Indexing, cache: FormsCache | None = None, spawn: Spawn | None = None
    ) -> None:
        self._hashes = hashes
        self._indexing = indexing
        self._forms = FormsKept(cache)
        self._spawn = spawn
        self._lock: anyio.Lock | None = None
        self._index: tuple[str, IndexKind, HybridIndex] | None = None
        self._stand_in: tuple[str, HybridIndex] | None = None
        """The table's index of a view while the encoder reads it."""
        self._weights: dict[tuple[str, str], tuple[int, int]] = {}

    async def index(self, view: View, kind: IndexKind) -> "HybridIndex":
        """Of the kind that is wanted; where it would take too long to wait for an encoder, of the table meanwhile."""
        found = self._made_of(view, kind)
        if found is None and kind == "encoder" and self._spawn is not None:
            found = await self._meanwhile(view, self._spawn)
        return await self._whole(view, kind) if found is None else found

    async def give_up(self, error: EmbedderFailed) -> None:
        """Indexes that come from now on do without the one that failed; those that were made of it are let go."""
        self._index = self._stand_in = None
        await anyio.to_thread.run_sync(self._indexing.embedders.give_up, error.embedder, error)

    async def _meanwhile(self, view: View, spawn: Spawn) -> "HybridIndex":
        if self._stand_in is None or self._stand_in[0] != view.revision:
            soon = await anyio.to_thread.run_sync(self._indexing.make_soon, view.entries, "encoder", self._before)
            if soon is not None:
                return await self._take(view, "encoder", soon)
            instead = await anyio.to_thread.run_sync(self._indexing.make, view.entries, "static", None)
            self._stand_in = view.revision, instead.index

            async def make() -> None:
                await self._whole(view, "encoder")

            spawn(make)
        return self._stand_in[1]

    async def _whole(self, view: View, kind: IndexKind) -> "HybridIndex":
        found = self._made_of(view, kind)
        if found is None:
            async with self._one_at_a_time():
                found = self._made_of(view, kind)
                # Asked by identity: an index of nothing is false.
                return await self._make(view, kind) if found is None else found
        return found

    def _made_of(self, view: View, kind: IndexKind) -> "HybridIndex | None":
        return self._index[2] if self._index is not None and self._index[:2] == (view.revision, kind) else None

    async def _make(self, view: View, kind: IndexKind) -> "HybridIndex":
        try:
            made = await anyio.to_thread.run_sync(self._indexing.make, view.entries, kind, self._before)
        except EmbedderFailed as error:
            await self.give_up(error)
            return await self._make(view, kind)  # by what stands in for it
        return await self._take(view, kind, made)

    @property
    def _before(self) -> "HybridIndex | None":
        return None if self._index is None else self._index[2]

    async def _take(self, view: View, kind: IndexKind, indexed: Indexed) -> "HybridIndex":
        self._index, self._stand_in = (view.revision, kind, indexed.index), None
        self._weights = {key: value for key, value in self._weights.items() if key[0] == view.revision}
        if indexed.made:
            await self._behind(partial(self._keep, indexed))
        return indexed.index

    async def _keep(self, indexed: Indexed) -> None:
        await anyio.to_thread.run_sync(self._indexing.keep, indexed.made)

    async def _behind(self, work: Work) -> None:
        """While nobody waits, where somebody runs what nobody waits for."""
        if self._spawn is None:
            await work()
        else:
            self._spawn(work)

    async def weights(self, view: View, model: str, weigh: "Weigh", *, stored: bool) -> tuple[int, int]:
        """What all definitions of servers weigh for a model, and what our own do; `stored` says whether the catalogue's
        counts are that model's."""
        key = view.revision, model
        if key not in self._weights:
            self._weights[key] = await anyio.to_thread.run_sync(lambda: _weights(view.entries, weigh, stored=stored))
        return self._weights[key]

    async def forms(self, entries: Sequence[Entry]) -> list[Forms]:
        """The forms of these tools, in their order."""
        await self._hashes.find(entry.tool for entry in entries)
        keys = [self._hashes.of(entry.tool) for entry in entries]
        # Held here: of another view, that is prepared meanwhile, some may be let go.
        found = {key: forms for key in keys if (forms := self._forms.get(key)) is not None}
        absent = {key: entry.tool for key, entry in zip(keys, entries, strict=True) if key not in found}
        if absent:
            found |= await anyio.to_thread.run_sync(self._forms.make, absent)
        return [found[key] for key in keys]

    async def prepare(self, view: View, kind: IndexKind) -> None:
        """Makes everything that searches of this view will ask for, a little at a time."""
        await self._whole(view, kind)
        await self._hashes.find(entry.tool for entry in view.entries)
        keys, absent = await anyio.to_thread.run_sync(self._without_forms, view)
        for some in _portions(absent):
            await anyio.to_thread.run_sync(self._forms.make, {key: keys[key] for key in some})

    def _without_forms(self, view: View) -> tuple[Mapping[str, Tool], Sequence[str]]:
        """The definitions of a view by their hashes, and the hashes of those whose forms are to be made."""
        keys = {self._hashes.of(entry.tool): entry.tool for entry in view.entries}
        self._forms.keep_only(keys)
        return keys, [key for key in keys if self._forms.get(key) is None]

    def _one_at_a_time(self) -> anyio.Lock:
        """Made late: a lock belongs to the event loop that is running."""
        if self._lock is None:
            self._lock = anyio.Lock()
        return self._lock


def _weights(entries: Iterable[Entry], weigh: "Weigh", *, stored: bool) -> tuple[int, int]:
    each = [(entry.member.own, _weight(entry, weigh, stored=stored)) for entry in entries]
    return sum(weight for own, weight in each if not own), sum(weight for own, weight in each if own)


def _weight(entry: Entry, weigh: "Weigh", *, stored: bool) -> int:
    if stored and entry.token_count:
        return entry.token_count
    return weigh(definition_text(entry.tool)).tokens


def _portions(keys: Sequence[str]) -> Iterable[Sequence[str]]:
    return (keys[start : start + _AT_ONCE] for start in range(0, len(keys), _AT_ONCE))
