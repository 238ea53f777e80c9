"""Which server has something to keep quiet about?

This one, on standard input and output, in both eras of the protocol: one tool, whose text says how long the key is that
it was given in its environment, and a `_meta` with every result that is for the client alone. It writes its own process
and its parent's into the file it is given. It uses the standard library alone.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

Object = dict[str, Any]
KEY = "NOTES_KEY"
INSTRUCTIONS = "Notes are kept here, by topic."
TEXT = "Buy quinces on Thursday."
UNSEEN = "a word for the client alone"
META = {"example.org/unseen": UNSEEN}
READ: Object = {
    "name": "read_note",
    "description": "Reads the note on a topic.",
    "inputSchema": {
        "type": "object",
        "properties": {"topic": {"type": "string", "description": "What the note is about"}},
        "required": ["topic"],
    },
    "annotations": {"readOnlyHint": True},
    "_meta": META,
}


def result_of(method: str, params: Object) -> Object | None:
    """The result, or None for a method that is unknown here."""
    identity = {"name": "notes", "version": "1"}
    offered: Object = {"capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}
    fresh: Object = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"}
    if method == "initialize":
        return {**offered, "protocolVersion": params["protocolVersion"], "serverInfo": identity}
    if method == "server/discover":
        meta = {"io.modelcontextprotocol/serverInfo": identity, **META}
        return {**offered, "supportedVersions": ["2026-07-28"], "_meta": meta, **fresh}
    if method == "tools/list":
        return {"tools": [READ], "_meta": META, **fresh}
    if method == "tools/call":
        said = f"{TEXT} (on {params['arguments']['topic']}; the key has {len(os.environ[KEY])} characters)"
        return {"content": [{"type": "text", "text": said}], "_meta": META, "resultType": "complete"}
    return {} if method == "ping" else None


def main(processes: str) -> None:
    Path(processes).write_text(f"{os.getpid()} {os.getppid()}", encoding="ascii")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = result_of(message["method"], message.get("params") or {})
        error = {"code": -32601, "message": f"no {message['method']} here"}
        outcome = {"error": error} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
