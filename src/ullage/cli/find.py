"""Find tools by what they do, as an agent would with find_tool."""

import argparse
import json
import textwrap
from collections.abc import Mapping
from typing import Any

from ullage.app.gateway import Gateway
from ullage.gateway import signature
from ullage.tool import Call, Json, Reply, Tool

from .configured import add_flags, caller_of, read, say, with_gateway
from .output import bold, dim, emit, emit_json
from .wording import NO_SERVERS, how_many, without_name

__all__ = ["arguments", "run"]

_WIDTH = 100


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what the tool should do, or its name")
    parser.add_argument("--keywords", metavar="WORDS", help="further words to look for")
    parser.add_argument("--max-tokens", metavar="N", type=int, help="what the reply may cost")
    parser.add_argument("--json", action="store_true", help="print the reply as an agent gets it")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    asked: dict[str, Json] = {"tool_description": " ".join(arguments.query)}
    if arguments.keywords:
        asked["tool_keywords"] = arguments.keywords
    if arguments.max_tokens is not None:
        asked["max_tokens"] = arguments.max_tokens

    async def search(gateway: Gateway) -> Reply:
        caller = caller_of(gateway, arguments.client)
        return await gateway.find(arguments.client).call(Call(tool="find_tool", arguments=asked, caller=caller))

    loaded = read(arguments)
    reply = with_gateway(loaded, search)
    found: Any = json.loads(str(reply.content[0]["text"]))
    if arguments.json:
        emit_json(found)
    else:
        _print(found)
        if not loaded.settings.servers:
            say(NO_SERVERS)
    return 0 if found["tools"] or found["more"] else 1


def _print(found: Mapping[str, Any]) -> None:
    for tool in found["tools"]:
        _print_tool(tool)
    for line in found["more"]:
        name, dash, rest = line.partition(" — ")
        emit(f"{name}{dim(dash + rest)}")
    for missing in found.get("missing", []):
        server, _, reason = missing.partition(": ")
        say(f"ullage: `{server}` was not searched: {without_name(reason, server)}")
    if "hint" in found:
        say(f"ullage: {found['hint']}")
    else:
        metrics = found["token_metrics"]
        returned, baseline = metrics["returned_tokens"], metrics["baseline_tokens"]
        saved = f"{metrics['savings_percentage']:.1f} %"
        say(f"{how_many(returned, 'token')} of definitions instead of {baseline:,}: {saved} saved.")


def _print_tool(tool: Mapping[str, Any]) -> None:
    """A person reads parameters in a line more easily than a schema; `--json` has the schema."""
    call, _, _ = signature(Tool(name=tool["name"], input_schema=tool["inputSchema"])).partition(" — ")
    emit(bold(tool["name"]) + call.removeprefix(tool["name"]))
    said = " ".join(str(tool.get("description") or "").split())
    if said:
        emit(dim(textwrap.fill(said, _WIDTH, initial_indent="  ", subsequent_indent="  ")))
