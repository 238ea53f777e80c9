"""What kind of value does a key take?

Each kind reads a value as it stands in a file and gives what it means, or None where it does not fit. It reports
nothing: the reader of the file knows where the value stands.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import cast, get_args

from ullage.options import DefinitionChanges, IndexKind

from .delegating import LogLevel, WireKind

__all__ = [
    "ADDRESS", "AMOUNT", "BUDGET", "BUDGETS", "CHANGES", "CHOICES", "DATABASE", "FLAG", "FRACTION", "INDEX",
    "KEY_VARIABLE", "LEVEL", "LINES", "MODE", "MONEY", "NAMES", "PAIRS", "PREFIX", "SECONDS", "SHARES", "STORE",
    "TABLE", "TEXT", "TIMES", "TRANSPORT", "TRANSPORTS", "VARIABLE", "WAIT", "WHOLE", "WIRE", "Kind", "described",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    wanted: str
    """With its article, for messages and the reference."""
    read: Callable[[object], object | None]
    nature: str = "a text"
    """What `described` says of a value that is at least of the right sort."""


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() and "\0" not in value else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _share(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _seconds(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and number > 0 else None


def _wait(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and number >= 0 else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _budget(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _by_tool(read: Callable[[object], object | None]) -> Callable[[object], object | None]:
    """A table in which every value is of that kind."""

    def read_table(value: object) -> dict[str, object] | None:
        if not isinstance(value, dict):
            return None
        table = cast("dict[str, object]", value)
        found = {key: one for key, given in table.items() if key.strip() and (one := read(given)) is not None}
        return found if len(found) == len(table) else None

    return read_table


def _money(value: object) -> Decimal | None:
    """By its shortest writing: 0.1 is meant as it stands, not as the nearest binary fraction."""
    return None if _wait(value) is None else Decimal(repr(value))


def _shares(value: object) -> tuple[Decimal, ...] | None:
    items = cast("list[object]", value) if isinstance(value, list) else []
    parts = [Decimal(repr(item)) for item in items if _share(item)]
    return tuple(sorted(set(parts))) if parts and len(parts) == len(items) else None


def _key_variable(value: object) -> object | None:
    """A variable's name, and no key: of some providers a key could be one."""
    named = VARIABLE.read(value)
    return None if named is None or _KEY.match(str(named)) else named


def _lines(value: object) -> tuple[str, ...] | None:
    """Any texts, the empty one too: an argument may be empty."""
    if not isinstance(value, list):
        return None
    items = cast("list[object]", value)
    texts = tuple(item for item in items if isinstance(item, str) and "\0" not in item)
    return texts if len(texts) == len(items) else None


def _names(value: object) -> tuple[str, ...] | None:
    lines = _lines(value)
    return lines if lines is not None and all(line.strip() for line in lines) else None


def _inherited(value: object) -> tuple[str, ...] | None:
    """True is every name, false is none."""
    if isinstance(value, bool):
        return ("*",) if value else ()
    return _names(value)


def _pairs(value: object) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    table = cast("dict[str, object]", value)
    pairs = {key: text for key, text in table.items() if key and isinstance(text, str) and "\0" not in text}
    return pairs if len(pairs) == len(table) else None


def _matching(pattern: str) -> Callable[[object], object | None]:
    compiled = re.compile(pattern)
    return lambda value: value if isinstance(value, str) and compiled.fullmatch(value) else None


def _one_of(choices: dict[str, str]) -> Callable[[object], object | None]:
    return lambda value: choices.get(value) if isinstance(value, str) else None


TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
"""Every spelling in use, to what is meant."""
_MODES = ("auto", "search", "direct")
_INDEXES: tuple[str, ...] = get_args(IndexKind)
_CHANGES: tuple[str, ...] = get_args(DefinitionChanges)
_WIRES: tuple[str, ...] = get_args(WireKind)
_LEVELS: tuple[str, ...] = get_args(LogLevel)
_KEY = re.compile(r"(?:sk|pk|gsk|xai|hf|nvapi)[_-]|AIza")
"""How keys begin; no variable is called so."""

TEXT = Kind("a text", _text)
FLAG = Kind("true or false", lambda value: value if isinstance(value, bool) else None, "true or false")
WHOLE = Kind("a whole number above 0", _whole, "a number")
FRACTION = Kind("a number from 0 to 1", _share, "a number")
SECONDS = Kind("a number of seconds above 0", _seconds, "a number")
WAIT = Kind("a number of seconds, 0 or more", _wait, "a number")
AMOUNT = Kind("a number above 0", _seconds, "a number")
BUDGET = Kind("a whole number, 0 or more", _budget, "a number")
BUDGETS = Kind("a table of whole numbers, 0 or more", _by_tool(_budget), "a table")
TIMES = Kind("a table of seconds, 0 or more", _by_tool(_wait), "a table")
LINES = Kind("a list of texts", _lines, "a list")
NAMES = Kind("a list of names or patterns", _names, "a list")
INHERITED = Kind("true, false, or a list of names or patterns", _inherited, "a list")
PAIRS = Kind("a table of texts", _pairs, "a table")
PREFIX = Kind("letters, digits, `_` or `-`, or nothing", _matching(r"[A-Za-z0-9_-]*"))
ADDRESS = Kind("an address that begins with http:// or https://", _matching(r"(?s)(?:https?://|\$\{)\S.*"))
VARIABLE = Kind("the name of a variable", _matching(r"[A-Za-z_][A-Za-z0-9_]*"))
KEY_VARIABLE = Kind("the name of a variable, never a key", _key_variable)
STORE = Kind("a database's URL", _matching(r"(?s)(?:[a-z][a-z0-9]*(?:\+[a-z0-9_]+)?://|\$\{).*"))
DATABASE = Kind("a database's URL, a file of SQLite or DuckDB, or `sample`", _text)
MODE = Kind("`auto`, `search` or `direct`", _one_of({mode: mode for mode in _MODES}))
INDEX = Kind("`static`, `encoder` or `words`", _one_of({one: one for one in _INDEXES}))
TRANSPORT = Kind("`stdio`, `http` or `sse`", _one_of(TRANSPORTS))
CHANGES = Kind("`hold`, `accept` or `ignore`", _one_of({one: one for one in _CHANGES}))
WIRE = Kind("`openai`, `openai-chat`, `anthropic`, `google` or `compatible`", _one_of({one: one for one in _WIRES}))
LEVEL = Kind("`debug`, `info`, `warn` or `error`", _one_of({one: one for one in _LEVELS}))
MONEY = Kind("an amount, 0 or more", _money, "a number")
SHARES = Kind("a list of numbers above 0, up to 1", _shares, "a list")
TABLE = Kind("a table", lambda value: cast("object", value) if isinstance(value, dict) else None, "a table")

CHOICES = {
    MODE.wanted: _MODES,
    INDEX.wanted: _INDEXES,
    TRANSPORT.wanted: ("stdio", "http", "sse"),
    CHANGES.wanted: _CHANGES,
    WIRE.wanted: _WIRES,
    LEVEL.wanted: _LEVELS,
}
"""What an error offers for a kind that is a choice."""

_DESCRIBED = ((bool, "true or false"), (str, "a text"), (int | float, "a number"), (list, "a list"), (dict, "a table"))


def described(value: object) -> str:
    """What a value is, without saying it."""
    if value in ("", [], {}) or (isinstance(value, str) and not value.strip()):
        return "empty"
    return next((name for kind, name in _DESCRIBED if isinstance(value, kind)), "something else")
