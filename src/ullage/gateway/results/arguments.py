"""What does a call of read_result ask for?"""

from dataclasses import dataclass

from ullage.errors import InvalidArguments
from ullage.tool import Json, JsonObject

__all__ = ["Wanted", "read_arguments"]

_NUMBERS = ("offset", "limit", "max_tokens")
_TEXTS = ("grep", "path", "sql")
_NAMES = ("handle", *_TEXTS, *_NUMBERS)
_LEAST = 50
"""Tokens in which a line and the way to the next can be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    handle: str
    offset: int = 0
    limit: int | None = None
    grep: str | None = None
    path: str | None = None
    sql: str | None = None
    max_tokens: int | None = None


def read_arguments(arguments: JsonObject) -> Wanted:
    """Raises `InvalidArguments` for what does not fit."""
    unknown = next((key for key in arguments if key not in _NAMES), None)
    if unknown is not None:
        raise _misfit(f"read_result has no argument `{unknown[:100]}`", "It takes `handle` and one of the others.")
    handle = arguments.get("handle")
    if not isinstance(handle, str) or not handle.strip():
        raise _misfit("`handle` must be a string", "Give the handle from the last line of a result that was cut.")
    numbers = {name: _number(name, arguments.get(name)) for name in _NUMBERS}
    texts = {name: _text(name, arguments.get(name)) for name in _TEXTS}
    if texts["sql"] and texts["grep"]:
        raise _misfit("`sql` and `grep` do not go together", "Put the condition into the SQL.")
    if numbers["max_tokens"] is not None and numbers["max_tokens"] < _LEAST:
        raise _misfit(f"`max_tokens` must be at least {_LEAST}", "Leave it out for the usual budget.")
    return Wanted(
        handle=handle.strip().strip("`\"'"),
        offset=numbers["offset"] or 0,
        limit=numbers["limit"] or None,
        max_tokens=numbers["max_tokens"],
        **texts,
    )


def _number(name: str, value: Json) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or value == "":
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**15:
        raise _misfit(f"`{name}` must be a whole number, 0 or more", f'Give it as in {{"{name}": 100}}.')
    return value


def _text(name: str, value: Json) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise _misfit(f"`{name}` must be a string", "Leave out what you do not need.")
    return value


def _misfit(message: str, suggestion: str) -> InvalidArguments:
    return InvalidArguments(message, suggestion=suggestion, options=_NAMES)
