"""The hostile and the quiet server behind the gateway of `make bench-hold`.

Of the standard library alone. `--case` chooses a hostile tool from `hold_cases.py`; without it the server has one
harmless tool. The list of tools is held back until the file named by `--after` exists, so that reading it can be timed.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from hold_case import TOOL, Case, Object
from hold_cases import CASES

QUIET = Case(name="quiet", schema=lambda: {"type": "object", "properties": {"text": {"type": "string"}}})
EMPTY = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Lists that a case says nothing of, with the key of each."""
CAPABILITIES = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}}
DEEP = '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"a":' + "[" * 10_000 + "]" * 10_000 + "}}}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case")
    parser.add_argument("--after", type=Path)
    arguments = parser.parse_args()
    case = next((one for one in CASES if one.name == arguments.case), QUIET)
    server = HostileServer(case, arguments.after)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message:
            server.answer(message)


class HostileServer:
    """Answers a client as a case says; what it sends is written as JSON once, at the start."""

    def __init__(self, case: Case, release: Path | None) -> None:
        self._case = case
        self._release = release
        self._pages = tool_pages(case)
        self._reply = json.dumps(case.reply())
        self._others = {method: json.dumps(result) for method, result in case.results().items()}
        self._told = "".join(json.dumps(one) + "\n" for one in case.tells())
        self._raw = case.raw()

    def answer(self, message: Object) -> None:
        result, number = self._result(message), json.dumps(message["id"])
        answer = f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}'
        if result.startswith('{"error":'):
            answer = f'{{"jsonrpc":"2.0","id":{number},{result[1:]}'
        if self._case.name == "structured content 10,000 deep" and message["method"] == "tools/call":
            answer = DEEP % number
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()

    def _result(self, message: Object) -> str:
        method = message["method"]
        if method == "tools/list" or (method == "server/discover" and self._case.holds_greeting):
            while self._release is not None and not self._release.exists():
                time.sleep(0.01)
        if method == "tools/list":
            return self._pages[int((message.get("params") or {}).get("cursor") or 0)]
        if method in self._others:
            return self._others[method]
        if method == "tools/call" and message["params"]["name"] == TOOL:
            token = (message["params"].get("_meta") or {}).get("progressToken")
            sys.stdout.write(self._told.replace('"$token"', json.dumps(token)))
            sys.stdout.flush()
            sys.stdout.buffer.write(self._raw)
            return self._reply
        return json.dumps(_usual_result(message))


def tool_pages(case: Case) -> list[str]:
    """The results of `tools/list`, one for each page."""
    tools, pages = case.tools(), list[str]()
    size = -(-len(tools) // case.pages)
    for start in range(0, len(tools), size):
        more = {"nextCursor": str(len(pages) + 1)} if start + size < len(tools) else {}
        pages.append(json.dumps({"tools": tools[start : start + size], **more}))
    return pages


def _usual_result(message: Object) -> Object:
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        identity = {"name": "hold", "version": "1"}
        return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": identity}
    if message["method"] == "server/discover":
        meta = {"io.modelcontextprotocol/serverInfo": {"name": "hold", "version": "1"}}
        return {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES, "_meta": meta}
    if message["method"] in EMPTY:
        return {EMPTY[message["method"]]: []}
    return {}


if __name__ == "__main__":
    main()
