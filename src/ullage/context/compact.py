"""What is let go, in which order?

The tiers, cheapest first: giant parts are clamped, old results masked, the head put into a summary; where no model puts
it, into a digest; and what still does not fit is left out. How each is done, its own file knows. What this returns is
valid wherever what it was given is, and nothing here is written anywhere. What takes long is done in a thread or in
steps: an event loop goes on meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anyio.to_thread import run_sync

from ullage.messages import faults, user_message
from ullage.tokens import drain, patiently

from .account import Account, Teller, ledger_room
from .clamp import clamp
from .cut import Parting
from .difference import difference, weight_of
from .entry import Entry
from .limits import Limits
from .mask import mask
from .noting import noted
from .placing import assembled, bridges
from .shed import Change, Shed
from .trim import trim
from .weighing import Scale

__all__ = ["Compaction", "compact"]

_GIANT = 0.10
"""The share of the measure above which one part is a giant."""
_LEAST_HEAD = 2
"""Messages that are worth a summary."""
_BRIDGES = 2
"""That mostly stand between a summary, what stays of the head, and the tail."""
_SPARE = 0.05
"""The share of the window that is left free beside the reserve where something is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    entries: tuple[Entry, ...]
    """What remains, in order; what was not touched is the same object."""
    sheds: tuple[Shed, ...] = ()
    """By which means; none where nothing was let go."""
    warning: str | None = None

    @property
    def compacted(self) -> bool:
        return bool(self.sheds)


async def compact(entries: Sequence[Entry], limits: Limits, scale: Scale, teller: Teller) -> Compaction:
    """What is left of a history that has reached its threshold, or the history itself with a warning."""
    return await _Work(entries=tuple(entries), limits=limits, scale=scale, teller=teller).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parted:
    head: tuple[Entry, ...]
    """To be let go."""
    places: tuple[int, ...]
    """Of what remains: what stays of the time before the tail, and the tail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """One history on its way to fewer tokens."""

    entries: tuple[Entry, ...]
    limits: Limits
    scale: Scale
    teller: Teller

    @property
    def is_over(self) -> bool:
        return self.limits.is_over(weight_of(self.entries))

    async def run(self) -> Compaction:
        if self.limits.is_irreducible and not self.is_over:
            return Compaction(entries=self.entries, warning=self._hopeless())
        eased = await run_sync(self._masked, Compaction(entries=self.entries))
        kept = await self._noted(self.entries, eased) if weight_of(eased.entries) <= self.limits.goal else None
        if kept is not None and weight_of(kept.entries) <= self.limits.goal:
            return await self._settled(kept)
        best = await self._told()
        if not best.compacted:
            best = replace(kept or await self._noted(self.entries, eased), warning=best.warning)
        if self.limits.is_over(weight_of(best.entries)):
            best = await run_sync(self._trimmed, best)
        return await self._settled(best)

    def _hopeless(self) -> str:
        return (
            f"the system prompt and the tools alone weigh {self.limits.fixed:,} tokens, and the threshold is "
            f"{self.limits.soft:,}: nothing is let go before the window is full"
        )

    async def _noted(self, before: tuple[Entry, ...], work: Compaction) -> Compaction:
        """With the identifiers of what was clamped and masked, which takes long and is done where it is kept."""
        if work.entries is before:
            return work
        entries = await patiently(noted(before, work.entries, self.scale, ledger_room(self.limits.measure)))
        note = weight_of(entries) - weight_of(work.entries)
        *sheds, last = work.sheds
        return replace(work, entries=entries, sheds=(*sheds, replace(last, tokens=last.tokens - note)))

    def _masked(self, work: Compaction) -> Compaction:
        """Without a summary: giants clamped, then old results masked where that is still needed."""
        giant = max(1, int(_GIANT * self.limits.measure))
        work = _after(work, clamp(work.entries, self.scale, giant, recalls=self.teller.recalls))
        if weight_of(work.entries) <= self.limits.goal:
            return work
        return _after(work, mask(work.entries, self.scale, self.limits, recalls=self.teller.recalls))

    async def _told(self) -> Compaction:
        """The head as a summary, or as a digest where no model makes one and something must be let go."""
        parted = await run_sync(self._parted)
        if parted is None:
            return Compaction(entries=self.entries)
        beside = [self.entries[place] for place in parted.places]
        account = await self.teller.tell(parted.head, beside, measure=self.limits.measure, must=self.is_over)
        if account.text is None:
            return Compaction(entries=self.entries, warning=account.warning)
        told = await run_sync(self._with_account, parted, account)
        # What stays may itself be too much: a tail of one giant result, say.
        if weight_of(told.entries) <= self.limits.goal:
            return told
        return await self._noted(told.entries, await run_sync(self._masked, told))

    def _parted(self) -> _Parted | None:
        """None where too little would be let go to be worth it."""
        bridge = bridges(self.scale)("assistant").weight.tokens
        parting, said = Parting(self.entries), self.teller.room(self.limits.measure) + _BRIDGES * bridge
        room = max(0, self.limits.goal - said)
        parted = self._parted_at(parting, min(self.limits.keep, room))
        excess = weight_of([self.entries[place] for place in parted.places]) - room
        if excess > 0:
            parted = self._parted_at(parting, max(0, min(self.limits.keep, room - excess)))
        gain = weight_of(parted.head) - said
        if len(parted.head) < _LEAST_HEAD or gain <= 0 or not (self.is_over or self._is_worth(gain)):
            return None
        return parted

    def _parted_at(self, parting: Parting, room: int) -> _Parted:
        at = parting.cut(room)
        staying = parting.stays(at)
        left = set(staying)
        head = tuple(entry for place, entry in enumerate(self.entries[:at]) if place not in left)
        return _Parted(head=head, places=(*staying, *range(at, len(self.entries))))

    def _with_account(self, parted: _Parted, account: Account) -> Compaction:
        assert account.text is not None
        native = user_message(self.scale.format, account.text)
        (summary,) = drain(self.scale.entries((native,)))
        laid = assembled(replace(summary, kind="summary"), self.entries, parted.places, bridges(self.scale))
        change = difference(account.tier, self.entries, laid)
        return Compaction(entries=change.entries, sheds=(change.shed,), warning=account.warning)

    def _trimmed(self, work: Compaction) -> Compaction:
        """With some room to spare, or every call would leave out a message and break a prompt cache for it."""
        room = max(0, self.limits.hard - self.limits.fixed - 1)
        wanted = max(0, room - int(_SPARE * self.limits.window))
        work = _after(work, trim(work.entries, self.scale, wanted, recalls=self.teller.recalls).change)
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
            return Compaction(entries=self.entries, warning=work.warning)
        if broken := await run_sync(self._broken, entries):
            return _warned(Compaction(entries=self.entries, warning=work.warning), f"nothing was let go: {broken}")
        return replace(work, entries=entries)

    def _broken(self, entries: Sequence[Entry]) -> str | None:
        """What a provider would refuse now and would not have refused before."""
        were = [entry.native for entry in self.entries]
        broken = faults([entry.native for entry in entries], self.scale.format, original=were)
        return broken[0] if broken else None


def _after(work: Compaction, change: Change | None) -> Compaction:
    """A change that changes nothing is none."""
    if change is None or not change.shed.messages:
        return work
    return replace(work, entries=change.entries, sheds=(*work.sheds, change.shed))


def _warned(work: Compaction, warning: str) -> Compaction:
    return replace(work, warning="; ".join(filter(None, (work.warning, warning))))
