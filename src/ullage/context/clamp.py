"""How is one giant part made smaller?

A result of a tool, or a text that the user pasted, is cut in its middle, at the ends of lines where there are lines:
the beginning says what it is and the end what came of it. In the gap stands how much is gone and how to get it back.
What the user said last, what is pinned, what the model wrote and what a provider's own tools gave are left alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ullage.messages import Media, Part, Unknown, with_results, with_texts

from .cut import last_said
from .difference import difference
from .entry import Entry
from .pairing import Answered, pair
from .remake import Remake
from .shed import Change
from .words import gap, is_placeholder, lost_in, query_of, said_in, text_of

__all__ = ["clamp"]

_WORTH = 100
"""Tokens that one cut must win, or a quarter of what may be left where that is more: a giant is far above the bound."""
_TRIES = 8


def clamp(
    entries: Sequence[Entry], scale: Remake, most: int, *, recalls: bool = False, last_resort: bool = False
) -> Change | None:
    """Every giant part cut down to `most` tokens; None where there is none.

    A result that shows something beside its words is left whole. As a last resort it is not, its media are let go too,
    and whatever is above the bound is a giant.
    """
    work = _Clamping(scale=scale, most=most, recalls=recalls, last_resort=last_resort)
    answers, said = _by_place(entries), last_said(entries)
    left = [
        work.clamped(entry, answers.get(place, ())) if place not in said and _is_giant(entry, most) else entry
        for place, entry in enumerate(entries)
    ]
    is_same = all(new is old for new, old in zip(left, entries, strict=True))
    return None if is_same else difference("clamp", entries, left)


def _by_place(entries: Sequence[Entry]) -> Mapping[int, tuple[Answered, ...]]:
    answered = pair([entry.message for entry in entries]).answered
    return {place: tuple(those) for place, those in groupby(answered, key=lambda one: one.place)}


def _is_giant(entry: Entry, most: int) -> bool:
    is_free = entry.kind == "message" and not entry.pinned and entry.message.role in ("user", "tool")
    return is_free and entry.weight.tokens > most


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clamping:
    scale: Remake
    most: int
    recalls: bool
    last_resort: bool

    def clamped(self, entry: Entry, answers: Sequence[Answered]) -> Entry:
        native = with_results(entry.native, self.scale.format, dict(self._results(answers)))
        native = with_texts(native, self.scale.format, self._pasted)
        if native is entry.native:
            return entry
        made = self.scale.remade(entry, native)
        return made if made.weight.tokens < entry.weight.tokens else entry

    def _results(self, answers: Sequence[Answered]) -> Iterator[tuple[int, str]]:
        for one in answers:
            if one.result is None or (one.call is not None and not one.call.takes_text):
                continue
            media = [part for part in one.result.parts if isinstance(part, Media)]
            is_sealed = any(isinstance(part, Unknown) for part in one.result.parts)
            if is_sealed or (media and not self.last_resort):
                continue
            text = text_of(one.result, self.scale.format)
            cut = self._cut(text, said_in(text) if one.call is None else query_of(one.call), media)
            if cut is not None:
                yield one.nth, cut

    def _pasted(self, text: str) -> str:
        return self._cut(text, said_in(text), ()) or text

    def _cut(self, text: str, query: str, media: Sequence[Part]) -> str | None:
        """The text with a gap in it, which stands for the media too; None where it is no giant."""
        tokens = self.scale.count(text)
        if tokens - self.most < (1 if self.last_resort else max(_WORTH, self.most // 4)):
            line = gap(0, media, query if self.recalls else None)
            return f"{text}\n{line}" if media and not is_placeholder(text) else None
        share = self.most / tokens
        for _ in range(_TRIES):
            head, tail = _ends(text, share)
            lost = tokens - self.scale.count(head) - self.scale.count(tail)
            lost += lost_in(text[len(head) : len(text) - len(tail)])
            made = f"{head}{gap(lost, media, query if self.recalls else None)}\n{tail}"
            size = self.scale.count(made)
            if size <= self.most:
                return made
            share *= 0.95 * self.most / size
        return None


def _ends(text: str, share: float) -> tuple[str, str]:
    """The beginning and the end of a text, together that share of it, less where the last line would be a stump."""
    half = int(len(text) * share / 2)
    head, tail = text[:half], text[len(text) - half :]
    line = head.rfind("\n") + 1
    head = head[:line] if line > half // 2 else f"{head}\n"
    line = tail.find("\n") + 1
    return head, tail[line:] if line < half // 2 else tail
