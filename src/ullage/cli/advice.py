"""What would help, by the figures of this conversation?

Each piece of advice follows from a number that is said with it, and names what to do. Nothing is decided here for
anyone, and nothing is printed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ullage.context import Change, ContextUsage, shown_percent, shown_tokens

from .burden import Piece, ToolBurden, repeated
from .cached import Loss, together
from .wording import how_many

__all__ = ["Advice", "Findings", "advise"]

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
            f"`ullage compact {file} --dry-run` shows what would be let go.",
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
