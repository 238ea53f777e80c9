"""Which conversation does a person mean, and what does it weigh?

A file may hold several; then the one named by its id is meant, or the latest. Everything that ever stood in the window
is weighed once, by the one meter. Nothing is printed here.
"""

import argparse
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from ullage import app
from ullage.clients import Call, Conversation, Turn, read_conversations, read_text
from ullage.context import Anchored, ContextUsage, Entry, Fixed, Options, Scale, observe, usage_of
from ullage.errors import UnknownResource
from ullage.messages import Format
from ullage.models import Usage
from ullage.tokens import Count, Method, drain

from .files import STDIN, read_standard_input

__all__ = ["Found", "Level", "Weighed", "add_flags", "all_in", "named", "weigh"]

_STAND_INS = {Format.ANTHROPIC: "claude", Format.GEMINI: "gemini-2.5-pro"}
_STAND_IN = "gpt-4o"
"""As which a conversation is weighed that names no model."""
_SIZES = {"k": 1_000, "m": 1_000_000}
_UNSEEN = 0.25
"""The band of a weight that was told from a report and nothing else."""


@dataclass(frozen=True, slots=True)
class Found:
    file: str
    conversation: Conversation

    @property
    def size(self) -> int:
        """By which progress is told."""
        return len(self.conversation.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How full the window was at one call of the model."""

    call: Call
    tokens: int
    reported: bool
    """Whether the provider said so; else it was weighed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    file: str
    conversation: Conversation
    model: str
    """As which it was weighed."""
    is_guessed: bool
    """Whether neither the file nor the user names one."""
    scale: Scale
    fixed: Fixed
    unseen: int | None
    """What tools weigh that are not in the file, and a system prompt that is not, as far as reports tell it."""
    turns: tuple[Entry, ...]
    """Everything that ever stood in the window."""
    entries: tuple[Entry, ...]
    """What stands there at the end, each under its place as its record."""
    usage: ContextUsage
    anchored: Anchored | None
    levels: tuple[Level, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the file holds the system prompt and the tools."""
        return self.conversation.tools is not None


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", "-m", metavar="MODEL", help="count for this model instead of the session's own")
    parser.add_argument(
        "--window", type=_tokens, metavar="TOKENS", help="size of the context window (default: the model's)"
    )
    parser.add_argument("--session", metavar="ID", help="session to use, in a file with several")


def _tokens(word: str) -> int:
    """`200000`, `200_000`, `200k` or `1M`."""
    size = _SIZES.get(word[-1:].lower(), 1)
    try:
        tokens = int(float(word[:-1] if size > 1 else word) * size)
    except (ValueError, OverflowError):
        tokens = 0
    if tokens < 1:
        raise argparse.ArgumentTypeError(f"`{word}` is no number of tokens: 200000, 200k and 1M are")
    return tokens


def all_in(word: str) -> list[Found]:
    """Every conversation of a file, or of standard input; the latest at the end."""
    if word == STDIN:
        return [Found("standard input", one) for one in read_text(read_standard_input(), "standard input")]
    return [Found(word, one) for one in read_conversations(Path(word))]


def named(found: Sequence[Found], identity: str) -> Found:
    """The one of that id."""
    one = next((one for one in reversed(found) if one.conversation.id == identity), None)
    if one is None:
        known = tuple(one.conversation.id for one in found if one.conversation.id is not None)
        raise UnknownResource(f"no session there has the id `{identity}`", options=known[-20:])
    return one


def weigh(found: Found, options: Options, model: str | None = None) -> Weighed:
    """A window that nobody gives is the one that the program wrote down, if it did."""
    conversation = found.conversation
    name = model or conversation.model or _STAND_INS.get(conversation.format, _STAND_IN)
    if options.context_window is None:
        options = replace(options, context_window=conversation.window)
    scale = Scale(app.meter(), name, conversation.format)
    standing = [conversation.turns[place] for place in conversation.standing()]
    weights = drain(scale.entries([turn.native for turn in standing]))
    entries = tuple(map(_known, weights, standing, map(str, range(len(standing)))))
    turns = drain(scale.entries([turn.native for turn in conversation.turns]))
    fixed = drain(scale.fixed(conversation.system, conversation.tools or (), entries))
    unseen = _unseen(conversation, fixed, turns)
    if unseen is not None:
        fixed = replace(fixed, system_prompt=fixed.system_prompt + Count.within(unseen, _UNSEEN, Method.ESTIMATED))
    anchored = _anchor(conversation, scale, fixed, entries)
    return Weighed(
        file=found.file,
        conversation=conversation,
        model=name,
        is_guessed=model is None and conversation.model is None,
        scale=scale,
        fixed=fixed,
        unseen=unseen,
        turns=turns,
        entries=entries,
        usage=usage_of(scale, fixed, entries, options, anchored=anchored),
        anchored=anchored,
        levels=tuple(_levels(conversation, fixed, turns)),
    )


def _known(entry: Entry, turn: Turn, place: str) -> Entry:
    return replace(entry, pinned=turn.pinned, record=place)


def _anchor(conversation: Conversation, scale: Scale, fixed: Fixed, entries: Sequence[Entry]) -> Anchored | None:
    """What the provider reported since the last compaction, first and last: where it ended, and how it counts."""
    since = conversation.compactions[-1].place if conversation.compactions else 0
    told = [call for call in _told(conversation) if call.place >= since]
    anchored = None
    for call in [*told[:1], *told[1:][-1:]]:
        sent = len(conversation.standing(call.place))
        later = next((one.place for one in conversation.calls if one.place > call.place), len(conversation.turns))
        answer = entries[sent : sent + _answer(entries[sent:], later - call.place)]
        usage = call.usage or Usage()
        anchored = observe(scale, usage, fixed=fixed, sent=entries[:sent], answer=answer, before=anchored)
    return anchored


def _answer(entries: Sequence[Entry], most: int) -> int:
    """How many entries the answer is."""
    return next(
        (n for n, entry in enumerate(entries[:most]) if entry.message.role != "assistant"), min(most, len(entries))
    )


def _unseen(conversation: Conversation, fixed: Fixed, turns: Sequence[Entry]) -> int | None:
    """By how much more than our weight was reported where least was: there our own error is least, too."""
    told = _told(conversation)
    if conversation.tools is not None or not told:
        return None
    least = min(told, key=_reported)
    return max(0, _reported(least) - fixed.total.tokens - _standing_weight(conversation, least.place, _sums(turns)))


def _told(conversation: Conversation) -> list[Call]:
    """The calls that were reported on, of the model that answered last: another counts otherwise."""
    return [call for call in conversation.calls if call.usage is not None and call.model == conversation.model]


def _reported(call: Call) -> int:
    return 0 if call.usage is None else call.usage.input or 0


def _sums(turns: Sequence[Entry]) -> list[int]:
    return [0, *accumulate(entry.weight.tokens for entry in turns)]


def _levels(conversation: Conversation, fixed: Fixed, turns: Sequence[Entry]) -> Iterator[Level]:
    """What no provider reported is weighed, and put right by what the last report differed from our weight."""
    sums = _sums(turns)
    off = 0
    for call in conversation.calls:
        weighed = fixed.total.tokens + _standing_weight(conversation, call.place, sums)
        reported = call.usage.input if call.usage is not None else None
        if reported is not None:
            off = reported - weighed
        yield Level(call=call, tokens=max(0, weighed + off), reported=reported is not None)


def _standing_weight(conversation: Conversation, place: int, sums: Sequence[int]) -> int:
    marks = [one.place for one in conversation.compactions]
    last = bisect_right(marks, place) - 1
    if last < 0:
        return sums[place]
    mark = conversation.compactions[last]
    left = sum(sums[each + 1] - sums[each] for each in mark.left)
    return sums[place] - sums[mark.place] + left
