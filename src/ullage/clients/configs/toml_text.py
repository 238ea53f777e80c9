"""Editing of TOML texts by statements.

`edit_toml` changes single tables and keys and leaves every other line as it is. The text is cut into statements, each a
table heading or a key with its value and full path, so that every way to write a table is understood: headings, dotted
keys and inline tables. Only an inline table that is itself changed is rewritten. `tomllib` checks the result.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import groupby
from math import isinf, isnan
from typing import Any, cast

from .server_entries import Edit, EditRefused, KeyPath, Put, Remove, apply_edits, fingerprint, value_at

__all__ = ["edit_toml", "parse_toml", "render_toml_key", "render_toml_value"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_KEY_PART = re.compile(r"""[ \t]*("(?:\\.|[^"\\\r\n])*"|'[^'\r\n]*'|[A-Za-z0-9_-]+)[ \t]*""")
_VALUE_TOKEN = re.compile(
    r'"""(?:\\.|(?!""").)*"{3,5}'
    r"|'''(?:(?!''').)*'{3,5}"
    r'|"(?:\\.|[^"\\\r\n])*"'
    r"|'[^'\r\n]*'"
    r"|\#[^\r\n]*|[\[\]{}]|\r?\n|[^\"'#\[\]{}\r\n]+|\r",
    re.DOTALL,
)
_BLANKS = re.compile(r"[ \t]*")
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)*")
_LINE_REST = re.compile(r"[ \t]*(?:\#[^\r\n]*)?(?:\r?\n|\Z)")


def parse_toml(text: str) -> dict[str, object]:
    """Parse a TOML text that may begin with a byte-order mark.

    Raises:
        ValueError: The text is not TOML.
        RecursionError: The text is nested too deeply.
    """
    return tomllib.loads(text.removeprefix("\ufeff"))


def edit_toml(text: str, edits: Sequence[Edit]) -> str:
    """Return the text after these edits.

    Raises:
        EditRefused: The text cannot be read, or the edited text would not have exactly the intended content.
    """
    try:
        expected = apply_edits(parse_toml(text), edits)
        changed, newline = text, "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
        for edit in edits:
            if isinstance(edit, Remove):
                changed = _remove(changed, edit.path)
            elif not _is_done(changed, edit):
                changed = _put(changed, edit, newline)
        after = parse_toml(changed)
        for one in (expected, after):
            _prune(one, edits)
        same = fingerprint(after, is_ordered=False) == fingerprint(expected, is_ordered=False)
    except (ValueError, RecursionError) as error:
        if isinstance(error, EditRefused):
            raise
        raise EditRefused(f"the file cannot be read as TOML: {error or 'nested too deep'}") from error
    if not same:
        raise EditRefused("the file cannot be edited without changing other settings")
    return changed


def _is_done(text: str, put: Put) -> bool:
    """Return whether the text has this value already, so that it stays where and as it is written."""
    there = value_at(parse_toml(text), put.path)
    return there is not None and fingerprint(there, is_ordered=False) == fingerprint(put.value, is_ordered=False)


def _prune(document: dict[str, Any], edits: Sequence[Edit]) -> None:
    """Remove empty tables above removed keys: without a heading of its own, such a table no longer exists in the
    text."""
    for edit in edits:
        if isinstance(edit, Remove):
            for depth in range(len(edit.path) - 1, 0, -1):
                table = value_at(document, edit.path[: depth - 1])
                if isinstance(table, dict) and table.get(edit.path[depth - 1]) == {}:  # pyright: ignore[reportUnknownMemberType]
                    del table[edit.path[depth - 1]]


# -- Scanning


@dataclass(frozen=True, slots=True)
class _Statement:
    """A heading, or a key with its value: whole lines, with the comment at the end of the last one."""

    path: KeyPath
    start: int
    end: int
    section: KeyPath
    """The path of the heading above it; for a heading, its own path."""
    value: tuple[int, int] | None = None
    """Position of a key's value; None for a heading."""
    is_array: bool = False
    """Whether it is or follows a heading in double brackets, which begins a new table each time."""


