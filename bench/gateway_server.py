"""Which server stands behind the gateways of `make bench-gateway`?

This one, of the standard library alone and of both eras: `echo`, and as many other tools as it is told to list. It
writes a line into the file it is given for each start and each `tools/list`, so that a gateway's habits show. How it is
spoken to is all it knows; it measures nothing.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

Object = dict[str, Any]
VERBS = ("list", "read", "search", "compare", "export", "count", "describe", "fetch", "check", "render")
NOUNS = ("invoice", "branch", "dashboard", "calendar", "contact", "ticket", "volume", "report", "channel", "deployment")
READ_ONLY = {"readOnlyHint": True}


def tool(name: str, description: str, *parameters: str) -> Object:
    properties = {one: {"type": "string", "description": f"The {one} to go by."} for one in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters[:1])}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": READ_ONLY}


def tools(server: str, count: int) -> list[Object]:
    """`echo` first; every server's others differ from its neighbours' in their words."""
    pairs = [(verb, noun) for noun in NOUNS for verb in VERBS]
    return [
        tool("echo", f"Says again what it was told, at {server}.", "text"),
        *(
            tool(
                f"{verb}_{noun}",
                f"{verb.capitalize()} every {noun} that {server} holds, newest first, by owner or by date.",
                noun,
                "owner",
                "since",
            )
            for verb, noun in pairs[: count - 1]
        ),
    ]


def result_of(message: Object, listed: list[Object], name: str) -> Object | None:
    method = message["method"]
    identity = {"name": name, "version": "1"}
    fresh = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"}
    if method == "tools/call":
        words = str((message["params"].get("arguments") or {}).get("text"))
        return {"resultType": "complete", "content": [{"type": "text", "text": words}]}
    if method == "tools/list":
        return {"tools": listed, **fresh}
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": identity}
    if method == "server/discover":
        meta = {"io.modelcontextprotocol/serverInfo": identity}
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": meta, **fresh}
    return {} if method == "ping" else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="echo")
    parser.add_argument("--tools", type=int, default=1)
    parser.add_argument("--start", type=float, default=0, help="seconds until it reads its first request")
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    listed = tools(arguments.name, arguments.tools)

    def note(what: str) -> None:
        if arguments.log:
            with arguments.log.open("a", encoding="utf-8") as log:
                log.write(f"{arguments.name} {what} {time.time()}\n")

    note("starts")
    time.sleep(arguments.start)
    note("is-up")
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/list":
            note("tools/list")
        if "id" not in message:
            continue
        result = result_of(message, listed, arguments.name)
        unknown = {"code": -32601, "message": f"no {message['method']} here"}
        outcome = {"error": unknown} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
