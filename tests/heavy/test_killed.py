"""Ullage is killed while a server that `npx` started runs behind it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from heavy.real_processes import MARK, left_behind, marked, marking
from heavy.real_world import NODE, bare_world

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are counted in /proc"),
]

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.mark.requirement("U:shutdown")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
async def test_nothing_of_an_npx_server_survives(number: signal.Signals, tmp_path: Path):
    world = bare_world(tmp_path)
    # npx runs a shell, which runs the server: three processes deep.
    npx = {"command": "npx", "args": ["--no", "mcp-server-everything", "stdio"], "cwd": str(NODE.parent)}
    world.rewrite(everything=npx)
    call = {"name": "everything__trigger-long-running-operation", "arguments": {"duration": 600, "steps": 2}}
    sums = {"name": "everything__get-sum", "arguments": {"a": 1, "b": 2}}
    with marking(tmp_path) as mark:
        command = [sys.executable, "-m", "ullage", "serve", "--mode", "direct", "--include", str(world.settings)]
        environment = {**world.environment, MARK: mark}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for identity, params in enumerate((sums, call)):
                message = {
                    "jsonrpc": "2.0",
                    "id": identity,
                    "method": "tools/call",
                    "params": {**params, "_meta": META},
                }
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
                if params is sums:
                    answer = await anyio.to_thread.run_sync(process.stdout.readline)
                    assert "is 3" in answer.decode()
            commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in marked(mark)]
            assert sum(b"mcp-server-everything" in one for one in commands) >= 2, commands
            os.kill(process.pid, number)
            with anyio.fail_after(30):
                await anyio.to_thread.run_sync(process.wait)
            assert await left_behind(mark) == []