def _scan(text: str) -> list[_Statement]:
    found = list[_Statement]()
    section: KeyPath = ()
    is_array = False
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        blank = _LINE_REST.match(text, at)
        if blank:
            at = blank.end()
            continue
        start = at
        at = _skip_blanks(text, at)
        if text[at] == "[":
            is_array = text.startswith("[[", at)
            section, at = _read_key(text, at + 1 + is_array)
            end = _line_end(text, at + 1 + is_array)
            found.append(_Statement(section, start, end, section, None, is_array))
        else:
            key, at = _read_key(text, at)
            first = _skip_blanks(text, at + 1)
            last = _value_end(text, first)
            end = _line_end(text, last)
            found.append(_Statement((*section, *key), start, end, section, (first, last), is_array))
        at = end
    return found


def _skip_blanks(text: str, at: int) -> int:
    return cast("re.Match[str]", _BLANKS.match(text, at)).end()


def _read_key(text: str, at: int) -> tuple[KeyPath, int]:
    """Return a dotted key, and the position of its end."""
    parts = list[str]()
    while True:
        match = _KEY_PART.match(text, at)
        if match is None:
            raise EditRefused("a key cannot be read")
        parts.append(next(iter(tomllib.loads(f"{match[1]} = 0"))))
        at = match.end()
        if not text.startswith(".", at):
            return tuple(parts), at
        at += 1


def _value_end(text: str, at: int) -> int:
    """Return the end of the value that begins here, without the blanks and the comment after it."""
    depth, end = 0, at
    while at < len(text):
        match = cast("re.Match[str]", _VALUE_TOKEN.match(text, at))
        token = match[0]
        if not depth and (token[0] in "\r\n#"):
            return end
        if token in ("[", "{"):
            depth += 1
        elif token in ("]", "}"):
            depth -= 1
        at = match.end()
        if depth or token.strip():
            end = at - (len(token) - len(token.rstrip(" \t")) if not depth else 0)
    return end


def _line_end(text: str, at: int) -> int:
    match = _LINE_REST.match(text, at)
    if match is None:
        raise EditRefused("a line cannot be read")
    return match.end()


# -- Removing


def _remove(text: str, path: KeyPath) -> str:
    statements = _scan(text)
    for one in statements:
        if one.value is not None and len(one.path) < len(path) and one.path == path[: len(one.path)]:
            return _rewrite_inline(text, one, path[len(one.path) :], None)
    parts, at = list[str](), 0
    for start, end in _blocks(text, statements, path):
        parts.append(text[at:start])
        at = end
    return "".join((*parts, text[at:]))


def _blocks(text: str, statements: Sequence[_Statement], path: KeyPath) -> Iterator[tuple[int, int]]:
    """Yield the lines to cut: consecutive statements at or below a path, with the comments between them, and the blank
    lines after them if there are also some before them."""
    for is_cut, group in groupby(statements, key=lambda one: one.path[: len(path)] == path):
        if is_cut:
            run = list(group)
            start, end = run[0].start, run[-1].end
            lead = text[:start].removeprefix("\ufeff")[-200:]
            if not lead or re.search(r"(?:\n|\A)[ \t]*\r?\n\Z", lead):
                end = cast("re.Match[str]", _BLANK_LINES.match(text, end)).end()
            yield start, end


def _rewrite_inline(text: str, statement: _Statement, path: KeyPath, put: Put | None) -> str:
    """Return the text with one inline table rewritten, without or with a key."""
    start, end = cast("tuple[int, int]", statement.value)
    try:
        table = tomllib.loads(f"x = {text[start:end]}")["x"]
    except ValueError as error:
        raise EditRefused("an inline table cannot be read") from error
    if not isinstance(table, dict):
        raise EditRefused(f"`{'.'.join(statement.path)}` is not a table")
    if put is None and value_at(cast("object", table), path) is None:
        return text
    edits = [Remove(path) if put is None else put]
    return text[:start] + render_toml_value(apply_edits(cast("object", table), edits)) + text[end:]


# -- Adding


