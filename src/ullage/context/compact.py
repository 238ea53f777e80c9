"""Compacts a history: what is dropped, in which order.

The tiers, cheapest first: giant messages are truncated, old results masked, the head put into a summary; where no model
makes one, into a digest; and what still does not fit is dropped. The user's first request and latest instructions
survive all of them. The tail stays as it is, but for a message that alone is larger than the tail's share. How each
tier works, its own file knows. What this returns is valid wherever what it was given is, every message that is not the
same afterwards is reported, and nothing here is written anywhere. What takes long is done in a thread or in steps: an
event loop goes on meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from anyio.to_thread import run_sync

from ullage.messages import Part, Text, ToolResult, faults, user_message
from ullage.tokens import drain, patiently

from .account import Account, CarriedWords, Teller, ledger_room, request_room
from .clamp import clamp, is_cuttable, water_level
from .cost import price_per_call
from .cut import Parting
from .difference import difference, weight_of
from .entry import Entry
from .limits import Limits
from .mask import mask
from .noting import noted
from .placing import assembled, bridges
from .shed import Change, Dropped, Fate, Shed, merge_dropped
from .text_protocol import read_as_tools
from .trim import trim
from .weighing import Scale
from .words import is_placeholder

__all__ = ["Compaction", "compact"]

_GIANT = 0.10
"""The share of the measure above which one part is a giant."""
_LEAST_HEAD = 2
"""Messages that are worth a summary."""
_BRIDGES = 2
"""That mostly stand between a summary, what stays of the head, and the tail."""
_LEAST_ACCOUNT, _LEAST_EXCERPT = 0.4, 0.5
"""The share of its room that a summary has at least where the tail and the user's words leave it less, and that an
excerpt of these words has then."""
_LEAST_NOTE = 0.25
"""The share of a ledger's room that the identifiers of what was truncated or masked have at least."""
_FRAME = 16
"""Tokens of a message beside its text."""
_ATTEMPTS = 4
"""How often the tail is cut anew, for what the summary carries depends on where that is."""
_SPARE = 0.05
"""The share of the window that is left free beside the reserve where something is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    entries: tuple[Entry, ...]
    """What remains, in order; what was not touched is the same object."""
    sheds: tuple[Shed, ...] = ()
    """By which means; none where nothing was dropped."""
    warning: str | None = None
    dropped: tuple[Dropped, ...] = ()
    """Every message of the history before that is not what it was, in order."""
    origins: tuple[int | None, ...] = field(default=(), repr=False)
    """The place in the history before of each entry that remains; None for what was made."""
    fates: Mapping[int, Fate] = field(default_factory=dict[int, Fate], repr=False)
    """What the summary has of messages that are gone, by their places."""

    @property
    def compacted(self) -> bool:
        return bool(self.sheds)


async def compact(entries: Sequence[Entry], limits: Limits, scale: Scale, teller: Teller) -> Compaction:
    """What is left of a history that has reached its threshold, or the history itself with a warning."""
    return await _Work(entries=tuple(entries), limits=limits, scale=scale, teller=teller).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parted:
    head: tuple[Entry, ...]
    """What is dropped."""
    gone: tuple[int, ...]
    """The places of what is dropped."""
    places: tuple[int, ...]
    """Of what remains: what stays of the time before the tail, and the tail."""
    words: CarriedWords
    """Of the user's that the summary message takes over."""
    measure: int
    """What the shares of a summary are taken of."""


