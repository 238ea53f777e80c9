"""The hostile and the quiet server behind the gateway of `make bench-hold`.

Of the standard library alone. `--case` chooses a hostile tool from `hold_cases.py`; without it the server has one
harmless tool. The list of tools is held back until the file named by `--after` exists, so that reading it can be timed.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from hold_cases import CASES, TOOL, Case, Object

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
    listed, reply = json.dumps({"tools": case.tools()}), json.dumps(case.reply())
    others = {method: json.dumps(result) for method, result in case.results().items()}
    told = "".join(json.dumps(one) + "\n" for one in case.tells())
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = json.dumps(_result(message))
        if message["method"] == "tools/list":
            while arguments.after is not None and not arguments.after.exists():
                time.sleep(0.01)
            result = listed
        elif message["method"] in others:
            result = others[message["method"]]
        elif message["method"] == "tools/call" and message["params"]["name"] == TOOL:
            sys.stdout.write(told)
            result = reply
        answer = f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},"result":{result}}}'
        if result.startswith('{"error":'):
            answer = f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},{result[1:]}'
        if case.name == "structured content 10,000 deep" and message["method"] == "tools/call":
            answer = DEEP % json.dumps(message["id"])
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


def _result(message: Object) -> Object:
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
