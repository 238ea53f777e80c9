"""Reading and editing of JSON with comments and trailing commas.

`parse_jsonc` reads such a text. `edit_jsonc` changes single keys of it and leaves every other byte as it is: comments,
order, indentation, line endings, a byte-order mark and the end of the file. The scanner looks only at the objects on
the way to the changed keys, because a settings file may also hold megabytes of history.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from ullage.jsonc import blank_comments

from .server_entries import Edit, EditRefused, KeyPath, Put, Remove, apply_edits, fingerprint

__all__ = ["edit_jsonc", "parse_jsonc"]

_STRING = r'"(?:\\.|[^"\\])*"'
_BLANK = re.compile(r"(?:[\s\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_BLANK_IN_LINE = re.compile(r"(?:[ \t]|/\*[^\r\n]*?\*/)*(?://[^\r\n]*)?")
_QUOTED = re.compile(_STRING, re.DOTALL)
_SCALAR = re.compile(r"[^\s,}\]/]+")
_TOKEN = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/|[{{}}\[\]]", re.DOTALL)
_NEWLINE = re.compile(r"\r\n|\n|\r")


def parse_jsonc(text: str) -> object:
    """Parse a JSON text that may have comments, trailing commas and a byte-order mark.

    An empty text, or one with nothing but comments, is an empty object.

    Raises:
        ValueError: The text is invalid, or has a number too long to be read.
        RecursionError: The text is nested too deeply.
    """
    text = text.removeprefix("\ufeff")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        plain = blank_comments(text)
        return json.loads(plain) if plain.strip() else {}


def edit_jsonc(text: str, edits: Sequence[Edit]) -> str:
    """Return the text after these edits.

    Raises:
        EditRefused: The text cannot be read, or the edited text would not have exactly the intended content.
    """
    try:
        found = _NEWLINE.search(text)
        newline_of = found[0] if found else "\n"
        expected, newline = apply_edits(parse_jsonc(text), edits), newline_of
        if not text[cast("re.Match[str]", _BLANK.match(text)).end() :]:
            # The text has only blanks and comments: the object is added after them.
            changed = f"{text}{_render(expected, '  ', '', newline)}{newline}" if expected else text
        else:
            changed = text
            for removed, edit in _batches(edits):
                changed = _put(changed, edit, newline) if edit else _remove(changed, removed)
        same = fingerprint(parse_jsonc(changed), is_ordered=True) == fingerprint(expected, is_ordered=True)
    except (ValueError, RecursionError, IndexError) as error:
        if isinstance(error, EditRefused):
            raise
        raise EditRefused(f"the file cannot be read as JSON: {error or 'nested too deep'}") from error
    if not same:
        raise EditRefused("the file cannot be edited without changing other settings")
    return changed


def _batches(edits: Iterable[Edit]) -> Iterator[tuple[list[KeyPath], Put | None]]:
    """Yield puts one by one, and consecutive removals from the same object together."""
    removed = list[KeyPath]()
    for edit in edits:
        if removed and (isinstance(edit, Put) or edit.path[:-1] != removed[0][:-1]):
            yield removed, None
            removed = []
        if isinstance(edit, Remove):
            removed.append(edit.path)
        else:
            yield [], edit
    if removed:
        yield removed, None


# -- Scanning


@dataclass(frozen=True, slots=True)
class _Member:
    """One key of an object with the positions of its parts in the text."""

    key: str
    start: int
    value: int
    end: int
    comma: int | None
    """Position of the comma after it."""


@dataclass(frozen=True, slots=True)
class _Object:
    start: int
    """Position of the opening brace."""
    end: int
    """Position of the closing brace."""
    members: tuple[_Member, ...]


def _skip_blank(text: str, at: int) -> int:
    return cast("re.Match[str]", _BLANK.match(text, at)).end()


def _skip_value(text: str, at: int) -> int:
    """Return the end of the value that begins here. The text is known to be valid."""
    if text[at] == '"':
        return cast("re.Match[str]", _QUOTED.match(text, at)).end()
    if text[at] not in "{[":
        return cast("re.Match[str]", _SCALAR.match(text, at)).end()
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if not depth:
                return token.end()
    raise EditRefused("a bracket is not closed")


def _scan_object(text: str, start: int) -> _Object:
    members = list[_Member]()
    at = _skip_blank(text, start + 1)
    while text[at] != "}":
        key_end = cast("re.Match[str]", _QUOTED.match(text, at)).end()
        value = _skip_blank(text, _skip_blank(text, key_end) + 1)
        end = _skip_value(text, value)
        after = _skip_blank(text, end)
        comma = after if text[after] == "," else None
        key = cast("str", json.loads(text[at:key_end]))
        members.append(_Member(key, at, value, end, comma))
        at = after if comma is None else _skip_blank(text, after + 1)
    return _Object(start, at, tuple(members))


def _find_object(text: str, path: KeyPath) -> tuple[_Object, KeyPath]:
    """Return the innermost object on the path, and the keys below it that are missing."""
    found = _scan_object(text, _skip_blank(text, 0))
    for index, key in enumerate(path):
        member = _last_member(found, key)
        if member is None:
            return found, path[index:]
        if text[member.value] != "{":
            raise EditRefused(f"`{'.'.join(path[: index + 1])}` is not an object")
        found = _scan_object(text, member.value)
    return found, ()


def _last_member(found: _Object, key: str) -> _Member | None:
    """Return the last member of that key: for duplicate keys the last one counts, as in every JSON parser."""
    return next((one for one in reversed(found.members) if one.key == key), None)


# -- Removing


def _remove(text: str, paths: Sequence[KeyPath]) -> str:
    found, missing = _find_object(text, paths[0][:-1])
    keys = {path[-1] for path in paths}
    if missing:
        return text
    cuts = list[tuple[int, int]]()
    kept: _Member | None = None
    for member in found.members:
        if member.key not in keys:
            kept = member
            continue
        cuts += _cut_member(text, member)
        if member.comma is None and kept is not None and kept.comma is not None:
            cuts.append((kept.comma, kept.comma + 1))
    parts, at = list[str](), 0
    for start, end in sorted(cuts):
        # Two removed keys on one line may both include the blanks between them.
        parts.append(text[at : max(at, start)])
        at = max(at, end)
    return "".join((*parts, text[at:]))


def _cut_member(text: str, member: _Member) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the member and its comma, with the whole line if nothing else is on it. Comments around it
    stay."""
    comma = member.comma
    if comma is not None and text[member.end : comma].strip():
        # There is a comment between the value and its comma.
        yield comma, comma + 1
        comma = None
    end = member.end if comma is None else comma + 1
    line = _line_start(text, member.start)
    is_first = not text[line : member.start].strip(" \t\ufeff")
    rest = cast("re.Match[str]", re.compile(r"[ \t]*").match(text, end)).end()
    newline = _NEWLINE.match(text, rest)
    if is_first and newline and line:
        yield line, newline.end()
    elif member.comma is None:
        before = member.start - len(text[line : member.start]) + len(text[line : member.start].rstrip(" \t"))
        yield (member.start if is_first else before), end
    else:
        yield member.start, (end if newline else rest)


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


