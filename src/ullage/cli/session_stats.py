"""Finds a conversation in session files and weighs what is in it.

A file may hold several; then the one named by its id is meant, or the latest. Everything that ever stood in the window
is weighed once, by the one meter. Nothing is printed here.
"""

import argparse
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal, cast

from ullage import app
from ullage.clients import Call, Conversation, Turn, read_conversations, read_text
from ullage.context import (
    DEFAULTS,
    Anchored,
    Category,
    Change,
    ContextUsage,
    Entry,
    Fixed,
    Options,
    Scale,
    limits_of,
    mask,
    observe,
    pair,
    shown_percent,
    shown_tokens,
    usage_of,
)
from ullage.errors import UnknownResource
from ullage.messages import Format, Part, Text, ToolCall, ToolResult
from ullage.models import Usage, cost_of
from ullage.tokens import Count, Method, drain

from .input_files import STDIN, read_standard_input
from .output import how_many

__all__ = [
    "Advice",
    "Figures",
    "Findings",
    "Found",
    "Level",
    "Loss",
    "Piece",
    "Reason",
    "ToolBurden",
    "Weighed",
    "add_flags",
    "advise",
    "all_in",
    "by_tool",
    "calls_carried",
    "cost_of_calls",
    "figures_of",
    "losses",
    "masked",
    "named",
    "pieces",
    "repeated",
    "together",
    "weigh",
]

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


