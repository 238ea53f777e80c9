"""Finds a conversation in session files and counts the tokens of its parts.

If a file contains several conversations, the one with the given id is used, or the latest. Everything that was ever in
the window is counted once, by the one meter. Nothing is printed here.
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
from ullage.clients import Call, Conversation, read_conversations, read_text
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
    "FoundConversation",
    "Level",
    "Loss",
    "Piece",
    "Reason",
    "ToolBurden",
    "WeighedConversation",
    "add_flags",
    "advise",
    "by_tool",
    "calls_carried",
    "cost_of_calls",
    "estimate_masking",
    "figures_of",
    "find_by_id",
    "find_repeated_calls",
    "losses",
    "pieces",
    "read_conversations_in",
    "together",
    "weigh",
]

_STAND_INS = {Format.ANTHROPIC: "claude", Format.GEMINI: "gemini-2.5-pro"}
_STAND_IN = "gpt-4o"
"""The model used for counting if a conversation names none."""
_SIZES = {"k": 1_000, "m": 1_000_000}
_UNSEEN = 0.25
"""The band of a weight that is inferred from reported usage alone."""


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """A conversation and the file that contains it."""

    file: str
    conversation: Conversation

    @property
    def size(self) -> int:
        """The size by which progress is measured."""
        return len(self.conversation.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The tokens in the window at one call of the model."""

    call: Call
    tokens: int
    reported: bool
    """Whether the provider reported the tokens; otherwise they were counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedConversation:
    """A conversation with the tokens of its parts."""

    file: str
    conversation: Conversation
    model: str
    """The model whose tokens were counted."""
    is_guessed: bool
    """Whether neither the file nor the user names a model."""
    scale: Scale
    fixed: Fixed
    unseen: int | None
    """Tokens of tools and system prompt that are missing from the file, as far as reported usage reveals them."""
    turns: tuple[Entry, ...]
    """Everything that was ever in the window."""
    entries: tuple[Entry, ...]
    """The entries in the window at the end, each with its place as its record."""
    usage: ContextUsage
    anchored: Anchored | None
    levels: tuple[Level, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the file contains the system prompt and the tools."""
        return self.conversation.tools is not None


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", "-m", metavar="MODEL", help="count for this model instead of the session's own")
    parser.add_argument(
        "--window", type=_tokens, metavar="TOKENS", help="size of the context window (default: the model's)"
    )
    parser.add_argument("--session", metavar="ID", help="session to use, in a file with several")


def _tokens(word: str) -> int:
    """Parse a number of tokens: `200000`, `200_000`, `200k` or `1M`."""
    size = _SIZES.get(word[-1:].lower(), 1)
    try:
        tokens = int(float(word[:-1] if size > 1 else word) * size)
    except (ValueError, OverflowError):
        tokens = 0
    if tokens < 1:
        raise argparse.ArgumentTypeError(f"`{word}` is not a number of tokens such as 200000, 200k or 1M")
    return tokens


def read_conversations_in(word: str) -> list[FoundConversation]:
    """Return every conversation of a file, or of standard input, the latest last."""
    if word == STDIN:
        return [FoundConversation("standard input", one) for one in read_text(read_standard_input(), "standard input")]
    return [FoundConversation(word, one) for one in read_conversations(Path(word))]


def find_by_id(found: Sequence[FoundConversation], identity: str) -> FoundConversation:
    """Return the conversation with this id."""
    one = next((one for one in reversed(found) if one.conversation.id == identity), None)
    if one is None:
        known = tuple(one.conversation.id for one in found if one.conversation.id is not None)
        raise UnknownResource(f"no session there has the id `{identity}`", options=known[-20:])
    return one


