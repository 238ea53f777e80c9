"""Replaces old tool results by a line that names their call.

A result is masked when it is old, when its call can be named, and when a line in its place is really less; output that
arrives as a user's text is a result too. All that are masked at a time are masked together: each time, a provider must
read the history anew from the first of them on, so that a small gain is none. The calls themselves stay, and what the
user said, and what a provider ran itself.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from ullage.messages import Media, ToolResult, Unknown, with_results, with_texts

from .cut import tail_weights
from .difference import difference
from .entry import Entry
from .limits import Limits
from .pairing import Answered
from .remake import Remake
from .requests import Reading, read_history
from .shed import Change
from .words import is_placeholder, lost_in, placeholder, text_of

__all__ = ["mask"]

_NEWEST = 3
"""Results that are never masked, however large."""
_WORTH = 100
"""Tokens that masking one result must win."""
_SHORT_ERROR = 500
"""Tokens up to which an error is kept: what failed is soon tried again by one who has forgotten."""
_BATCH, _SHARE = 25_000, 8
"""Tokens that masking must win in all, or that part of a small window."""


def mask(
    entries: Sequence[Entry], scale: Remake, limits: Limits, *, recalls: bool = False, reading: Reading | None = None
) -> Change | None:
    """The oldest results masked, as many as are needed to come to the goal; None where too little is to be had. The
    `reading` is that of the entries, where there is one already."""
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
    """The results that are old enough, message by message."""
    answered = reading.answered
    newest = answered[-_NEWEST].place if len(answered) >= _NEWEST else 0
    said = reading.requests.last.union(reading.requests.first)
    able = (one for one in answered if one.place < newest and weights[one.place] > keep and one.place not in said)
    return [
        (place, list(those)) for place, those in groupby(able, key=lambda one: one.place) if _is_free(entries[place])
    ]


def _is_free(entry: Entry) -> bool:
    """Results in the assistant's own turn are those of tools that the provider ran, and are sealed."""
    return entry.kind == "message" and not entry.pinned and entry.message.role != "assistant"


def _masked(entry: Entry, answers: Sequence[Answered], scale: Remake, *, recalls: bool) -> Entry:
    lines = dict(_lines(answers, scale, recalls=recalls))
    if not lines:
        return entry
    if any(one.as_text for one in answers):
        return scale.remade(entry, with_texts(entry.native, scale.format, _first_only(lines[0])))
    return scale.remade(entry, with_results(entry.native, scale.format, lines))


def _first_only(line: str) -> Callable[[str], str]:
    """Replaces the first text of a message by the line and each other one by `…`: providers refuse an empty text."""
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
    if is_placeholder(text) or (result.is_error and tokens <= _SHORT_ERROR):
        return False
    kinds = {type(part) for part in result.parts}
    return Unknown not in kinds and (tokens - line >= _WORTH or Media in kinds)
