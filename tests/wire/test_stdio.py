"""A real client and bare lines against a server on standard input and output."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ListRootsResult, TextContent

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:call")]

SERVER = str(Path(__file__).parent / "toy_server.py")
ERAS = ("legacy", "2026-07-28")


def server(log: Path) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=[SERVER, str(log)], env=dict(os.environ))


@pytest.mark.parametrize("era", ERAS)
async def test_a_slow_call_holds_up_no_other_and_can_be_taken_back(era: str, tmp_path: Path):
    log = tmp_path / "log"
    async with Client(server(log), mode=era) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait", {"seconds": 60})
            with anyio.fail_after(20):
                await client.call_tool("wait", {})
            tasks.cancel_scope.cancel()
        with anyio.fail_after(20):
            while not log.exists():
                await anyio.sleep(0.02)
            await client.call_tool("wait", {})
    assert log.read_text(encoding="utf-8") == "cancelled"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_asked_over_stdio_in_both_eras(era: str, tmp_path: Path):
    async def roots(context: object) -> ListRootsResult:
        del context
        return ListRootsResult(roots=[])

    async with Client(server(tmp_path / "log"), mode=era, list_roots_callback=roots) as client:
        result = await client.call_tool("wait", {"ask": True})
    assert isinstance(result.content[0], TextContent)
    assert result.content[0].text == "[]"


def _line(number: int, method: str, params: dict[str, Any]) -> str:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
    }
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params | {"_meta": meta}}) + "\n"


def test_neither_a_listener_nor_a_held_call_keeps_a_server_from_ending(tmp_path: Path):
    lines = [
        _line(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
        _line(2, "tools/call", {"name": "wait", "arguments": {"ask": True}}),
        _line(3, "tools/call", {"name": "wait", "arguments": {"seconds": 0.3}}),
    ]
    began = time.monotonic()
    run = subprocess.run(
        [sys.executable, SERVER, str(tmp_path / "log")],
        input="".join(lines),
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert time.monotonic() - began < 40
    found = {answer["id"]: answer for answer in map(json.loads, run.stdout.splitlines()) if "id" in answer}
    assert found[2]["result"]["resultType"] == "input_required"
    assert found[3]["result"]["content"][0]["text"] == "done"
