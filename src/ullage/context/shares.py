"""What are the tokens of one message spent on?

A message is parted by category, so that each part can be weighed by itself; a whole is parted in the ratio of such
weights, and the parts sum to it. Nothing is weighed here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ullage.messages import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown

from .entry import Category, Kind

__all__ = ["apportioned", "kind_of", "parted"]

_SUMMARY = "<context_summary>"


def kind_of(message: Message) -> Kind:
    """A summary is told by how its text begins: a history from outside says nothing else of it."""
    first = message.parts[0] if message.role == "user" and message.parts else None
    return "summary" if isinstance(first, Text) and first.text.lstrip().startswith(_SUMMARY) else "message"


def parted(message: Message, kind: Kind) -> dict[Category, Message]:
    """The message's parts by what they are, each category as a message of its own."""
    found: dict[Category, list[Part]] = {}
    for category, part in _told_apart(message, kind):
        found.setdefault(category, []).append(part)
    if not found:
        return {_of_role(message, kind): message}
    return {category: replace(message, parts=tuple(parts)) for category, parts in found.items()}


def apportioned(total: int, parts: Sequence[int]) -> tuple[int, ...]:
    """`total` in the ratio of the parts, in whole numbers that sum to it; evenly where all parts are nothing."""
    whole = sum(parts)
    ratio = parts if whole else (1,) * len(parts)
    reached = bounds = 0
    shares: list[int] = []
    for part in ratio:
        bounds += part
        upto = (2 * total * bounds + (whole or len(parts))) // (2 * (whole or len(parts)))
        shares.append(upto - reached)
        reached = upto
    return tuple(shares)


def _told_apart(message: Message, kind: Kind) -> Iterator[tuple[Category, Part]]:
    """What stands beside a part and has no kind of its own belongs to that part."""
    own = _of_role(message, kind)
    category = own
    for part in message.parts:
        if own not in ("system", "summary") and not isinstance(part, Unknown):
            category = _of_part(part, own)
        if category == "tool_results" and isinstance(part, ToolResult):
            yield from _of_result(part)
        else:
            yield category, part


def _of_role(message: Message, kind: Kind) -> Category:
    if kind == "summary":
        return "summary"
    roles: dict[str, Category] = {"user": "user", "assistant": "assistant", "tool": "tool_results"}
    return roles.get(message.role, "system")


def _of_part(part: Part, own: Category) -> Category:
    match part:
        case ToolCall():
            return "tool_calls"
        case ToolResult():
            return "tool_results"
        case Thinking():
            return "thinking"
        case Media():
            return "images"
        case Text() | Unknown():
            return own


def _of_result(result: ToolResult) -> Iterator[tuple[Category, Part]]:
    """A result without the media in it, and those."""
    media = tuple(part for part in result.parts if isinstance(part, Media))
    rest = tuple(part for part in result.parts if not isinstance(part, Media))
    yield "tool_results", replace(result, parts=rest) if media else result
    for medium in media:
        yield "images", medium
