"""Every refusal, withheld definition, approval and fallback is an event in the log and the store, without content."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.loopback import loopback
from ullage.cli import main
from ullage.errors import Denied
from ullage.gateway import Metered, References
from ullage.ledger import AuditEvent, Recording, read_audit
from ullage.models import shipped
from ullage.store import Database
from ullage.testing import FakeRecorder, FakeSource
from ullage.tokens import Meter
from ullage.tool import Call, Caller, Reply, Tool
from upstreams import settle_in, tool, users_file, write_toml
from web.test_telemetry import call, serve

SECRET = "a secret sentence"
CHANGING = Path(__file__).parent.parent / "wire" / "changing_server.py"
EVENT = AuditEvent(
    time=datetime(2026, 11, 18, 12, tzinfo=UTC), kind="refusal", principal="ada", session="s", client="codex",
    server="notes", subject="drop_all", reason="DENIED",
)  # fmt: skip


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settle_in(tmp_path, monkeypatch)
    monkeypatch.setenv("LOGNAME", "ada")
    return tmp_path / "work"


def audit(*words: str) -> list[dict[str, Any]]:
    """What the command `ullage audit --json` prints."""
    ended = subprocess.run(
        [sys.executable, "-m", "ullage", "audit", "--json", *words], capture_output=True, text=True, check=True
    )
    return json.loads(ended.stdout)


@pytest.mark.requirement("U:ledger")
def test_refusals_withheld_tools_approvals_and_fallbacks_are_events_with_who_what_and_why(work: Path):
    offered = work.parent / "tools.json"

    def offer(description: str) -> None:
        tools = [tool("echo", description), tool("drop_all")]
        offered.write_text(json.dumps({"tools": tools, "prompts": [], "instructions": ""}), encoding="utf-8")

    with loopback(gpt_6_luna=503) as models:
        notes = {"command": sys.executable, "args": [str(CHANGING), str(offered)], "deny": ["drop_all"]}
        text = f'[gateway]\nmode = "search"\n{models.providers()}[delegate]\n[sources.shop]\ndatabase = "sample"\n'
        write_toml(users_file(work.parent), text, notes=notes)
        offer("Says a text again.")
        serve(call(1, "call_tool_write", tool_name="notes__echo", parameters={"text": "x"}))
        assert audit() == []
        offer(f"Says a text again, and more. {SECRET}")
        _, log, _ = serve(
            call(1, "call_tool_write", tool_name="notes__echo", parameters={"text": SECRET}),
            call(2, "call_tool_write", tool_name="notes__drop_all", parameters={"text": SECRET}),
            call(3, "query", sql=f"DELETE FROM customers WHERE name = '{SECRET}'"),
            call(4, "delegate.run", prompt=f"Say hello. {SECRET}"),
            OPENAI_API_KEY="sk-" + "0" * 20,
            ANTHROPIC_API_KEY="sk-ant-" + "0" * 20,
        )
    accepted = subprocess.run(
        [sys.executable, "-m", "ullage", "trust", "notes", "echo", "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(accepted.stdout)["accepted"] == ["echo"]
    found = audit()
    told = {(one["kind"], one["server"], one["subject"], one["reason"].split(" (")[0]) for one in found}
    assert told >= {
        ("withheld", "notes", "tool echo", "the definition is not the accepted one"),
        ("refusal", "notes", "echo", "TOOL_CHANGED"),
        ("refusal", "notes", "drop_all", "DENIED"),
        ("refusal", "shop", "query", "SQL_REFUSED"),
        ("approval", "notes", "tool echo", "the user accepted the changed definition"),
    }, told
    (fallback,) = [one for one in found if one["kind"] == "fallback"]
    assert fallback["subject"] == "gpt-6-luna"
    assert "503" in fallback["reason"]
    refused = [one for one in found if one["kind"] == "refusal"]
    assert {(one["principal"], one["client"], bool(one["session"])) for one in refused} == {("ada", "codex", True)}
    assert SECRET not in json.dumps(found)
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    logged = [line for line in lines if line["event"] == "audit"]
    assert {line["kind"] for line in logged} == {"withheld", "refusal", "fallback"}
    assert SECRET not in "".join(json.dumps(line) for line in logged)
    assert audit("--kind", "fallback") == [fallback]


def test_project_file_that_is_approved_and_revoked_is_an_event(work: Path, capsys: pytest.CaptureFixture[str]):
    place = work / "ullage.toml"
    place.write_text('[own]\ndeny = ["query"]\n', encoding="utf-8")
    assert main(["trust", "--json"]) == 0
    digest = json.loads(capsys.readouterr().out)["pending"][0]["sha256"]
    assert main(["trust", "ullage.toml", "--hash", digest]) == 0
    assert main(["trust", "--forget", "ullage.toml"]) == 0
    assert [(one["kind"], one["principal"], one["subject"]) for one in audit()] == [
        ("approval", "ada", str(place)),
        ("revocation", "ada", str(place)),
    ]


def test_table_and_csv_fit_and_carry_no_formula_or_escape(work: Path, capsys: pytest.CaptureFixture[str]):
    database = Database.open(work / "l.db")
    recording = Recording(database)
    now = datetime.now(UTC)
    recording.audit(AuditEvent(time=now, kind="refusal", principal="ada", subject="=cmd()\x1b[31m", reason="DENIED"))
    recording.stop()
    database.close()
    assert main(["audit", "--csv", "--store", "l.db"]) == 0
    (_, row) = capsys.readouterr().out.splitlines()
    assert ",'=cmd()?[31m,DENIED" in row
    assert main(["audit", "--store", "l.db"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert main(["audit", "--store", "l.db", "--since", "2026-01-01", "--until", "2026-01-02"]) == 0
    assert capsys.readouterr().out == "Nothing was refused, withheld, approved or replaced since 2026-01-01.\n"


def test_events_come_back_as_they_were_written_by_time_kind_and_principal(place: str):
    database = Database.open(place)
    recording = Recording(database)
    hour = timedelta(hours=1)
    later = AuditEvent(time=EVENT.time + hour, kind="approval", principal="bob", subject="file", reason="fine\0")
    for event in (EVENT, later):
        recording.audit(event)
    recording.stop()
    first, second = read_audit(database)
    assert first == EVENT
    assert second.reason == "fine?"
    assert [one.kind for one in read_audit(database, since=EVENT.time + hour)] == ["approval"]
    assert [one.kind for one in read_audit(database, until=EVENT.time + hour)] == ["refusal"]
    assert [one.kind for one in read_audit(database, kind="refusal")] == ["refusal"]
    assert [one.principal for one in read_audit(database, principal="bob")] == ["bob"]
    assert [one.kind for one in read_audit(database, limit=1)] == ["approval"], "the latest"
    database.close()


@pytest.mark.anyio
async def test_only_refusals_are_events_and_not_every_error():
    async def answer(call: Call) -> Reply:
        if call.arguments.get("is_denied"):
            raise Denied("no")
        return Reply.text('{"error_code": "DENIED"}', is_error=True)

    book, meter = FakeRecorder(), Meter(shipped())
    source = FakeSource(offered=(Tool(name="act", input_schema={"type": "object"}),), answer=answer)
    metered = Metered(
        inner=source, meter=meter, recorder=book, clock=lambda: 0.0, reference=References(meter.models)
    )  # fmt: skip
    caller = Caller(principal="ada", session="s")
    await metered.call(Call(tool="act", caller=caller))
    assert book.events == [], "a server cannot write to the audit"
    await metered.call(Call(tool="act", arguments={"is_denied": True}, caller=caller))
    assert [(one.kind, one.subject, one.reason) for one in book.events] == [("refusal", "act", "DENIED")]
