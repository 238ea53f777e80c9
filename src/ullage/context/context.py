"""`Context`: an agent's history, kept within its window.

`Context` holds an agent's history for anyone's loop: messages are added as they come, `prepare` gives what to send
and lets go of what must, `observe` takes what the provider reported. Weighing, deciding and keeping are other
files' matters; this one remembers between them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import anyio
import anyio.to_thread

from ullage.errors import StoreFailed
from ullage.messages import Format, plain, read_answer
from ullage.models import Usage
from ullage.tokens import Meter, drain, patiently
from ullage.tool import Json, ToolSource

from .compaction import Compaction, Teller, compact
from .context_options import DEFAULTS, CachePrices, Options, cache_prices_of, limits_of
from .history import Coming, History, Keeping, News, refuse_what_cannot_be_read
from .session import RECALL, RecallSource, Session
from .summary import Breaker, Summarizer, SummaryFunction, as_summarizer
from .token_weights import Entry
from .truncate_messages import Dropped, Shed
from .usage import ContextUsage, learnt_window

__all__ = ["Context", "Plan", "Prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    messages: tuple[object, ...]
    """As they were given, with a summary where something was let go."""
    system: object = None
    tools: Sequence[object] = ()
    status: ContextUsage
    """How full the window is with this."""
    before: ContextUsage | None = None
    """How full it was, where something was let go."""
    sheds: tuple[Shed, ...] = ()
    """What was let go, by which means."""
    dropped: tuple[Dropped, ...] = ()
    """Every message that is not what it was, and what became of it."""
    warning: str | None = None
    generation: int | None = None
    """Under which the session keeps what was let go; None where nothing was, or nothing keeps it."""

    @property
    def compacted(self) -> bool:
        return bool(self.sheds)

    @property
    def event(self) -> dict[str, Json]:
        """`context_status`, as it is told before every call of a model."""
        context: dict[str, Json] = {**self.status.to_json(), "compacted": self.compacted}
        if self.before is not None:
            context["before"] = self.before.to_json()
            context["shed"] = [shed_json(one) for one in self.sheds]
            context["dropped"] = [one.to_json() for one in self.dropped]
        if self.generation is not None:
            context["generation"] = self.generation
        if self.warning is not None:
            context["warning"] = self.warning
        return {"type": "context_status", "context": context}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be let go now. A summary is stood in for by a digest: no model is asked for a plan."""

    before: ContextUsage
    after: ContextUsage
    compaction: Compaction = field(repr=False)

    def to_json(self) -> dict[str, Json]:
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "compacted": self.compaction.compacted,
            "shed": [shed_json(one) for one in self.compaction.sheds],
            "dropped": [one.to_json() for one in self.compaction.dropped],
            "warning": self.compaction.warning,
        }


def shed_json(shed: Shed) -> dict[str, Json]:
    return {
        "tier": shed.tier,
        "tokens": shed.tokens,
        "messages": shed.messages,
        "brokeAt": shed.broke_at,
        "reread": shed.reread,
    }


_GROWN = 0.05
"""The share of the window by which the use must grow before what came to nothing is tried again."""
_SMALLER = 0.9
"""Of what was sent, that a window is taken to hold whose provider said only that it was too much."""