def _put(text: str, put: Put, newline: str) -> str:
    path, value = put.path, put.value
    statements = _scan(text)
    above = [one for one in statements if one.value and len(one.path) < len(path) and path[: len(one.path)] == one.path]
    if above:
        return _rewrite_inline(text, above[-1], path, Put(path[len(above[-1].path) :], value))
    exact = next((one for one in statements if one.path == path and one.value), None)
    if exact is not None and not isinstance(value, Mapping):
        start, end = cast("tuple[int, int]", exact.value)
        return text[:start] + render_toml_value(value) + text[end:]
    if isinstance(value, Mapping):
        return _add_table(_remove(text, path), path, cast("Mapping[str, object]", value), newline)
    return _add_key(text, put, newline)


def _add_key(text: str, put: Put, newline: str) -> str:
    """Add a key at the end of its table, which is created if it has no heading."""
    path, value = put.path, put.value
    table, line = path[:-1], f"{render_toml_key(path[-1])} = {render_toml_value(value)}{newline}"
    own = [one for one in _scan(text) if one.section == table and not one.is_array]
    if own:
        at = own[-1].end
        joint = "" if text[:at].endswith("\n") else newline
        return text[:at] + joint + (line if not joint else line.removesuffix(newline)) + text[at:]
    dotted = [one for one in _scan(text) if one.value and one.section != table and one.path[: len(table)] == table]
    if table and dotted:
        near = dotted[-1]
        key = ".".join(map(render_toml_key, path[len(near.section) :]))
        joint = "" if text[: near.end].endswith("\n") else newline
        return (
            f"{text[: near.end]}{joint}{key} = {render_toml_value(value)}{'' if joint else newline}{text[near.end :]}"
        )
    if not table:
        return ("\ufeff" if text.startswith("\ufeff") else "") + line + text.removeprefix("\ufeff")
    return _add_table(text, table, {path[-1]: value}, newline)


def _add_table(text: str, path: KeyPath, table: Mapping[str, object], newline: str) -> str:
    """Return the text with a table below its own heading, after its siblings or at the end."""
    lines = newline.join(_table_lines(path, table))
    siblings = [one for one in _scan(text) if one.section[: len(path) - 1] == path[:-1] and one.section]
    at = siblings[-1].end if len(path) > 1 and siblings else len(text)
    before, after = text[:at], text[at:]
    if not before.removeprefix("\ufeff").strip():
        return f"{before}{lines}{newline}{after}"
    gap = newline if before.endswith("\n") else newline * 2
    if not after.strip():
        # The file still ends as before: with or without a line feed.
        return f"{before}{gap}{lines}{after}" + (newline if before.endswith("\n") and not after else "")
    has_gap = cast("re.Match[str]", _BLANK_LINES.match(after)).end() > 0
    return f"{before}{gap}{lines}{newline}{'' if has_gap else newline}{after}"


def _table_lines(path: KeyPath, table: Mapping[str, object]) -> Iterator[str]:
    tables = {key: cast("Mapping[str, object]", value) for key, value in table.items() if isinstance(value, Mapping)}
    plain = [key for key in table if key not in tables]
    if plain or not tables:
        yield f"[{'.'.join(map(render_toml_key, path))}]"
    for key in plain:
        yield f"{render_toml_key(key)} = {render_toml_value(table[key])}"
    for number, (key, value) in enumerate(tables.items()):
        if plain or number:
            yield ""
        yield from _table_lines((*path, key), value)


# -- Writing


def render_toml_key(key: str) -> str:
    """Return a key, in quotes if it needs them."""
    return key if _BARE_KEY.fullmatch(key) else _render_text(key)


def render_toml_value(value: object) -> str:
    """Return a value in one line; a mapping as an inline table."""
    if isinstance(value, str):
        return _render_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        sign = "-" if value < 0 else ""
        return "nan" if isnan(value) else f"{sign}inf" if isinf(value) else repr(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        inside = ", ".join(f"{render_toml_key(key)} = {render_toml_value(one)}" for key, one in table.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(render_toml_value, cast('Sequence[object]', value)))}]"
    raise EditRefused(f"TOML has no value for {type(value).__name__}")


def _render_text(text: str) -> str:
    # JSON's escapes are valid in TOML, except for the delete character and halves of surrogate pairs.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
