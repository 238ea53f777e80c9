"""Settings, a store, a session and its archive that an earlier version wrote are read as they were written."""

import json
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from store.databases import opened
from ullage import Context, Session
from ullage.cli import main
from ullage.ledger import read_entries
from upstreams import settle_in, users_file

WRITTEN = Path(__file__).parent / "fixtures" / "before_restructuring"
HANDLE = "r808271152843112414"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the user `fixture`, with the earlier settings and store."""
    settle_in(tmp_path, monkeypatch)
    monkeypatch.setenv("LOGNAME", "fixture")
    shutil.copy(WRITTEN / "ullage.toml", users_file(tmp_path))
    store = tmp_path / "home" / "data" / "ullage" / "ullage.db"
    store.parent.mkdir(parents=True)
    shutil.copy(WRITTEN / "store.db", store)
    return tmp_path / "home"


@pytest.fixture
def session_file(tmp_path: Path) -> Path:
    for path in WRITTEN.glob("session.jsonl*"):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / path.name)
    return tmp_path / "session.jsonl"


def test_earlier_settings_are_in_force(home: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["config", "--json"]) == 0
    printed = capsys.readouterr()
    values = json.loads(printed.out)["values"]
    assert {one["key"]: one["value"] for one in values if one["source"].endswith("ullage.toml")} == {
        "gateway.mode": "search",
        "gateway.model": "gpt-4o",
        "results.budget": "300",
        "sources.shop": "sample",
        "sources.shop.masked": "[customers.email]",
        "servers.notes": "notes-server --root notes",
        "servers.notes.deny": "[delete_*]",
    }
    assert printed.err == ""


def test_earlier_held_result_is_read_by_its_handle(home: Path, capsys: pytest.CaptureFixture[str]):
    with sqlite3.connect(home / "data" / "ullage" / "ullage.db") as connection:
        # A result is kept for a day; the file is older.
        connection.execute("UPDATE ullage_results SET created = ?", (time.time(),))
    connection.close()
    assert main(["call", "read_result", json.dumps({"handle": HANDLE, "offset": 118})]) == 0
    text = capsys.readouterr().out
    assert "118," in text
    assert "120," in text
    assert main(["call", "read_result", json.dumps({"handle": HANDLE, "grep": "no such thing"})]) == 0
    assert "120," not in capsys.readouterr().out


def test_earlier_ledger_entry_is_read(home: Path):
    with opened(str(home / "data" / "ullage" / "ullage.db")) as database:
        (entry,) = read_entries(database)
    assert (entry.kind, entry.server, entry.tool, entry.model) == ("result", "shop", "query", "gpt-4o")
    assert (entry.tokens, entry.principal, entry.is_error) == (298, "fixture", False)


def test_earlier_session_has_its_history_and_its_originals(session_file: Path):
    with Session.open(session_file) as session:
        verified = session.verify()
        assert (verified.messages, verified.originals, verified.generations, verified.faults) == (14, 62, 1, ())
        first, *_, last = (json.dumps(one.message) for one in session.history(full=True))
        assert "Find out why the invoices of March are wrong" in first
        assert "The rounding in module_3 was wrong" in last
        assert session.restore(0) > 0
        assert len(session.history()) == 62


def test_earlier_session_is_continued_and_recalled(session_file: Path):
    context = Context(model="gpt-4o", session=session_file)
    context.add({"role": "user", "content": "Now look at April."})
    assert context.status().context_window == 2000
    with Session.open(session_file) as session:
        found = session.recall("function_3 module_3", limit=3, room=2000, count=len)
        assert "function_3" in str(found)
        assert len(session.history()) == 15
