"""Which server offers a given list of tools?

`python replayed_server.py CATALOGUE.json` does, on standard input and output, in both eras of the protocol: the file
has `tools` as a server listed them, and may have `serverInfo` and `instructions`. A call is answered with the tool's name
and its arguments, or with the catalogue's `answers` for that tool, where `{NAME}` is the length of that environment
variable; `_meta` comes with every result. It uses the standard library alone.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

Object = dict[str, Any]
META = {"example.org/unseen": "this is for the client and not for the model"}
"""What a client must keep to itself."""


def result_of(message: Object, catalogue: Object) -> Object | None:
    """The result, or None for a method that is unknown here."""
    method, params = message["method"], message.get("params") or {}
    fresh = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"}
    if method == "initialize":
        return _introduction(catalogue) | {"protocolVersion": params["protocolVersion"]}
    if method == "server/discover":
        introduced = _introduction(catalogue)
        meta = {"io.modelcontextprotocol/serverInfo": introduced.pop("serverInfo"), **META}
        return introduced | {"supportedVersions": ["2026-07-28"], "_meta": meta, **fresh}
    if method == "tools/list":
        return {"tools": catalogue["tools"], **fresh}
    if method == "tools/call":
        content = {"type": "text", "text": _answer(params, catalogue)}
        return {"content": [content], "_meta": META, "resultType": "complete"}
    return {} if method == "ping" else None


def _introduction(catalogue: Object) -> Object:
    told = {"instructions": catalogue["instructions"]} if catalogue.get("instructions") else {}
    identity = catalogue.get("serverInfo") or {"name": "replayed", "version": "1"}
    return {"capabilities": {"tools": {}}, "serverInfo": identity, **told}


def _answer(params: Object, catalogue: Object) -> str:
    given = catalogue.get("answers", {}).get(params["name"])
    if given is None:
        return f"{params['name']} {json.dumps(params.get('arguments') or {}, sort_keys=True)}"
    return re.sub(r"\{(\w+)\}", lambda found: str(len(os.environ.get(found[1], ""))), given)


def main(path: str) -> None:
    catalogue = json.loads(Path(path).read_text(encoding="utf-8"))
    if "started" in catalogue:
        Path(catalogue["started"]).write_text(f"{os.getpid()} {os.getppid()}", encoding="ascii")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = result_of(message, catalogue)
        error = {"code": -32601, "message": f"no {message['method']} here"}
        outcome = {"error": error} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