@dataclass(frozen=True, kw_only=True)
class _Work:
    """One history on its way to fewer tokens. What is found out about it is found out once."""

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
            return self._untouched(self._hopeless())
        eased = await run_sync(self._masked, self._untouched())
        does = weight_of(eased.entries) <= self.limits.goal and await run_sync(self._is_cheapest, eased)
        kept = await self._noted(self.entries, eased) if does else None
        if kept is not None and weight_of(kept.entries) <= self.limits.goal:
            return await self._settled(kept)
        best = await self._told()
        if not best.compacted:
            best = replace(kept or await self._noted(self.entries, eased), warning=best.warning)
            if self.parted is None and weight_of(best.entries) > self.limits.goal:
                # There is nothing to summarise: what fills the window is the last turn.
                shortened = await run_sync(self._truncated, self._untouched(best.warning))
                best = await self._noted(self.entries, shortened) if shortened.compacted else best
        if self.limits.is_over(weight_of(best.entries)):
            best = await run_sync(self._trimmed, best)
        return await self._settled(best)

    def _untouched(self, warning: str | None = None) -> Compaction:
        return Compaction(entries=self.entries, origins=tuple(range(len(self.entries))), warning=warning)

    def _hopeless(self) -> str:
        return (
            f"the system prompt and the tools alone weigh {self.limits.fixed:,} tokens, and the threshold is "
            f"{self.limits.soft:,}: nothing is let go before the window is full"
        )

    async def _noted(self, before: tuple[Entry, ...], work: Compaction) -> Compaction:
        """With the identifiers of what was clamped and masked, which takes long and is done where it is kept."""
        if work.entries is before:
            return work
        whole = ledger_room(self.limits.measure)
        room = min(whole, max(int(_LEAST_NOTE * whole), self.limits.goal - weight_of(work.entries)))
        entries = await patiently(noted(before, work.entries, self.scale, room))
        note = weight_of(entries) - weight_of(work.entries)
        *sheds, last = work.sheds
        return replace(work, entries=entries, sheds=(*sheds, replace(last, tokens=last.tokens - note)))

    def _masked(self, work: Compaction) -> Compaction:
        """Without a summary: giants truncated, then old results masked where that is still needed.

        A giant of the head is anything over a tenth of the window. In the tail it is what alone, or with the other
        results of its turn, is larger than the tail's share.
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
        """With the last turn truncated as far as it must be, and old results masked where that is not enough."""
        work = self._truncated(work)
        if weight_of(work.entries) > self.limits.goal:
            work = _after(work, mask(work.entries, self.scale, self.limits, recalls=self.teller.recalls))
        return work if weight_of(work.entries) <= self.limits.goal else self._masked(work)

    def _truncated(self, work: Compaction) -> Compaction:
        """With the largest messages of the last turn truncated until all comes to the goal, where that can be."""
        parting = self._parting_of(work.entries)
        start = parting.places[-1]
        note = int(_LEAST_NOTE * ledger_room(self.limits.measure))
        room = self.limits.goal - weight_of(work.entries[:start]) - note - _FRAME
        least = max(1, int(_GIANT * self.limits.measure))
        level = max(least, _level(work.entries[start:], room, written=True))
        return _after(
            work,
            clamp(
                work.entries,
                self.scale,
                level,
                recalls=self.teller.recalls,
                exactly=True,
                said_most=level,
                tail=start,
                tail_most=level,
                reading=parting.reading,
            ),
        )

    def _is_cheapest(self, eased: Compaction) -> bool:
        """Whether going on with what was clamped and masked costs no more than going on with a summary of the head.

        Masking asks no model, but leaves more: it is read with every call, and the next compaction comes sooner.
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

    async def _told(self) -> Compaction:
        """The head as a summary, or as a digest where no model makes one and something must be let go."""
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
        # What stays may itself be too much: a tail of one giant result, say. Each way begins with what is whole, for
        # what was truncated once would be truncated anew in the middle of a value.
        for shrink in (self._masked, self._shortened):
            if weight_of(told.entries) > self.limits.goal:
                shrunk = await run_sync(shrink, told)
                if shrink == self._shortened or weight_of(shrunk.entries) <= self.limits.goal:
                    told = await self._noted(told.entries, shrunk)
        return told

    def _read(self) -> list[Entry]:
        """The entries as a summary is made of them: with output that arrived as text read as results."""
        messages = read_as_tools(self.parting.reading.messages, self.parting.reading.text_results)
        return [
            entry if message is entry.message else replace(entry, message=message)
            for entry, message in zip(self.entries, messages, strict=True)
        ]

    @cached_property
    def parted(self) -> _Parted | None:
        """None where too little would be dropped to be worth it."""
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
            # What is an excerpt anyway may be a shorter one.
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
        """What stays beside the account: a last turn that is larger than the tail's share is truncated to that."""
        last = self.parting.places[-1]
        before = weight_of([self.entries[place] for place in parted.places if place < last])
        return before + self._last_turn + parted.words.tokens

    @cached_property
    def _last_turn(self) -> int:
        """What the last turn weighs when what is too large in it has been truncated."""
        turn = self.entries[self.parting.places[-1] :]
        most = max(int(_GIANT * self.limits.measure), self.limits.keep)
        level = _level(turn, most, written=True)
        return sum(
            min(entry.weight.tokens, level) if is_cuttable(entry, written=True) else entry.weight.tokens
            for entry in turn
        )

    def _parted_at(self, parting: Parting, room: int, share: float = 1.0) -> _Parted:
        """`share` is that of its room which an excerpt of the user's words has."""
        at, measure = parting.cut(room), self.limits.measure
        # What the summary carries need not stay; what must stay is not carried.
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
        """With some room to spare, or every call would leave out a message and break a prompt cache for it."""
        room = max(0, self.limits.hard - self.limits.fixed - 1)
        wanted = max(0, room - int(_SPARE * self.limits.window))
        trimmed = trim(work.entries, self.scale, wanted, recalls=self.teller.recalls)
        origin_of = {id(entry): place for entry, place in zip(work.entries, work.origins, strict=True)}
        origins = tuple(origin_of.get(id(entry)) for entry in trimmed.kept)
        work = replace(_after(work, trimmed.change), origins=origins)
        return work if weight_of(work.entries) <= room else _warned(work, self._too_large())

    def _too_large(self) -> str:
        return (
            "what must stay (the system prompt, the tools, what is pinned, the user's last words) is more than the "
            "window holds"
        )

    def _is_worth(self, gain: int) -> bool:
        return gain >= self.limits.least_gain * (self.limits.fixed + weight_of(self.entries))

    async def _settled(self, work: Compaction) -> Compaction:
        """The work where it was worth it and broke nothing, at the weights its entries have side by side."""
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
        """With what became of every message, and a warning where words of the user's were cut or nothing is left."""
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
        if cut:
            work = _warned(
                work,
                f"{_numbered(cut)} of the user's cut in the middle: the beginning, the end and constraints are kept",
            )
        if gone := [one for one in single if one.fate == "dropped"]:
            work = _warned(work, f"{_numbered(gone)} dropped and nothing put in the place: the window is full")
        return work

    def _broken(self, entries: Sequence[Entry]) -> str | None:
        """What a provider would refuse now and would not have refused before."""
        were = [entry.native for entry in self.entries]
        broken = faults([entry.native for entry in entries], self.scale.format, original=were)
        return broken[0] if broken else None