# -- Adding


def _put(text: str, put: Put, newline: str) -> str:
    path, value = put.path, put.value
    found, missing = _find_object(text, path[:-1])
    member = None if missing else _last_member(found, path[-1])
    if member is not None:
        rendered = json.dumps(value, ensure_ascii=False)
        if _is_on_own_line(text, member.start):
            rendered = _render(value, _indent_unit(text), _indent_at(text, member.start), newline)
        return text[: member.value] + rendered + text[member.end :]
    keys = (*missing, path[-1])
    for key in reversed(keys[1:]):
        value = {key: value}
    put = Put((keys[0],), value)
    unit, value = _indent_unit(text), put.value
    name = f"{json.dumps(put.path[0], ensure_ascii=False)}: "
    if not found.members:
        outer = _indent_at(text, found.start)
        entry = f"{newline}{outer}{unit}{name}{_render(value, unit, outer + unit, newline)}"
        inside = text[found.start + 1 : found.end]
        if not inside.strip():
            return f"{text[: found.start + 1]}{entry}{newline}{outer}{text[found.end :]}"
        return text[: found.start + 1] + entry + text[found.start + 1 :]
    last = found.members[-1]
    if not _is_on_own_line(text, last.start):
        entry = name + json.dumps(value, ensure_ascii=False)
        if last.comma is None:
            return f"{text[: last.end]}, {entry}{text[last.end :]}"
        return f"{text[: last.comma + 1]} {entry},{text[last.comma + 1 :]}"
    indent = _indent_at(text, last.start)
    entry = f"{newline}{indent}{name}{_render(value, unit, indent, newline)}"
    after = last.end if last.comma is None else last.comma + 1
    anchor = cast("re.Match[str]", _BLANK_IN_LINE.match(text, after)).end()
    if not _NEWLINE.match(text, anchor):
        anchor = after
    anchor = after + len(text[after:anchor].rstrip(" \t"))
    if last.comma is None:
        return f"{text[: last.end]},{text[last.end : anchor]}{entry}{text[anchor:]}"
    return f"{text[:anchor]}{entry},{text[anchor:]}"


def _render(value: object, unit: str, indent: str, newline: str) -> str:
    """Render a value as JSON over several lines."""
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{newline}{indent}".join(lines)


def _indent_at(text: str, at: int) -> str:
    """Return the blanks at the beginning of the line of this position."""
    line = _line_start(text, at)
    return cast("re.Match[str]", re.compile(r"\ufeff?([ \t]*)").match(text, line))[1]


def _is_on_own_line(text: str, at: int) -> bool:
    line = _line_start(text, at)
    return line > 0 and not text[line:at].strip(" \t")


def _indent_unit(text: str) -> str:
    """Return the indentation of the document's first key, if it has a line of its own."""
    found = _scan_object(text, _skip_blank(text, 0))
    if found.members and _is_on_own_line(text, found.members[0].start):
        return _indent_at(text, found.members[0].start) or "  "
    return "  "
