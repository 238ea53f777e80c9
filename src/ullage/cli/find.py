"""Find tools by what they do, as an agent would with find_tool."""

import argparse
import json
from typing import Any

from ullage.app.gateway import Gateway
from ullage.tool import Call, Json, Reply

from .configured import add_flags, read, say, with_gateway
from .output import bold, dim, emit, emit_json

__all__ = ["arguments", "run"]


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
        return await gateway.find(arguments.client).call(Call(tool="find_tool", arguments=asked))

    reply = with_gateway(read(arguments), search)
    found: Any = json.loads(str(reply.content[0]["text"]))
    if arguments.json:
        emit_json(found)
    else:
        _print(found)
    return 0 if found.get("tools") or found.get("more") else 1


def _print(found: dict[str, Any]) -> None:
    for tool in found.get("tools", []):
        emit(bold(tool["name"]))
        emit(f"  {' '.join(str(tool.get('description') or '').split())}")
        emit(dim(f"  {json.dumps(tool['inputSchema'], ensure_ascii=False)}"))
    for line in found.get("more", []):
        name, dash, rest = line.partition(" — ")
        emit(f"{name}{dim(dash + rest)}")
    for missing in found.get("missing", []):
        say(f"ullage: not searched: {missing}")
    if found.get("hint"):
        say(str(found["hint"]))
    metrics = found.get("token_metrics", {})
    say(
        f"{metrics.get('returned_tokens', 0):,} tokens returned of {metrics.get('baseline_tokens', 0):,}: "
        f"{metrics.get('savings_percentage', 0):.1f} % saved."
    )