def weigh(found: FoundConversation, options: Options, model: str | None = None) -> WeighedConversation:
    """Count the tokens of a conversation. If no window is given, the one that the program recorded is used, if any."""
    conversation = found.conversation
    name = model or conversation.model or _STAND_INS.get(conversation.format, _STAND_IN)
    if options.context_window is None:
        options = replace(options, context_window=conversation.window)
    scale = Scale(app.meter(), name, conversation.format)
    standing = [conversation.turns[place] for place in conversation.turns_in_window()]
    weights = drain(scale.entries([turn.native for turn in standing]))
    entries = tuple(
        replace(entry, pinned=turn.pinned, record=str(place))
        for place, (entry, turn) in enumerate(zip(weights, standing, strict=False))
    )
    turns = drain(scale.entries([turn.native for turn in conversation.turns]))
    fixed = drain(scale.fixed(conversation.system, conversation.tools or (), entries))
    # Counting errors are smallest where the reported input is smallest.
    told = _reported_calls(conversation)
    if conversation.tools is not None or not told:
        unseen = None
    else:
        least = min(told, key=_input_tokens)
        unseen = max(
            0,
            _input_tokens(least) - fixed.total.tokens - _window_weight(conversation, least.place, _running_sums(turns)),
        )
    if unseen is not None:
        fixed = replace(fixed, system_prompt=fixed.system_prompt + Count.within(unseen, _UNSEEN, Method.ESTIMATED))
    # The first and the last usage since the last compaction calibrate the count: they give the total at the end, and
    # the ratio to Ullage's count.
    since = conversation.compactions[-1].place if conversation.compactions else 0
    told = [call for call in _reported_calls(conversation) if call.place >= since]
    anchored = None
    for call in [*told[:1], *told[1:][-1:]]:
        sent = len(conversation.turns_in_window(call.place))
        later = next((one.place for one in conversation.calls if one.place > call.place), len(conversation.turns))
        rest, most = entries[sent:], later - call.place
        ended = (place for place, entry in enumerate(rest[:most]) if entry.message.role != "assistant")
        answer = rest[: next(ended, min(most, len(rest)))]
        usage = call.usage or Usage()
        anchored = observe(scale, usage, fixed=fixed, sent=entries[:sent], answer=answer, before=anchored)
    return WeighedConversation(
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


def _reported_calls(conversation: Conversation) -> list[Call]:
    """Return the calls with reported usage of the model that answered last: other models count differently."""
    return [call for call in conversation.calls if call.usage is not None and call.model == conversation.model]


def _input_tokens(call: Call) -> int:
    return 0 if call.usage is None else call.usage.input or 0


def _running_sums(turns: Sequence[Entry]) -> list[int]:
    return [0, *accumulate(entry.weight.tokens for entry in turns)]


def _levels(conversation: Conversation, fixed: Fixed, turns: Sequence[Entry]) -> Iterator[Level]:
    """Yield the level at each call. Unreported levels are counted and corrected by the difference between the last
    report and Ullage's count."""
    sums = _running_sums(turns)
    off = 0
    for call in conversation.calls:
        weighed = fixed.total.tokens + _window_weight(conversation, call.place, sums)
        reported = call.usage.input if call.usage is not None else None
        if reported is not None:
            off = reported - weighed
        yield Level(call=call, tokens=max(0, weighed + off), reported=reported is not None)


def _window_weight(conversation: Conversation, place: int, sums: Sequence[int]) -> int:
    marks = [one.place for one in conversation.compactions]
    last = bisect_right(marks, place) - 1
    if last < 0:
        return sums[place]
    mark = conversation.compactions[last]
    left = sum(sums[each + 1] - sums[each] for each in mark.left)
    return sums[place] - sums[mark.place] + left


_LABEL = 48
"""Maximum characters."""
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
    """A result, a call, or another part of one message."""

    place: int
    """The place of its turn."""
    category: Category
    tool: str | None
    """Set for calls and results."""
    label: str
    tokens: int
    calls: int
    """Number of the model's calls that it was sent with."""
    standing: bool
    """Whether it is in the window at the end."""
    asked: str | None = None
    """For calls and results, the exact arguments of the call."""

    @property
    def carried(self) -> int:
        """Tokens read for this piece in all calls together."""
        return self.tokens * self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBurden:
    """The tokens of one tool's calls and results."""

    name: str
    calls: int
    """Number of calls of the tool since the conversation began."""
    tokens: int
    """Tokens of its calls and results that are in the window now."""
    carried: int


def calls_carried(conversation: Conversation) -> list[int]:
    """Return, for each turn, with how many calls of the model it was sent."""
    counts = [0] * len(conversation.turns)
    bounds = [0, *(mark.place for mark in conversation.compactions), len(conversation.turns)]
    places = [call.place for call in conversation.calls]
    for start, end in pairwise(bounds):
        # A call at the exact place of a compaction came after it.
        asked = places[bisect_left(places, start) : bisect_left(places, end)]
        for turn in conversation.turns_in_window(asked[-1]) if asked else ():
            counts[turn] += len(asked) - (bisect_right(asked, turn) if turn >= start else 0)
    return counts


def pieces(conversation: Conversation, turns: Sequence[Entry], count: Callable[[str], int]) -> list[Piece]:
    """Return the pieces of every turn; `count` counts the tokens of a plain text, to separate the parts of one
    message."""
    carried, standing = calls_carried(conversation), frozenset(conversation.turns_in_window())
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
        for category, tool, label, tokens, said in _split_entry(entry, asked, count)
    ]


