"""Of what does a summary consist, and how are its sections told apart?

The same sections whether a model wrote it or not, so that one may bring up to date what the other wrote. A section is a
heading and a list; an item may have several lines, and none of them can be taken for a heading or another item.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

__all__ = ["Section", "read_sections", "write_sections"]


class Section(StrEnum):
    EARLIER = "Earlier"
    """What another program wrote in sections of its own, or in none."""
    ASKED = "Asked for"
    DECISIONS = "Decisions"
    FILES = "Files changed"
    STATE = "State of the work"
    PROGRESS = "Work in progress"
    ERRORS = "Errors met"
    QUESTIONS = "Open questions"
    NEXT = "Next steps"


_TITLES = {section.value.casefold(): section for section in Section}
_DRESS = "#*_: \t0123456789.)"
"""With which a model may dress a heading."""
_BULLETS = ("- ", "* ")
_LONGEST = 40
"""Characters of a line that may be a heading."""


def write_sections(items: Mapping[Section, Iterable[str]]) -> str:
    """Sections in their order, without those that have nothing."""
    blocks = ((section, [_item(text) for text in items.get(section, ())]) for section in Section)
    return "\n\n".join(f"## {section}\n" + "\n".join(lines) for section, lines in blocks if lines)


def read_sections(text: str) -> dict[Section, list[str]]:
    """The items of each section; a text without sections is one item of what was earlier."""
    lines = text.split("\n")
    if not any(map(_heading, lines)):
        return {Section.EARLIER: [text.strip()]} if text.strip() else {}
    found: dict[Section, list[str]] = {}
    for section, item in _items(lines):
        found.setdefault(section, []).append(item)
    return found


def _items(lines: Iterable[str]) -> Iterator[tuple[Section, str]]:
    section, item, is_listed = Section.EARLIER, "", False
    for line in lines:
        heading = _heading(line)
        if heading is not None or line.startswith(_BULLETS) or not is_listed:
            if item.strip():
                yield section, item.strip()
            is_listed = heading is None and line.startswith(_BULLETS)
            item = "" if heading is not None else line[2:] if is_listed else line
            section = heading or section
        else:
            item += f"\n{line}"
    if item.strip():
        yield section, item.strip()


def _heading(line: str) -> Section | None:
    is_short = len(line) <= _LONGEST and not line[:1].isspace()
    return _TITLES.get(line.strip(_DRESS).casefold()) if is_short else None


def _item(text: str) -> str:
    first, *more = text.strip().split("\n")
    return "\n".join((f"- {first}", *map(_continued, more)))


def _continued(line: str) -> str:
    return f"  {line}" if line.startswith(_BULLETS) or _heading(line) else line
