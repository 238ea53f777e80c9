"""`Context`: the history of an agent, kept within the context window of its model.

A `Context` works in any agent loop: `add` appends messages, `prepare` returns what to send and compacts the history if
it is too long, `observe` takes the answer and the token counts that the provider reported. This file keeps the state
between these calls. Weighing messages (`token_weights`), compaction (`compaction`) and storage (`session`) are in other
files.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import anyio
import anyio.to_thread

from ullage import ledger
from ullage.errors import StoreFailed
from ullage.messages import Format, plain, read_answer
from ullage.models import Usage, cost_of
from ullage.tokens import Meter, Method, drain, patiently
from ullage.tool import Caller, Json, ToolSource

from .compaction import Compaction, Teller, compact
from .context_options import DEFAULTS, CachePrices, Options, cache_prices_of, limits_of
from .history import Coming, History, Keeping, News, refuse_what_cannot_be_read
from .session import RECALL, RecallSource, Session
from .summary import Breaker, Summarizer, SummaryFunction, as_summarizer
from .token_weights import Entry
from .truncate_messages import Dropped, Shed
from .window_usage import ContextUsage, learnt_window

__all__ = ["Context", "Plan", "Prepared", "history_entry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What to send to the model, and what `prepare` or `compact` did."""

    messages: tuple[object, ...]
    """The messages as they were added. After a compaction, a summary replaces the dropped ones."""
    system: object = None
    tools: Sequence[object] = ()
    status: ContextUsage
    """How full the window is with these messages."""
    before: ContextUsage | None = None
    """How full the window was before the compaction; None if nothing was compacted."""
    sheds: tuple[Shed, ...] = ()
    """What was compacted, one entry for each tier."""
    dropped: tuple[Dropped, ...] = ()
    """Every message that was changed or removed, and how."""
    warning: str | None = None
    generation: int | None = None
    """Number of the compaction under which the session archives the originals. None if nothing was compacted or if no
    session archives it."""

    @property
    def compacted(self) -> bool:
        """Whether the history was compacted."""
        return bool(self.sheds)

    @property
    def event(self) -> dict[str, Json]:
        """The event `context_status`, which is emitted before every call of the model."""
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
    """Preview of a compaction. A digest takes the place of the summary, so that planning calls no model."""

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


def history_entry(  # noqa: PLR0913 - what is known of a compaction
    caller: Caller,
    after: ContextUsage,
    *,
    before: ContextUsage | None = None,
    sheds: Sequence[Shed] = (),
    dropped: int = 0,
    generation: int | None = None,
) -> "ledger.Entry":
    """Return the ledger's entry of a history as it is sent to a model.

    Tokens are those of the messages alone: the ledger has tool definitions in entries of their own.

    Args:
        caller: Principal, session and client that the entry is filed under.
        after: Usage of the window with the messages as they are sent.
        before: Usage before the compaction; None if nothing was compacted.
        sheds: What was compacted.
        dropped: Number of messages that were changed or removed.
        generation: Number of the compaction in the session's archive, if it has one.
    """
    detail: dict[str, str | int | None] = {"used": after.used, "window": after.context_window}
    if before is not None:
        tiers = ", ".join(dict.fromkeys(shed.tier for shed in sheds))
        detail |= {"used_before": before.used, "compacted_by": tiers, "messages": dropped, "generation": generation}
    baseline = (before or after).messages
    return ledger.Entry(
        time=datetime.now(UTC),
        kind="history",
        principal=caller.principal,
        session=caller.session,
        session_inferred=caller.session_inferred,
        client=caller.client,
        model=after.model,
        tokens=after.messages,
        method=after.method,
        baseline_tokens=baseline,
        saved_tokens=baseline - after.messages,
        detail=detail,
    )


_GROWN = 0.05
"""Share of the window by which the usage must grow before a compaction that gained nothing is tried again."""
_SMALLER = 0.9
"""Share of the sent tokens that is assumed as the window if the provider refuses a request as too long without naming
its limit."""


