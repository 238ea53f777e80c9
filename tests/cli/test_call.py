import io
import json
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from ullage.cli import main
from upstreams import scripted, tool, write_toml

pytestmark = pytest.mark.requirement("S1:call")

STRICT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    tool("echo", "Says a text again.", inputSchema=STRICT),
    tool("give", inputSchema={"type": "object"}),
    tool("ask", inputSchema={"type": "object"}),
    tool("drop"),
]


@pytest.fixture
def servers(work: Path) -> Path:
    write_toml(
        work / "ullage.toml",
        '[clients.old]\nmodel = "gpt-4"\n',
        notes={**scripted(*TOOLS, era="legacy"), "ask": ["give"], "deny": ["drop"]},
    )
    return work


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.requirement("S1:call")
def test_a_tool_answers_on_standard_output_and_its_cost_on_standard_error(
    servers: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["call", "notes__echo", '{"text": "hello"}', "--client", "old"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "hello\n"
    assert captured.err.startswith("1 token (gpt-4), ")


def test_arguments_may_come_from_standard_input(
    servers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"text": "piped in"}'))
    assert main(["call", "notes__echo", "-"]) == 0
    assert capsys.readouterr().out == "piped in\n"


@pytest.mark.requirement("U:own")
def test_tools_of_ullage_itself_are_called_too(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["call", "count-tokens", '{"text": "Hello, world!"}', "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert json.loads(found["content"][0]["text"])["token_count"] == 4
    assert found["isError"] is False
    assert found["_meta"]["dev.ullage/meta"]["tokens"]["approximationMethod"] == "o200k_base"
    assert main(["call", "find_tool", '{"tool_description": "count tokens"}']) == 0
    assert json.loads(capsys.readouterr().out)["tools"][0]["name"] == "count-tokens"


@pytest.mark.requirement("S1:heal", "U:errors")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["notes__ecko", "{}"], "INVALID_ARGUMENTS"),
        (["notes__echo", "{}"], "INVALID_ARGUMENTS"),
        (["notes__drop", "{}"], "DENIED"),
        (["notes__give", "{}"], "DENIED"),
    ],
)
def test_what_is_refused_is_one_shape_for_programs_and_sentences_for_people(
    servers: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: str
):
    assert main(["call", *words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["isError"] is True
    assert json.loads(found["content"][0]["text"])["error_code"] == code
    assert main(["call", *words]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")


def test_the_error_for_an_unknown_tool_has_the_nearest_name(servers: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["call", "notes__ecko"]) == 1
    assert capsys.readouterr().err == snapshot("""\
error: no tool is called `notes__ecko`
  `ullage find` finds tools by what they do; the options are the nearest names.
  options: notes__echo, notes__ask, notes__give
""")


@pytest.mark.requirement("U:errors")
@pytest.mark.parametrize("given", ['{"text": ', "[1]", "hello", ""])
def test_arguments_that_are_no_object_are_refused_before_anything_is_started(
    servers: Path, capsys: pytest.CaptureFixture[str], given: str
):
    assert main(["call", "notes__echo", given, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    error = json.loads(captured.err)
    assert error["error_code"] == "INVALID_ARGUMENTS"
    assert error["suggestion"] == """write '{"name": "value"}'"""


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 1), ("", 1)])
def test_what_is_to_be_asked_for_is_asked_on_the_terminal(
    servers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, code: int
):
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    result = json.dumps({"result": {"content": [{"type": "text", "text": "given"}]}})
    assert main(["call", "notes__give", result]) == code
    captured = capsys.readouterr()
    assert "Allow give of server notes to be called?" in captured.err
    assert captured.out.endswith("given\n") == (code == 0)


def test_a_form_that_is_more_than_a_box_is_not_shown_on_a_terminal(
    servers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    asked = {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": form}}
    main(["call", "notes__ask", json.dumps(asked)])
    assert "more than boxes to tick" in "".join(capsys.readouterr())


def test_every_kind_of_content_is_shown_as_far_as_a_terminal_can(
    servers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    blocks = [
        {"type": "text", "text": "a picture:"},
        {"type": "image", "mimeType": "image/png", "data": "AAAA" * 400},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
    ]
    shown_blocks = """\
a picture:
[image, image/png, 1,600 characters of base64]
{"type": "resource_link", "uri": "file:///a", "name": "a"}"""
    for result, shown, failed in (
        ({"content": blocks}, shown_blocks, 0),
        ({"content": [], "structuredContent": {"n": 1}}, '{\n  "n": 1\n}', 0),
        ({"content": [{"type": "text", "text": "no such file"}], "isError": True}, "no such file", 1),
    ):
        monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))
        assert main(["call", "notes__give", json.dumps({"result": result})]) == failed
        captured = capsys.readouterr()
        assert captured.out.removeprefix("yes or no? ") == f"{shown}\n"
        assert ("the tool failed; " in captured.err) == bool(failed)
