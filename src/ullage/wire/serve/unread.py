"""Read a JSON-RPC message from a line, and refuse requests on lines that cannot be read.

The SDK drops such a line, and the client waits for ever. Where the line still says which request it was, that one is
answered with an error; a line without a request is dropped.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError

__all__ = ["read_message"]

_LONGEST_NUMBER = 300
"""Digits; Python refuses to read integers of more than some thousands."""
_SCALAR = r'"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"'
_ID = r'"id"\s*:\s*(?P<id>-?\d{1,18}|"[^"\\]*")'
_LEADING = re.compile(rf"\s*\{{\s*(?:{_SCALAR}\s*,\s*)*{_ID}\s*,")
_TRAILING = re.compile(rf",\s*{_ID}\s*(?:,\s*{_SCALAR}\s*)*\}}\s*\Z")
_END = 4096
"""Characters in which the members after `params` stand."""


def read_message(line: str) -> JSONRPCMessage | tuple[str, ...]:
    """The message on a line; for a line that cannot be read, what to answer, one line each."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        is_json = all(one["type"] != "json_invalid" for one in error.errors(include_input=False, include_url=False))
        refused = _INVALID if is_json else _UNREADABLE
        return tuple(json.dumps({"jsonrpc": "2.0", "id": one, "error": refused}) + "\n" for one in _asked(line))


_UNREADABLE = {
    "code": PARSE_ERROR,
    "message": "Parse error: it is not JSON, or nested too deeply, or has a number that is too long",
}
_INVALID = {
    "code": INVALID_REQUEST,
    "message": "Invalid request: send one JSON-RPC 2.0 request, with an object for `params`",
}


def _asked(line: str) -> Iterator[int | str]:
    """The ids of the requests on a line."""
    try:
        value: Any = json.loads(line, parse_int=_number)
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


def _number(digits: str) -> int | None:
    return int(digits) if len(digits) < _LONGEST_NUMBER else None
