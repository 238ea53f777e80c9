"""Search for tools by what they do, with the ranking that an agent gets from find_tool."""

import argparse
import json
import sys
import textwrap
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from ullage.app.forgetting import forget_uses
from ullage.app.gateway import Gateway
from ullage.errors import InvalidArguments
from ullage.gateway import Explained, signature
from ullage.tool import Call, Json, Tool

from .configured import add_flags, caller_of, read, say, with_gateway
from .output import bold, dim, emit, emit_json, page
from .shown import without_ullage
from .why import explained, why_json, why_lines
from .wording import NO_SERVERS, how_many, without_name

__all__ = ["arguments", "run"]

_LEAST_TOKENS = 100
"""Below it, `find_tool` has no room for anything."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", metavar="QUERY", help="what the tool should do, or its name")
    parser.add_argument("--keywords", metavar="WORDS", help="additional search terms")
    parser.add_argument("--max-tokens", metavar="N", type=int, help="maximum size of the reply in tokens")
    parser.add_argument("--why", action="store_true", help="explain each result: words, meaning, earlier use")
    parser.add_argument("--json", action="store_true", help="print the reply that an agent gets")
    parser.add_argument(
        "--forget", action="store_true", help="do not search; delete what was learned from earlier searches"
    )
    add_flags(parser)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What came of a search."""

    said: Mapping[str, Any]
    baseline: int
    """Tokens of definitions without Ullage."""
    is_direct: bool
    writing: Set[str]
    """Tools that may change something."""
    why: Mapping[str, Explained]
    """By name; empty where nobody asked."""

    @property
    def shown(self) -> list[Explained]:
        """Why each tool of the reply is there."""
        names = (*(tool["name"] for tool in self.said["tools"]), *self.said["more"])
        return [one for name in names if (one := explained(name, self.why)) is not None]


def run(arguments: argparse.Namespace) -> int:
    if arguments.forget:
        return _forget(arguments)
    asked = _asked(arguments)

    async def search(gateway: Gateway) -> _Found:
        caller, find = caller_of(gateway, arguments.client), gateway.find(arguments.client)
        reply = await find.call(Call(tool="find_tool", arguments=asked, caller=caller))
        why = await find.explain(asked, caller) if arguments.why else ()
        view = await gateway.view()
        return _Found(
            said=json.loads(str(reply.content[0]["text"])),
            baseline=without_ullage(view),
            is_direct=find.surface == "direct",
            writing={entry.listed for entry in view.entries if not entry.is_read_only},
            why={one.listed: one for one in why},
        )

    loaded = read(arguments)
    found = with_gateway(loaded, search)
    if arguments.json:
        emit_json({**found.said, **({"why": why_json(found.shown)} if arguments.why else {})})
    else:
        _print(found)
        settings = loaded.settings
        if not (settings.servers or settings.databases or settings.retrieves or settings.delegate.is_wanted):
            say(NO_SERVERS)
    return 0 if found.said["tools"] or found.said["more"] else 1


def _forget(arguments: argparse.Namespace) -> int:
    if arguments.query:
        raise InvalidArguments("--forget searches for nothing", suggestion="leave the query out: ullage find --forget")
    forgotten = forget_uses(read(arguments).settings)
    if arguments.json:
        emit_json({"forgotten": forgotten})
    else:
        emit(f"{how_many(forgotten, 'use')} forgotten.")
    return 0


def _asked(arguments: argparse.Namespace) -> dict[str, Json]:
    """Refuses here what find_tool would refuse in words for a model."""
    asked: dict[str, Json] = {"tool_description": " ".join(arguments.query)}
    if not " ".join(arguments.query).strip():
        raise InvalidArguments(
            "there is nothing to look for", suggestion='say what the tool should do: ullage find "create an issue"'
        )
    if arguments.keywords:
        asked["tool_keywords"] = arguments.keywords
    if arguments.max_tokens is not None:
        if arguments.max_tokens < _LEAST_TOKENS:
            raise InvalidArguments(
                f"no reply fits into fewer than {_LEAST_TOKENS} tokens",
                suggestion=f"give --max-tokens {_LEAST_TOKENS} or more, or leave it out",
            )
        asked["max_tokens"] = arguments.max_tokens
    return asked


def _print(found: _Found) -> None:
    for number, tool in enumerate(found.said["tools"]):
        if number:
            emit()
        _print_tool(tool, is_writing=tool["name"] in found.writing)
        _print_why(tool["name"], found.why)
    if found.said["tools"] and found.said["more"]:
        emit()
    for line in found.said["more"]:
        call, dash, rest = _folded(line).partition("—")
        emit(f"{call}{dim(dash + rest)}")
        _print_why(line, found.why)
    for missing in found.said.get("missing", []):
        server, _, reason = missing.partition(": ")
        say(f"ullage: `{server}` was not searched: {without_name(reason, server)}")
    say(f"ullage: {found.said['hint']}" if "hint" in found.said else _figures(found))


def _print_why(line: str, why: Mapping[str, Explained]) -> None:
    one = explained(line, why)
    for said in () if one is None else why_lines(one, page()):
        emit(dim(said))


def _figures(found: _Found) -> str:
    returned = found.said["token_metrics"]["returned_tokens"]
    said = f"{how_many(returned, 'token')} of definitions"
    if found.is_direct:
        return f"{said}; every tool is listed directly here, so a model has no need to search."
    whole = f"{said}; those of all servers' tools are {found.baseline:,}"
    saved = found.baseline - returned
    return f"{whole}: {100 * saved / found.baseline:.1f} % saved." if saved > 0 else f"{whole}."


def _print_tool(tool: Mapping[str, Any], *, is_writing: bool) -> None:
    """A person reads parameters in a line more easily than a schema; `--json` has the schema."""
    call, _, _ = signature(Tool(name=tool["name"], input_schema=tool["inputSchema"])).partition(" — ")
    emit(bold(tool["name"]) + _folded(call + (" [write]" if is_writing else "")).removeprefix(tool["name"]))
    said = " ".join(str(tool.get("description") or "").split())
    if said:
        emit(dim(textwrap.fill(said, page(), initial_indent="  ", subsequent_indent="  ")))
    if tool.get("also"):
        emit(dim(f"  also: {', '.join(tool['also'])}"))


def _folded(line: str) -> str:
    """A line for a person to read; for a program it stays one."""
    if not sys.stdout.isatty():
        return line
    return textwrap.fill(line, page(), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
