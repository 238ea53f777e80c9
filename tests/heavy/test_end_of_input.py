"""Requests followed by the end of input, while every core is busy: each of them is answered.

`REPETITIONS` runs it less often than the 30 times it takes by default.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from heavy.busy import busy_cores
from heavy.real_replay import Message

pytestmark = [pytest.mark.heavy]

HERE = Path(__file__).parent
REPETITIONS = int(os.environ.get("REPETITIONS", "30"))
CALLS = 12
PATIENCE = 120
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "busy", "version": "1"},
}


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """A user whose own settings name one server."""
    home = tmp_path / "home"
    settings, catalogue = home / ".config" / "ullage" / "ullage.toml", tmp_path / "sums.json"
    settings.parent.mkdir(parents=True)
    schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
    harmless = {"readOnlyHint": True}
    tools = [{"name": "add", "description": "Adds two numbers.", "inputSchema": schema, "annotations": harmless}]
    about = {"package": "sums", "serverInfo": {"name": "sums", "version": "1"}, "tools": tools}
    catalogue.write_text(json.dumps(about), encoding="utf-8")
    arguments = [str(HERE / "real_replay.py"), str(catalogue)]
    settings.write_text(
        '[gateway]\nmode = "search"\n'
        f"[servers.sums]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(arguments)}\n",
        encoding="utf-8",
    )
    return {"HOME": str(home), "PATH": os.environ["PATH"]}


def requests(era: str) -> Iterator[Message]:
    """What a client sends that asks for everything at once: the list, calls in both ways, and searches."""
    if era == "2025-11-25":
        client = {"protocolVersion": era, "capabilities": {}, "clientInfo": META["io.modelcontextprotocol/clientInfo"]}
        yield {"id": "greeting", "method": "initialize", "params": client}
        yield {"method": "notifications/initialized", "params": {}}
        yield {"id": "ping", "method": "ping", "params": {}}
    else:
        yield {"id": "greeting", "method": "server/discover", "params": {}}
    yield {"id": "list", "method": "tools/list", "params": {}}
    for number in range(CALLS):
        call = {"name": "call_tool", "arguments": {"tool_name": "sums__add", "parameters": {"a": number, "b": 1}}}
        if number % 3 == 1:
            call = {"name": "sums__add", "arguments": {"a": number, "b": 1}}
        if number % 3 == 2:
            call = {"name": "find_tool", "arguments": {"tool_description": f"add the number {number} to another"}}
        yield {"id": f"call {number}", "method": "tools/call", "params": call}


def answers(era: str, environment: Mapping[str, str], folder: Path) -> dict[str, Message]:
    """Every answer to those requests by its id, after the process has ended by itself."""
    meta = {} if era == "2025-11-25" else {"_meta": META}
    lines = (json.dumps({"jsonrpc": "2.0", **one, "params": {**one["params"], **meta}}) for one in requests(era))
    done = subprocess.run(
        [Path(sys.executable).parent / "ullage", "serve"],
        input="\n".join(lines) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
        cwd=folder,
        timeout=PATIENCE,
        check=True,
    )
    messages = (json.loads(line) for line in done.stdout.splitlines())
    return {message["id"]: message for message in messages if "method" not in message}


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_end_of_input_on_a_busy_machine_loses_no_answer(era: str, environment: Mapping[str, str], tmp_path: Path):
    """The first start has no cache and an unknown server; the others find what the first has kept."""
    (tmp_path / "work").mkdir()
    asked = {one["id"] for one in requests(era) if "id" in one}
    unanswered, failed = list[str](), list[str]()
    with busy_cores(REPETITIONS * PATIENCE):
        for number in range(-(-REPETITIONS // 2)):
            found = answers(era, environment, tmp_path / "work")
            unanswered += [f"start {number}: {one}" for one in sorted(asked - found.keys())]
            failed += [
                f"start {number}: {one}: {json.dumps(answer)[:300]}"
                for one, answer in found.items()
                if "error" in answer or answer["result"].get("isError")
            ]
    assert unanswered == []
    assert failed == []
