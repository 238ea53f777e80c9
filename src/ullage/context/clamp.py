"""Cuts the middle out of giant messages.

A structured result is written in fewer words: its long prose is shortened, and every other value is whole or left out.
Another one, or a text that the user pasted, is cut in its middle, at the ends of lines where there are lines: the
beginning says what it is and the end what came of it. Of the user's own words the constraints between them are kept as
well. The gap says how much is missing and how to get it back. What is pinned and what a provider's own tools gave is
never cut; what the model wrote (a file in the arguments of a call, say) only in the tail, where a history would not
come to its goal otherwise. The tail, the user's first request and last words have a bound of their own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from json import loads

from ullage.messages import Media, Part, Text, ToolCall, Unknown, with_arguments, with_results, with_texts
from ullage.tool import Json

from .clipping import beginning, ending
from .difference import difference
from .entry import Entry
from .identifiers import is_record, read_structure, scalars, write_value
from .pairing import Answered
from .remake import Remake
from .requests import Reading, excerpt, read_history
from .shed import Change
from .words import gap, is_placeholder, lost_in, query_of, said_in, text_of

__all__ = ["clamp", "is_cuttable", "water_level"]

_WORTH = 100
"""Tokens that one cut must win, or a quarter of what may be left where that is more: a giant is far above the bound."""
_TRIES = 8
_ROWS = (32, 16, 8, 4, 2)
"""Items of a list that are shown where room is short, ever fewer."""
_MOSTLY = 4
"""The part of a result from which on a single text in it is most of what it says."""
_WORD = re.compile(r"[\w.@:/-]+")


def clamp(  # noqa: PLR0913
    entries: Sequence[Entry],
    scale: Remake,
    most: int,
    *,
    recalls: bool = False,
    last_resort: bool = False,
    exactly: bool = False,
    said_most: int | None = None,
    tail: int | None = None,
    tail_most: int | None = None,
    reading: Reading | None = None,
) -> Change | None:
    """Every giant part cut down to `most` tokens; None where there is none.

    For the user's first request and last words the bound is `said_most`, from the place `tail` on it is `tail_most`, or
    the larger of both; None spares them. A result that shows something beside its words is left whole. As a last resort
    it is not, its media are dropped too, and whatever is above the bound is a giant. So it is with `exactly`, which
    also cuts what the model wrote in the tail; a last resort does so anywhere. The `reading` is that of the entries,
    where there is one already.
    """
    exactly = exactly or last_resort
    work = _Clamping(scale=scale, recalls=recalls, last_resort=last_resort, exactly=exactly, spoken=_spoken(entries))
    reading = reading or read_history(entries)
    answers = {place: tuple(those) for place, those in groupby(reading.answered, key=lambda one: one.place)}
    said = reading.requests.last.union(reading.requests.first)
    since = len(entries) if tail is None else tail
    left = list(entries)
    for place, entry in enumerate(entries):
        is_whole = place >= since or place in said
        bound = tail_most if place >= since else said_most if place in said else most
        if bound is not None and place in said:
            bound = max(bound, said_most or 0)
        written = last_resort or (exactly and place >= since)
        if bound is not None and is_cuttable(entry, written=written) and entry.weight.tokens > bound:
            there = answers.get(place, ())
            left[place] = work.clamped_whole(entry, there, bound) if is_whole else work.clamped(entry, there, bound)
    is_same = all(new is old for new, old in zip(left, entries, strict=True))
    return None if is_same else difference("clamp", entries, left)


def water_level(sizes: Sequence[int], room: int) -> int:
    """The bound to which all that is larger must be cut so that everything comes to `room`; at least 1. Where all fits,
    no less than the largest."""
    for place, size in enumerate(ascending := sorted(sizes)):
        share = room // (len(ascending) - place)
        if size > share:
            return max(1, share)
        room -= size
    return max(1, room, *sizes)


def is_cuttable(entry: Entry, *, written: bool) -> bool:
    """Whether a message may lose its middle; with `written`, one of the model's too."""
    roles = ("user", "tool", "assistant") if written else ("user", "tool")
    return entry.kind == "message" and not entry.pinned and entry.message.role in roles


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clamping:
    scale: Remake
    recalls: bool
    last_resort: bool
    exactly: bool
    spoken: frozenset[str]
    """Words that a person or the model used."""

    def clamped_whole(self, entry: Entry, answers: Sequence[Answered], most: int) -> Entry:
        """The message cut so that the whole of it comes to `most`, as its provider weighs it, each part to the same
        bound."""
        texts = [part.text for part in entry.message.parts if isinstance(part, Text)]
        texts += [text_of(one.result, self.scale.format) for one in answers if one.result and not one.as_text]
        if entry.message.role == "assistant":
            texts += [text for part in entry.message.parts if isinstance(part, ToolCall) for text in _arguments(part)]
        sizes = [self.scale.count(text) for text in texts]
        # A provider may weigh a text more than the text alone, for its escapes say.
        room = most * sum(sizes) // max(1, entry.weight.tokens, sum(sizes))
        made = self.clamped(entry, answers, water_level(sizes, room))
        if made.weight.tokens > most and made is not entry:
            made = self.clamped(entry, answers, water_level(sizes, room * most // made.weight.tokens))
        return made

    def clamped(self, entry: Entry, answers: Sequence[Answered], most: int) -> Entry:
        is_output = any(one.as_text for one in answers) or entry.message.role == "assistant"
        native = with_results(entry.native, self.scale.format, dict(self._results(answers, most)))
        change = partial(self._output if is_output else self._pasted, most=most)
        native = with_texts(native, self.scale.format, change)
        if entry.message.role == "assistant":
            native = with_arguments(native, self.scale.format, change)
        if native is entry.native:
            return entry
        made = self.scale.remade(entry, native)
        return made if made.weight.tokens < entry.weight.tokens else entry

    def _results(self, answers: Sequence[Answered], most: int) -> Iterator[tuple[int, str]]:
        for one in answers:
            if one.result is None or one.as_text or (one.call is not None and not one.call.takes_text):
                continue
            media = [part for part in one.result.parts if isinstance(part, Media)]
            is_sealed = any(isinstance(part, Unknown) for part in one.result.parts)
            if is_sealed or (media and not self.last_resort):
                continue
            text = text_of(one.result, self.scale.format)
            cut = self._cut(text, said_in(text) if one.call is None else query_of(one.call), media, most)
            if cut is not None:
                yield one.nth, cut

    def _output(self, text: str, most: int) -> str:
        return self._cut(text, said_in(text), (), most) or text

    def _pasted(self, text: str, most: int) -> str:
        is_giant = self.scale.count(text) - most >= self._worth(most)
        return (excerpt(text, most, self.scale.count, recalls=self.recalls) or text) if is_giant else text

    def _worth(self, most: int) -> int:
        return 1 if self.exactly else max(_WORTH, most // 4)

    def _cut(self, text: str, query: str, media: Sequence[Part], most: int) -> str | None:
        """The text with a gap in it, which stands for the media too; None where it is no giant."""
        tokens = self.scale.count(text)
        if tokens - most < self._worth(most):
            line = gap(0, media, query if self.recalls else None)
            return f"{text}\n{line}" if media and not is_placeholder(text) else None
        if (condensed := self._condensed(text, tokens, query, media, most)) is not None:
            return condensed
        share = most / tokens
        for _ in range(_TRIES):
            head, tail = _ends(text, share)
            lost = tokens - self.scale.count(head) - self.scale.count(tail)
            lost += lost_in(text[len(head) : len(text) - len(tail)])
            made = f"{head}{gap(lost, media, query if self.recalls else None)}\n{tail}"
            size = self.scale.count(made)
            if size <= most:
                return made
            share *= 0.95 * most / size
        return None

    def _condensed(self, text: str, tokens: int, query: str, media: Sequence[Part], most: int) -> str | None:
        """A structured result in fewer words, as `write_value` writes it; None where it is not structured."""
        value = read_structure(text)
        # What is mostly one long text says more with its beginning and its end.
        if not is_record(value) or max(len(one) for _, one in scalars(value)) > len(text) // _MOSTLY:
            return None
        line = gap(tokens, media, query if self.recalls else None)
        room = most - self.scale.count(line) - 1
        for form in sorted(filter(None, self._forms(value)), key=len, reverse=True):
            if self.scale.count(form) <= room:
                lost = tokens - self.scale.count(form) + lost_in(text)
                return f"{form}\n{gap(lost, media, query if self.recalls else None)}"
        return None

    def _forms(self, value: Json) -> Iterator[str]:
        """In more and in fewer words: all of it, what names things, and of that what was spoken of."""
        yield write_value(value)
        for strict in (False, True):
            yield write_value(value, wanted=frozenset(), strict=strict)
            yield write_value(value, wanted=self.spoken, strict=strict)
        for rows in _ROWS:
            yield write_value(value, wanted=self.spoken, rows=rows, strict=True)
        yield write_value(value, wanted=frozenset(), rows=_ROWS[-1], strict=True)


def _arguments(call: ToolCall) -> list[str]:
    """The texts within a call's arguments."""
    try:
        return [text for _, text in scalars(loads(call.arguments))]
    except (ValueError, RecursionError):
        return [call.arguments]


def _spoken(entries: Sequence[Entry]) -> frozenset[str]:
    """The words of users, assistants and calls: of a result, what they name counts most."""
    found = set[str]()
    for entry in entries:
        for part in entry.message.parts:
            if isinstance(part, Text) and entry.message.role != "tool":
                found.update(_WORD.findall(part.text))
            elif isinstance(part, ToolCall):
                found.update(_WORD.findall(part.arguments))
    return frozenset(found)


def _ends(text: str, share: float) -> tuple[str, str]:
    """The beginning and the end of a text, together that share of it, less where the last line would be a stump."""
    half = int(len(text) * share / 2)
    head, tail = text[:half], text[len(text) - half :]
    line = head.rfind("\n") + 1
    head = head[:line] if line > half // 2 else f"{beginning(text, half)}\n"
    line = tail.find("\n") + 1
    return head, tail[line:] if 0 < line < half // 2 else ending(text, half)
