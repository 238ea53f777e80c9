import json
import subprocess
import sys
from pathlib import Path

import pytest

from ullage.wire.serve.standard_streams import read_message

pytestmark = pytest.mark.requirement("U:errors")

SERVER = str(Path(__file__).parent / "toy_server.py")
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
DEEP = "[" * 300 + "]" * 300
DEEPER = "[" * 5000 + "]" * 5000


def call(x: str, number: str = "7") -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"t","arguments":{{"x":{x}}}}}}}'


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        (call("1"), None),
        ('{"jsonrpc":"2.0","method":"notifications/initialized"}', None),
        (call(DEEP), [(7, -32700)]),
        (call(DEEPER), [(7, -32700)]),
        (call(DEEPER, '"a b"'), [("a b", -32700)]),
        (call("9" * 5000), [(7, -32700)]),
        (f'{{"method":"tools/call","params":{{"x":{DEEPER}}},"id":8,"jsonrpc":"2.0"}}', [(8, -32700)]),
        ('{"jsonrpc":"2.0","id":9,"method":"tools/call","params":[1]}', [(9, -32600)]),
        (f"[{PING},{PING}]", [(1, -32600), (1, -32600)]),
        ('{"jsonrpc":"1.0","id":3,"method":"ping"}', [(3, -32600)]),
        ('{"jsonrpc":"2.0","id":3,"method":5}', [(3, -32600)]),
        ("nonsense", []),
        ("[]", []),
        ("[1]", []),
        ('{"jsonrpc":"2.0","id":true,"method":5}', []),
        ('{"jsonrpc":"2.0","id":4,"rezult":{}}', []),
        (f'{{"params":{{"id":5,"x":{DEEPER}}}}}', []),
    ],
)
def test_whoever_waits_for_an_answer_gets_one(line: str, answers: list[tuple[int | str, int]] | None):
    found = read_message(line.encode())
    if not isinstance(found, tuple):
        assert answers is None
        return
    assert [(one["id"], one["error"]["code"]) for one in found] == answers


def test_over_stdio_what_cannot_be_read_is_refused_and_the_rest_is_answered(tmp_path: Path):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    listed = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}})
    run = subprocess.run(
        [sys.executable, SERVER, str(tmp_path / "log")],
        input="\n".join((call(DEEP), listed, "nonsense", "")),
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    found = {answer["id"]: answer for answer in map(json.loads, run.stdout.splitlines())}
    assert found[7]["error"]["code"] == -32700
    assert found[1]["result"]["tools"]
    assert len(found) == 2
