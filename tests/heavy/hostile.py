"""How can a server do harm?

`python hostile.py KIND` is an MCP server on standard input and output, of both eras, that misbehaves in one way; `well`
behaves. It uses the standard library alone, so that it starts fast and depends on nothing that it is to try.

    well        answers
    silent      reads everything, answers nothing
    gone        exits at once
    loud        writes 100 MB to standard error around every call
    junk        writes 20 MB of lines that are no protocol before every answer
    endless     answers the listing, then writes one line that never ends
    many        lists 5,000 tools
    broken      lists tools with schemas that are none beside a good one
    dies        is gone in the middle of a call
    hangs       never answers a call
    slow        takes SECONDS (the next argument) to start
    parent      has a child that ignores SIGTERM and outlives it
    stubborn    ends neither with its input nor at SIGTERM
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
MEGABYTE = 1024 * 1024
LOUD = 100 * MEGABYTE
JUNK = 20 * MEGABYTE
MANY = 5_000
TEXT: Object = {"type": "object", "properties": {"text": {"type": "string"}}}
ECHO: Object = {"name": "echo", "description": "Says what it is told.", "inputSchema": TEXT}
WHO: Object = {"name": "who", "description": "Says which process it is.", "inputSchema": {"type": "object"}}
CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(3600)"


def tools(kind: str) -> list[Any]:
    if kind == "many":
        return [ECHO, WHO, *({**ECHO, "name": f"echo_{number}"} for number in range(MANY - 2))]
    if kind == "broken":
        return [
            ECHO,
            WHO,
            {"name": "no_schema", "description": "Has none."},
            {"name": "number", "description": "Has a number.", "inputSchema": 7},
            {"name": "typeless", "description": "Has no type.", "inputSchema": {"properties": {"a": {}}}},
            {"name": "nonsense", "description": 5, "inputSchema": {"type": "objekt", "properties": [], "required": 1}},
            {"description": "Has no name.", "inputSchema": TEXT},
            "not even an object",
        ]
    return [ECHO, WHO]


def result_of(kind: str, message: Object) -> Object | None:
    """The result, or None for a method that is unknown here."""
    method = message["method"]
    identity = {"name": f"hostile-{kind}", "version": "1"}
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": identity}
    if method == "server/discover":
        meta = {"io.modelcontextprotocol/serverInfo": identity}
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": meta, **_fresh()}
    if method == "tools/list":
        return {"tools": tools(kind), **_fresh()}
    if method == "tools/call":
        return _call(message["params"])
    return {} if method == "ping" else None


def _fresh() -> Object:
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def _call(params: Object) -> Object:
    said = str(os.getpid()) if params["name"] == "who" else str((params.get("arguments") or {}).get("text"))
    return {"resultType": "complete", "content": [{"type": "text", "text": said}]}


def write(message: Object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(kind: str, message: Object) -> None:
    if "id" not in message:
        return
    result = result_of(kind, message)
    error: Object = {"code": -32601, "message": f"no {message['method']} here"}
    outcome: Object = {"error": error} if result is None else {"result": result}
    write({"jsonrpc": "2.0", "id": message["id"], **outcome})


def stay_silent(_: Object) -> None:
    """Nothing comes back."""


def be_loud(message: Object) -> None:
    if message["method"] == "tools/call":
        pour(sys.stderr.fileno(), LOUD, b"this is of no interest to anybody at all, and there is a lot of it\n")
    answer("loud", message)


def talk_junk(message: Object) -> None:
    sys.stdout.flush()
    pour(sys.stdout.fileno(), JUNK, b"starting up {not: json} \xff\xfe and 17 more\n")
    answer("junk", message)


def never_end(message: Object) -> None:
    answer("endless", message)
    if message["method"] == "tools/list":
        sys.stdout.flush()
        pour(sys.stdout.fileno(), 1 << 40, b"x" * 1024)


def die(message: Object) -> None:
    if message["method"] == "tools/call" and message["params"]["name"] == "echo":
        os._exit(9)
    answer("dies", message)


def hang(message: Object) -> None:
    if message["method"] != "tools/call" or message["params"]["name"] != "echo":
        answer("hangs", message)


def pour(descriptor: int, size: int, what: bytes) -> None:
    piece = what * (65_536 // len(what) + 1)
    written = 0
    while written < size:
        written += os.write(descriptor, piece)


def leave_a_child() -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


BEHAVIOURS: dict[str, Callable[[Object], None]] = {
    "silent": stay_silent,
    "loud": be_loud,
    "junk": talk_junk,
    "endless": never_end,
    "dies": die,
    "hangs": hang,
}


def main(kind: str, seconds: str = "3") -> None:
    if kind == "gone":
        sys.exit(3)
    if kind == "slow":
        time.sleep(float(seconds))
    if kind == "parent":
        leave_a_child()
    if kind == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    behave = BEHAVIOURS.get(kind, lambda message: answer(kind, message))
    for line in sys.stdin:
        behave(json.loads(line))
    if kind == "stubborn":
        time.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
