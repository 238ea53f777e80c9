"""Messages of a client on lines, and refusals of requests on lines that cannot be read.

Where such a line still says which request it was, that one is answered with an error, so that the client does not wait
for ever; a line without a request is dropped. Pure.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from ..json_lines import TooDeep, read_line
from ..jsonrpc import INVALID_REQUEST, PARSE_ERROR, Line, Message, ReadLine, error_response

__all__ = ["read_message"]

_LONGEST_NUMBER = 300
"""Digits; Python refuses to read integers of more than some thousands."""
_SCALAR = r'"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"'
_ID = r'"id"\s*:\s*(?P<id>-?\d{1,18}|"[^"\\]*")'
_LEADING = re.compile(rf"\s*\{{\s*(?:{_SCALAR}\s*,\s*)*{_ID}\s*,")
_TRAILING = re.compile(rf",\s*{_ID}\s*(?:,\s*{_SCALAR}\s*)*\}}\s*\Z")
_END = 4096
"""Characters in which the members after `params` stand."""
_UNREADABLE = "Parse error: it is not JSON, or nested too deeply, or has a number that is too long"
_INVALID = "Invalid request: send one JSON-RPC 2.0 request, with an object for `params`"


def read_message(line: Line, read: ReadLine = read_line) -> Message | tuple[Message, ...]:
    """The message on a line; for a line that cannot be read, the errors to answer."""
    try:
        value = read(line)
    except (TooDeep, ValueError, RecursionError):
        code, text = PARSE_ERROR, _UNREADABLE
    else:
        if isinstance(value, dict) and _is_message(cast("Message", value)):
            return cast("Message", value)
        code, text = INVALID_REQUEST, _INVALID
    return tuple(error_response(number, code, text) for number in _find_ids(line.decode("utf-8", "replace")))


def _is_message(value: Message) -> bool:
    if value.get("jsonrpc") != "2.0":
        return False
    if "method" in value:
        return isinstance(value["method"], str) and isinstance(value.get("params"), dict | None)
    if isinstance(value.get("result"), dict):
        number = value.get("id")
        return isinstance(number, int | str) and not isinstance(number, bool)
    return isinstance(value.get("error"), dict)


def _find_ids(line: str) -> Iterator[int | str]:
    """The ids of the requests on a line."""
    try:
        value: Any = json.loads(line, parse_int=_read_number)
    except (ValueError, RecursionError):
        found = _LEADING.match(line) or _TRAILING.search(line, max(0, len(line) - _END))
        if found is not None:
            yield json.loads(found["id"])
        return
    for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
        said = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        identity = said.get("id")
        if "method" in said and isinstance(identity, int | str) and not isinstance(identity, bool):
            yield identity


def _read_number(digits: str) -> int | None:
    return int(digits) if len(digits) < _LONGEST_NUMBER else None
