import json
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from ullage.cli import main
from upstreams import scripted, tool, unruly, write_json, write_toml

pytestmark = pytest.mark.requirement("S1:surface")

ECHO = tool("echo", "Says a text again.", annotations={"readOnlyHint": True})
LONG = tool("long", "Sends a message to everybody who reads the channel, and says nothing of it to those who do not.")


def mixed(work: Path) -> None:
    notes = {**scripted(ECHO, LONG, tool("drop"), tool("old")), "deny": ["drop"], "hidden": ["old"], "ask": ["long"]}
    off = {"command": "x", "disabled": True}
    write_toml(work / "ullage.toml", '[gateway]\nmode = "search"\n', notes=notes, dead=unruly("exits"), off=off)


def test_a_first_run_without_servers_says_how_to_get_some(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["tools"]) == 0
    captured = capsys.readouterr()
    assert captured.out == snapshot("""\
server  tools  tokens
ullage      2     176

Ullage has no servers yet. Use those of another program:
  ullage scan               shows what your programs have
  ullage install codex      moves them; `ullage uninstall codex` gives them back
or read a file of another program in place, with --include ~/.cursor/mcp.json,
or name your own in an ullage.toml:
  [servers.github]
  command = "npx"
  args = ["-y", "@modelcontextprotocol/server-github"]
""")
    assert captured.err == ""


@pytest.mark.requirement("S1:surface")
def test_every_server_has_a_row_with_what_it_costs_or_why_it_is_not_known(
    work: Path, capsys: pytest.CaptureFixture[str]
):
    mixed(work)
    assert main(["tools"]) == 0
    assert capsys.readouterr().out == snapshot("""\
server  tools  tokens
dead        -       -
notes       2      74  1 denied, 1 hidden
off         -       -  disabled
ullage      2     176

Not counted, because they did not answer (`ullage doctor` shows more):
  dead  ended with exit status 3; it last said: no such table

Tokens of definitions in every request (o200k_base):
  without Ullage   74
  with Ullage     426, instructions included: find_tool, call_tool, call_tool_write, count-tokens, read_result
""")


@pytest.mark.parametrize("server", ["notes", "dead", "off", "ullage"])
def test_one_server_has_a_line_for_each_tool(work: Path, capsys: pytest.CaptureFixture[str], server: str):
    mixed(work)
    assert main(["tools", server]) == (1 if server == "dead" else 0)
    assert (
        capsys.readouterr().out
        == snapshot(
            {
                "notes": """\
tool         tokens
notes__echo      29  read        Says a text again.
notes__long      45  write, ask  Sends a message to everybody who reads the channel, and says nothing of it to t…

2 tools, 74 tokens
""",
                "dead": "dead  ended with exit status 3; it last said: no such table\n",
                "off": "off  disabled\n",
                "ullage": """\
tool          tokens
count-tokens      71  read  Count the tokens of a text for a model, with the error band.
read_result      105  read  Read more of a cut result: from offset, by grep (regex), JSON path, or SQL on t…

2 tools, 176 tokens
""",
            }
        )[server]
    )