class Context:
    """One history on its way to one model. Not safe between threads; tasks of one event loop may share it."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        model: str,
        meter: Meter,
        format: Format | None = None,  # noqa: A002
        system: object = None,
        tools: Sequence[object] = (),
        options: Options = DEFAULTS,
        session: Session | None = None,
        summarizer: Summarizer | SummaryFunction | object | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The format is told from the first messages where nobody says it. Without a summarizer, a digest is made. A
        window that nobody gives is the one that the session ran in before, if it ran with this model."""
        noted = None if session is None else session.window(model)
        self.model = model
        self.options = replace(options, context_window=options.context_window or noted)
        window = meter.models.window(model)
        self.summarizer = as_summarizer(summarizer, model=model, window=window.tokens if window.resolved else None)
        self.session = session
        self._history = History(
            model=model,
            meter=meter,
            format=format or (session.format if session else None),
            system=system,
            tools=tools,
        )
        self._clock = clock
        self._breaker = Breaker(clock)
        self._called: float | None = None
        """When the model was called last, as far as this process knows."""
        self._prices: CachePrices | None = options.cache_prices
        self._keeping = None if session is None else Keeping(session, format)
        self._learnt: int | None = None
        self._refused = False
        self._futile: int | None = None
        self._stuck: str | None = None
        self._noted = noted or (window.tokens if window.resolved else None)
        """The window that the session's file names for the model, else that of the model's card."""
        self._has_written = False
        """Whether messages were added to the session's file, or its provider refused some of it."""
        self._unread: str | None = None
        """Why the file could not be looked at, the last time."""
        self._compactions = 0
        self._working = anyio.Lock()
        """Whoever lets go, or looks whether to, does so alone; adding and asking wait for nobody."""
        self.load()

    @property
    def messages(self) -> tuple[object, ...]:
        """As they would be sent now, if nothing were let go."""
        return self._history.messages

    def add(self, *messages: object, pinned: bool = False) -> None:
        """Puts messages at the end. What is pinned is never let go. With a session, they outlive the process."""
        if not messages:
            return
        refuse_what_cannot_be_read(messages)
        if self._keeping is None:
            self._history.coming += [Coming(native=one, pinned=pinned) for one in messages]
            return
        self.load()
        self._has_written = True
        self._history.coming += self._keeping.append(
            messages, pinned=pinned, durable=not self._history.is_answer(messages[0])
        )

    def instruct(self, system: object) -> None:
        """The system prompt from now on."""
        self._history.instruct(system)

    def assume_format(self, format: Format) -> None:  # noqa: A002
        """Read the messages in this format from now on, instead of detecting it."""
        self._history.assume_format(format)

    def offer(self, tools: Sequence[object]) -> None:
        """The tools from now on, where they may change while an agent works."""
        self._history.offer(tools)

    def load(self) -> None:
        """Takes in what the session's file holds already, and what other processes wrote since."""
        if self._keeping is not None:
            self._take(self._keeping, self._keeping.news(self._history.ids))

    async def prepare(self) -> Prepared:
        """What to send now. Where the window is too full, something is let go first; whatever fails on the way, what
        can be sent is sent, and `warning` tells of it."""
        async with self._working:
            usage = await self._looked_at()
            if self._is_due(usage):
                return await self._let_go(usage, now=not (usage.will_compact or self._refused))
            return self._prepared(
                self._history.entries, status=usage, warning=self._stuck if usage.will_compact else None
            )

    async def compact(self) -> Prepared:
        """Lets go of what it can now, whether the threshold is reached or not."""
        async with self._working:
            return await self._let_go(await self._looked_at(), now=True)

    def observe(self, response: object = None, *, usage: Usage | None = None, answer: Sequence[object] = ()) -> None:
        """Takes what came of the last call: the provider's own answer, or its usage and the messages to be carried
        back. From then on the figures go by what it reported."""
        if response is not None:
            read = read_answer(plain(response), self._history.scale.format)
            usage, answer = read.usage, read.natives
        history, sent = self._history, self._history.sent
        is_next = not history.coming and len(history.entries) == sent
        self.add(*answer)
        drain(history.weigh())
        self._called = self._clock()
        if usage is not None and 0 < sent <= len(history.entries):
            history.report(usage, sent, is_next=is_next)

    @property
    def tools_of_its_own(self) -> tuple[ToolSource, ...]:
        """`recall`, where what is let go is kept: to be offered from the first step on."""
        if self.session is None or not self.session.keeps:
            return ()
        return (RecallSource(self.session, self._history.scale.count),)

    def status(self) -> ContextUsage:
        """How full the window is now."""
        drain(self._history.weigh())
        return self._usage(self._history.entries)

    async def plan(self) -> Plan:
        """What `compact` would do; nothing is touched and nobody asked."""
        before = await self._looked_at()
        work = await self._compacted(self._history.entries, before, now=True, asks=False)
        await patiently(self._history.weigh())
        return Plan(before=before, after=self._usage(work.entries), compaction=work)

    def overflowed(self, said: str) -> int:
        """To be called with a provider's words where it refused what was sent as too much: the window that this
        teaches. The next `prepare` lets go of enough to fit."""
        usage = self.status()
        self._learnt = learnt_window(said) or max(1, int(_SMALLER * min(usage.context_window, usage.used)))
        self._refused = self._has_written = True
        return self._learnt

    def _usage(self, entries: Sequence[Entry]) -> ContextUsage:
        return self._history.usage(entries, self.options, self._learnt)

    @property
    def _offers_recall(self) -> bool:
        """Whether the model has the tool: nobody is sent to one that is not there."""
        keeps = self.session is not None and self.session.keeps
        return keeps and any(tool.name.split("__")[-1] == RECALL.name for tool in self._history.fixed.tools)

    @property
    def _lost(self) -> str | None:
        return None if self._keeping is None else self._keeping.warning

    def _is_due(self, usage: ContextUsage) -> bool:
        if self.options.disable_compaction:
            return False
        if self._refused or usage.used >= usage.context_window - usage.reserve:
            return True
        if self._futile is not None and usage.used - self._futile < _GROWN * usage.context_window:
            return False
        if usage.will_compact:
            return not self.options.wait_for_cold_cache or self._cache_is_cold
        return usage.used >= self.options.cold_threshold * usage.context_window and self._cache_is_cold

    @property
    def _cache_is_cold(self) -> bool:
        """Whether the provider's prompt cache has surely expired; unknown before the first call of this process."""
        lifetime = (self.options.cache_prices or CachePrices()).lifetime
        return self._called is not None and self._clock() - self._called > lifetime

    @property
    def _cache_prices(self) -> CachePrices:
        if self._prices is None:
            self._prices = cache_prices_of(self._history.scale.meter.models, self.model, when=datetime.now(UTC))
        return self._prices

    async def _looked_at(self) -> ContextUsage:
        self._unread = None
        if self._keeping is not None:
            try:
                self._take(self._keeping, await self._news(self._keeping))
            except StoreFailed as failed:
                self._unread = failed.message
        await patiently(self._history.weigh())
        usage = self._usage(self._history.entries)
        await self._note_window(usage)
        return usage

    async def _note_window(self, usage: ContextUsage) -> None:
        """Writes the window into the session, so that whoever opens it next runs in the same. A file that is only read
        stays as it is."""
        if self.session is None or not usage.resolved or usage.context_window == self._noted or not self._has_written:
            return
        try:
            await anyio.to_thread.run_sync(self.session.note_window, usage.context_window, self.model)
            self._noted = usage.context_window
        except StoreFailed as failed:
            self._unread = failed.message

    async def _news(self, keeping: Keeping) -> News:
        """What the file holds beyond what is known, though more may become known while it is read."""
        while True:
            known = self._history.ids
            news = await anyio.to_thread.run_sync(keeping.news, known)
            if self._history.ids == known:
                return news

    def _take(self, keeping: Keeping, news: News) -> None:
        self._history.see(news)
        keeping.take(news)

    async def _let_go(self, usage: ContextUsage, *, now: bool = False) -> Prepared:
        snapshot = self._history.entries
        work = await self._compacted(snapshot, usage, now=now)
        self._refused = False
        if not work.compacted:
            self._futile, self._stuck = usage.used, work.warning
            await patiently(self._history.weigh())
            return self._prepared(
                self._history.entries, status=usage if self._history.entries is snapshot else None, work=work
            )
        entries, generation = work.entries, None
        if self._keeping is not None:
            try:
                entries, generation = await anyio.to_thread.run_sync(
                    self._keeping.replace, snapshot, work.entries, work.sheds
                )
            except StoreFailed as failed:
                # The file holds everything still, and so does this; only what is sent is less.
                await patiently(self._history.weigh())
                sent = (*work.entries, *(self._history.since(snapshot) or ()))
                return self._prepared(sent, work=work, before=usage, warning=failed.message)
        since = self._history.since(snapshot)
        if since is not None:
            self._history.entries = (*entries, *since)
        self._futile, self._compactions = None, self._compactions + 1
        warning = await self._remember()
        await patiently(self._history.weigh())
        return self._prepared(self._history.entries, work=work, before=usage, warning=warning, generation=generation)

    async def _remember(self) -> str | None:
        """What was let go is searched by a model that has the tool: it is made ready now, a little each time."""
        if self.session is not None and self._offers_recall:
            try:
                await anyio.to_thread.run_sync(self.session.remember)
            except StoreFailed as failed:
                return failed.message
        return None

    async def _compacted(
        self, entries: tuple[Entry, ...], usage: ContextUsage, *, now: bool = False, asks: bool = True
    ) -> Compaction:
        scale = (self._history.anchored.slope if self._history.anchored else 0.0) or 1.0
        limits = limits_of(
            replace(self.options, cache_prices=self._cache_prices),
            # What was refused is more than the window holds, whatever it weighs here.
            min(usage.context_window, max(1, usage.used)) if self._refused else usage.context_window,
            fixed=int(self._history.bare / scale),
            used=int(usage.used / scale),
            scale=scale,
            now=now,
        )
        teller = Teller(
            scale=self._history.scale,
            summarizer=self.summarizer if asks else None,
            breaker=self._breaker,
            generation=1 + (self.session.generation if self.session else self._compactions),
            recalls=self._offers_recall,
            timeout=self.options.summary_timeout,
        )
        return await compact(entries, limits, self._history.scale, teller)

    def _prepared(  # noqa: PLR0913
        self,
        entries: tuple[Entry, ...],
        *,
        status: ContextUsage | None = None,
        work: Compaction | None = None,
        before: ContextUsage | None = None,
        warning: str | None = None,
        generation: int | None = None,
    ) -> Prepared:
        self._history.sent = len(entries) if entries is self._history.entries else 0
        self._called = self._clock()
        told = "; ".join(filter(None, (work.warning if work else None, warning, self._unread, self._lost)))
        return Prepared(
            messages=tuple(entry.native for entry in entries),
            system=self._history.system,
            tools=self._history.tools,
            status=status or self._usage(entries),
            before=before,
            sheds=work.sheds if work else (),
            dropped=work.dropped if work else (),
            warning=told or None,
            generation=generation,
        )
