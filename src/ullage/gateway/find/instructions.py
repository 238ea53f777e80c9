"""What is the model told about the servers before it looks for anything?

One line a server: its name, how many tools it has, and what is to be found there, from the settings, else from what the
server says of itself, else from its tools' names. With many servers the lines grow shorter, then only names are left,
then the first of them; the text never exceeds its budget.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ullage.invisible_characters import remove_invisible

from ..introduction import Introduction
from ..merge.view import Entry, Member, View
from ..slim.wording import first_sentence
from .surface import Surface

__all__ = ["introduce"]

_SEARCHED = "The tools of these servers are found with find_tool:"
_SHOWN = "Tools of these servers:"
_LENGTHS = (120, 80, 50, 30)
"""Characters of a description, the longest that fits for all."""
_NAMES_SHOWN = 8
_READ = 2_000
"""Characters that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    name: str
    tools: int | None
    """None where they are not known yet."""
    description: str


def introduce(view: View, surface: Surface, weigh: Callable[[str], int], budget: int) -> str:
    """Empty where there are no servers."""
    lines = list(_lines(view))
    if not lines:
        return ""
    head = _SEARCHED if surface == "search" else _SHOWN
    return next((text for text in _texts(head, lines) if weigh(text) <= budget), "")


def _lines(view: View) -> Iterator[_Line]:
    """In the order of the settings. Ullage's own tools are listed or found, but they are no server's; a database is
    told of where someone has described it."""
    entries: dict[str, list[Entry]] = {}
    for entry in view.entries:
        entries.setdefault(entry.server, []).append(entry)
    missing = {one.server for one in view.missing}
    for name in view.servers or tuple(entries):
        found = entries.get(name, [])
        if found and (not found[0].member.own or found[0].member.description):
            yield _Line(name=_one_line(name), tools=len(found), description=_description(found))
        elif name in missing:
            yield _Line(name=_one_line(name), tools=None, description="")


def _description(entries: Sequence[Entry]) -> str:
    member = entries[0].member
    said = _one_line(member.description or "") or _one_line(_said(member))
    return said or _one_line(", ".join(entry.original for entry in entries[:_NAMES_SHOWN]))


def _one_line(text: str) -> str:
    """What a server or a file says, such that it cannot look like a line of ours; of a very long text the beginning."""
    seen = remove_invisible(text[:_READ])
    return " ".join("".join(letter if letter.isprintable() else " " for letter in seen).split())


def _said(member: Member) -> str:
    introduction = getattr(member.source, "introduction", None)
    said = introduction() if callable(introduction) else introduction
    if not isinstance(said, Introduction):
        return ""
    return said.instructions or said.title or ""


def _texts(head: str, lines: Sequence[_Line]) -> Iterator[str]:
    """The same at every length, longest first."""
    for length in _LENGTHS:
        yield "\n".join([head, *(_written(line, length) for line in lines)])
    yield "\n".join([head, *(f"- {line.name}{_number(line)}" for line in lines)])
    names = [line.name for line in lines]
    shown = len(names)
    while shown:
        rest = len(names) - shown
        yield f"{head} {', '.join(names[:shown])}{f' and {rest} more' if rest else ''}"
        shown = shown * 9 // 10
    yield f"{head} {len(names)} in all"


def _written(line: _Line, length: int) -> str:
    description = first_sentence(line.description, length)
    return f"- {line.name}{_number(line)}{f': {description}' if description else ''}"


def _number(line: _Line) -> str:
    if line.tools is None:
        return ""
    return f" ({line.tools} tool{'' if line.tools == 1 else 's'})"