def test_a_server_without_tools_is_reported(work: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(work / "ullage.toml", mute={**scripted(ECHO), "deny": ["*"]})
    assert main(["tools", "mute"]) == 0
    assert capsys.readouterr().out == "mute  1 denied\n"


@pytest.mark.requirement("S1:surface")
def test_a_small_catalogue_is_listed_directly(work: Path, capsys: pytest.CaptureFixture[str]):
    write_json(work / "mcp.json", notes=scripted(ECHO))
    assert main(["tools", "--include", "mcp.json"]) == 0
    assert ", instructions included: every tool is listed directly" in capsys.readouterr().out


@pytest.mark.requirement("U:errors")
def test_the_error_for_an_unknown_server_lists_the_known_ones(work: Path, capsys: pytest.CaptureFixture[str]):
    mixed(work)
    assert main(["tools", "nots", "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err) == snapshot(
        {
            "error_code": "UNKNOWN_RESOURCE",
            "message": "no server is called `nots`",
            "suggestion": "leave out the name to list all of them",
            "available_options": ["dead", "notes", "off"],
        }
    )


def test_json_has_definitions_figures_and_what_is_missing(work: Path, capsys: pytest.CaptureFixture[str]):
    mixed(work)
    assert main(["tools", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["tools"]] == [
        *("count-tokens", "read_result"),
        *("notes__echo", "notes__long"),
    ]
    assert {key: value for key, value in found["tools"][2].items() if key != "token_count"} == snapshot(
        {
            "name": "notes__echo",
            "server": "notes",
            "original_name": "echo",
            "read_only": True,
            "access": "allow",
            "description": "Says a text again.",
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        }
    )
    assert found["listed"] == ["find_tool", "call_tool", "call_tool_write", "count-tokens", "read_result"]
    assert [one["server"] for one in found["missing"]] == ["dead"]
    assert found["disabled"] == ["off"]
    own, _, *others = (one["token_count"] for one in found["tools"])
    assert found["first_request"]["without"] == sum(others)
    assert found["first_request"]["surface"] > own
    assert main(["tools", "notes", "--json"]) == 0
    assert [one["server"] for one in json.loads(capsys.readouterr().out)["tools"]] == ["notes", "notes"]


def test_what_was_known_is_shown_without_starting_a_server_unless_it_is_asked_for(
    work: Path, capsys: pytest.CaptureFixture[str]
):
    log = work / "starts"
    write_json(work / "mcp.json", notes=scripted(ECHO, starts=log), dead=unruly("exits"))
    for words, starts in ((["--wait", "20"], 1), ([], 1), (["--refresh"], 2)):
        assert main(["tools", "--include", "mcp.json", *words]) == 0
        assert len(log.read_text(encoding="utf-8").splitlines()) == starts
    assert "ullage: dead: ended with exit status 3" in capsys.readouterr().err


@pytest.mark.requirement("S1:surface")
def test_many_listed_tools_are_not_all_named(work: Path, capsys: pytest.CaptureFixture[str]):
    notes = {**scripted(*(tool(f"tool_{number}") for number in range(9))), "pinned": ["*"]}
    write_toml(work / "ullage.toml", '[gateway]\nmode = "search"\n', notes=notes)
    assert main(["tools"]) == 0
    assert "notes__tool_2 and 6 more" in capsys.readouterr().out


def test_what_runs_only_as_a_task_is_not_counted_and_said_to_be_so(work: Path, capsys: pytest.CaptureFixture[str]):
    task = tool("long", execution={"taskSupport": "required"})
    write_toml(work / "ullage.toml", notes=scripted(ECHO, task))
    assert main(["tools"]) == 0
    assert "notes       1      29  1 not offered (run only as tasks)\n" in capsys.readouterr().out
    assert main(["doctor"]) == 0
    assert (
        "  1 tool, 29 tokens of definitions (o200k_base); 1 not offered (run only as tasks)\n"
        in capsys.readouterr().out
    )


def test_a_wait_is_never_negative(work: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["tools", "--wait", "-1"])
    assert "--wait cannot be `-1`\n  it takes seconds, 0 or more" in capsys.readouterr().err


def test_a_server_may_be_called_as_we_are(work: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(work / "ullage.toml", ullage=scripted(ECHO))
    assert main(["tools"]) == 0
    assert capsys.readouterr().out.startswith("""\
server        tools  tokens
ullage            1      29
ullage (own)      2     176
""")
    assert main(["tools", "ullage"]) == 0
    assert "ullage__echo" in capsys.readouterr().out
    assert main(["call", "ullage__echo", '{"text": "hello"}']) == 0
    assert capsys.readouterr().out == "hello\n"


def test_a_single_database_has_no_hidden_tools_and_no_comparison(work: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(work / "ullage.toml", '[sources.shop]\ndatabase = "sample"\n')
    assert main(["tools"]) == 0
    out = capsys.readouterr().out
    assert "shop" in out
    assert "hidden" not in out
    assert "without Ullage" not in out
    assert "Tokens of definitions in every request (o200k_base):" in out
