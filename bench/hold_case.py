"""One hostile tool of `make bench-hold` with the requests that a client makes of it, and what cases are made of.

Everything is built from the standard library, because `hold_server.py` reads this file too and runs beside the gateway.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
TOOL = "probe"
"""Name of the hostile tool."""
READ_ONLY = {"readOnlyHint": True}
FIND: tuple[str, Object] = ("find_tool", {"tool_description": f"hostile__{TOOL}", "max_tokens": 4000})


def nothing() -> Object:
    return {}


def answer_ok() -> Object:
    return {"content": [{"type": "text", "text": "ok"}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A hostile tool, the arguments it is called with and what it answers."""

    name: str
    schema: Callable[[], Object] = lambda: {"type": "object"}
    arguments: Callable[[], Object] = nothing
    reply: Callable[[], Object] = answer_ok
    description: Callable[[], str] = lambda: "A probe of the hostile server."
    more_tools: Callable[[], list[Object]] = list
    """Listed beside the probe."""
    find: tuple[tuple[str, Object], ...] = (FIND,)
    after: Callable[[str], list[tuple[str, Object]]] = lambda _: []
    """Calls that follow on the text of the probe's answer, such as those that read a held result."""
    by_name: bool = False
    """Whether the probe is also called by its own name, and not only through `call_tool`."""
    results: Callable[[], dict[str, Object]] = dict
    """Results of other methods of the server, by method."""
    asks: tuple[tuple[str, Object], ...] = ()
    """Other requests of the client, each a method with its parameters."""
    tells: Callable[[], list[Object]] = list
    """Messages that the server sends before it answers a call; `$token` is replaced by the call's progress token."""
    raw: Callable[[], bytes] = bytes
    """Bytes that the server writes before it answers a call."""
    output: Callable[[], Object] | None = None
    """The tool's output schema."""
    pages: int = 1
    """Number of pages in which the tools are listed."""
    holds_greeting: bool = False
    """Whether the server holds back its first answer, too, until it is timed."""
    long_seconds: float = field(default=60.0)
    """How long one request may take before the case has failed."""

    def tools(self) -> list[Object]:
        probe = {
            "name": TOOL,
            "description": self.description(),
            "inputSchema": self.schema(),
            "annotations": READ_ONLY,
        }
        if self.output is not None:
            probe["outputSchema"] = self.output()
        return [probe, *self.more_tools()]


def of_property(schema: Object, **more: object) -> Object:
    return {"type": "object", "properties": {"value": schema}, **more}


def text_reply(text: str) -> Object:
    return {"content": [{"type": "text", "text": text}]}


def rows(number: int) -> list[Object]:
    return [{"id": at, "name": f"row {at}", "note": 'a\\b"c' * 3, "ok": at % 2 == 0} for at in range(number)]


def log_message(data: object) -> Object:
    params = {"level": "info", "data": data}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


def read_calls(text: str) -> list[tuple[str, Object]]:
    """Every way to read a held result, each with a hostile pattern."""
    found = re.search(r"\br\d{18}\b", text)
    if found is None:
        return []
    handle = found[0]
    return [
        ("read_result", {"handle": handle, "offset": 1000}),
        ("read_result", {"handle": handle, "grep": "(a+)+$"}),
        ("read_result", {"handle": handle, "grep": "(?:.*.*.*=.*){8}x"}),
        ("read_result", {"handle": handle, "path": "..name..x"}),
        ("read_result", {"handle": handle, "path": "[*].*"}),
        (
            "read_result",
            {"handle": handle, "sql": "select count(*) from result a, result b where a.name like '%a%b%c%'"},
        ),
    ]
