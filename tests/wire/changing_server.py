"""A small MCP server for tests, in the standard library alone, whose definitions are those of a file.

Run as `python changing_server.py FILE`. The file is JSON with `tools`, `prompts` and `instructions`; it is read at each
request, and a change of it is announced. Every tool answers with its own name.
"""

import json
import sys
import threading
import time
from pathlib import Path


def definitions():
    return json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def announce():
    before = definitions()
    while True:
        time.sleep(0.05)
        try:
            now = definitions()
        except ValueError:
            continue
        for kind in ("tools", "prompts"):
            if now.get(kind) != before.get(kind):
                send(method=f"notifications/{kind}/list_changed")
        before = now


def answer(method, params):
    said = definitions()
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, "prompts": {"listChanged": True}},
            "serverInfo": {"name": "changing", "version": "1"},
            "instructions": said.get("instructions", ""),
        }
    if method == "tools/list":
        return {"tools": said.get("tools", [])}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"called {params['name']}"}]}
    if method == "prompts/list":
        return {"prompts": said.get("prompts", [])}
    if method == "prompts/get":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": f"got {params['name']}"}}]}
    return None


def main():
    threading.Thread(target=announce, daemon=True).start()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = answer(message["method"], message.get("params", {}))
        if result is None:
            send(id=message["id"], error={"code": -32601, "message": "Method not found"})
        else:
            send(id=message["id"], result=result)


main()
