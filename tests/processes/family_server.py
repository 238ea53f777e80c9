"""An MCP server that starts relatives of every kind and ends by itself for no reason, for tests of how servers are
ended.

Run as `python family_server.py FOLDER KIND...`. Each relative's pid is written to a file of its kind's name in the
folder, the server's own to `server`. Kinds: `child`, `grandchild` (below a shell that waits), `session` (a session of
its own, no pipes), `orphan` (a session of its own, its parent gone, our standard output), `stubborn` (ignores
SIGTERM), `bare` (without an environment), `daemon` (an orphan without pipes), `mute` (no relative: the server answers
nothing).
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER, KINDS = Path(sys.argv[1]), sys.argv[2:]
SLEEP = ["sleep", "1000"]
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"


def write_pid(kind: str, pid: int) -> None:
    unfinished = FOLDER / f".{kind}"
    unfinished.write_text(str(pid), encoding="ascii")
    unfinished.rename(FOLDER / kind)


def start(kind: str) -> None:
    nothing: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if kind == "child":
        write_pid(kind, subprocess.Popen(SLEEP).pid)
    elif kind == "grandchild":
        unfinished, final = FOLDER / f".{kind}", FOLDER / kind
        subprocess.Popen(
            ["sh", "-c", f"sh -c 'echo $$ > {unfinished}; mv {unfinished} {final}; exec sleep 1000'; true"]
        )
    elif kind == "session":
        write_pid(kind, subprocess.Popen(SLEEP, start_new_session=True, **nothing).pid)
    elif kind == "stubborn":
        write_pid(kind, subprocess.Popen([sys.executable, "-c", STUBBORN]).pid)
    elif kind == "bare":
        write_pid(kind, subprocess.Popen(["/usr/bin/env", "-i", *SLEEP], start_new_session=True).pid)
    elif kind in {"orphan", "daemon"}:
        between = os.fork()
        if between == 0:
            options: dict[str, Any] = nothing if kind == "daemon" else {}
            write_pid(kind, subprocess.Popen(SLEEP, start_new_session=True, **options).pid)
            os._exit(0)
        os.waitpid(between, 0)


def answer(request: dict[str, object]) -> None:
    method = request.get("method")
    result: dict[str, object] = {}
    if method == "initialize":
        info = {"name": "family", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        params = request["params"]
        assert isinstance(params, dict)
        (FOLDER / "called").touch()
        time.sleep(params["arguments"].get("seconds", 0))
        result = {"content": [{"type": "text", "text": "done"}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
    sys.stdout.flush()


for each in KINDS:
    start(each)
write_pid("server", os.getpid())
signal.signal(signal.SIGINT, signal.SIG_IGN)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "mute" not in KINDS:
        answer(message)
# The end of its input is nothing to it.
time.sleep(1000)
