"""A server behind the gateway of `make bench-many`, on standard input and output and of the standard library alone.

It remembers one value for whoever talks to it, and has a slow tool that can be cancelled. With `--stateless` it speaks
2026-07-28 too, and remembers nothing.
"""

import json
import sys
import threading
from typing import Any

IS_STATELESS = "--stateless" in sys.argv
SCHEMA = {"type": "object", "properties": {"value": {"type": "string"}, "seconds": {"type": "number"}}}
NAMES = ("echo", "slow") if IS_STATELESS else ("remember", "recall", "slow")
PREFIX = "stateless_" if IS_STATELESS else ""
TOOLS = [{"name": f"{PREFIX}{name}", "description": f"{name} a value", "inputSchema": SCHEMA} for name in NAMES]
INFO = {"name": "many", "version": "1"}
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

Object = dict[str, Any]
writing = threading.Lock()
cancelled: dict[Any, threading.Event] = {}
remembered = {"value": ""}


def send(message: Object) -> None:
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(value: str) -> Object:
    return {"content": [{"type": "text", "text": value}], **({"resultType": "complete"} if IS_STATELESS else {})}


def slow(number: Any, seconds: float) -> None:  # noqa: ANN401
    if not cancelled[number].wait(seconds):
        send({"id": number, "result": text("done")})
    del cancelled[number]


def call(number: Any, params: Object) -> None:  # noqa: ANN401
    name, arguments = params["name"].removeprefix(PREFIX), params.get("arguments") or {}
    if name == "slow":
        cancelled[number] = threading.Event()
        threading.Thread(target=slow, args=(number, float(arguments.get("seconds", 1))), daemon=True).start()
        return
    if name == "remember":
        remembered["value"] = arguments.get("value", "")
    send({"id": number, "result": text(arguments.get("value", "") if name == "echo" else remembered["value"])})


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "notifications/cancelled" and params.get("requestId") in cancelled:
            cancelled[params["requestId"]].set()
        elif number is None:
            continue
        elif method == "initialize":
            version = params.get("protocolVersion", "2025-11-25")
            send(
                {
                    "id": number,
                    "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": INFO},
                }
            )
        elif method == "server/discover" and IS_STATELESS:
            offered = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            send(
                {"id": number, "result": {**offered, **COMPLETE, "_meta": {"io.modelcontextprotocol/serverInfo": INFO}}}
            )
        elif method == "tools/list":
            send({"id": number, "result": {"tools": TOOLS, **(COMPLETE if IS_STATELESS else {})}})
        elif method == "tools/call":
            call(number, params)
        else:
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


if __name__ == "__main__":
    main()
