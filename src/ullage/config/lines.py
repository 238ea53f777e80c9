"""On which line does a key stand?

Found by looking, not by parsing: good enough to send someone to the right line, and None where it is not plain. A key
inside a text of many lines may mislead it.
"""

import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["json_line", "toml_line"]

_HEADING = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?")
_PART = re.compile(r"\s*(?:\"((?:\\.|[^\"\\])*)\"|'([^']*)'|([A-Za-z0-9_-]+))\s*(\.?)")

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]|[^\s\[\]{},":]+', re.DOTALL)
"""Of JSON, less its colons."""


def toml_line(text: str, path: Sequence[str]) -> int | None:
    """The line that says the most of the path: its key, else the inline table or heading that holds it. A number in the
    path is a place in a list of tables."""
    wanted, heading, listed = tuple(path), tuple[str, ...](), Counter[tuple[str, ...]]()
    best, found = 0, None
    for number, line in enumerate(text.splitlines(), 1):
        titled = _HEADING.fullmatch(line)
        if titled:
            heading = said = _parts(titled[1])[0]
            if line.lstrip().startswith("[["):
                listed[said] += 1
                heading = said = (*said, str(listed[said] - 1))
        else:
            parts, rest = _parts(line)
            said = (*heading, *parts) if parts and rest.startswith("=") else ()
        shared = min(len(said), len(wanted))
        if shared > best and wanted[:shared] == said[:shared]:
            best, found = shared, number
    return found


def _parts(text: str) -> tuple[tuple[str, ...], str]:
    """The parts of a dotted key at the text's start, and what follows it."""
    parts, at = list[str](), 0
    while match := _PART.match(text, at):
        parts.append(match[1] or match[2] or match[3] or "")
        at = match.end()
        if not match[4]:
            break
    return tuple(parts), text[at:]


def json_line(text: str, path: Sequence[str]) -> int | None:
    """The line of the last key of the path, each looked for after the one before. A number that is no key is a place
    in a list."""
    at = -1
    for part in path:
        found = re.compile(rf'"{re.escape(part)}"\s*:').search(text, at + 1)
        place = found.start() if found else _item(text, max(at, 0), part)
        if place is None:
            break
        at = place
    return None if at < 0 else text.count("\n", 0, at) + 1


def _item(text: str, start: int, number: str) -> int | None:
    """Where the item of that number begins, in the list that comes next."""
    depth, item = 0, 0
    for token in _TOKEN.finditer(text, start) if number.isdecimal() else ():
        sign = token.group()
        if depth == 1 and item == int(number) and sign not in ",]":
            return token.start()
        depth += (sign in "[{") - (sign in "]}")
        item += depth == 1 and sign == ","
        if depth == 0 and sign == "]":
            break
    return None
