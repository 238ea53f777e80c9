"""Shortens messages and tool results: clamping, masking, trimming.

`Shed` and `Dropped` record what a compaction did: by which tier, to which messages, and what that invalidated.

`clamp` cuts the middle out of giant messages. A structured result is written in fewer words: its long prose is
shortened, and every other value is whole or left out. Any other result, or a text that the user pasted, is cut in its
middle, at line ends if there are lines, since its beginning says what it is and its end what came of it. Of the user's
own words the constraints in between are kept as well. The gap says how much is missing and how to get it back. Pinned
messages and results of a provider's own tools are never cut. The model's own text (such as a file in the arguments of a
call) is cut only in the tail, and only if the history would not reach its goal otherwise. The tail, and the user's
first request and last words, have limits of their own.

`mask` replaces old tool results by a line that names their call. A result is masked if it is old, its call can be named
and the line is really shorter. Output that arrives as a user's text counts as a result. All results are masked
together, since each time a provider must read the history again from the first masked result on; a small gain is
therefore not worth it. Calls, the user's text and what a provider ran itself stay.

`trim` drops what no other tier made small enough. The oldest groups are dropped one after the other, except those with
something that must stay. Then what is left is truncated, harder each time, the user's own words last. It always
terminates and reports by how much the history is still too large.

`noted` lists the identifiers that were in the removed text and are nowhere else. The list is behind the last
placeholder: the history was changed there anyway, so that the prompt cache loses nothing more.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from json import loads
from typing import Literal

from ullage.messages import (
    Media,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    join_texts,
    results_of,
    with_arguments,
    with_results,
    with_texts,
)
from ullage.tokens import Steps
from ullage.tool import Json

from .boundaries import Parting, Reading, assembled, bridges, excerpt, read_history, tail_weights
from .context_options import Limits
from .identifiers import count_objects, identifier_steps, is_record, read_structure, scalars, write_value
from .summary_text import beginning, ending
from .text_protocol import read_as_tools
from .token_weights import Entry, Remake, Scale
from .tool_pairs import (
    Answered,
    gap,
    is_marked,
    is_placeholder,
    lost_in,
    placeholder,
    query_of,
    said_in,
    spoken_in,
    text_of,
    with_note,
)

__all__ = [
    "Change",
    "Dropped",
    "Fate",
    "Shed",
    "Tier",
    "Trimmed",
    "clamp",
    "difference",
    "is_cuttable",
    "mask",
    "merge_dropped",
    "noted",
    "trim",
    "water_level",
    "weight_of",
]

Tier = Literal["clamp", "mask", "summarise", "digest", "trim"]
"""The tiers of a compaction, cheapest first."""

Fate = Literal["in_summary", "excerpt_in_summary", "summarised", "digested", "masked", "truncated", "dropped"]
"""What became of a message. Its words are in the summary message, whole (`in_summary`) or as an excerpt
(`excerpt_in_summary`); a model summarised it (`summarised`); it is part of a digest (`digested`); a line replaces its
results (`masked`); it lost its middle (`truncated`); nothing is left of it (`dropped`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shed:
    """What one tier of a compaction saved."""

    tier: Tier
    tokens: int
    """Tokens saved."""
    messages: int
    """Number of messages that were changed or removed."""
    broke_at: int
    """Place of the first changed message. The prompt cache stays valid up to it."""
    reread: int
    """Tokens behind that place, which the provider must read again once."""


@dataclass(frozen=True, slots=True)
class Change:
    """The result of one tier."""

    entries: tuple[Entry, ...]
    shed: Shed


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Adjacent messages of a history that were changed or removed in the same way."""

    first: int
    last: int
    """Numbers of the first and the last of them in the earlier history, from 1."""
    fate: Fate
    tokens: int
    """Tokens removed from the messages. What a summary has of them is not subtracted."""

    def to_json(self) -> dict[str, Json]:
        return {"first": self.first, "last": self.last, "fate": self.fate, "tokens": self.tokens}


def merge_dropped(single: Iterable[Dropped]) -> tuple[Dropped, ...]:
    """Merge adjacent messages of the same fate, in order."""
    merged = list[Dropped]()
    for one in single:
        before = merged[-1] if merged else None
        if before is not None and before.fate == one.fate and before.last + 1 == one.first:
            merged[-1] = replace(before, last=one.last, tokens=before.tokens + one.tokens)
        else:
            merged.append(one)
    return tuple(merged)


_WORTH = 0.5
"""Largest share of the tokens saved that the note may take."""


def noted(before: Sequence[Entry], after: Sequence[Entry], scale: Scale, room: int) -> Steps[tuple[Entry, ...]]:
    """Return the entries after a change, with a note of identifiers. `before` and `after` have the same places."""
    changed = [place for place, entry in enumerate(after) if entry is not before[place]]
    # A result written in fewer words shows by itself what belongs together.
    masked = {place for place in changed if _is_masked(after[place])}
    won = sum(before[place].weight.tokens - after[place].weight.tokens for place in changed)
    places = [place for place in changed if after[place].message.role != "assistant"]
    if not places:
        return tuple(after)
    # Output that arrived as text is not the user's own text.
    read = read_as_tools([entry.message for entry in before])
    note = yield from identifier_steps(
        [read[place] for place in changed],
        room=min(room, int(_WORTH * won)),
        count=scale.count,
        beside=[entry.message for entry in after],
        related=[
            message
            for place, message in enumerate(read)
            if place in masked or (masked and any(isinstance(part, ToolCall) for part in message.parts))
        ],
        alone=False,
    )
    last = places[-1]
    return (*after[:last], _with_note(after[last], note, scale), *after[last + 1 :]) if note else tuple(after)


def _is_masked(entry: Entry) -> bool:
    results = [join_texts(part.parts) for part in entry.message.parts if isinstance(part, ToolResult)]
    return any(map(is_placeholder, results or [join_texts(entry.message.parts)]))


def _with_note(entry: Entry, note: str, scale: Scale) -> Entry:
    texts = {
        number: text_of(result, scale.format) for number, result in enumerate(results_of(entry.native, scale.format))
    }
    marked = [number for number, text in texts.items() if is_marked(text)]
    if marked:
        number = marked[-1]
        native = with_results(entry.native, scale.format, {number: with_note(texts[number], note)})
    else:
        native = with_texts(entry.native, scale.format, lambda text: with_note(text, note) if is_marked(text) else text)
    return scale.remade(entry, native)


def weight_of(entries: Sequence[Entry]) -> int:
    return sum(entry.weight.tokens for entry in entries)


def difference(tier: Tier, before: Sequence[Entry], after: Sequence[Entry]) -> Change:
    """Compare two histories. Unchanged entries are the same objects."""
    left = {id(entry) for entry in after}
    broke_at = next(
        (place for place, pair in enumerate(zip(before, after, strict=False)) if pair[0] is not pair[1]), None
    )
    if broke_at is None:
        broke_at = min(len(before), len(after))
    shed = Shed(
        tier=tier,
        tokens=weight_of(before) - weight_of(after),
        messages=sum(id(entry) not in left for entry in before),
        broke_at=broke_at,
        reread=weight_of(after[broke_at:]),
    )
    return Change(tuple(after), shed)


_CLAMP_WORTH = 100
"""Fewest tokens that one cut must save, or a quarter of what may be left if that is more: a giant is far above its
limit."""
_TRIES = 8
_ROWS = (32, 16, 8, 4, 2)
"""Numbers of list items that are tried, ever fewer, if room is short."""
_MOSTLY, _MOSTLY_LISTED, _SEVERAL = 0.25, 0.67, 3
"""Share of a result above which a single text is most of its content, and the same share for a result with several
objects: in a list of tools with long descriptions, the names say more than the description of one."""
_WORD = re.compile(r"[\w.@:/-]+")


def clamp(  # noqa: PLR0913
    entries: Sequence[Entry],
    scale: Remake,
    most: int,
    *,
    recalls: bool = False,
    last_resort: bool = False,
    exactly: bool = False,
    written: bool = False,
    said_most: int | None = None,
    tail: int | None = None,
    tail_most: int | None = None,
    reading: Reading | None = None,
) -> Change | None:
    """Cut every giant part to at most `most` tokens. A result with media besides its text is left whole.

    Args:
        entries: The history.
        scale: Weighs the changed messages.
        most: Tokens that a part may keep.
        recalls: Whether dropped text can be searched with `recall`.
        last_resort: Whether to cut results with media and the model's own text too, drop media, and treat anything
            above the limit as a giant.
        exactly: Whether to treat anything above the limit as a giant.
        written: Whether to cut the model's own text in the tail as well.
        said_most: Limit of the user's first request and last words; None leaves them whole.
        tail: Place from which `tail_most` applies.
        tail_most: Limit in the tail; for the user's words there, the larger of both. None leaves the tail whole.
        reading: The entries' `Reading`, if known already.

    Returns:
        The change, or None if there is no giant.
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
        if bound is not None and place in said and not (exactly and place >= since):
            bound = max(bound, said_most or 0)
        is_free = last_resort or (written and place >= since)
        if bound is not None and is_cuttable(entry, written=is_free) and entry.weight.tokens > bound:
            there = answers.get(place, ())
            left[place] = work.clamped_whole(entry, there, bound) if is_whole else work.clamped(entry, there, bound)
    is_same = all(new is old for new, old in zip(left, entries, strict=True))
    return None if is_same else difference("clamp", entries, left)


def water_level(sizes: Sequence[int], room: int) -> int:
    """Return the limit to which larger sizes must be cut so that the sum is at most `room`; at least 1. If everything
    fits, at least the largest size."""
    for place, size in enumerate(ascending := sorted(sizes)):
        share = room // (len(ascending) - place)
        if size > share:
            return max(1, share)
        room -= size
    return max(1, room, *sizes)


def is_cuttable(entry: Entry, *, written: bool) -> bool:
    """Return whether the middle of a message may be cut. Messages of the model count only with `written`."""
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
        """Cut a message so that the whole of it has at most `most` tokens as its provider weighs it, each part to the
        same limit."""
        texts = [part.text for part in entry.message.parts if isinstance(part, Text)]
        texts += [text_of(one.result, self.scale.format) for one in answers if one.result and not one.as_text]
        if entry.message.role == "assistant":
            texts += [text for part in entry.message.parts if isinstance(part, ToolCall) for text in _arguments(part)]
        sizes = [self.scale.count(text) for text in texts]
        # A provider may weigh a text at more than its own tokens, for example because of escapes.
        room = most * sum(sizes) // max(1, entry.weight.tokens, sum(sizes))
        made = self.clamped(entry, answers, water_level(sizes, room))
        for _ in range(_TRIES):
            if made.weight.tokens <= most or made is entry:
                break
            room = room * most // made.weight.tokens
            smaller = self.clamped(entry, answers, water_level(sizes, room))
            if smaller is entry:
                # No text is left with so few tokens: the last cut is the nearest.
                break
            made = smaller
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
        return 1 if self.exactly else max(_CLAMP_WORTH, most // 4)

    def _cut(self, text: str, query: str, media: Sequence[Part], most: int) -> str | None:
        """Return the text with a gap, which replaces the media too; None if it is not a giant."""
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
        """Return a structured result in fewer words, as `write_value` writes it; None if it is not structured."""
        value = read_structure(text)
        # A result that is mostly one long text is better represented by its beginning and end.
        if not is_record(value):
            return None
        mostly = _MOSTLY_LISTED if count_objects(value) >= _SEVERAL else _MOSTLY
        if max(len(one) for _, one in scalars(value)) > mostly * len(text):
            return None
        line = gap(tokens, media, query if self.recalls else None)
        room = most - self.scale.count(line) - 1
        for form in sorted(filter(None, self._forms(value)), key=len, reverse=True):
            if self.scale.count(form) <= room:
                lost = tokens - self.scale.count(form) + lost_in(text)
                return f"{form}\n{gap(lost, media, query if self.recalls else None)}"
        return None

    def _forms(self, value: Json) -> Iterator[str]:
        """Yield forms in ever fewer words: everything, what names things, and of these what was mentioned."""
        yield write_value(value)
        for strict in (False, True):
            yield write_value(value, wanted=frozenset(), strict=strict)
            yield write_value(value, wanted=self.spoken, strict=strict)
        for rows in _ROWS:
            yield write_value(value, wanted=self.spoken, rows=rows, strict=True)
        yield write_value(value, wanted=frozenset(), rows=_ROWS[-1], strict=True)


def _arguments(call: ToolCall) -> list[str]:
    """Return the texts in a call's arguments."""
    try:
        return [text for _, text in scalars(loads(call.arguments))]
    except (ValueError, RecursionError):
        return [call.arguments]


def _spoken(entries: Sequence[Entry]) -> frozenset[str]:
    """Return the words of users, assistants and calls. The parts of a result that they mention matter most."""
    found = set[str]()
    for entry in entries:
        for part in entry.message.parts:
            if isinstance(part, Text) and entry.message.role != "tool":
                found.update(_WORD.findall(part.text))
            elif isinstance(part, ToolCall):
                found.update(_WORD.findall(part.arguments))
    return frozenset(found)


def _ends(text: str, share: float) -> tuple[str, str]:
    """Return the beginning and the end of a text, together a share of it, less if the last line would be a stump."""
    half = int(len(text) * share / 2)
    head, tail = text[:half], text[len(text) - half :]
    line = head.rfind("\n") + 1
    head = head[:line] if line > half // 2 else f"{beginning(text, half)}\n"
    line = tail.find("\n") + 1
    return head, tail[line:] if 0 < line < half // 2 else ending(text, half)


_NEWEST = 3
"""Number of newest results that are never masked, however large."""
_MASK_WORTH = 100
"""Fewest tokens that masking one result must save."""
_SHORT_ERROR = 500
"""Most tokens of an error that is kept: an agent that forgets a failure soon repeats it."""
_BATCH, _SHARE = 25_000, 8
"""Fewest tokens that masking must save in all; in a small window, the window divided by the second figure."""


def mask(
    entries: Sequence[Entry], scale: Remake, limits: Limits, *, recalls: bool = False, reading: Reading | None = None
) -> Change | None:
    """Mask the oldest results until the history reaches its goal; None if too little would be saved. `reading` is the
    entries' `Reading`, if known already."""
    least = min(_BATCH, limits.window // _SHARE)
    weights = tail_weights(entries)
    batches = _batches(entries, reading or read_history(entries), weights, limits.keep)
    if sum(entries[place].weight.tokens for place, _ in batches) < least:
        return None
    left, won = list(entries), 0
    for place, answers in batches:
        masked = _masked(entries[place], answers, scale, recalls=recalls)
        gain = entries[place].weight.tokens - masked.weight.tokens
        if gain > 0:
            left[place], won = masked, won + gain
        if won >= least and weights[0] - won <= limits.goal:
            break
    return difference("mask", entries, left) if won >= least else None


def _batches(
    entries: Sequence[Entry], reading: Reading, weights: Sequence[int], keep: int
) -> list[tuple[int, list[Answered]]]:
    """Return the results that are old enough, grouped by message."""
    answered = reading.answered
    newest = answered[-_NEWEST].place if len(answered) >= _NEWEST else 0
    said = reading.requests.last.union(reading.requests.first)
    able = (one for one in answered if one.place < newest and weights[one.place] > keep and one.place not in said)
    batches = list[tuple[int, list[Answered]]]()
    for place, those in groupby(able, key=lambda one: one.place):
        entry = entries[place]
        # Results in the assistant's own turn are of tools that the provider ran, and are encrypted.
        if entry.kind == "message" and not entry.pinned and entry.message.role != "assistant":
            batches.append((place, list(those)))
    return batches


def _masked(entry: Entry, answers: Sequence[Answered], scale: Remake, *, recalls: bool) -> Entry:
    lines = dict(_lines(answers, scale, recalls=recalls))
    if not lines:
        return entry
    if any(one.as_text for one in answers):
        return scale.remade(entry, with_texts(entry.native, scale.format, _first_only(lines[0])))
    return scale.remade(entry, with_results(entry.native, scale.format, lines))


def _first_only(line: str) -> Callable[[str], str]:
    """Return a function that replaces the first text of a message by the line and each other one by `…`, since
    providers refuse empty text."""
    lines = iter((line,))
    return lambda text: next(lines, "…") if text.strip() else text


def _lines(answers: Sequence[Answered], scale: Remake, *, recalls: bool) -> Iterator[tuple[int, str]]:
    for one in answers:
        if one.result is None or one.call is None or not one.call.takes_text:
            continue
        text = text_of(one.result, scale.format)
        tokens = scale.count(text)
        line = placeholder(one.call, tokens + lost_in(text), one.result.parts, recalls=recalls)
        if _is_worth(one.result, text, tokens, scale.count(line)):
            yield one.nth, line


def _is_worth(result: ToolResult, text: str, tokens: int, line: int) -> bool:
    if is_placeholder(text) or spoken_in(text) is not None or (result.is_error and tokens <= _SHORT_ERROR):
        return False
    kinds = {type(part) for part in result.parts}
    return Unknown not in kinds and (tokens - line >= _MASK_WORTH or Media in kinds)


_SMALLEST = 200
"""Tokens to which a single part is clamped at worst."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    change: Change
    kept: tuple[Entry, ...]
    """The remaining entries as they were before any was truncated, in the same order."""
    over: int
    """Tokens above the room that are left because what must stay is larger."""

    @property
    def fits(self) -> bool:
        return not self.over


def trim(entries: Sequence[Entry], scale: Remake, room: int, *, recalls: bool = False) -> Trimmed:
    kept = left = tuple(entries)
    if left and weight_of(left) > room:
        kept = _without_the_oldest(left, scale, room)
        left = _clamped(kept, scale, room, recalls=recalls)
    return Trimmed(difference("trim", entries, left), kept, max(0, weight_of(left) - room))


def _without_the_oldest(entries: Sequence[Entry], scale: Remake, room: int) -> tuple[Entry, ...]:
    """Drop as few of the oldest groups as possible, never the last."""
    parting, bridge = Parting(entries), bridges(scale)
    told = [place for place, entry in enumerate(entries) if entry.kind == "summary"][:1]

    def left(cut: int) -> tuple[Entry, ...]:
        before = {*parting.stays(cut), *(place for place in told if place < cut)}
        return assembled(None, entries, (*sorted(before), *range(cut, len(entries))), bridge)

    places = parting.places
    first = bisect_left(places, True, key=lambda cut: weight_of(left(cut)) <= room)
    return left(places[min(first, len(places) - 1)])


def _clamped(entries: tuple[Entry, ...], scale: Remake, room: int, *, recalls: bool) -> tuple[Entry, ...]:
    most = max(_SMALLEST, room // 2)
    while weight_of(entries) > room:
        cut = partial(clamp, entries, scale, most, recalls=recalls, last_resort=True, reading=read_history(entries))
        change = cut()
        if change is None or weight_of(change.entries) > room:
            change = cut(said_most=most) or change
        entries = entries if change is None else change.entries
        if most == _SMALLEST:
            break
        most = max(_SMALLEST, most // 2)
    return entries