_Told = tuple[Category, str | None, str, int, str | None]


def _split_entry(entry: Entry, asked: Mapping[int, tuple[str, str]], count: Callable[[str], int]) -> Iterator[_Told]:
    for category, tokens in entry.shares.items():
        if category not in ("tool_calls", "tool_results"):
            text = next((part.text for part in entry.message.parts if isinstance(part, Text) and part.text.strip()), "")
            said = " ".join(text[:400].split()) if category in ("user", "assistant", "system") else ""
            yield (
                category,
                None,
                _clip_text(f"{_WORDS.get(category, category)}: {said}" if said else _WORDS.get(category, category)),
                tokens,
                None,
            )
            continue
        kind = ToolCall if category == "tool_calls" else ToolResult
        parts = [part for part in entry.message.parts if isinstance(part, kind)]
        weights = [count(_text(part)) for part in parts] if len(parts) > 1 else [1] * len(parts)
        whole = sum(weights) or 1
        for part, weight in zip(parts, weights, strict=True):
            if isinstance(part, ToolCall):
                name, arguments = part.name, part.arguments
            else:
                name, arguments = asked.get(id(part), (part.name or "unknown", ""))
            # The label is the tool and its most informative argument.
            try:
                given = json.loads(arguments)
            except (ValueError, RecursionError):
                given = arguments
            values = (
                list(cast("dict[str, object]", given).values()) if isinstance(given, dict) else [cast("object", given)]
            )
            words = next((" ".join(value.split()) for value in values if isinstance(value, str) and value.strip()), "")
            yield category, name, _clip_text(f"{name} {words}".strip()), round(tokens * weight / whole), arguments


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


def _clip_text(text: str) -> str:
    """Clip a text: of a path the end is kept, of a sentence the beginning."""
    if len(text) <= _LABEL:
        return text
    name, _, rest = text.partition(" ")
    if rest.startswith(("/", "~", ".")) and " " not in rest:
        return f"{name} …{rest[len(name) + 2 - _LABEL :]}"
    return text[: _LABEL - 1] + "…"


def by_tool(found: Sequence[Piece]) -> list[ToolBurden]:
    """Return the tools ordered by their tokens in the window, then by the tokens carried, largest first."""
    names = dict.fromkeys(piece.tool for piece in found if piece.tool is not None)
    burdens: list[ToolBurden] = []
    for name in names:
        own = [piece for piece in found if piece.tool == name]
        burdens.append(
            ToolBurden(
                name=name,
                calls=sum(piece.category == "tool_calls" for piece in own),
                tokens=sum(piece.tokens for piece in own if piece.standing),
                carried=sum(piece.carried for piece in own),
            )
        )
    return sorted(burdens, key=lambda one: (-one.tokens, -one.carried, one.name))


def find_repeated_calls(found: Sequence[Piece]) -> list[tuple[Piece, int, int]]:
    """Return calls made several times whose results are all in the window: the last of each, how many there are, and
    the tokens of the earlier ones; largest first."""
    groups: dict[tuple[str | None, str | None], list[Piece]] = {}
    for piece in found:
        if piece.standing and piece.category == "tool_results" and piece.asked:
            groups.setdefault((piece.tool, piece.asked), []).append(piece)
    several = [(own[-1], len(own), sum(piece.tokens for piece in own[:-1])) for own in groups.values() if len(own) > 1]
    return sorted(several, key=lambda one: -one[2])


Reason = Literal["pause", "compaction", "model", "change"]
"""`change` is a cause that the file does not show: another system prompt, other tools, or an edited message."""
_LEAST = 5_000
"""Minimum tokens of a loss that is reported."""
_KEPT_FOR = timedelta(minutes=4.5)
"""The time after which most providers' caches expire, less the time that an answer takes, because recorded times are
those of its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Tokens that a call read again although they should have come from a cache."""

    call: int
    """The number of the call, starting at 1."""
    tokens: int
    """Tokens that had been read before and were read again without the cache."""
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
    # Nothing is read again if the previous call had not been cached, or more than half of it came from the cache.
    if (
        before.usage is None
        or call.usage is None
        or call.usage.cache_read is None
        or not (before.usage.cache_read or before.usage.cache_write)
    ):
        tokens = 0
    else:
        shared = min(before.usage.input or 0, call.usage.input or 0)
        tokens = shared - call.usage.cache_read if 2 * call.usage.cache_read < shared else 0
    if tokens < _LEAST:
        return None
    pause = call.at - before.at if call.at and before.at else None
    if compacted:
        reason = "compaction"
    elif before.model != call.model:
        reason = "model"
    else:
        reason = "pause" if pause is not None and pause > _KEPT_FOR else "change"
    return Loss(call=number, tokens=tokens, reason=reason, pause=pause)


