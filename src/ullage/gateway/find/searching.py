"""What answers a search, and why?

Ranks a view's tools by a query and by what was learnt, and makes the reply of them; or says of each why it is there,
by the same ranking, with nothing noted. How near a tool is, the index knows; what fits the budget, `reply`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from ullage.search import EmbedderFailed, Hit
from ullage.tool import Caller

from ..baseline import trust_command
from ..merge.spelling import key
from ..merge.view import Entry, View
from ..reference import character_limit
from .candidates import Candidates
from .figures import Figures
from .forms import Forms
from .index import Shelf
from .latest import Latest
from .learning import Learning
from .lesson import Lesson, begin
from .narrow import stray
from .query import Query, Ranked, Search, rank
from .reply import About, Beside, Found, compose
from .settings import FindSettings

__all__ = ["Asked", "Explained", "Searching"]

_LETTERS = 50_000
"""Of definitions found, above which they are weighed in a worker thread."""
_MANY = 1_000
"""Tools among which one is looked for in a worker thread; so it is wherever an encoder reads the query."""
_STAND_INS = 3
"""Times that a search is begun again: an encoder may fail, then the table, and an index of either be made meanwhile."""
_SERVERS = 20
"""Named to whoever found nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    query: Query
    view: View
    caller: Caller
    settings: FindSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A tool that was found."""

    listed: str
    hit: Hit | None
    """With what gave its score; None where it is there for its server's sake and not for what it does."""


class Searching:
    """Of one `Find`."""

    def __init__(self, shelf: Shelf, figures: Figures, learning: Learning | None) -> None:
        self._shelf = shelf
        self._figures = figures
        self._learning = learning
        self._by_name = Latest[dict[str, Entry]]()
        self._reading = Latest[frozenset[str]]()
        self._candidates = Candidates()

    async def search(self, asked: Asked) -> Found:
        entries = self._entries(asked.view)
        lesson, ranked = await self._ranked(asked)
        hits = [(each, entries[each.listed]) for each in ranked]
        forms = await self._shelf.forms([entry for _, entry in hits])
        baseline = await self._figures.baseline(asked.view, asked.caller)
        work = partial(self._compose, asked, list(zip(hits, forms, strict=True)), baseline)
        # Definitions may be of any length, and are counted when they are first found.
        letters = sum(len(form.definition) for form in forms)
        found = await anyio.to_thread.run_sync(work) if letters > _LETTERS else work()
        lesson.note(found.text, ranked, entries)
        return found

    async def has_match(self, asked: Asked) -> bool:
        """Whether any tool of the view is near what is looked for."""
        _, ranked = await self._ranked(asked)
        return any(each.near for each in ranked)

    async def explain(self, asked: Asked) -> tuple[Explained, ...]:
        """What the same search comes upon, nearest first."""
        heard = dict[str, Hit]()
        _, ranked = await self._ranked(asked, heard)
        return tuple(
            Explained(listed=each.listed, hit=heard.get(each.listed) if each.near else None) for each in ranked
        )

    async def _ranked(self, asked: Asked, heard: dict[str, Hit] | None = None) -> tuple[Lesson, tuple[Ranked, ...]]:
        """With what is noted of the search; each hit goes into `heard` as it is first met. Where whatever knows what
        texts mean fails, what stands in for it is asked, and words alone in the end."""
        for _ in range(_STAND_INS):
            try:
                return await self._ranked_once(asked, heard)
            except EmbedderFailed as error:
                await self._shelf.give_up(error)
                if heard is not None:
                    heard.clear()
        return await self._ranked_once(asked, heard)

    async def _ranked_once(self, asked: Asked, heard: dict[str, Hit] | None) -> tuple[Lesson, tuple[Ranked, ...]]:
        lesson = await self._begin(asked)

        def search(text: str, limit: int) -> Sequence[Hit]:
            hits = lesson.search(text, limit)
            if heard is not None:
                for hit in hits:
                    heard.setdefault(hit.document.id, hit)
            return hits

        return lesson, await _rank(search, asked, self._entries(asked.view))

    async def _begin(self, asked: Asked) -> Lesson:
        index = await self._shelf.index(asked.view, asked.settings.index)
        learning = self._learning if asked.settings.learn else None
        return await begin(learning, asked.query.text, index, asked.view, asked.caller)

    def _entries(self, view: View) -> dict[str, Entry]:
        return self._by_name.of((view,), lambda: {entry.listed: entry for entry in view.entries})

    def _compose(self, asked: Asked, found: Sequence[tuple[tuple[Ranked, Entry], Forms]], baseline: int) -> Found:
        weigh, doors = self._figures.weigh(asked.caller), not asked.settings.join_calls
        known = self._candidates.of_model(self._figures.model(asked.caller), baseline)
        reading = self._reading.of((asked.view,), lambda: _readers(asked.view))
        candidates = [
            known(form, _about(each, writes=doors and each.listed not in reading), weigh) for (each, _), form in found
        ]
        hint = _withheld(asked) or (_strayed(asked) if found else _hint(asked.view))
        beside = Beside((*asked.settings.pending, *asked.view.missing), hint)
        limit = character_limit(asked.caller)
        return compose(
            candidates, baseline=baseline, budget=asked.query.budget, weigh=weigh, beside=beside, limit=limit
        )


async def _rank(search: Search, asked: Asked, entries: Mapping[str, Entry]) -> tuple[Ranked, ...]:
    work = partial(rank, search, asked.view, asked.query, entries)
    takes_long = asked.settings.index == "encoder" or len(entries) > _MANY
    return await anyio.to_thread.run_sync(work) if takes_long else work()


def _readers(view: View) -> frozenset[str]:
    """The tools that change nothing."""
    return frozenset(entry.listed for entry in view.entries if entry.is_read_only)


def _about(each: Ranked, *, writes: bool) -> About:
    return About(named=each.named, near=each.near, writes=writes, also=each.also)


def _withheld(asked: Asked) -> str | None:
    """For a query that says the name of a withheld tool: where it is, and what the user can do."""
    words = {key(word) for word in asked.query.text.split()}
    for entry in asked.view.changed:
        if words & {key(entry.listed), key(entry.original)}:
            command = trust_command(entry.server, entry.original)
            return f"`{entry.listed}` is withheld: its definition changed. The user can accept it: {command}"
    return None


def _strayed(asked: Asked) -> str | None:
    """Said to whoever may have meant to keep to one server."""
    name = None if asked.query.servers else stray(asked.query.description, asked.view)
    return None if name is None else f"No server is called `{name[:40]}`; all were searched."


def _hint(view: View) -> str:
    servers = list(view.servers or dict.fromkeys(entry.server for entry in view.entries))
    rest = f" and {len(servers) - _SERVERS} more" if len(servers) > _SERVERS else ""
    named = f" Servers: {', '.join(servers[:_SERVERS])}{rest}." if servers else " No server is connected."
    return f"Nothing is near this; try other words, or a server's name.{named}"