class Context:
    """The history of one conversation with one model, kept within the model's context window.

    Not thread-safe. Tasks of one event loop may share a `Context`.

    Args:
        model: The model that the history is sent to. It determines the context window, the token counts and the prices.
        meter: Counts tokens.
        format: Format of the messages. None detects it from the first messages.
        system: The system prompt, in the form in which the provider takes it.
        tools: The tool definitions, in the form in which the provider takes them.
        options: Window, thresholds and limits. Without `context_window`, the window is the one that the session last
            ran in with this model, otherwise the model's own.
        session: Stores the history in a file. None keeps it in memory only.
        summarizer: Writes the summaries: a `Summarizer`, a function or a client of a provider's SDK. None uses a
            digest, which calls no model.
        recorder: Ledger that gets an entry for each history that `prepare` returns, for each compaction and for each
            call that `observe` records. None records nothing.
        caller: Principal, session and client that these entries are filed under. None uses the session's id, or a
            random one without a session.
        clock: Monotonic clock, in seconds.

    Raises:
        InvalidArguments: `summarizer` is not something that can summarise.

    Example:

        context.add({"role": "user", "content": "Which orders are late?"})
        ready = await context.prepare()  # send list(ready.messages), then: context.observe(response)
    """

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
        recorder: "ledger.Recorder | None" = None,
        caller: Caller | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load the session's messages, if there is a session."""
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
        self._recorder = recorder
        self.caller = caller or Caller(
            principal="anonymous", session=uuid.uuid4().hex[:16] if session is None else session.id
        )
        self._clock = clock
        self._breaker = Breaker(clock)
        self._called: float | None = None
        """Time of the last call of the model by this process; None before the first."""
        self._prices: CachePrices | None = options.cache_prices
        self._keeping = None if session is None else Keeping(session, format)
        self._learnt: int | None = None
        self._refused = False
        self._futile: int | None = None
        self._stuck: str | None = None
        self._noted = noted or (window.tokens if window.resolved else None)
        """Window that the session file records for the model, or else the window of the model card."""
        self._has_written = False
        """Whether this process added messages to the session file, or the provider refused a request as too long."""
        self._unread: str | None = None
        """Error message of the last attempt to read the session file; None if it succeeded."""
        self._compactions = 0
        self._working = anyio.Lock()
        """Held while the history is compacted or checked for it. `add` and the calls of the model do not wait for
        it."""
        self.load()

    @property
    def messages(self) -> tuple[object, ...]:
        """The messages as they would be sent now, without a compaction."""
        return self._history.messages

    def add(self, *messages: object, pinned: bool = False) -> None:
        """Append messages to the history.

        With a session, the messages are in the file when this returns, and survive the end of the process.

        Args:
            messages: Messages in the provider's format, as dicts or SDK objects.
            pinned: Whether a compaction must keep these messages unchanged.

        Raises:
            InvalidArguments: A list of messages was given as one message.
            UnreadableRequest: A message cannot be read.
            StoreFailed: The session file cannot be written.
        """
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
        """Set the system prompt, from the next call of the model on."""
        self._history.instruct(system)

    def assume_format(self, format: Format) -> None:  # noqa: A002
        """Read the messages in this format from now on, instead of detecting it."""
        self._history.assume_format(format)

    def offer(self, tools: Sequence[object]) -> None:
        """Set the tool definitions, from the next call of the model on. Call it when the tools change during a run."""
        self._history.offer(tools)

    def load(self) -> None:
        """Load the messages of the session file, including those that other processes appended."""
        if self._keeping is not None:
            self._take(self._keeping, self._keeping.news(self._history.ids))

    async def prepare(self) -> Prepared:
        """Return what to send to the model now. The history is compacted first if the window is too full.

        A failure on the way does not prevent the call: `prepare` returns what can be sent, and `warning` describes the
        failure.

        Returns:
            Messages, system prompt and tools to send, with the usage of the window.
        """
        async with self._working:
            usage = await self._load_usage()
            if self._is_due(usage):
                prepared = await self._compact_and_store(usage, now=not (usage.will_compact or self._refused))
            else:
                stuck = self._stuck if usage.will_compact else None
                prepared = self._prepared(self._history.entries, status=usage, warning=stuck)
            self._record(prepared)
            return prepared

    async def compact(self) -> Prepared:
        """Compact the history as far as possible now, whether or not the threshold is reached.

        Returns:
            Messages, system prompt and tools to send, with the usage of the window.
        """
        async with self._working:
            prepared = await self._compact_and_store(await self._load_usage(), now=True)
            if prepared.compacted:
                self._record(prepared)
            return prepared

    def observe(
        self,
        response: object = None,
        *,
        usage: Usage | None = None,
        answer: Sequence[object] = (),
        is_recorded: bool = False,
    ) -> None:
        """Record the result of the last call of the model: append the answer and use the reported token counts.

        Args:
            response: The provider's answer, as a dict or an SDK object. It replaces `usage` and `answer`.
            usage: Token counts that the provider reported. All later figures are corrected by them.
            answer: The messages of the answer, in the form in which they are sent back.
            is_recorded: Whether the ledger has this call already, as a call of the delegate.
        """
        key, model = None, self.model
        if response is not None:
            read = read_answer(plain(response), self._history.scale.format)
            usage, answer, key, model = read.usage, read.natives, read.id, read.model or model
        if usage is not None and not is_recorded:
            self._record_call(usage, model, key)
        history, sent = self._history, self._history.sent
        is_next = not history.coming and len(history.entries) == sent
        self.add(*answer)
        drain(history.weigh())
        self._called = self._clock()
        if usage is not None and 0 < sent <= len(history.entries):
            history.report(usage, sent, is_next=is_next)

    def _record_call(self, usage: Usage, model: str, key: str | None) -> None:
        """Add the call of the model to the ledger, at the list price of today."""
        tokens = (usage.input or 0) + (usage.output or 0)
        if self._recorder is None or not tokens:
            return
        now, match = datetime.now(UTC), self._history.scale.meter.models.get(model)
        cost = None if match is None else cost_of(usage, match, when=now)
        self._recorder.record(
            ledger.Entry(
                time=now,
                kind="model",
                principal=self.caller.principal,
                session=self.caller.session,
                session_inferred=self.caller.session_inferred,
                client=self.caller.client,
                model=model,
                tokens=tokens,
                method=Method.ANCHORED,
                use=ledger.ModelUse(
                    usage=usage,
                    dollars=cost.total if cost is not None and cost.currency == "USD" else None,
                    key=key,
                ),
            )
        )

    def _record(self, prepared: Prepared) -> None:
        if self._recorder is not None:
            self._recorder.record(
                history_entry(
                    self.caller,
                    prepared.status,
                    before=prepared.before,
                    sheds=prepared.sheds,
                    dropped=len(prepared.dropped),
                    generation=prepared.generation,
                )
            )

    @property
    def tools_of_its_own(self) -> tuple[ToolSource, ...]:
        """The tool `recall`, if the session archives dropped messages. Offer it from the first step on."""
        if self.session is None or not self.session.keeps:
            return ()
        return (RecallSource(self.session, self._history.scale.count),)

    def status(self) -> ContextUsage:
        """Return how full the window is now."""
        drain(self._history.weigh())
        return self._usage(self._history.entries)

    async def plan(self) -> Plan:
        """Return what `compact` would do. Nothing is changed and no model is called."""
        before = await self._load_usage()
        work = await self._compacted(self._history.entries, before, now=True, asks=False)
        await patiently(self._history.weigh())
        return Plan(before=before, after=self._usage(work.entries), compaction=work)

    def overflowed(self, said: str) -> int:
        """Learn the window from a provider's error that the request was too long. The next `prepare` compacts to fit.

        Args:
            said: The text of the error.

        Returns:
            The window in tokens: the figure in the text, or 0.9 of what was sent (of the known window, if that is
            less) if the text names none.
        """
        usage = self.status()
        self._learnt = learnt_window(said) or max(1, int(_SMALLER * min(usage.context_window, usage.used)))
        self._refused = self._has_written = True
        return self._learnt

    def _usage(self, entries: Sequence[Entry]) -> ContextUsage:
        return self._history.usage(entries, self.options, self._learnt)

    @property
    def _offers_recall(self) -> bool:
        """Whether the model has the tool `recall`. Messages must not refer to a tool that is not offered."""
        keeps = self.session is not None and self.session.keeps
        return keeps and any(tool.name.split("__")[-1] == RECALL.name for tool in self._history.fixed.tools)

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
        """Whether the provider's prompt cache has certainly expired. False before the first call of this process, since
        nothing is known then."""
        lifetime = (self.options.cache_prices or CachePrices()).lifetime
        return self._called is not None and self._clock() - self._called > lifetime

    @property
    def _cache_prices(self) -> CachePrices:
        if self._prices is None:
            self._prices = cache_prices_of(self._history.scale.meter.models, self.model, when=datetime.now(UTC))
        return self._prices

    async def _load_usage(self) -> ContextUsage:
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
        """Record the window in the session, so that the next process that opens it uses the same one. A session that
        this process only reads is not written to."""
        if self.session is None or not usage.resolved or usage.context_window == self._noted or not self._has_written:
            return
        try:
            await anyio.to_thread.run_sync(self.session.note_window, usage.context_window, self.model)
            self._noted = usage.context_window
        except StoreFailed as failed:
            self._unread = failed.message

    async def _news(self, keeping: Keeping) -> News:
        """Read what is new in the file. Repeat if the history changed during the read."""
        while True:
            known = self._history.ids
            news = await anyio.to_thread.run_sync(keeping.news, known)
            if self._history.ids == known:
                return news

    def _take(self, keeping: Keeping, news: News) -> None:
        self._history.see(news)
        keeping.take(news)

    async def _compact_and_store(self, usage: ContextUsage, *, now: bool = False) -> Prepared:
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
                # The file still contains everything and so does this history; only the sent messages are shortened.
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
        """Index the archived messages for `recall` if the model has that tool, so that the first query need not
        wait."""
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
            # A refused request is larger than the window, whatever its weight is here.
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
        told = "; ".join(
            filter(
                None,
                (
                    work.warning if work else None,
                    warning,
                    self._unread,
                    (None if self._keeping is None else self._keeping.warning),
                ),
            )
        )
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
