"""An MCP server of a few lines that misbehaves in the manner it is started with."""

import json
import os
import signal
import subprocess
import sys
import time

MANNER = sys.argv[1]
TOOLS = ("echo", "pid", "die", "flood", "child", "given")


def say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    sys.stdout.flush()


def called(name: str) -> str:
    if name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "flood":
        chunk = "x" * 999_999 + "\n"
        return str(sum(sys.stderr.write(chunk) for _ in range(100)))
    if name == "given":
        return json.dumps(dict(os.environ))
    if name == "child":
        return str(CHILD.pid) if CHILD else ""
    return str(os.getpid()) if name == "pid" else "hello"


def result_of(method: str, params: dict[str, object]) -> object:
    if method == "initialize":
        introduction = {"name": MANNER, "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": introduction}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": called(str(params["name"]))}]}
    return {} if method == "ping" else None


def answer(line: str) -> None:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        return
    result = result_of(request["method"], request.get("params", {}))
    if MANNER == "babbles":
        sys.stdout.write('Listening on port 80!\n{"half": \n[1, 2]\n\n')
    if result is None:
        say({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
    else:
        say({"id": request["id"], "result": result})


CHILD = subprocess.Popen(["sleep", "1000"]) if MANNER == "launcher" else None
if MANNER == "exits":
    sys.stderr.write("no such table\n")
    sys.exit(3)
for received in sys.stdin:
    if MANNER == "nonsense":
        sys.stdout.write("\x00\xff not json at all " * 100 + "\n")
        sys.stdout.flush()
    elif MANNER != "mute":
        answer(received)
if MANNER == "stays":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
