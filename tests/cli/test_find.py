import io
import json
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from ullage.cli import main
from ullage.search import encoder_lacks
from upstreams import scripted, tool, unruly, write_json, write_toml

pytestmark = pytest.mark.requirement("S1:find")

SCHEMA = {
    "type": "object",
    "properties": {"owner": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}}},
    "required": ["owner"],
}


@pytest.fixture
def servers(work: Path) -> Path:
    issues = tool("list_issues", "List the issues of a\n  repository.", inputSchema=SCHEMA)
    write_json(work / "mcp.json", hub=scripted(issues, tool("merge", "Merge a pull request.")), dead=unruly("exits"))
    return work


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_line_is_wider_than_the_terminal_and_a_program_gets_one_line_a_tool(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    tools = [tool(f"list_{kind}", f"Lists {kind} " + "of a repository " * 4, inputSchema=SCHEMA) for kind in "abcde"]
    write_toml(work / "ullage.toml", hub=scripted(*tools))
    words = ["find", "list of a repository", "--why", "--max-tokens", "300"]
    assert main(words) == 0
    piped = capsys.readouterr().out
    assert max(map(len, piped.splitlines())) > 100
    monkeypatch.setattr(sys, "stdout", terminal := _Terminal())
    assert main(words) == 0
    assert max(map(len, terminal.getvalue().splitlines())) <= 60
    assert terminal.getvalue().split() == piped.split()


@pytest.mark.requirement("S1:find")
def test_what_is_found_is_shown_with_its_parameters(servers: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(servers / "ullage.toml", '[own]\nhidden = ["read_result"]')
    assert main(["find", "list", "issues", "of", "a", "repository", "--include", "mcp.json"]) == 0
    captured = capsys.readouterr()
    assert captured.out == snapshot("""\
hub__list_issues(owner: string, labels?: string[]) [write]
  List the issues of a repository.

count-tokens(text: string, model?: string)
  Count the tokens of a text for a model, with the error band.

hub__merge(text?: string) — Merge a pull request [write]
""")
    assert captured.err == snapshot("""\
ullage: `dead` was not searched: ended with exit status 3; it last said: no such table
146 tokens of definitions instead of 80 for all tools.
""")


def test_json_is_what_an_agent_gets(servers: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["find", "merge", "--keywords", "pull request", "--json", "--include", "mcp.json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tools"][0]["name"] == "hub__merge"
    assert found["token_metrics"]["baseline_tokens"] > found["token_metrics"]["returned_tokens"] > 0


def test_tools_that_do_the_same_are_named_beside_the_one_that_is_shown(work: Path, capsys: pytest.CaptureFixture[str]):
    issues = tool("list_issues", "List the issues of a repository.", inputSchema=SCHEMA)
    write_json(work / "mcp.json", **{"hub": scripted(issues), "hub-work": scripted(issues)})
    assert main(["find", "hub:", "--include", "mcp.json"]) == 0
    assert "also:" not in capsys.readouterr().out
    assert main(["find", "list issues of a repository at hub-work", "--include", "mcp.json"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "hub-work__list_issues(owner: string, labels?: string[]) [write]",
        "  List the issues of a repository.",
        "  also: hub__list_issues",
    ]


def test_a_small_budget_gives_lines(servers: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["find", "list issues", "--max-tokens", "160", "--include", "mcp.json"]) == 0
    assert capsys.readouterr().out == snapshot("""\
hub__list_issues(owner: string, labels?: string[]) [write]
  List the issues of a repository.
""")


def test_whoever_finds_nothing_is_told_why(servers: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["find", "zzzqqq", "--include", "mcp.json"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == snapshot("""\
ullage: `dead` was not searched: ended with exit status 3; it last said: no such table
No tool matches this. Try other words, or a server's name. Servers: ullage, dead, hub.
""")


def test_whoever_has_no_servers_is_told_how_to_get_some(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["find", "open_pull_request"]) == 1
    assert "Ullage has no servers yet." in capsys.readouterr().err


@pytest.mark.requirement("U:errors")
def test_a_budget_that_is_none_is_refused(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["find", "anything", "--max-tokens", "0", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error_code"] == "INVALID_ARGUMENTS"


@pytest.mark.requirement("U:reference")
def test_figures_are_those_of_the_named_client(work: Path, capsys: pytest.CaptureFixture[str]):
    korean = tool("weather", "내일 서울의 날씨가 어떤지 알려 줍니다.")
    write_toml(work / "ullage.toml", '[clients.old]\nmodel = "gpt-4"\n', sky=scripted(korean))
    figures = []
    for words in ([], ["--client", "old"]):
        assert main(["find", "weather", "--json", *words]) == 0
        figures.append(json.loads(capsys.readouterr().out)["token_metrics"]["returned_tokens"])
    assert figures[0] < figures[1]


def test_figures_are_those_of_tools_and_a_list_that_is_shown_saves_nothing(
    work: Path, capsys: pytest.CaptureFixture[str]
):
    many = [tool(f"send_{number}", "Sends a message to somebody, by the number of the channel.") for number in range(9)]
    write_toml(work / "ullage.toml", hub=scripted(*many))
    assert main(["tools", "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)["first_request"]["without"]
    assert main(["find", "send_3"]) == 0
    assert "Every tool is listed directly for this client" in capsys.readouterr().err
    write_toml(work / "ullage.toml", '[gateway]\nmode = "search"\n', hub=scripted(*many))
    assert main(["find", "send_3"]) == 0
    assert f"instead of {whole:,} for all tools: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [([" "], 'ullage find "create an issue"'), (["x", "--max-tokens", "10"], "give --max-tokens 100 or more")],
)
def test_what_cannot_be_asked_is_refused_in_terms_of_the_command_line(
    servers: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
):
    assert main(["find", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.skipif(not encoder_lacks(), reason="the encoder is installed here")
def test_an_encoder_that_is_not_installed_is_said_and_the_table_searches(
    work: Path, capsys: pytest.CaptureFixture[str]
):
    forecast = tool("get_forecast", "Weather forecast for a city.")
    write_toml(work / "ullage.toml", '[search]\nindex = "encoder"\n', sky=scripted(forecast))
    assert main(["find", "will it rain tomorrow"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("sky__get_forecast")
    (said,) = [line for line in captured.err.splitlines() if "encoder" in line]
    assert said.endswith("tools are ranked by the table that comes with Ullage (pip install 'ullage[encoder]')")
    assert main(["doctor"]) == 1
    assert "tools are ranked by the table that comes with Ullage" in capsys.readouterr().out
