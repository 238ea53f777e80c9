"""What did a real server say of itself and its tools?

A server on standard input and output that says again what a recorded catalogue holds, in the era that the recorded
server spoke, with its noise. It runs none of the tools: a call is answered with what it was. Standard library only, so
that a hundred of them can run side by side.
"""

import json
import sys
from pathlib import Path
from typing import Any

MODERN = "2026-07-28"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
UNKNOWN = {"error": {"code": -32601, "message": "Method not found"}}
STAMP = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}

Message = dict[str, Any]


def replay(catalogue: Message) -> None:
    for noise in catalogue.get("stdout_junk", []):
        sys.stdout.write(noise)
    sys.stdout.flush()
    for line in sys.stdin:
        request = json.loads(line)
        answer = None if "id" not in request else answered(catalogue, request["method"], request.get("params") or {})
        if answer is not None:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}) + "\n")
            sys.stdout.flush()


def answered(catalogue: Message, method: str, params: Message) -> Message | None:
    """The part of an answer behind its id; None for silence."""
    if method == "server/discover":
        return _discovered(catalogue)
    if method == "initialize":
        return {"result": _introduced(catalogue)}
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": catalogue["tools"], **STAMP, **catalogue.get("list_result_extra", {})}}
    if method == "prompts/list":
        return {"result": {"prompts": [{"name": name} for name in catalogue.get("prompts") or []], **STAMP}}
    if method == "tools/call":
        return {"result": _called(catalogue, params)}
    return UNKNOWN


def _discovered(catalogue: Message) -> Message | None:
    said = catalogue.get("server_discover_2026_07_28")
    if isinstance(said, list):
        info = {"supportedVersions": said, "_meta": {SERVER_INFO: catalogue["serverInfo"]}, **STAMP}
        return {"result": {**_offered(catalogue), **info}}
    error = said.get("error") if isinstance(said, dict) else None
    if isinstance(error, str):
        return None
    return UNKNOWN if error is None else {"error": error}


def _introduced(catalogue: Message) -> Message:
    version = catalogue.get("protocolVersion") or "2025-11-25"
    return {"protocolVersion": version, "serverInfo": catalogue["serverInfo"], **_offered(catalogue)}


def _offered(catalogue: Message) -> Message:
    offered: Message = {"capabilities": catalogue.get("capabilities") or {"tools": {}}}
    if catalogue.get("instructions"):
        offered["instructions"] = catalogue["instructions"]
    return offered


def _called(catalogue: Message, params: Message) -> Message:
    said = {"package": catalogue["package"], "tool": params["name"], "arguments": params.get("arguments")}
    return {"content": [{"type": "text", "text": json.dumps(said)}], "resultType": "complete"}


if __name__ == "__main__":
    replay(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