_LABEL = 48
"""Characters at most."""
_WORDS: Mapping[Category, str] = {
    "user": "user",
    "assistant": "answer",
    "images": "media",
    "thinking": "thinking",
    "summary": "summary",
    "system": "system",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A result, a call, or what else one message is spent on."""

    place: int
    """Of its turn."""
    category: Category
    tool: str | None
    """For calls and results."""
    label: str
    tokens: int
    calls: int
    """Of the model, that it was sent with."""
    standing: bool
    """Whether it is in the window at the end."""
    asked: str | None = None
    """For calls and results, what was asked for, to the letter."""

    @property
    def carried(self) -> int:
        """Tokens that were read for its sake."""
        return self.tokens * self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBurden:
    name: str
    calls: int
    """Of the tool, since the conversation began."""
    tokens: int
    """Of its calls and results that are in the window now."""
    carried: int


def calls_carried(conversation: Conversation) -> list[int]:
    """For each turn, with how many calls of the model it was sent."""
    counts = [0] * len(conversation.turns)
    bounds = [0, *(mark.place for mark in conversation.compactions), len(conversation.turns)]
    places = [call.place for call in conversation.calls]
    for start, end in pairwise(bounds):
        # A call at the very place of a compaction came after it.
        asked = places[bisect_left(places, start) : bisect_left(places, end)]
        for turn in conversation.standing(asked[-1]) if asked else ():
            counts[turn] += len(asked) - (bisect_right(asked, turn) if turn >= start else 0)
    return counts


def pieces(conversation: Conversation, turns: Sequence[Entry], count: Callable[[str], int]) -> list[Piece]:
    """Of every turn; `count` weighs a plain text, to tell apart what shares one message."""
    carried, standing = calls_carried(conversation), frozenset(conversation.standing())
    asked = {
        id(one.result): (one.call.name, one.call.arguments)
        for one in pair([entry.message for entry in turns]).answered
        if one.call is not None
    }
    return [
        Piece(
            place=place,
            category=category,
            tool=tool,
            label=label,
            tokens=tokens,
            calls=carried[place],
            standing=place in standing,
            asked=said,
        )
        for place, entry in enumerate(turns)
        for category, tool, label, tokens, said in _parted(entry, asked, count)
    ]


_Told = tuple[Category, str | None, str, int, str | None]


def _parted(entry: Entry, asked: Mapping[int, tuple[str, str]], count: Callable[[str], int]) -> Iterator[_Told]:
    for category, tokens in entry.shares.items():
        if category not in ("tool_calls", "tool_results"):
            yield category, None, _words(category, entry.message.parts), tokens, None
            continue
        kind = ToolCall if category == "tool_calls" else ToolResult
        parts = [part for part in entry.message.parts if isinstance(part, kind)]
        weights = [count(_text(part)) for part in parts] if len(parts) > 1 else [1] * len(parts)
        whole = sum(weights) or 1
        for part, weight in zip(parts, weights, strict=True):
            name, arguments = _asked(part, asked)
            yield category, name, _label(name, arguments), round(tokens * weight / whole), arguments


def _asked(part: ToolCall | ToolResult, asked: Mapping[int, tuple[str, str]]) -> tuple[str, str]:
    if isinstance(part, ToolCall):
        return part.name, part.arguments
    return asked.get(id(part), (part.name or "unknown", ""))


def _text(part: Part) -> str:
    match part:
        case ToolCall():
            return part.arguments
        case ToolResult():
            return "\n".join(map(_text, part.parts))
        case Text():
            return part.text
        case _:
            return ""


def _label(name: str, arguments: str) -> str:
    """The tool and its most telling argument."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        given = arguments
    values = list(cast("dict[str, object]", given).values()) if isinstance(given, dict) else [cast("object", given)]
    said = next((" ".join(value.split()) for value in values if isinstance(value, str) and value.strip()), "")
    return _clipped(f"{name} {said}".strip())


def _words(category: Category, parts: Sequence[Part]) -> str:
    text = next((part.text for part in parts if isinstance(part, Text) and part.text.strip()), "")
    said = " ".join(text[:400].split()) if category in ("user", "assistant", "system") else ""
    return _clipped(f"{_WORDS.get(category, category)}: {said}" if said else _WORDS.get(category, category))


def _clipped(text: str) -> str:
    """The end of a path tells more than its beginning, and the beginning of a sentence more than its end."""
    if len(text) <= _LABEL:
        return text
    name, _, rest = text.partition(" ")
    if rest.startswith(("/", "~", ".")) and " " not in rest:
        return f"{name} …{rest[len(name) + 2 - _LABEL :]}"
    return text[: _LABEL - 1] + "…"


def by_tool(found: Sequence[Piece]) -> list[ToolBurden]:
    """The heaviest in the window first, then by what was carried."""
    names = dict.fromkeys(piece.tool for piece in found if piece.tool is not None)
    burdens = [_burden(name, [piece for piece in found if piece.tool == name]) for name in names]
    return sorted(burdens, key=lambda one: (-one.tokens, -one.carried, one.name))


def _burden(name: str, own: Sequence[Piece]) -> ToolBurden:
    return ToolBurden(
        name=name,
        calls=sum(piece.category == "tool_calls" for piece in own),
        tokens=sum(piece.tokens for piece in own if piece.standing),
        carried=sum(piece.carried for piece in own),
    )


def repeated(found: Sequence[Piece]) -> list[tuple[Piece, int, int]]:
    """Calls made several times whose results all stand in the window: the last of each, how many there are, and the
    tokens of the earlier ones; the heaviest first."""
    groups: dict[tuple[str | None, str | None], list[Piece]] = {}
    for piece in found:
        if piece.standing and piece.category == "tool_results" and piece.asked:
            groups.setdefault((piece.tool, piece.asked), []).append(piece)
    several = [(own[-1], len(own), sum(piece.tokens for piece in own[:-1])) for own in groups.values() if len(own) > 1]
    return sorted(several, key=lambda one: -one[2])


Reason = Literal["pause", "compaction", "model", "change"]
"""`change` is any that the file does not tell: another system prompt, other tools, a message that was edited."""
_LEAST = 5_000
"""Tokens that are worth speaking of."""
_KEPT_FOR = timedelta(minutes=4.5)
"""After which most providers forget, less the time that an answer takes: times are those of its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    call: int
    """The number of the call, from 1."""
    tokens: int
    """That had been read before and were read anew."""
    reason: Reason
    pause: timedelta | None


def losses(conversation: Conversation) -> list[Loss]:
    marks = [mark.place for mark in conversation.compactions]
    calls = conversation.calls
    found = (
        _loss(number, before, call, compacted=any(before.place < mark <= call.place for mark in marks))
        for number, (before, call) in enumerate(pairwise(calls), 2)
    )
    return [loss for loss in found if loss is not None]


def _loss(number: int, before: Call, call: Call, *, compacted: bool) -> Loss | None:
    tokens = _anew(before, call)
    if tokens < _LEAST:
        return None
    pause = call.at - before.at if call.at and before.at else None
    return Loss(call=number, tokens=tokens, reason=_reason(before, call, pause, compacted=compacted), pause=pause)


def _anew(before: Call, call: Call) -> int:
    """Nothing where the call before had not been put into a cache, or more than half of it came from there."""
    if before.usage is None or call.usage is None or call.usage.cache_read is None:
        return 0
    if not (before.usage.cache_read or before.usage.cache_write):
        return 0
    shared = min(before.usage.input or 0, call.usage.input or 0)
    return shared - call.usage.cache_read if 2 * call.usage.cache_read < shared else 0


def _reason(before: Call, call: Call, pause: timedelta | None, *, compacted: bool) -> Reason:
    if compacted:
        return "compaction"
    if before.model != call.model:
        return "model"
    return "pause" if pause is not None and pause > _KEPT_FOR else "change"


def together(found: Sequence[Loss], reason: Reason) -> tuple[int, int]:
    """How often for that reason, and how many tokens in all."""
    own = [loss.tokens for loss in found if loss.reason == reason]
    return len(own), sum(own)


_HEAVY_TOOLS, _MANY_TOOLS = 0.05, 10_000
"""Of the window, or tokens, from which tool definitions are worth a word."""
_REPEATED = 0.02
"""Of what is used, from which results that stand there twice are."""
_GIANT = 0.10
"""Of the window, from which one piece is."""
_CLOSE = 5
"""Calls between two compactions that are too few."""


@dataclass(frozen=True, slots=True)
class Advice:
    finding: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What advice follows from."""

    file: str
    usage: ContextUsage
    pieces: Sequence[Piece]
    burdens: Sequence[ToolBurden]
    masked: Change | None
    """What masking old results would leave; None where it would win too little."""
    lost: Sequence[Loss]
    between: Sequence[int]
    """The calls from each compaction to the next."""


def advise(by: Findings) -> list[Advice]:
    return [
        *_full(by.usage, by.file),
        *_results(by.usage, by.burdens, by.masked),
        *_giants(by.usage, by.pieces),
        *_again(by.usage, by.pieces),
        *_tools(by.usage),
        *_cache(by.lost),
        *_thrash(by.between),
    ]


def _full(usage: ContextUsage, file: str) -> Iterator[Advice]:
    if usage.will_compact:
        yield Advice(
            f"{shown_percent(usage.used, usage.context_window, 1)} of the window is used, and the threshold is "
            f"{usage.compact_threshold:g}%.",
            f"`ullage compact {file} --dry-run` shows what would be removed.",
        )


def _results(usage: ContextUsage, burdens: Sequence[ToolBurden], masked: Change | None) -> Iterator[Advice]:
    if masked is None or not burdens:
        return
    first, shed = burdens[0], masked.shed
    yield Advice(
        f"`{first.name}` takes {shown_tokens(first.tokens)}, {shown_percent(first.tokens, usage.weighed, 1)} of what "
        "is used.",
        f"Masking the {how_many(shed.messages, 'oldest result')} of all tools would free {shown_tokens(shed.tokens)}.",
    )


def _giants(usage: ContextUsage, found: Sequence[Piece]) -> Iterator[Advice]:
    window = usage.context_window
    giants = [piece for piece in found if piece.standing and piece.tokens >= _GIANT * window]
    for piece in sorted(giants, key=lambda one: -one.tokens)[:3]:
        yield Advice(
            f"`{piece.label}` alone is {shown_tokens(piece.tokens)}, {shown_percent(piece.tokens, window, 1)} of the "
            "window.",
            "Ask for less at a time, or let Ullage hold long results and show their beginning."
            if piece.tool is not None
            else "It is sent again with every call; a file to read in parts would weigh less.",
        )


def _again(usage: ContextUsage, found: Sequence[Piece]) -> Iterator[Advice]:
    several = repeated(found)
    tokens = sum(each for _, _, each in several)
    if tokens < _REPEATED * usage.weighed or not several:
        return
    piece, times, own = several[0]
    yield Advice(
        f"`{piece.label}` stands there {times} times; the earlier ones weigh {shown_tokens(own)}.",
        f"Results of calls that were made again weigh {shown_tokens(tokens)} in all; the last of each would do.",
    )


def _tools(usage: ContextUsage) -> Iterator[Advice]:
    tokens = usage.tool_definitions
    if tokens < min(_MANY_TOOLS, _HEAVY_TOOLS * usage.context_window):
        return
    servers = [(name, own) for name, own in usage.breakdown.servers.items() if name is not None]
    most = f", most of them `{servers[0][0]}`'s ({shown_tokens(servers[0][1])})" if servers else ""
    yield Advice(
        f"{how_many(len(usage.breakdown.tools), 'tool definition')} take {shown_tokens(tokens)} of every call{most}.",
        "`ullage serve` in front of the servers shows a few tools that find the others.",
    )


def _cache(lost: Sequence[Loss]) -> Iterator[Advice]:
    times, tokens = together(lost, "pause")
    if times:
        yield Advice(
            f"The prompt cache ran out in {how_many(times, 'pause')}: {shown_tokens(tokens)} tokens were read anew.",
            "After a long pause a compaction costs nothing more: the cache is gone anyway.",
        )
    times, tokens = together(lost, "change")
    if times:
        first = next(loss.call for loss in lost if loss.reason == "change")
        yield Advice(
            f"The prompt cache broke {how_many(times, 'time')} without a pause, first at call {first:,}: "
            f"{shown_tokens(tokens)} tokens were read anew.",
            "Something early in the prompt changed: tools, the system prompt, or a message that was edited.",
        )
    times, tokens = together(lost, "model")
    if times:
        yield Advice(
            f"The model changed {how_many(times, 'time')}, and {shown_tokens(tokens)} tokens were read anew.",
            "Change the model right after a compaction, when there is little to read.",
        )


def _thrash(between: Sequence[int]) -> Iterator[Advice]:
    close = [calls for calls in between if calls <= _CLOSE]
    if len(close) > 1:
        yield Advice(
            f"It was compacted again within {_CLOSE} calls {how_many(len(close), 'time')}.",
            "What stays after a compaction is too much: the system prompt and the tools, or one giant result.",
        )


_FIGURES_LEAST = Decimal("0.005")
"""Dollars that are worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    costliest: tuple[Piece, ...]
    """Every piece, by what was carried."""
    burdens: tuple[ToolBurden, ...]
    lost: tuple[Loss, ...]
    marks: tuple[int, ...]
    """For each compaction, the place of the first call after it; the number of calls where there is none."""
    drops: tuple[str, ...]
    """What each compaction let go, in words."""
    read: int | None
    """Tokens of input, over all calls that were reported."""
    cached: int | None
    """That of them came from a cache."""
    dollars: Decimal | None
    """None where some call has no usage or no price."""
    advice: tuple[Advice, ...]

    @property
    def spent(self) -> str:
        """One line of words."""
        if not self.read:
            return ""
        cached = f", {shown_percent(self.cached, self.read, 1)} of them cached" if self.cached else ""
        money = "" if not self.dollars or self.dollars < _FIGURES_LEAST else f" · ${self.dollars:,.2f} at list prices"
        return f"{shown_tokens(self.read)} tokens read{cached}{money}"


def figures_of(weighed: Weighed) -> Figures:
    conversation = weighed.conversation
    found = pieces(conversation, weighed.turns, weighed.scale.count)
    burdens, lost = by_tool(found), losses(conversation)
    marks = _marks(weighed)
    used = [call.usage for call in conversation.calls if call.usage is not None]
    return Figures(
        costliest=tuple(sorted(found, key=lambda one: (-one.carried, -one.tokens, one.place))),
        burdens=tuple(burdens),
        lost=tuple(lost),
        marks=tuple(marks),
        drops=tuple(_drops(weighed, marks)),
        read=sum(one.input or 0 for one in used) if used else None,
        cached=sum(one.cache_read or 0 for one in used) if used else None,
        dollars=cost_of_calls(conversation.calls, weighed.model),
        advice=tuple(
            advise(
                Findings(
                    file=weighed.file,
                    usage=weighed.usage,
                    pieces=found,
                    burdens=burdens,
                    masked=masked(weighed),
                    lost=lost,
                    between=[later - mark for mark, later in pairwise(marks)],
                )
            )
        ),
    )


def _marks(weighed: Weighed) -> list[int]:
    places = [call.place for call in weighed.conversation.calls]
    return [bisect_left(places, mark.place) for mark in weighed.conversation.compactions]


def _drops(weighed: Weighed, marks: Sequence[int]) -> list[str]:
    """From the call before to the call after; where there is none between two compactions, what was left is weighed."""
    levels, fixed = [level.tokens for level in weighed.levels], weighed.fixed.total.tokens
    said: list[str] = []
    earlier, last = 0, fixed
    for mark, later, one in zip(marks, [*marks, len(levels)][1:], weighed.conversation.compactions, strict=True):
        before = one.before or (levels[mark - 1] if mark > earlier else last)
        left = fixed + sum(weighed.turns[place].weight.tokens for place in one.left)
        last = levels[mark] if mark < later else one.after or left
        said.append(f"{shown_tokens(before)} → {shown_tokens(last)}")
        earlier = mark
    return said


def masked(weighed: Weighed) -> Change | None:
    """What masking old results would leave, and nothing else; None where it would win too little."""
    usage = weighed.usage
    limits = limits_of(
        DEFAULTS,
        usage.context_window,
        fixed=weighed.fixed.total.tokens,
        used=usage.weighed,
        scale=usage.used / usage.weighed if usage.weighed else 1.0,
    )
    return mask(weighed.entries, weighed.scale, limits)


def cost_of_calls(calls: Sequence[Call], model: str) -> Decimal | None:
    total = Decimal(0)
    for call in calls:
        match = app.meter().models.get(call.model or model)
        if call.usage is None or match is None:
            return None
        cost = cost_of(call.usage, match, when=call.at or datetime.now(UTC))
        if cost is None or cost.total is None or cost.currency != "USD":
            return None
        total += cost.total
    return total if calls else None
