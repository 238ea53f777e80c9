import json
import re
import sqlite3
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from approving import main
from ullage.cli.doctor import DatabaseCheck, database_lines
from ullage.errors import BadConfiguration, SourceFailed
from ullage.sql import DatabaseSettings
from upstreams import scripted, tool, unruly, write_json, write_toml

SECRET = "hunter2hunter2"


def steady(text: str, work: Path) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"\d+\.\d s\b", "N s", text.replace(str(work), ""))
    return re.sub(r"the \d+ folders", "the N folders", text)


@pytest.fixture
def servers(work: Path) -> Path:
    write_json(
        work / "mcp.json",
        notes=scripted(tool("echo"), env={"API_KEY": SECRET}),
        dead=unruly("exits", env={"API_KEY": SECRET}),
        gone={"command": "no-such-program", "args": ["--key", SECRET]},
        far={"url": f"http://127.0.0.1:9/mcp?key={SECRET}", "headers": {"Authorization": f"Bearer {SECRET}"}},
        off={"command": "x", "disabled": True},
        unset={"command": "x", "env": {"KEY": "${NOBODY_SET_IT}"}},
    )
    return work


@pytest.mark.requirement("S1:aggregate")
def test_every_server_is_said_to_be_well_or_what_is_wrong(servers: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", "--include", "mcp.json"]) == 1
    captured = capsys.readouterr()
    assert steady(captured.out, servers) == snapshot("""\
settings  mcp.json
  problem  /mcp.json:1: server `unset` is left out: `NOBODY_SET_IT` not set in the environment
    export it, or write a default: ${NOBODY_SET_IT:-default}

dead  fails: ended with exit status 3; it last said: no such table
  run its command by hand to see why

far  fails: cannot be reached (ConnectError)
  check its address, and that it is running

gone  fails: cannot be started: `no-such-program` was not found in the N folders of its PATH
  install it, or write its absolute path: a program with windows often has a shorter PATH

notes  ok: toy 1, protocol 2026-07-28, started in N s
  1 tool, 26 tokens of definitions (o200k_base)

off  disabled in /mcp.json [mcpServers.off]

1 of 4 servers answered; 1 was left out.
""")
    assert SECRET not in captured.out + captured.err


@pytest.mark.requirement("S1:aggregate")
def test_json_says_the_same(servers: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", "--include", "mcp.json", "--json"]) == 1
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert SECRET not in captured.out + captured.err
    assert [issue["server"] for issue in found["issues"]] == ["unset"]
    servers_found = {one["server"]: one for one in found["servers"]}
    assert {name: one["error"] and one["error"]["error_code"] for name, one in servers_found.items()} == snapshot(
        {"dead": "SOURCE_FAILED", "far": "SOURCE_FAILED", "gone": "SOURCE_FAILED", "notes": None, "off": None}
    )
    assert servers_found["off"]["disabled"] is True
    assert servers_found["notes"]["state"] == "ready"
    assert servers_found["notes"]["tools"] == 1
    assert found["store_error"] is None


@pytest.mark.requirement("S1:aggregate")
def test_one_server_alone_can_be_looked_at(servers: Path, capsys: pytest.CaptureFixture[str]):
    words = ["doctor", "notes", "--config", "other.toml"]
    write_toml(servers / "other.toml", notes=scripted(tool("echo")), dead=unruly("exits"))
    assert main(words) == 0
    assert steady(capsys.readouterr().out, servers) == snapshot("""\
settings  other.toml

notes  ok: toy 1, protocol 2026-07-28, started in N s
  1 tool, 26 tokens of definitions (o200k_base)

Everything works.
""")
    assert main(["doctor", "nots", "--config", "other.toml"]) == 2
    assert "no server is called `nots`" in capsys.readouterr().err


@pytest.mark.requirement("S1:aggregate")
def test_a_server_that_fails_at_starting_is_shown_with_all_it_said(work: Path, capsys: pytest.CaptureFixture[str]):
    code = "import sys; sys.exit('Traceback:\\n  at line 1\\nno such table')"
    write_json(work / "mcp.json", broken={"command": sys.executable, "args": ["-c", code]})
    assert main(["doctor", "--include", "mcp.json"]) == 1
    shown = "  last lines on standard error:\n    Traceback:\n      at line 1\n    no such table\n"
    assert shown in capsys.readouterr().out


def test_unusable_settings_are_reported_with_their_lines(work: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(work / "ullage.toml", '[gateway]\nmodel = "gpt-44"\n', notes={**scripted(tool("echo")), "comand": "x"})
    assert main(["doctor"]) == 1
    assert steady(capsys.readouterr().out, work) == snapshot("""\
settings  ullage.toml
  error  /ullage.toml:7: unknown key `comand` in `[servers.notes]`
    did you mean `command`?
  error  /ullage.toml: no model is known as `gpt-44`
    Use `gpt-4`, the default, or an option below; `ullage models` lists all. Nearest: `gpt-4`, `gpt-4o`, `gpt-4.1`.
    options: gpt-4, gpt-3.5-turbo, gpt-4o, claude, gpt-4.1, gpt-5.4, gpt-5, gpt-4-32k, gpt-5.1, gpt-5.2, gpt-5.5

No server was checked: correct the errors in the settings first.
""")
    assert main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [issue["severity"] for issue in found["issues"]] == ["error", "error"]
    assert found["servers"] == []


def test_a_store_that_cannot_be_opened_is_something_wrong(work: Path, capsys: pytest.CaptureFixture[str]):
    (work / "file").write_text("", encoding="utf-8")
    store = f"sqlite:///{work}/file/ullage.db"
    write_json(work / "mcp.json", notes=scripted(tool("echo")))
    assert main(["doctor", "--store", store, "--include", "mcp.json"]) == 1
    out = capsys.readouterr().out
    assert "store  fails: the database" in out
    assert out.endswith("1 of 1 server answered.\n")
    assert main(["doctor", "--store", store, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["store_error"]["error_code"] == "STORE_FAILED"


def test_nothing_configured_and_nothing_enabled_are_both_said(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor"]) == 0
    assert "Ullage has no servers yet." in capsys.readouterr().out
    write_toml(work / "ullage.toml", off={"command": "x", "disabled": True})
    assert main(["doctor"]) == 0
    assert steady(capsys.readouterr().out, work) == snapshot("""\
settings  ullage.toml

off  disabled in /ullage.toml [servers.off]

Every server is disabled.
""")


def test_harmless_oddities_are_noted(work: Path, capsys: pytest.CaptureFixture[str]):
    write_json(work / "mcp.json", loud=unruly("babbles"))
    assert main(["doctor", "--include", "mcp.json"]) == 0
    assert "  note  " in capsys.readouterr().out


def test_counts_are_those_of_tools_and_rules_that_are_for_nothing_are_noted(
    work: Path, capsys: pytest.CaptureFixture[str]
):
    rules = {"deny": ["drop", "delete_*"], "pinned": ["ecko", "echo"]}
    write_toml(work / "ullage.toml", notes={**scripted(tool("echo"), tool("drop")), **rules})
    assert main(["doctor"]) == 0
    assert steady(capsys.readouterr().out, work) == snapshot("""\
settings  ullage.toml

notes  ok: toy 1, protocol 2026-07-28, started in N s
  1 tool, 26 tokens of definitions (o200k_base); 1 denied
  note  `deny` has `delete_*`, which matches no tool
  note  `pinned` has `ecko`, which matches no tool

Everything works.
""")
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["servers"][0]
    assert (found["tools"], found["kept_back"], len(found["notes"])) == (1, "1 denied", 2)


def test_every_database_is_said_to_be_well_or_what_is_wrong(work: Path, capsys: pytest.CaptureFixture[str]):
    with sqlite3.connect(work / "near.db") as connection:
        connection.execute("CREATE TABLE place (name TEXT)")
    connection.close()
    sources = '[sources.near]\ndatabase = "near.db"\n[sources.gone]\ndatabase = "gone.db"\n'
    write_toml(work / "ullage.toml", sources)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "\nnear  ok: SQLite database\n" in out
    assert "\ngone  fails: " in out
    assert out.endswith("1 of 2 databases answered.\n")
    assert main(["doctor", "near"]) == 0
    out = capsys.readouterr().out
    assert "gone" not in out.partition("settings")[2].partition("\n")[2]
    assert out.endswith("Everything works.\n")
    assert main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["databases"]
    assert [(one["database"], one["error"] is None, one["notes"]) for one in found] == [
        ("near", True, []),
        ("gone", False, []),
    ]


def test_a_note_on_a_role_is_printed_below_its_database():
    settings = DatabaseSettings(name="shop", url="postgresql://me:hunter2@host/shop")
    lines = database_lines(DatabaseCheck(settings=settings, warnings=("its role can write",)))
    assert lines == ["shop  ok: PostgreSQL database", "  note  its role can write"]
    failed = database_lines(DatabaseCheck(settings=settings, error=SourceFailed("nobody answers")))
    assert failed == ["shop  fails: nobody answers"]


@pytest.mark.requirement("S4:lint", "S4:providers")
def test_models_to_delegate_to_are_shown_with_what_is_off_and_odd(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    write_toml(work / "ullage.toml", "[delegate]\n")
    assert main(["doctor"]) == 0
    assert steady(capsys.readouterr().out, work) == snapshot("""\
settings  ullage.toml

delegate  off: no provider has a key
  note  set OPENAI_API_KEY or ANTHROPIC_API_KEY or GOOGLE_API_KEY, or write a policy: see docs/delegate.md

Everything else works; no model can be called because no provider has a key.
""")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert main(["doctor"]) == 0
    assert "delegate  ok: default models, from openai" in capsys.readouterr().out
    policy = """
[delegate.models.one]
provider = "openai"
model = "gpt-6-luna"
[delegate.models.two]
provider = "ollama"
model = "gpt-6-luna"
[delegate.routing]
defaultAlias = "three"
"""
    write_toml(work / "ullage.toml", policy)
    assert main(["doctor"]) == 0
    assert steady(capsys.readouterr().out, work) == snapshot("""\
settings  ullage.toml
  note  /ullage.toml:9: no alias or model is called `three`

delegate  ok: 2 models, from openai
  note  provider `ollama` is off: the policy names it, and it is not configured

Everything works.
""")
    assert main(["doctor", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["delegate"]
    assert (said["wanted"], said["models"]) == (True, ["one", "two"])
    assert {one["name"]: one["on"] for one in said["providers"]} == {
        "openai": True,
        "anthropic": False,
        "google": False,
    }
    assert SECRET not in json.dumps(said)


def test_folders_that_are_not_there_are_named(work: Path, capsys: pytest.CaptureFixture[str]):
    (work / "docs").mkdir()
    (work / "one.md").write_text("one", encoding="utf-8")
    both = """
[retrieve.here]
folders = ["docs"]
files = ["one.md"]
[retrieve.gone]
folders = ["nowhere"]
"""
    write_toml(work / "ullage.toml", both)
    assert main(["doctor"]) == 1
    assert steady(capsys.readouterr().out, work) == snapshot("""\
settings  ullage.toml

here  ok: 1 folder and 1 file to search

gone  fails: `/nowhere` does not exist
  check the path; it is taken from the folder of ullage.toml

1 path to search not found.
""")
    assert main(["doctor", "here"]) == 0
    assert capsys.readouterr().out.endswith("Everything works.\n")
    assert main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["folders"]
    assert [(one["folders"], one["missing"]) for one in found] == [("here", []), ("gone", [f"{work}/nowhere"])]


def test_a_problem_where_nothing_was_asked_is_counted(work: Path, capsys: pytest.CaptureFixture[str]):
    unset = """
[providers.far]
kind = "compatible"
base_url = "https://${NOBODY_SET_IT}/v1"
"""
    config = work.parent / "home" / "config" / "ullage" / "ullage.toml"
    config.parent.mkdir(parents=True)
    config.write_text(unset, encoding="utf-8")
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.endswith("\n1 problem in the settings.\n")


def test_weights_that_cannot_be_loaded_are_something_wrong(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def broken() -> None:
        raise BadConfiguration("the weights are damaged", suggestion="pip install it anew")

    monkeypatch.setattr("ullage.cli.doctor.load_table", broken)
    write_toml(work / "ullage.toml", "")
    assert main(["doctor"]) == 1
    assert "search by meaning cannot be loaded: the weights are damaged\n    pip install it anew" in (
        capsys.readouterr().out
    )
    write_toml(work / "ullage.toml", '[search]\nindex = "words"\n')
    assert main(["doctor"]) == 0