def _numbered(dropped: Sequence[Dropped]) -> str:
    """`message 3`, `messages 3, 5-8`."""
    alike = merge_dropped([replace(one, fate="dropped") for one in dropped])
    spans = [str(one.first) if one.first == one.last else f"{one.first}-{one.last}" for one in alike]
    return f"message{'s' * (len(dropped) > 1)} {', '.join(spans)}"


def _changed(entry: Entry) -> Fate:
    texts = (part.text for one in entry.message.parts for part in _inner(one) if isinstance(part, Text))
    return "masked" if any(map(is_placeholder, texts)) else "truncated"


def _inner(part: Part) -> tuple[Part, ...]:
    return part.parts if isinstance(part, ToolResult) else (part,)


def _level(entries: Sequence[Entry], room: int, *, written: bool = False) -> int:
    """The bound at which messages that can be truncated come to `room` together with those that cannot; with `written`,
    the model's own can."""
    able = [entry.weight.tokens for entry in entries if is_cuttable(entry, written=written)]
    return water_level(able, room - weight_of(entries) + sum(able))


def _after(work: Compaction, change: Change | None) -> Compaction:
    """A change that changes nothing is none."""
    if change is None or not change.shed.messages:
        return work
    return replace(work, entries=change.entries, sheds=(*work.sheds, change.shed))


def _warned(work: Compaction, warning: str) -> Compaction:
    return replace(work, warning="; ".join(filter(None, (work.warning, warning))))
