"""How full is the window now, and what goes out with the next call?

`Context` holds an agent's history for anyone's loop: messages are added as they come, `prepare` gives what to send and
lets go of what must, `observe` takes what the provider reported. Weighing, deciding and keeping are other files'
matters; this one remembers between them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import anyio
import anyio.to_thread

from ullage.errors import InvalidArguments, StoreFailed
from ullage.messages import Format, detect_messages, plain, read_answer, read_message
from ullage.models import Usage
from ullage.tokens import Meter, Steps, drain, patiently
from ullage.tool import ToolSource

from .account import Teller
from .anchored import Anchored, observe
from .breaker import Breaker
from .compact import Compaction, compact
from .entry import Entry
from .fixed import Fixed
from .keeping import Coming, Keeping, News
from .limits import limits_of
from .options import DEFAULTS, Options
from .overflow import learnt_window
from .prepared import Plan, Prepared
from .session import RECALL, RecallSource, Session
from .summarizer import Summarizer
from .usage import ContextUsage, usage_of
from .weighing import Scale, changes_framing

__all__ = ["Context"]

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
        summarizer: Summarizer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The format is told from the first messages where nobody says it. Without a summarizer, a digest is made."""
        self.model = model
        self.options = options
        self.summarizer = summarizer
        self.session = session
        self._meter = meter
        self._format = format or (session.format if session else None)
        self._system, self._tools = system, tuple(tools)
        self._breaker = Breaker(clock)
        self._keeping = None if session is None else Keeping(session)
        self._scale: Scale | None = None
        self._fixed: Fixed | None = None
        self._entries: tuple[Entry, ...] = ()
        self._coming: list[Coming] = []
        self._sent = 0
        self._anchored: Anchored | None = None
        self._learnt: int | None = None
        self._refused = False
        self._futile: int | None = None
        self._stuck: str | None = None
        self._unread: str | None = None
        """Why the file could not be looked at, the last time."""
        self._compactions = 0
        self._working = anyio.Lock()
        """Whoever lets go, or looks whether to, does so alone; adding and asking wait for nobody."""
        self.load()

    @property
    def messages(self) -> tuple[object, ...]:
        """As they would be sent now, if nothing were let go."""
        return tuple(entry.native for entry in (*self._entries, *self._coming))

    def add(self, *messages: object, pinned: bool = False) -> None:
        """Puts messages at the end. What is pinned is never let go. With a session, they outlive the process."""
        if not messages:
            return
        _check(messages)
        if self._keeping is None:
            self._coming += [Coming(native=one, pinned=pinned) for one in messages]
            return
        self._see(self._keeping.news(self._ids))
        self._coming += self._keeping.append(messages, pinned=pinned, durable=not self._is_answer(messages[0]))

    def instruct(self, system: object) -> None:
        """The system prompt from now on."""
        if system != self._system:
            self._system, self._fixed = system, None

    def offer(self, tools: Sequence[object]) -> None:
        """The tools from now on, where they may change while an agent works."""
        if tuple(tools) != self._tools:
            self._tools, self._fixed = tuple(tools), None

    def load(self) -> None:
        """Takes in what the session's file holds already, and what other processes wrote since."""
        if self._keeping is not None:
            self._see(self._keeping.news(self._ids))

    async def prepare(self) -> Prepared:
        """What to send now. Where the window is too full, something is let go first; whatever fails on the way, what
        can be sent is sent, and `warning` tells of it."""
        async with self._working:
            usage = await self._looked_at()
            if self._is_due(usage):
                return await self._let_go(usage)
            return self._prepared(self._entries, status=usage, warning=self._stuck if usage.will_compact else None)

    async def compact(self) -> Prepared:
        """Lets go of what it can now, whether the threshold is reached or not."""
        async with self._working:
            return await self._let_go(await self._looked_at(), now=True)

    def observe(self, response: object = None, *, usage: Usage | None = None, answer: Sequence[object] = ()) -> None:
        """Takes what came of the last call: the provider's own answer, or its usage and the messages to be carried
        back. From then on the figures go by what it reported."""
        if response is not None:
            read = read_answer(plain(response), self._scaled().format)
            usage, answer = read.usage, read.natives
        sent, is_next = self._sent, not self._coming and len(self._entries) == self._sent
        self.add(*answer)
        drain(self._weigh())
        if usage is None or not 0 < sent <= len(self._entries):
            return
        self._anchored = observe(
            self._scaled(),
            usage,
            fixed=self._fixed_now(),
            sent=self._entries[:sent],
            answer=self._entries[sent:] if is_next else (),
            before=self._anchored,
        )

    @property
    def tools_of_its_own(self) -> tuple[ToolSource, ...]:
        """`recall`, where what is let go is kept: to be offered from the first step on."""
        if self.session is None or not self.session.keeps:
            return ()
        return (RecallSource(self.session, self._scaled().count),)

    def status(self) -> ContextUsage:
        """How full the window is now."""
        drain(self._weigh())
        return self._usage(self._entries)

    async def plan(self) -> Plan:
        """What `compact` would do; nothing is touched and nobody asked."""
        before = await self._looked_at()
        work = await self._compacted(self._entries, before, now=True, asks=False)
        await patiently(self._weigh())
        return Plan(before=before, after=self._usage(work.entries), compaction=work)

    def overflowed(self, said: str) -> int:
        """To be called with a provider's words where it refused what was sent as too much: the window that this
        teaches. The next `prepare` lets go of enough to fit."""
        usage = self.status()
        self._learnt = learnt_window(said) or max(1, int(_SMALLER * min(usage.context_window, usage.used)))
        self._refused = True
        return self._learnt

    @property
    def _ids(self) -> list[str | None]:
        return [one.record for one in (*self._entries, *self._coming)]

    def _see(self, news: News) -> None:
        held = {one.record: one.native for one in (*self._entries, *self._coming)} if news.afresh else {}
        if news.afresh:
            self._entries, self._coming, self._anchored, self._sent = (), [], None, 0
        self._coming += [replace(one, native=held.get(one.record, one.native)) for one in news.messages]

    def _is_answer(self, native: object) -> bool:
        """What the model said could be asked for again; what the user said could not."""
        written = self._format or detect_messages((native,), model=self.model)
        return read_message(native, written).role == "assistant"

    def _scaled(self) -> Scale:
        return self._scale or self._told_anew()

    def _told_anew(self) -> Scale:
        """A format that nobody said is told from the messages, and again when there are more."""
        written = self._format or detect_messages(self.messages, model=self.model)
        if self._scale is None or self._scale.format is not written:
            again = [_coming(entry) for entry in self._entries]
            self._entries, self._coming = (), [*again, *self._coming]
            self._anchored, self._fixed, self._sent = None, None, 0
            self._scale = Scale(self._meter, self.model, written)
        return self._scale

    def _weigh(self) -> Steps[None]:
        """Weighs what came, and what is sent along with every request where that may have changed.

        Between two steps others may add, weigh or instruct; what was weighed of a history that is no longer that one
        is put away.
        """
        while self._coming:
            scale, entries, coming = self._told_anew(), self._entries, list(self._coming)
            grown = yield from scale.grown(entries, [one.native for one in coming])
            if self._entries is entries and self._coming[: len(coming)] == coming:
                self._take(grown, coming)
        while self._fixed is None:
            scale, system, tools = self._scaled(), self._system, self._tools
            fixed = yield from scale.fixed(system, tools, self._entries)
            if self._scale is scale and self._system is system and self._tools is tools:
                self._fixed = fixed

    def _take(self, grown: tuple[Entry, ...], coming: Sequence[Coming]) -> None:
        known = len(self._entries)
        fresh = tuple(map(_known, grown[known:], coming))
        self._entries, self._coming = (*grown[:known], *fresh), self._coming[len(coming) :]
        if any(changes_framing(entry.message) for entry in fresh):
            self._fixed = None

    def _fixed_now(self) -> Fixed:
        assert self._fixed is not None
        return self._fixed

    def _usage(self, entries: Sequence[Entry]) -> ContextUsage:
        said, learnt = self.options.context_window, self._learnt
        # A provider that refused knows its window better than whoever said that it is larger.
        options = replace(self.options, context_window=min(said, learnt)) if said and learnt else self.options
        return usage_of(self._scaled(), self._fixed_now(), entries, options, anchored=self._anchored, learnt=learnt)

    @property
    def _offers_recall(self) -> bool:
        """Whether the model has the tool: nobody is sent to one that is not there."""
        keeps = self.session is not None and self.session.keeps
        return keeps and any(tool.name.split("__")[-1] == RECALL.name for tool in self._fixed_now().tools)

    def _bare(self) -> int:
        """What a request without any message would be, as the provider counts: what it adds out of sight is no less
        when messages are let go."""
        fixed = self._fixed_now()
        return fixed.total.tokens if self._anchored is None else self._anchored.weigh(fixed, ()).tokens

    def _is_due(self, usage: ContextUsage) -> bool:
        if self.options.disable_compaction:
            return False
        if self._refused or usage.used >= usage.context_window - usage.reserve:
            return True
        grown = self._futile is None or usage.used - self._futile >= _GROWN * usage.context_window
        return usage.will_compact and grown

    async def _looked_at(self) -> ContextUsage:
        self._unread = None
        if self._keeping is not None:
            try:
                self._see(await self._news(self._keeping))
            except StoreFailed as failed:
                self._unread = failed.message
        await patiently(self._weigh())
        return self._usage(self._entries)

    async def _news(self, keeping: Keeping) -> News:
        """What the file holds beyond what is known, though more may become known while it is read."""
        while True:
            known = self._ids
            news = await anyio.to_thread.run_sync(keeping.news, known)
            if self._ids == known:
                return news

    async def _let_go(self, usage: ContextUsage, *, now: bool = False) -> Prepared:
        snapshot = self._entries
        work = await self._compacted(snapshot, usage, now=now)
        self._refused = False
        if not work.compacted:
            self._futile, self._stuck = usage.used, work.warning
            await patiently(self._weigh())
            return self._prepared(self._entries, status=usage if self._entries is snapshot else None, work=work)
        entries, generation = work.entries, None
        if self._keeping is not None:
            try:
                entries, generation = await anyio.to_thread.run_sync(
                    self._keeping.replace, snapshot, work.entries, work.sheds
                )
            except StoreFailed as failed:
                # The file holds everything still, and so does this; only what is sent is less.
                await patiently(self._weigh())
                sent = (*work.entries, *(self._since(snapshot) or ()))
                return self._prepared(sent, work=work, before=usage, warning=failed.message)
        since = self._since(snapshot)
        if since is not None:
            self._entries = (*entries, *since)
        self._futile, self._compactions = None, self._compactions + 1
        await patiently(self._weigh())
        return self._prepared(self._entries, work=work, before=usage, generation=generation)

    def _since(self, snapshot: Sequence[Entry]) -> tuple[Entry, ...] | None:
        """What was added to a history; None where it is no longer that one, for the file was read anew meanwhile."""
        same = map(_is_same, self._entries, snapshot)
        return self._entries[len(snapshot) :] if len(self._entries) >= len(snapshot) and all(same) else None

    async def _compacted(
        self, entries: tuple[Entry, ...], usage: ContextUsage, *, now: bool = False, asks: bool = True
    ) -> Compaction:
        scale = (self._anchored.slope if self._anchored else 0.0) or 1.0
        limits = limits_of(
            replace(self.options, compact_threshold=("tokens", max(1, usage.used))) if now else self.options,
            # What was refused is more than the window holds, whatever it weighs here.
            min(usage.context_window, max(1, usage.used)) if self._refused else usage.context_window,
            fixed=int(self._bare() / scale),
            used=int(usage.used / scale),
            scale=scale,
        )
        teller = Teller(
            scale=self._scaled(),
            summarizer=self.summarizer if asks else None,
            breaker=self._breaker,
            generation=1 + (self.session.generation if self.session else self._compactions),
            recalls=self._offers_recall,
        )
        return await compact(entries, limits, self._scaled(), teller)

    def _prepared(
        self,
        entries: tuple[Entry, ...],
        *,
        status: ContextUsage | None = None,
        work: Compaction | None = None,
        before: ContextUsage | None = None,
        warning: str | None = None,
        generation: int | None = None,
    ) -> Prepared:
        self._sent = len(entries) if entries is self._entries else 0
        told = "; ".join(filter(None, (work.warning if work else None, warning, self._unread)))
        return Prepared(
            messages=tuple(entry.native for entry in entries),
            system=self._system,
            tools=self._tools,
            status=status or self._usage(entries),
            before=before,
            sheds=work.sheds if work else (),
            warning=told or None,
            generation=generation,
        )


def _check(messages: Sequence[object]) -> None:
    """What cannot be read is refused before it is part of the history, which could not be sent with it."""
    for one in messages:
        if isinstance(one, list | tuple):
            raise InvalidArguments("a list of messages was given as one message", suggestion="add(*messages)")
        if not isinstance(one, str):
            plain(one)


def _known(entry: Entry, coming: Coming) -> Entry:
    kind = entry.kind if coming.kind == "message" else coming.kind
    return replace(entry, pinned=coming.pinned, kind=kind, record=coming.record)


def _is_same(entry: Entry, other: Entry) -> bool:
    return entry.native is other.native


def _coming(entry: Entry) -> Coming:
    return Coming(native=entry.native, pinned=entry.pinned, kind=entry.kind, record=entry.record)
