"""Compacts a history: what is dropped, and in which order.

The tiers, cheapest first: giant messages are truncated; old results are masked; the head is replaced by a summary, or
by a digest if no model writes one; what still does not fit is dropped. The user's first request and latest instructions
survive all tiers. The tail stays unchanged, except for a message that alone is larger than the tail's share. The tiers
themselves are in `truncate_messages`, `summary` and `summary_text`.

The result is valid for the provider if the input was, every changed message is reported, and nothing is written to
disk. Slow work runs in a thread or in short steps, so that the event loop is not blocked.

A model writes the summary if one is given and answers. Otherwise a digest is made, if no model is given or the window
is full. The summary message also contains identifiers that may be needed again, and says how to find the rest. A model
that keeps failing is not called during a cooldown.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from anyio import get_cancelled_exc_class
from anyio.to_thread import run_sync

from ullage.messages import Message, Text, ToolResult, faults, user_message
from ullage.tokens import drain, patiently

from .boundaries import Parting, Requests, assembled, bridges, caption_of, excerpt, words_of
from .context_options import DEFAULTS, Limits, price_per_call
from .identifiers import identifier_steps
from .summary import Breaker, Summarizer, SummaryFailed, summarise
from .summary_text import Carried, Section, are_recorded, carried, digest, read_carried, write_sections
from .text_protocol import read_as_tools
from .token_weights import Entry, Scale
from .tool_pairs import is_placeholder
from .truncate_messages import (
    Change,
    Dropped,
    Fate,
    Shed,
    Tier,
    clamp,
    difference,
    is_cuttable,
    mask,
    merge_dropped,
    noted,
    trim,
    water_level,
    weight_of,
)

__all__ = ["Account", "CarriedWords", "Compaction", "Teller", "compact", "ledger_room", "request_room"]

_LEDGER, _MOST_LEDGER = 0.12, 6_000
_SUMMARY, _MOST_SUMMARY = 0.08, 4_000
"""Share of the measure and maximum of tokens, for the identifiers and for the summary."""
_REQUEST, _LATER = 0.15, 0.10
"""Share of the measure for the verbatim text of the user's first request, and for that of all later ones together."""
_SHORT, _AMPLE = 800, 0.40
"""Tokens up to which a first request is kept whole even if its share is smaller, and the share that limits this."""
_SMALL = 8_000
"""Tokens that identifiers and summary may have together in any small window, if the tail leaves as many."""
_PROSE, _BESIDE_RECORDS = 0.5, 0.3
"""Share of a summary's room for a digest, which says less than a model would, and the share of that if records of
structured results beside it say more."""
_BRIEF = 0.1
"""Share of the room of summary and identifiers below which a summary says next to nothing."""
_NOTHING, _MANY = "-", 10_000
"""Placeholders in a frame whose own size is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The text that replaces a head."""

    text: str | None
    """The text of the summary message; None if no account could be made."""
    tier: Tier = "summarise"
    warning: str | None = None
    """Why no model wrote the account."""
    summary: str = ""
    """The part of the text that the model or the digest wrote."""
    room: int = 0
    """Most tokens of the summary and the identifiers."""
    earlier: Carried | None = None
    """What earlier summaries of the head carried."""
    rest: Sequence[Entry] = ()
    """The head without earlier summaries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedWords:
    """The user's requests that the summary message carries."""

    request: str = ""
    later: tuple[str, ...] = ()
    tokens: int = 0
    places: frozenset[int] = frozenset()
    """Places of the requests that are carried, whole or as excerpts."""
    cut: tuple[int, ...] = ()
    """Places of the requests that are carried as excerpts."""
    omitted: tuple[str, ...] = ()
    """Later requests of an earlier summary for which there is no more room. They become part of the summary."""

    @property
    def whole(self) -> frozenset[int]:
        """Places of the requests that are carried verbatim."""
        return self.places.difference(self.cut)

    @property
    def message(self) -> Message:
        return Message(role="user", parts=tuple(Text(text) for text in (self.request, *self.later) if text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """Writes the account of dropped messages: a summary or a digest, with identifiers and the user's requests."""

    scale: Scale
    summarizer: Summarizer | None
    breaker: Breaker
    generation: int = 1
    """Number of this compaction in the history, from 1."""
    recalls: bool = False
    """Whether dropped messages can be searched with `recall`."""
    timeout: float = DEFAULTS.summary_timeout
    """Seconds that the summarizer may take for one answer."""

    def room(self, measure: int) -> int:
        """Return the most tokens of an account, including the frame around it."""
        frame = self.scale.count(carried("", _NOTHING, self._receipt(_MANY)))
        return ledger_room(measure) + _summary_room(measure) + frame

    def summary_room(self, measure: int) -> int:
        """Return the most tokens of the summary alone."""
        return _summary_room(measure)

    def carry(
        self, entries: Sequence[Entry], head: Sequence[int], requests: Requests, measure: int, *, share: float = 1.0
    ) -> CarriedWords:
        """Select the user's words in a head that the summary message carries.

        The first request and the newest instruction are always included, as excerpts if they are longer than their
        share. Older instructions are included while the share lasts. A message that text cannot carry (an image) is not
        included.

        Args:
            entries: The history.
            head: Places of the messages that are dropped.
            requests: The requests of the history.
            measure: Tokens that the shares are taken of.
            share: Share of its room that an excerpt gets. A text that fits the room is carried whole in any case.
        """
        count, gone = self.scale.count, set(head)
        told = [
            read for place in head if entries[place].kind == "summary" if (read := read_carried(_text(entries[place])))
        ]
        said, captions = dict[int, str](), set[int]()
        for place in (*requests.first, *requests.later):
            words = words_of(entries[place].message)
            if words is None and place not in (*requests.first, *requests.last):
                words = caption_of(entries[place].message)
                captions.add(place)
            if place in gone and words and words.strip():
                said[place] = words
        places, cut = set[int](), list[int]()
        asked = [place for place in requests.first if place in said]
        request = "\n\n".join([*(one.request for one in told if one.request), *(said[place] for place in asked)])

        def fitted(text: str, room: int) -> str:
            return text if count(text) <= room else excerpt(text, int(share * room), count, recalls=self.recalls)

        carried_request = fitted(request, request_room(measure))
        places.update(asked)
        cut += asked if carried_request != request else []
        later = [(None, text) for one in told for text in one.later]
        later += [(place, said[place]) for place in requests.later if place in said]
        room, kept, omitted = int(_LATER * measure), list[str](), list[str]()
        for place, text in reversed(later):
            # The newest is always carried, and cut if necessary.
            whole = text if kept else fitted(text, room)
            size = count(whole)
            if size <= room and whole:
                kept.append(whole)
                room -= size
                if place is not None:
                    places.add(place)
                    cut += [place] if whole != text or place in captions else []
            elif place is None:
                omitted.append(text)
        carried_later = tuple(reversed(kept))
        return CarriedWords(
            request=carried_request,
            later=carried_later,
            tokens=count(carried("", "", "", request=carried_request, later=carried_later))
            - count(carried("", "", "")),
            places=frozenset(places),
            cut=tuple(sorted(cut)),
            omitted=tuple(reversed(omitted)),
        )

    async def tell(  # noqa: PLR0913
        self,
        head: Sequence[Entry],
        beside: Sequence[Entry],
        *,
        measure: int,
        must: bool,
        words: CarriedWords = CarriedWords(),  # noqa: B008
        verbatim: Collection[int] = (),
        spare: int = 0,
    ) -> Account:
        """Write the account of a head, for a reader who still has the messages beside it.

        Args:
            head: The entries that are dropped.
            beside: The entries that stay.
            measure: Tokens that the shares of the account are taken of.
            must: Whether to make a digest if no model answers.
            words: The user's words, written before the summary.
            verbatim: Indexes in `head` of the messages whose whole text is among `words`. A digest does not repeat
                their text, only their results.
            spare: Tokens that the tail left; the account of a small window takes some of them.
        """
        room = _summary_room(measure)
        more = max(0, min(spare, _SMALL - room - ledger_room(measure)))
        whole = ledger_room(measure) + room + more
        # What earlier summaries contain is updated rather than summarised again.
        told, rest = list[Carried](), list[Entry]()
        for entry in head:
            read = read_carried(_text(entry)) if entry.kind == "summary" else None
            if read is not None:
                told.append(read)
            elif entry.kind != "bridge":
                rest.append(entry)
        summaries, identifiers = (one.summary for one in told), (one.identifiers for one in told)
        earlier = Carried("\n\n".join(summaries), "\n".join(identifiers)) if told else None
        if words.omitted:
            before = earlier or Carried("")
            again = write_sections({Section.ASKED: words.omitted})
            earlier = replace(before, summary=f"{before.summary}\n\n{again}".strip())
        summary, warning = await self._summary(rest, earlier, room)
        if summary is None and self.summarizer is not None and not must:
            return Account(text=None, warning=warning)
        tier: Tier = "summarise" if summary is not None else "digest"
        if summary is None:
            repeated = {id(head[index]) for index in verbatim}
            messages = [
                replace(entry.message, parts=tuple(part for part in entry.message.parts if not isinstance(part, Text)))
                if id(entry) in repeated
                else entry.message
                for entry in rest
            ]
            summary = await run_sync(
                partial(
                    digest,
                    messages,
                    room=int(_PROSE * room) + more // 3,
                    count=self.scale.count,
                    earlier=earlier,
                    beside_records=_BESIDE_RECORDS,
                )
            )
        account = Account(
            text=None, tier=tier, warning=warning, summary=summary, room=whole, earlier=earlier, rest=tuple(rest)
        )
        return await self.with_identifiers(account, beside, words)

    async def with_identifiers(
        self,
        account: Account,
        beside: Sequence[Entry],
        words: CarriedWords,
        *,
        cut: Sequence[Entry] = (),
        spare: int | None = None,
    ) -> Account:
        """Write the text of an account: the summary, the identifiers in the room that it leaves, and how to find the
        rest.

        Args:
            account: The account, with its summary.
            beside: The entries that stay. What they contain is not repeated.
            words: The user's words, written before the summary.
            cut: Messages as they were before they were cut. Their identifiers compete for the room as well.
            spare: Tokens that may be used instead of the account's own room.
        """
        room, earlier, rest = account.room if spare is None else spare, account.earlier, account.rest
        # A model's summary may say next to nothing of what structured results relate.
        is_brief = self.scale.count(account.summary) < _BRIEF * account.room
        is_brief = is_brief and are_recorded([entry.message for entry in rest])
        ledger = await patiently(
            identifier_steps(
                [entry.message for entry in (*rest, *cut)],
                room=max(0, room - self.scale.count(account.summary)),
                count=self.scale.count,
                earlier=(earlier.identifiers,) if earlier else (),
                beside=[words.message, *(entry.message for entry in beside)],
                alone=account.tier == "digest",
                brief=is_brief,
                related=[entry.message for entry in rest],
            )
        )
        text = carried(account.summary, ledger, self._receipt(len(rest)), request=words.request, later=words.later)
        return replace(account, text=text)

    def _receipt(self, messages: int) -> str:
        how = "; recall(query) finds them" if self.recalls else ""
        return f"{messages} messages removed, generation {self.generation}{how}"

    async def _summary(
        self, head: Sequence[Entry], earlier: Carried | None, room: int
    ) -> tuple[str | None, str | None]:
        """Return the model's summary, or None and the reason why there is none."""
        if self.summarizer is None:
            return None, None
        if not self.breaker.allows():
            return None, "the head was not summarised: the model that does it failed too often and rests"
        try:
            said = await summarise(
                head,
                earlier,
                self.summarizer,
                count=self.scale.count,
                room=room,
                timeout=self.timeout,
                failures=self.breaker.left,
            )
        except SummaryFailed as failed:
            self.breaker.failed(failed.calls)
            return None, f"the head was not summarised: {failed.reason}"
        except get_cancelled_exc_class():
            # A caller that waits less long than a hanging model takes would otherwise call it before every step.
            self.breaker.failed()
            raise
        self.breaker.succeeded()
        return said, None


def _text(entry: Entry) -> str:
    return "".join(part.text for part in entry.message.parts if isinstance(part, Text))


def ledger_room(measure: int) -> int:
    """Return the most tokens of the identifiers."""
    return min(_MOST_LEDGER, int(_LEDGER * measure))


def request_room(measure: int) -> int:
    """Return the most tokens of the user's first request, verbatim."""
    return max(int(_REQUEST * measure), min(_SHORT, int(_AMPLE * measure)))


def _summary_room(measure: int) -> int:
    return min(_MOST_SUMMARY, int(_SUMMARY * measure))


_GIANT = 0.10
"""Share of the measure above which one part is a giant."""
_LEAST_HEAD = 2
"""Fewest messages that are worth a summary."""
_BRIDGES = 2
"""Usual number of bridge messages between a summary, the rest of the head, and the tail."""
_LEAST_ACCOUNT, _LEAST_EXCERPT = 0.4, 0.5
"""Smallest share of its room for a summary if the tail and the user's words leave less, and for an excerpt of these
words in that case."""
_LEAST_NOTE = 0.25
"""Smallest share of a ledger's room for the identifiers of what was truncated or masked."""
_FRAME = 16
"""Tokens of a message beside its text."""
_ATTEMPTS = 4
"""How often the tail is cut again, since what the summary carries depends on the place of the cut."""
_SPARE = 0.05
"""Share of the window that is left free beside the reserve when messages are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Result of a compaction: the remaining history and what became of every changed message."""

    entries: tuple[Entry, ...]
    """The remaining entries, in order. An unchanged entry is the same object."""
    sheds: tuple[Shed, ...] = ()
    """What each tier saved; empty if nothing was compacted."""
    warning: str | None = None
    dropped: tuple[Dropped, ...] = ()
    """Every message of the earlier history that was changed or removed, in order."""
    origins: tuple[int | None, ...] = field(default=(), repr=False)
    """Place in the earlier history of each remaining entry; None for an entry that was made."""
    fates: Mapping[int, Fate] = field(default_factory=dict[int, Fate], repr=False)
    """What the summary contains of the removed messages, by their places."""

    @property
    def compacted(self) -> bool:
        """Whether anything was compacted."""
        return bool(self.sheds)


async def compact(entries: Sequence[Entry], limits: Limits, scale: Scale, teller: Teller) -> Compaction:
    """Compact a history that has reached its threshold.

    Args:
        entries: The history, weighed.
        limits: Window, thresholds and targets in tokens.
        scale: Weighs messages in the history's format.
        teller: Writes the summary or digest.

    Returns:
        The compacted history, or the history unchanged, with a warning that says why.
    """
    return await _Work(entries=tuple(entries), limits=limits, scale=scale, teller=teller).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parted:
    head: tuple[Entry, ...]
    """The entries that are dropped."""
    gone: tuple[int, ...]
    """The places of the entries that are dropped."""
    places: tuple[int, ...]
    """Places of what remains: entries from before the tail, and the tail."""
    words: CarriedWords
    """The user's words that the summary message carries."""
    measure: int
    """Tokens that the shares of a summary are taken of."""


@dataclass(frozen=True, kw_only=True)
class _Work:
    """One compaction. Properties of the history are computed once."""

    entries: tuple[Entry, ...]
    limits: Limits
    scale: Scale
    teller: Teller

    @property
    def is_over(self) -> bool:
        return self.limits.is_over(weight_of(self.entries))

    @cached_property
    def parting(self) -> Parting:
        return Parting(self.entries)

    def _parting_of(self, entries: tuple[Entry, ...]) -> Parting:
        return self.parting if entries is self.entries else Parting(entries)

    async def run(self) -> Compaction:
        if self.limits.is_irreducible and not self.is_over:
            return self._untouched(
                f"the system prompt and the tools alone weigh {self.limits.fixed:,} tokens, and the threshold is "
                f"{self.limits.soft:,}: nothing is removed before the window is full"
            )
        eased = await run_sync(self._masked, self._untouched())
        does = weight_of(eased.entries) <= self.limits.goal and await run_sync(self._is_cheapest, eased)
        kept = await self._noted(self.entries, eased) if does else None
        if kept is not None and weight_of(kept.entries) <= self.limits.goal:
            return await self._settled(kept)
        best = await self._summarised()
        if not best.compacted:
            best = replace(kept or await self._noted(self.entries, eased), warning=best.warning)
            due = min(self.limits.soft, self.limits.hard)
            if self.parted is None and self.limits.fixed + weight_of(best.entries) >= due:
                # There is nothing to summarise: the last turn fills the window.
                shortened = await run_sync(self._truncated, self._untouched(best.warning))
                best = await self._noted(self.entries, shortened) if shortened.compacted else best
        if self.limits.is_over(weight_of(best.entries)):
            best = await run_sync(self._trimmed, best)
        return await self._settled(best)

    def _untouched(self, warning: str | None = None) -> Compaction:
        return Compaction(entries=self.entries, origins=tuple(range(len(self.entries))), warning=warning)

    async def _noted(self, before: tuple[Entry, ...], work: Compaction) -> Compaction:
        """Add the identifiers of what was truncated and masked. This is slow, so that it is done only for a result that
        is kept."""
        if work.entries is before:
            return work
        whole = max(ledger_room(self.limits.measure), _SMALL - _summary_room(self.limits.measure))
        room = min(whole, max(int(_LEAST_NOTE * whole), self.limits.goal - weight_of(work.entries)))
        entries = await patiently(noted(before, work.entries, self.scale, room))
        note = weight_of(entries) - weight_of(work.entries)
        *sheds, last = work.sheds
        return replace(work, entries=entries, sheds=(*sheds, replace(last, tokens=last.tokens - note)))

    def _masked(self, work: Compaction) -> Compaction:
        """Truncate giants, then mask old results if that is still needed. No summary is made.

        A giant of the head is anything over a tenth of the window. In the tail it is what is larger than the tail's
        share, alone or with the other results of its turn.
        """
        giant = max(1, int(_GIANT * self.limits.measure))
        parting = self._parting_of(work.entries)
        start = parting.cut(self.limits.keep)
        most, recalls = max(giant, self.limits.keep), self.teller.recalls
        clamped = clamp(
            work.entries,
            self.scale,
            giant,
            recalls=recalls,
            said_most=max(most, request_room(self.limits.measure)),
            tail=start,
            tail_most=_level(work.entries[start:], most),
            reading=parting.reading,
        )
        work = _after(work, clamped)
        if weight_of(work.entries) <= self.limits.goal:
            return work
        reading = parting.reading if clamped is None else None
        return _after(work, mask(work.entries, self.scale, self.limits, recalls=recalls, reading=reading))

    def _shortened(self, work: Compaction) -> Compaction:
        """Truncate the last turn as far as necessary, and mask old results if that is not enough."""
        whole = work
        work = self._truncated(whole)
        if weight_of(work.entries) > self.limits.goal:
            work = self._truncated(whole, written=True)
        if weight_of(work.entries) > self.limits.goal:
            work = _after(work, mask(work.entries, self.scale, self.limits, recalls=self.teller.recalls))
        return work if weight_of(work.entries) <= self.limits.goal else self._masked(work)

    def _truncated(self, work: Compaction, *, written: bool = False) -> Compaction:
        """Truncate the largest messages of the last turn until everything fits the goal, if possible.

        The model's own text is cut only with `written`, or if the next call would compact again otherwise, since later
        calls need much of it.
        """
        written = written or self.limits.fixed + weight_of(work.entries) >= min(self.limits.soft, self.limits.hard)
        parting = self._parting_of(work.entries)
        start = parting.places[-1]
        note = int(_LEAST_NOTE * ledger_room(self.limits.measure))
        room = self.limits.goal - weight_of(work.entries[:start]) - note - _FRAME
        giant = int(_GIANT * self.limits.measure)
        # Several results of one turn may be smaller than a giant and exceed the tail's share together.
        least = max(1, min(giant, _level(work.entries[start:], max(giant, self.limits.keep), written=True)))
        level = max(least, _level(work.entries[start:], room, written=written))
        return _after(
            work,
            clamp(
                work.entries,
                self.scale,
                level,
                recalls=self.teller.recalls,
                exactly=True,
                written=written,
                said_most=max(level, request_room(self.limits.measure)),
                tail=start,
                tail_most=level,
                reading=parting.reading,
            ),
        )

    def _is_cheapest(self, eased: Compaction) -> bool:
        """Return whether continuing with the truncated and masked history costs no more than continuing with a summary.

        Masking calls no model but leaves more tokens: they are read with every call, and the next compaction comes
        sooner.
        """
        parted = self.parted
        if parted is None or not eased.sheds:
            return True
        calls = max(1, sum(entry.message.role == "assistant" for entry in self.entries))
        growth, prices, fixed = weight_of(self.entries) / calls, self.limits.prices, self.limits.fixed
        asked = weight_of(parted.head) + prices.output * self.teller.summary_room(parted.measure)
        left = self._kept_by(parted) + self.teller.room(parted.measure)
        masked = weight_of(eased.entries)
        summary_price = price_per_call(
            left=fixed + left,
            rewritten=left,
            extra=asked if self.teller.summarizer is not None else 0.0,
            refill=self.limits.refill,
            growth=growth,
            prices=prices,
        )
        return summary_price >= price_per_call(
            left=fixed + masked,
            rewritten=weight_of(eased.entries[min(shed.broke_at for shed in eased.sheds) :]),
            extra=0.0,
            refill=self.limits.refill,
            growth=growth,
            prices=prices,
        )

    async def _summarised(self) -> Compaction:
        """Replace the head by a summary, or by a digest if no model writes one and something must be dropped."""
        parted = await run_sync(lambda: self.parted)
        if parted is None:
            return self._untouched()
        read = await run_sync(self._read)
        spare = self.limits.goal - self._kept_by(parted) - self.teller.room(parted.measure) - _BRIDGES * self._bridge
        account = await self.teller.tell(
            [read[place] for place in parted.gone],
            [read[place] for place in parted.places],
            measure=parted.measure,
            must=self.is_over,
            words=parted.words,
            verbatim=[index for index, place in enumerate(parted.gone) if place in parted.words.whole],
            spare=max(0, spare),
        )
        if account.text is None:
            return self._untouched(account.warning)
        told = await run_sync(self._with_account, parted, account)
        # The remaining messages may still be too large, for example a tail of one giant result. Each way starts from
        # the whole text, since truncating a truncated text again would cut in the middle of a value.
        for shrink in (self._masked, self._shortened):
            if weight_of(told.entries) > self.limits.goal:
                shrunk = await run_sync(shrink, told)
                if shrink == self._shortened or weight_of(shrunk.entries) <= self.limits.goal:
                    told = await self._with_new_identifiers(parted, account, told, shrunk)
        return told

    async def _with_new_identifiers(
        self, parted: _Parted, account: Account, told: Compaction, shrunk: Compaction
    ) -> Compaction:
        """Write the identifiers again after the tail was shortened, with those of what was cut, in the room that it
        leaves now."""
        if shrunk.entries is told.entries:
            return told
        place = next(place for place, entry in enumerate(told.entries) if entry.kind == "summary")
        before, after = told.entries[place], [entry for entry in shrunk.entries if entry.kind != "summary"]
        cut = [one for one, now in zip(told.entries, shrunk.entries, strict=True) if one is not now]
        read = {id(entry): one for entry, one in zip(self.entries, await run_sync(self._read), strict=True)}
        beside = parted.words.tokens + self.teller.room(0) + _FRAME
        room = self.limits.goal - weight_of(after) - beside
        account = await self.teller.with_identifiers(
            account,
            after,
            parted.words,
            cut=[read.get(id(entry), entry) for entry in cut],
            # At least as much as it has, since the tail was cut to fit beside that.
            spare=max(before.weight.tokens - beside, min(room, max(_SMALL, account.room))),
        )
        assert account.text is not None
        (summary,) = drain(self.scale.entries((user_message(self.scale.format, account.text),)))
        summary = replace(summary, kind="summary")
        entries = (*shrunk.entries[:place], summary, *shrunk.entries[place + 1 :])
        grown = summary.weight.tokens - before.weight.tokens
        *sheds, last = shrunk.sheds
        return replace(shrunk, entries=entries, sheds=(*sheds, replace(last, tokens=last.tokens - grown)))

    def _read(self) -> list[Entry]:
        """Return the entries as the summary needs them: output that arrived as text is read as tool results."""
        messages = read_as_tools(self.parting.reading.messages, self.parting.reading.text_results)
        return [
            entry if message is entry.message else replace(entry, message=message)
            for entry, message in zip(self.entries, messages, strict=True)
        ]

    @cached_property
    def parted(self) -> _Parted | None:
        """The division into head and tail; None if too little would be dropped."""
        parting, room, goal = self.parting, self.limits.keep, self.limits.goal
        account = self.teller.room(self.limits.measure) + _BRIDGES * self._bridge
        parted = self._parted_at(parting, room)
        for _ in range(_ATTEMPTS):
            if (excess := self._kept_by(parted) + account - goal) <= 0 or room == 0:
                break
            room = max(0, room - excess)
            parted = self._parted_at(parting, room)
        excess = self._kept_by(parted) + account - goal
        if excess > 0 and parted.words.cut:
            # An excerpt may be shorter.
            over = excess - (1 - _LEAST_ACCOUNT) * account
            parted = self._parted_at(parting, room, max(_LEAST_EXCERPT, 1 - max(0, over) / parted.words.tokens))
            excess = self._kept_by(parted) + account - goal
        if excess > 0:
            share = max(_LEAST_ACCOUNT, 1 - excess / account)
            parted = replace(parted, measure=int(share * parted.measure))
            account = int(share * account)
        gain = weight_of(parted.head) - parted.words.tokens - account
        if len(parted.head) < _LEAST_HEAD or gain <= 0 or not (self.is_over or self._is_worth(gain)):
            return None
        return parted

    @property
    def _bridge(self) -> int:
        return bridges(self.scale)("assistant").weight.tokens

    def _kept_by(self, parted: _Parted) -> int:
        """Return the weight of what stays beside the account. A last turn larger than the tail's share counts as
        truncated."""
        last = self.parting.places[-1]
        before = weight_of([self.entries[place] for place in parted.places if place < last])
        return before + self._last_turn + parted.words.tokens

    @cached_property
    def _last_turn(self) -> int:
        """The weight of the last turn when its oversized messages have been truncated."""
        turn = self.entries[self.parting.places[-1] :]
        most = max(int(_GIANT * self.limits.measure), self.limits.keep)
        level = _level(turn, most, written=True)
        return sum(
            min(entry.weight.tokens, level) if is_cuttable(entry, written=True) else entry.weight.tokens
            for entry in turn
        )

    def _parted_at(self, parting: Parting, room: int, share: float = 1.0) -> _Parted:
        """Divide the history at the cut for a tail of `room` tokens. `share` is the share of its room that an excerpt
        of the user's words gets."""
        at, measure = parting.cut(room), self.limits.measure
        # Messages that the summary carries need not stay; messages that must stay are not carried.
        asked = {*parting.requests.first, *parting.requests.later}
        bound = set(parting.stays(at, carried=asked))
        head = [place for place in range(at) if place not in bound]
        words = self.teller.carry(self.entries, head, parting.requests, measure, share=share)
        staying = parting.stays(at, carried=words.places)
        left = set(staying)
        gone = tuple(place for place in range(at) if place not in left)
        return _Parted(
            head=tuple(self.entries[place] for place in gone),
            gone=gone,
            places=(*staying, *range(at, len(self.entries))),
            words=words,
            measure=measure,
        )

    def _with_account(self, parted: _Parted, account: Account) -> Compaction:
        assert account.text is not None
        native = user_message(self.scale.format, account.text)
        (summary,) = drain(self.scale.entries((native,)))
        laid = assembled(replace(summary, kind="summary"), self.entries, parted.places, bridges(self.scale))
        change = difference(account.tier, self.entries, laid)
        place_of = {id(entry): place for place, entry in enumerate(self.entries)}
        told: Fate = "summarised" if account.tier == "summarise" else "digested"
        fates = dict[int, Fate]((place, told) for place in parted.gone)
        fates.update((place, "in_summary") for place in parted.words.places)
        fates.update((place, "excerpt_in_summary") for place in parted.words.cut)
        return Compaction(
            entries=change.entries,
            sheds=(change.shed,),
            warning=account.warning,
            origins=tuple(place_of.get(id(entry)) for entry in laid),
            fates=fates,
        )

    def _trimmed(self, work: Compaction) -> Compaction:
        """Drop messages until the history fits with some room to spare. Otherwise every call would drop one message and
        invalidate the prompt cache."""
        room = max(0, self.limits.hard - self.limits.fixed - 1)
        wanted = max(0, room - int(_SPARE * self.limits.window))
        trimmed = trim(work.entries, self.scale, wanted, recalls=self.teller.recalls)
        origin_of = {id(entry): place for entry, place in zip(work.entries, work.origins, strict=True)}
        origins = tuple(origin_of.get(id(entry)) for entry in trimmed.kept)
        work = replace(_after(work, trimmed.change), origins=origins)
        if weight_of(work.entries) <= room:
            return work
        what = "the system prompt, the tools, what is pinned, the user's last words"
        return _warned(work, f"what must stay ({what}) is more than the window holds")

    def _is_worth(self, gain: int) -> bool:
        return gain >= self.limits.least_gain * (self.limits.fixed + weight_of(self.entries))

    async def _settled(self, work: Compaction) -> Compaction:
        """Return the compaction, weighed as a whole, or the unchanged history if the gain is too small or the result
        invalid."""
        if not work.compacted:
            return work
        entries = await patiently(self.scale.together(work.entries))
        gain = weight_of(self.entries) - weight_of(entries)
        if gain <= 0 or not (self.is_over or self._is_worth(gain)):
            return self._untouched(work.warning)
        if broken := await run_sync(self._broken, entries):
            return _warned(self._untouched(work.warning), f"nothing was dropped: {broken}")
        return self._reported(replace(work, entries=entries))

    def _reported(self, work: Compaction) -> Compaction:
        """Add what became of every message, and warnings if the user's words were cut or messages were dropped
        entirely."""
        left = {place: entry for place, entry in zip(work.origins, work.entries, strict=True) if place is not None}
        single = list[Dropped]()
        for place, entry in enumerate(self.entries):
            now = left.get(place)
            if (now is not None and now.native is entry.native) or (now is None and entry.kind == "bridge"):
                continue
            fate = work.fates.get(place, "dropped") if now is None else _changed(now)
            tokens = entry.weight.tokens - (now.weight.tokens if now is not None else 0)
            single.append(Dropped(first=place + 1, last=place + 1, fate=fate, tokens=tokens))
        work = replace(work, dropped=merge_dropped(single))
        asked = self.parting.requests
        own = {place + 1 for place in (*asked.first, *asked.later)}
        cut = [one for one in single if one.first in own and one.fate in ("truncated", "excerpt_in_summary")]
        captions = [one for one in cut if words_of(self.entries[one.first - 1].message) is None]
        if captions:
            work = _warned(work, f"the media of the user's {_numbered(captions)} dropped: the text is kept")
        if cut := [one for one in cut if one not in captions]:
            work = _warned(
                work,
                f"{_numbered(cut)} of the user's cut in the middle: the beginning, the end and constraints are kept",
            )
        if gone := [one for one in single if one.fate == "dropped"]:
            work = _warned(work, f"{_numbered(gone)} dropped and nothing put in the place: the window is full")
        return work

    def _broken(self, entries: Sequence[Entry]) -> str | None:
        """Return what a provider would refuse now and would not have refused before; None if nothing."""
        were = [entry.native for entry in self.entries]
        broken = faults([entry.native for entry in entries], self.scale.format, original=were)
        return broken[0] if broken else None


def _numbered(dropped: Sequence[Dropped]) -> str:
    """Format a list such as `message 3` or `messages 3, 5-8`."""
    alike = merge_dropped([replace(one, fate="dropped") for one in dropped])
    spans = [str(one.first) if one.first == one.last else f"{one.first}-{one.last}" for one in alike]
    return f"message{'s' * (len(dropped) > 1)} {', '.join(spans)}"


def _changed(entry: Entry) -> Fate:
    texts = (
        part.text
        for one in entry.message.parts
        for part in (one.parts if isinstance(one, ToolResult) else (one,))
        if isinstance(part, Text)
    )
    return "masked" if any(map(is_placeholder, texts)) else "truncated"


def _level(entries: Sequence[Entry], room: int, *, written: bool = False) -> int:
    """Return the limit to which messages must be truncated so that all messages together fit `room`. Messages of the
    model count as truncatable only with `written`."""
    able = [entry.weight.tokens for entry in entries if is_cuttable(entry, written=written)]
    return water_level(able, room - weight_of(entries) + sum(able))


def _after(work: Compaction, change: Change | None) -> Compaction:
    """Apply a change to a compaction. A change without effect is ignored."""
    if change is None or not change.shed.messages:
        return work
    return replace(work, entries=change.entries, sheds=(*work.sheds, change.shed))


def _warned(work: Compaction, warning: str) -> Compaction:
    return replace(work, warning="; ".join(filter(None, (work.warning, warning))))