def together(found: Sequence[Loss], reason: Reason) -> tuple[int, int]:
    """Return the number of losses for that reason, and their tokens in all."""
    own = [loss.tokens for loss in found if loss.reason == reason]
    return len(own), sum(own)


_HEAVY_TOOLS, _MANY_TOOLS = 0.05, 10_000
"""Fraction of the window, or tokens, from which advice on tool definitions is given."""
_REPEATED = 0.02
"""Fraction of the used tokens from which advice on repeated results is given."""
_GIANT = 0.10
"""Fraction of the window from which advice on a single piece is given."""
_CLOSE = 5
"""A smaller number of calls between two compactions is too small."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding about a session, and its remedy."""

    finding: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The figures that advice is based on."""

    file: str
    usage: ContextUsage
    pieces: Sequence[Piece]
    burdens: Sequence[ToolBurden]
    masked: Change | None
    """The effect of masking old results; None if it would save too little."""
    lost: Sequence[Loss]
    between: Sequence[int]
    """The number of calls from each compaction to the next."""


def advise(by: Findings) -> list[Advice]:
    found: list[Advice] = []
    usage = by.usage
    if usage.will_compact:
        found.append(
            Advice(
                f"{shown_percent(usage.used, usage.context_window, 1)} of the window is used, and the threshold is "
                f"{usage.compact_threshold:g}%.",
                f"`ullage compact {by.file} --dry-run` shows what would be removed.",
            )
        )
    found += [
        *_advise_on_results(by.usage, by.burdens, by.masked),
        *_advise_on_giants(by.usage, by.pieces),
        *_advise_on_repeats(by.usage, by.pieces),
        *_advise_on_tools(by.usage),
        *_advise_on_cache(by.lost),
    ]
    close = [calls for calls in by.between if calls <= _CLOSE]
    if len(close) > 1:
        found.append(
            Advice(
                f"The session was compacted again within {_CLOSE} calls, {how_many(len(close), 'time')}.",
                "Too much remains after a compaction: the system prompt and the tools, or one giant result.",
            )
        )
    return found


def _advise_on_results(usage: ContextUsage, burdens: Sequence[ToolBurden], masked: Change | None) -> Iterator[Advice]:
    if masked is None or not burdens:
        return
    first, shed = burdens[0], masked.shed
    yield Advice(
        f"`{first.name}` takes {shown_tokens(first.tokens)}, {shown_percent(first.tokens, usage.weighed, 1)} of what "
        "is used.",
        f"Masking the {how_many(shed.messages, 'oldest result')} of all tools would free {shown_tokens(shed.tokens)}.",
    )


def _advise_on_giants(usage: ContextUsage, found: Sequence[Piece]) -> Iterator[Advice]:
    window = usage.context_window
    giants = [piece for piece in found if piece.standing and piece.tokens >= _GIANT * window]
    for piece in sorted(giants, key=lambda one: -one.tokens)[:3]:
        yield Advice(
            f"`{piece.label}` alone is {shown_tokens(piece.tokens)}, {shown_percent(piece.tokens, window, 1)} of the "
            "window.",
            "Ask for less at a time, or let Ullage hold long results and show their beginning."
            if piece.tool is not None
            else "It is sent again with every call; a file that is read in parts would take less.",
        )


def _advise_on_repeats(usage: ContextUsage, found: Sequence[Piece]) -> Iterator[Advice]:
    several = find_repeated_calls(found)
    tokens = sum(each for _, _, each in several)
    if tokens < _REPEATED * usage.weighed or not several:
        return
    piece, times, own = several[0]
    yield Advice(
        f"`{piece.label}` is in the window {times} times; the earlier results take {shown_tokens(own)}.",
        f"Results of repeated calls take {shown_tokens(tokens)} in all; only the last of each is needed.",
    )


def _advise_on_tools(usage: ContextUsage) -> Iterator[Advice]:
    tokens = usage.tool_definitions
    if tokens < min(_MANY_TOOLS, _HEAVY_TOOLS * usage.context_window):
        return
    servers = [(name, own) for name, own in usage.breakdown.servers.items() if name is not None]
    most = f", most of them `{servers[0][0]}`'s ({shown_tokens(servers[0][1])})" if servers else ""
    yield Advice(
        f"{how_many(len(usage.breakdown.tools), 'tool definition')} take {shown_tokens(tokens)} of every call{most}.",
        "`ullage serve` in front of the servers shows a few tools that find the others.",
    )


def _advise_on_cache(lost: Sequence[Loss]) -> Iterator[Advice]:
    times, tokens = together(lost, "pause")
    if times:
        yield Advice(
            f"The prompt cache expired in {how_many(times, 'pause')}: {shown_tokens(tokens)} tokens were sent again.",
            "After a long pause a compaction costs nothing extra, because the cache has expired anyway.",
        )
    times, tokens = together(lost, "change")
    if times:
        first = next(loss.call for loss in lost if loss.reason == "change")
        yield Advice(
            f"The prompt cache broke {how_many(times, 'time')} without a pause, first at call {first:,}: "
            f"{shown_tokens(tokens)} tokens were sent again.",
            "Something early in the prompt changed: tools, the system prompt, or a message that was edited.",
        )
    times, tokens = together(lost, "model")
    if times:
        yield Advice(
            f"The model changed {how_many(times, 'time')}, and {shown_tokens(tokens)} tokens were sent again.",
            "Change the model right after a compaction, when there is little to read.",
        )


_FIGURES_LEAST = Decimal("0.005")
"""Minimum dollars that are reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures that a report on a session shows."""

    costliest: tuple[Piece, ...]
    """Every piece, ordered by tokens carried."""
    burdens: tuple[ToolBurden, ...]
    lost: tuple[Loss, ...]
    marks: tuple[int, ...]
    """For each compaction, the place of the first call after it; the number of calls if there is none."""
    drops: tuple[str, ...]
    """What each compaction dropped, in words."""
    read: int | None
    """Input tokens of all calls with reported usage."""
    cached: int | None
    """Tokens of these that came from a cache."""
    dollars: Decimal | None
    """None if the usage or price of some call is unknown."""
    advice: tuple[Advice, ...]

    @property
    def spent(self) -> str:
        """The tokens read and their cost, in one line."""
        if not self.read:
            return ""
        cached = f", {shown_percent(self.cached, self.read, 1)} of them cached" if self.cached else ""
        money = "" if not self.dollars or self.dollars < _FIGURES_LEAST else f" · ${self.dollars:,.2f} at list prices"
        return f"{shown_tokens(self.read)} tokens read{cached}{money}"


def figures_of(weighed: WeighedConversation) -> Figures:
    conversation = weighed.conversation
    found = pieces(conversation, weighed.turns, weighed.scale.count)
    burdens, lost = by_tool(found), losses(conversation)
    places = [call.place for call in weighed.conversation.calls]
    marks = [bisect_left(places, mark.place) for mark in weighed.conversation.compactions]
    used = [call.usage for call in conversation.calls if call.usage is not None]
    # Without a call between two compactions, the tokens left after the first are counted.
    levels, fixed = [level.tokens for level in weighed.levels], weighed.fixed.total.tokens
    said: list[str] = []
    earlier, last = 0, fixed
    for mark, later, one in zip(marks, [*marks, len(levels)][1:], weighed.conversation.compactions, strict=True):
        before = one.before or (levels[mark - 1] if mark > earlier else last)
        left = fixed + sum(weighed.turns[place].weight.tokens for place in one.left)
        last = levels[mark] if mark < later else one.after or left
        said.append(f"{shown_tokens(before)} → {shown_tokens(last)}")
        earlier = mark
    return Figures(
        costliest=tuple(sorted(found, key=lambda one: (-one.carried, -one.tokens, one.place))),
        burdens=tuple(burdens),
        lost=tuple(lost),
        marks=tuple(marks),
        drops=tuple(said),
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
                    masked=estimate_masking(weighed),
                    lost=lost,
                    between=[later - mark for mark, later in pairwise(marks)],
                )
            )
        ),
    )


def estimate_masking(weighed: WeighedConversation) -> Change | None:
    """Return the effect of masking old results and nothing else; None if it would save too little."""
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
