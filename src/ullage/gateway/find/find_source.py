"""The source that offers `find_tool` and `call_tool` in place of the tools behind it.

`Find` lists `find_tool`, `call_tool` and `call_tool_write` in place of every tool behind it, answers searches within
the caller's budget, and turns a call of `call_tool` into a call of the named tool before any inner source decides on
it. A small catalogue is listed directly, without Ullage's own tools. Tools called by their own names pass through
unchanged, listed or not. Ranking, fitting, repairs and token counts are in the imported modules.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from ullage.errors import InvalidArguments
from ullage.process_memory import release_free_memory
from ullage.tokens import Meter
from ullage.tool import Call, Caller, Change, Json, JsonObject, Listener, Listing, Reply, Structured, Tool, text_block

from ..access_rules import Consent
from ..merge.tool_names import key
from ..merge.tool_view import Entry, MergedSource, MergedWrapper, View, denied_error, only_unprefixed
from ..tool_source import revision_of
from .call_tool import HEALED, Calling, Checker
from .find_metrics import Figures
from .find_reply import Carried
from .find_settings import (
    FindSettings,
    Standing,
    Surface,
    Surroundings,
    instructions_of,
    introduce,
    listed_own,
    own_entry,
)
from .tool_forms import FIND, NAMES
from .tool_index import Hashes, Indexing, Latest, Shelf
from .usage_learning import Learning

if TYPE_CHECKING:
    from .search_tools import Asked, Explained, Query, Searching

__all__ = ["SAVINGS", "Find"]

SAVINGS = "dev.ullage/savings"
"""Key in a search's `meta`: net tokens saved, for the first request and the session, after Ullage's own are charged."""
_RECORDING = 0.4
"""Seconds of requests whose definitions are one entry of the ledger."""
_MOMENT = 1.0
"""Seconds that a list waits for servers whose tools were never listed, if it has others to show."""
_FIRST_SERVER = 5.0
"""Seconds that an introduction waits for a first server; clients give up after ten or more."""


class Find(MergedWrapper):
    """Wraps a source of many tools and offers `find_tool`, `call_tool` and `call_tool_write` instead.

    Args:
        inner: The source of the tools.
        meter: Counts tokens.
        settings: What to list, and the budgets.
        around: Storage, callbacks and background; by default nothing is stored.
    """

    def __init__(
        self,
        inner: MergedSource,
        meter: Meter,
        settings: FindSettings | None = None,
        around: Surroundings | None = None,
    ) -> None:
        self.inner = inner
        self.settings = settings or FindSettings()
        self._around = around or Surroundings()
        self._hashes = Hashes()
        indexing = Indexing(self._around.embedders, self._around.vectors)
        self._shelf = Shelf(self._hashes, indexing, self._around.forms, self._around.spawn)
        self._figures = Figures(meter, self._shelf, self._around)
        self._made_searching: Searching | None = None
        self._calling = Calling(inner, self._hashes, Checker())
        self._standing = Standing(
            memory=self._around.memory,
            weigh=lambda view: self._figures.baseline(view, self._around.lister),
            window=lambda: self._around.reference(self._around.lister).window,
        )
        self._waited_for: set[str] = set()
        """Servers that were waited for briefly."""
        self._waited_longest_for: set[str] = set()
        """Servers that were waited for as long as the settings allow."""
        self._was_listed = False
        self._is_recording = False
        """Whether a task is waiting to record what requests carried."""
        self._shown: Listing | None = None
        """The last listing; None also after every client was notified of a change."""
        self._consent = Consent()
        self._own_entries: dict[str, Entry] = {}
        """Ullage's own tools with the rules of the current settings."""
        self._introduced = Latest[str]()
        self._listed = Latest[Listing]()
        self._listeners: list[Listener] = []
        self._unwatch: Callable[[], None] | None = None

    def replace(self, settings: FindSettings) -> None:
        """Replace the settings after a change of configuration."""
        if settings.mode != self.settings.mode:
            self._standing.decided = None
        self.settings = settings
        self._own_entries.clear()
        self._waited_for.clear()
        self._waited_longest_for.clear()
        if self._around.spawn is not None:
            self._around.spawn(self._look_again)

    async def tools(self) -> Listing:
        """Return the tools to list: Ullage's own with the pinned ones, or a small catalogue directly."""
        if self._was_listed and self.settings.mode == "direct":
            # A repeated list means that the client wants current tools, and some servers announce no changes.
            await self.inner.refresh(_MOMENT)
        view = await (self._to_be_shown() if self.settings.mode == "direct" else self.inner.view())
        listing = await self._listing(view)
        self._was_listed = True
        if self._note(listing) and self._around.spawn is not None and self.surface == "search":
            self._around.spawn(self._prepare_quietly)
        return listing

    async def call(self, call: Call) -> Reply:
        """Run `find_tool`, `call_tool` or `call_tool_write`; pass any other call to the inner source.

        Raises:
            InvalidArguments: The arguments of Ullage's own tool do not fit.
            Denied: The settings or the user do not allow the call.
        """
        self._figures.called(call.caller)
        try:
            reply = await self._answer(call)
            if self._learning is not None:
                await self._learning.called(call.caller, reply)
            return reply
        finally:
            if self._was_listed:
                self._figures.note_definitions(call.caller)
                if self._around.spawn is None:
                    await self._record_definitions()
                elif not self._is_recording:
                    self._is_recording = True
                    self._around.spawn(self._record_definitions_soon)

    async def _answer(self, call: Call) -> Reply:
        if call.tool not in NAMES:
            return await self.inner.call(call)
        entry = self._own_entries.get(call.tool)
        if entry is None:
            entry = self._own_entries[call.tool] = own_entry(call.tool, self, self.settings)
        if entry.access == "deny":
            raise denied_error(entry)
        await self._consent.obtain(entry, call)
        try:
            reply = await (self._find(call) if call.tool == FIND.name else self._calling.call(call, self.settings))
        except InvalidArguments as error:
            text = json.dumps(error.wire(), ensure_ascii=False)
            self._figures.replied(call.caller, self._figures.weigh(call.caller)(text).tokens)
            raise
        self._consent.note(entry, call, reply)
        return reply

    async def meet_servers(self) -> None:
        """Wait for servers whose tools are shown, so that a client is told the right instructions and capabilities.

        The wait is brief if any server is known already.
        """
        if self.settings.mode == "direct":
            view = await self.inner.view()
            is_any_known = any(not entry.member.own for entry in view.entries)
            await self.inner.view(min(_MOMENT if is_any_known else _FIRST_SERVER, self.settings.start_wait))

    def instructions(self, view: View) -> str:
        """Return the instructions about a view's servers.

        From then on the choice between direct and search stays until the settings change, because a client reads the
        instructions once and lists tools repeatedly.
        """
        self._standing.promise(self.settings)
        return self._introduction(view)

    def _introduction(self, view: View) -> str:
        surface, budget = self.surface, self.settings.instructions_budget
        weigh = self._figures.weigh(self._around.lister)

        if surface == "direct":
            members = self.inner.members
            owner = only_unprefixed(members)
            if owner is None or owner.description or any(not one.own and one is not owner for one in members):
                alone = None
            else:
                alone = instructions_of(owner)
        else:
            alone = None

        def make() -> str:
            return introduce(view, surface, lambda text: weigh(text).high, budget, alone)

        return self._introduced.of((view, surface, budget, alone), make)

    @property
    def surface(self) -> Surface:
        """The current choice between showing tools directly and searching."""
        return self._standing.surface(self.settings)

    @property
    def _learning(self) -> Learning | None:
        return self._around.learning if self.settings.learn else None

    async def prepare(self) -> None:
        """Build everything that searches need; to be run in the background."""
        await self._shelf.prepare(await self.inner.view(), self.settings.index)

    async def _prepare_quietly(self) -> None:
        await anyio.sleep(self._around.quiet)
        await self.prepare()
        # Making an index of 400 tools leaves almost 2 MB of free memory behind.
        release_free_memory()

    def watch(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each change; with a change of tools only if the list itself changed."""
        if self._unwatch is None:
            self._unwatch = self.inner.watch(self._changed)
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    async def close(self) -> None:
        """Stop watching and close the inner source."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
        self._listeners.clear()
        await self.inner.close()

    async def _find(self, call: Call) -> Reply:
        began = self._around.clock()
        searching = await self._searching()
        query = self._read(call.arguments)
        view = await self._searched_view(searching, query, call.caller)
        found = await searching.search(self._asked(query, view, call.caller))
        carried = await self._carried(view, call.caller)
        self._figures.replied(call.caller, found.tokens.tokens, is_recorded=True)
        self._figures.record_search(call.caller, found, (self._around.clock() - began) * 1000)
        meta: dict[str, Json] = {SAVINGS: self._figures.net(call.caller, carried).to_json()}
        if query.notes:
            meta[HEALED] = list(query.notes)
        return Reply(
            content=(text_block(found.text),), structured=Structured(json.loads(found.text), found.text), meta=meta
        )

    async def explain(self, arguments: JsonObject, caller: Caller) -> "tuple[Explained, ...]":
        """Return what a search with these arguments finds, and why. Nothing is recorded."""
        searching = await self._searching()
        query = self._read(arguments)
        return await searching.explain(self._asked(query, await self.inner.view(), caller))

    async def _searching(self) -> "Searching":
        """Create the searcher on first use, in a worker thread, since it imports a third of this package."""
        if self._made_searching is None:
            self._made_searching = await anyio.to_thread.run_sync(self._make_searching)
        return self._made_searching

    def _make_searching(self) -> "Searching":
        from .search_tools import Searching

        return self._made_searching or Searching(self._shelf, self._figures, self._around.learning, self._around.shapes)

    def _read(self, arguments: JsonObject) -> "Query":
        from .search_tools import read_query

        return read_query(arguments, self.settings.find_budget)

    def _asked(self, query: "Query", view: View, caller: Caller) -> "Asked":
        from .search_tools import Asked

        return Asked(query=query, view=view, caller=caller, settings=self.settings)

    async def _to_be_shown(self) -> View:
        """Return the view for a direct list.

        Without search, tools can only be reached by the list. So the first list waits until it has tools, and later
        ones wait only briefly for missing servers, whose tools are announced as a change when they arrive.
        """
        view, longest = await self.inner.view(), self.settings.start_wait
        known = any(not entry.member.own for entry in view.entries)
        return await self._awaited(min(_MOMENT, longest) if known else longest)

    async def _searched_view(self, searching: "Searching", query: "Query", caller: Caller) -> View:
        """Return the view to search.

        Servers that are still starting are waited for if nothing else matches or the query names one of them;
        briefly also while most servers are missing. The wait ends as soon as something matches, so that a server
        that never answers delays only searches for it.
        """
        view = await self.inner.view()
        if not view.missing:
            return view
        if len(view.missing) > len({entry.server for entry in view.entries if not entry.member.own}):
            view = await self._awaited(min(_MOMENT, self.settings.start_wait))
            if not view.missing:
                return view
        wanted = {key(word) for word in (*query.servers, *query.text.split())}
        seen, has_match = None, False
        left, step = self.settings.start_wait, _MOMENT
        while late := {one.server for one in view.missing} - self._waited_longest_for:
            if view.revision != seen:
                seen, has_match = view.revision, await searching.has_match(self._asked(query, view, caller))
            if has_match and not wanted & {key(name) for name in late}:
                break
            if left <= 0:
                self._waited_longest_for |= late
                break
            view = await self.inner.view(min(step, left))
            left, step = left - step, 2 * step
        return view

    async def _awaited(self, longest: float) -> View:
        """Return the view after waiting for servers that are still starting.

        Requests wait for a server until one of them has waited in vain; requests at the same time wait together.
        """
        view = await self.inner.view()
        late = {one.server for one in view.missing} - self._waited_for
        if late:
            view = await self.inner.view(longest)
            self._waited_for |= late
        return view

    async def _record_definitions_soon(self) -> None:
        """Record the definitions of all requests within a moment, with one entry for each session."""
        await anyio.sleep(_RECORDING)
        self._is_recording = False
        await self._record_definitions()

    async def _record_definitions(self) -> None:
        """Record what the noted requests carried; at a session's first request, it is counted first."""
        for caller in self._figures.record_due_definitions():
            await self._carried(await self.inner.view(), caller)
            self._figures.record_due_definitions()

    def record_definitions(self) -> None:
        """Record what requests carried since the last entry, as far as it is counted. To be called at the end."""
        self._figures.record_due_definitions()

    async def _carried(self, view: View, caller: Caller) -> Carried:
        listing = await self._listing(view)
        return await self._figures.carry(view, listing, self._introduction(view), caller)

    async def _listing(self, view: View) -> Listing:
        settings = self.settings
        surface = await self._standing.decide(view, settings)

        def make() -> Listing:
            tools = _listed(view, surface, settings)
            return Listing(tools, revision_of(map(self._hashes.of, tools)))

        if surface == "direct":
            await self._hashes.find(entry.tool for entry in view.entries)
        return self._listed.of((view, surface, settings), make)

    def _changed(self, change: Change) -> None:
        if change.kind == "tools":
            self._figures.forget_carried()
        if change.kind != "tools":
            self._tell(change)
        elif change.is_announced and self.surface == "direct":
            self._shown = None
            self._tell(Change("tools"))
        elif self._around.spawn is not None:
            self._around.spawn(self._look_again)
        elif self._shown is None or self.surface == "direct" or len(self._shown.tools) > len(NAMES):
            # Without a background the list cannot be compared first; the next listing is then not a change.
            self._shown = None
            self._tell(change)

    async def _look_again(self) -> None:
        view = await self.inner.view()
        listing = await self._listing(view)
        if self._was_listed:
            self._note(listing)
        if self.surface == "search":
            await self._shelf.prepare(view, self.settings.index)

    def _note(self, listing: Listing) -> bool:
        """Remember the list and return whether it differs from the last one.

        A difference is announced to every client at once: a list by one client must not hide the change from the
        others.
        """
        before, self._shown = self._shown, listing
        differs = before is None or before.revision != listing.revision
        if differs and before is not None:
            self._tell(Change("tools"))
        return differs

    def _tell(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            listener(change)


def _listed(view: View, surface: Surface, settings: FindSettings) -> tuple[Tool, ...]:
    """Return every tool, or Ullage's own with the pinned ones."""
    if surface == "direct":
        return tuple(entry.tool for entry in view.entries)
    pinned = (entry.tool for entry in view.entries if entry.is_pinned and entry.listed not in NAMES)
    return (*listed_own(settings), *pinned)
