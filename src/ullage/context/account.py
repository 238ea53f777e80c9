"""What is said in the place of a head that is let go?

A summary by a model where one is given and answers, a digest where none is given or where the window is full. Beside
either, the identifiers that may be needed again, and how to find the rest. A model that keeps failing rests.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from anyio import get_cancelled_exc_class
from anyio.to_thread import run_sync

from ullage.messages import Message, Text
from ullage.tokens import patiently

from .breaker import Breaker
from .carried import Carried, carried, read_carried
from .digest import digest
from .entry import Entry
from .identifiers import identifier_steps
from .options import DEFAULTS
from .requests import Requests, excerpt, words_of
from .sections import Section, write_sections
from .shed import Tier
from .summarizer import Summarizer
from .summary import SummaryFailed, summarise
from .weighing import Scale

__all__ = ["Account", "CarriedWords", "Teller", "ledger_room", "request_room"]

_LEDGER, _MOST_LEDGER = 0.12, 6_000
_SUMMARY, _MOST_SUMMARY = 0.08, 4_000
"""The share of the measure, and the tokens at most, of the identifiers and of the summary."""
_REQUEST, _LATER = 0.15, 0.10
"""The share of the measure that the user's first request may have to the letter, and all later ones together."""
_SHORT, _AMPLE = 800, 0.40
"""Tokens of a first request that is kept whole even where its share is less, and the share up to which that holds."""
_SMALL = 8_000
"""Tokens that both may have together in a window however small, where the tail leaves them."""
_PROSE, _BESIDE_RECORDS = 0.5, 0.3
"""Share of a summary's room for a digest, which says less than a model would; and of that, where records of structured
results say more beside it."""
_NOTHING, _MANY = "-", 10_000
"""What stands in a frame whose own size is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    text: str | None
    """None where nothing can be said yet."""
    tier: Tier = "summarise"
    warning: str | None = None
    """Why it is not a model's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedWords:
    """What the user asked for, as the summary message carries it."""

    request: str = ""
    later: tuple[str, ...] = ()
    tokens: int = 0
    places: frozenset[int] = frozenset()
    """Of the requests that are carried, whole or as excerpts."""
    cut: tuple[int, ...] = ()
    """Of those, the ones that are carried as excerpts."""
    omitted: tuple[str, ...] = ()
    """Later requests of an earlier summary for which there is no room any more: they become part of the summary."""

    @property
    def whole(self) -> frozenset[int]:
        """The places of the requests that are carried to the letter."""
        return self.places.difference(self.cut)

    @property
    def message(self) -> Message:
        return Message(role="user", parts=tuple(Text(text) for text in (self.request, *self.later) if text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    scale: Scale
    summarizer: Summarizer | None
    breaker: Breaker
    generation: int = 1
    """The how-many-th compaction of the history this would be."""
    recalls: bool = False
    """Whether what is let go can be searched."""
    timeout: float = DEFAULTS.summary_timeout
    """Seconds that the summarizer may take for one answer."""

    def room(self, measure: int) -> int:
        """Tokens that an account may have, with what stands around it."""
        frame = self.scale.count(carried("", _NOTHING, self._receipt(_MANY)))
        return ledger_room(measure) + _summary_room(measure) + frame

    def summary_room(self, measure: int) -> int:
        """Tokens that the summary alone may have."""
        return _summary_room(measure)

    def carry(
        self, entries: Sequence[Entry], head: Sequence[int], requests: Requests, measure: int, *, share: float = 1.0
    ) -> CarriedWords:
        """The user's words in a head that the summary message takes over.

        The first request and the newest instruction are always among them, as excerpts where they are longer than
        their share; older instructions as far as the share reaches. What a text cannot carry (a picture) is not. An
        excerpt has `share` of its room; what fits the room is whole in any case.
        """
        count, gone = self.scale.count, set(head)
        told = [
            read for place in head if entries[place].kind == "summary" if (read := read_carried(_text(entries[place])))
        ]
        said = {
            place: words
            for place in (*requests.first, *requests.later)
            if place in gone and (words := words_of(entries[place].message)) and words.strip()
        }
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
            # The newest is carried in any case, and cut where it must be.
            whole = text if kept else fitted(text, room)
            size = count(whole)
            if size <= room and whole:
                kept.append(whole)
                room -= size
                if place is not None:
                    places.add(place)
                    cut += [place] if whole != text else []
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
        """The account of a head, for a reader who still has what is beside it.

        Args:
            head: The entries that are dropped.
            beside: The entries that stay.
            measure: Tokens that the shares of the account are taken of.
            must: Whether a digest is made where no model answers.
            words: The user's words that are written before the summary.
            verbatim: The indexes in `head` of the messages whose whole text is among `words`: a digest does not repeat
                their text, only their results.
            spare: Tokens that the tail left, of which a small window's account takes some.
        """
        room = _summary_room(measure)
        more = max(0, min(spare, _SMALL - room - ledger_room(measure)))
        whole = ledger_room(measure) + room + more
        earlier, rest = _earlier(head)
        if words.omitted:
            before = earlier or Carried("")
            again = write_sections({Section.ASKED: words.omitted})
            earlier = replace(before, summary=f"{before.summary}\n\n{again}".strip())
        summary, warning = await self._summary(rest, earlier, room)
        if summary is not None:
            return Account(text=await self._carried(rest, earlier, (summary, words), (beside, whole), by_model=True))
        if self.summarizer is not None and not must:
            return Account(text=None, warning=warning)
        repeated = {id(head[index]) for index in verbatim}
        messages = [_without_texts(entry.message) if id(entry) in repeated else entry.message for entry in rest]
        said = await run_sync(
            partial(
                digest,
                messages,
                room=int(_PROSE * room) + more // 3,
                count=self.scale.count,
                earlier=earlier,
                beside_records=_BESIDE_RECORDS,
            )
        )
        text = await self._carried(rest, earlier, (said, words), (beside, whole), by_model=False)
        return Account(text=text, tier="digest", warning=warning)

    async def _carried(
        self,
        rest: Sequence[Entry],
        earlier: Carried | None,
        told: tuple[str, CarriedWords],
        around: tuple[Sequence[Entry], int],
        *,
        by_model: bool,
    ) -> str:
        """The summary with the identifiers, which have what it leaves of the room, and with how to find the rest."""
        (summary, words), (beside, room) = told, around
        ledger = await patiently(
            identifier_steps(
                [entry.message for entry in rest],
                room=max(0, room - self.scale.count(summary)),
                count=self.scale.count,
                earlier=(earlier.identifiers,) if earlier else (),
                beside=[words.message, *(entry.message for entry in beside)],
                alone=not by_model,
            )
        )
        return carried(summary, ledger, self._receipt(len(rest)), request=words.request, later=words.later)

    def _receipt(self, messages: int) -> str:
        how = "; recall(query) finds them" if self.recalls else ""
        return f"{messages} messages let go, generation {self.generation}{how}"

    async def _summary(
        self, head: Sequence[Entry], earlier: Carried | None, room: int
    ) -> tuple[str | None, str | None]:
        """A model's summary; else why there is none."""
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
            # Whoever waits less long than a model that hangs takes would ask it before every call.
            self.breaker.failed()
            raise
        self.breaker.succeeded()
        return said, None


def _earlier(head: Sequence[Entry]) -> tuple[Carried | None, list[Entry]]:
    """What summaries in a head tell, which is brought up to date rather than summarised again, and the rest."""
    told, rest = list[Carried](), list[Entry]()
    for entry in head:
        read = read_carried(_text(entry)) if entry.kind == "summary" else None
        if read is not None:
            told.append(read)
        elif entry.kind != "bridge":
            rest.append(entry)
    whole = Carried("\n\n".join(one.summary for one in told), "\n".join(one.identifiers for one in told))
    return (whole if told else None), rest


def _without_texts(message: Message) -> Message:
    return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Text)))


def _text(entry: Entry) -> str:
    return "".join(part.text for part in entry.message.parts if isinstance(part, Text))


def ledger_room(measure: int) -> int:
    """Tokens that identifiers may have."""
    return min(_MOST_LEDGER, int(_LEDGER * measure))


def request_room(measure: int) -> int:
    """Tokens that the user's first request may have to the letter."""
    return max(int(_REQUEST * measure), min(_SHORT, int(_AMPLE * measure)))


def _summary_room(measure: int) -> int:
    return min(_MOST_SUMMARY, int(_SUMMARY * measure))
