"""`ullage run` as a person meets it: a prompt in, the answer out, and one line of what it cost."""

import io
import json
import logging
import os
import pty
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from app.loopback import Loopback, loopback
from approving import approve, main
from delegate.policies import MODELS, POLICIES
from delegate.streams import ANSWERS

pytestmark = pytest.mark.requirement("S4:reply")

PORTUGUESE = "Você pode dizer qual é a capital da França?"


@pytest.fixture(autouse=True)
def _quiet() -> Generator[None]:
    yield
    for name in ("ullage.delegate", "ullage.audit"):
        log = logging.getLogger(name)
        log.handlers.clear()
        log.propagate = True
        log.setLevel(logging.NOTSET)


@pytest.fixture
def provider(work: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Loopback]:
    """The original's policy, and all three makers on loopback; only OpenAI's key is set."""
    for name in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "ORCH_LOG_LEVEL", "ORCH_COST_ALERT_USD", "ORCH_USAGE_EXPORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    (work / "conf").mkdir()
    (work / "conf" / "models.json").write_text(json.dumps(MODELS), encoding="utf-8")
    (work / "conf" / "policies.json").write_text(json.dumps(POLICIES), encoding="utf-8")
    approve(work / "conf")
    with loopback() as found:
        file = work.parent / "home" / "config" / "ullage" / "ullage.toml"
        file.parent.mkdir(parents=True)
        file.write_text(found.providers(), encoding="utf-8")
        yield found


@pytest.mark.requirement("S4:examples", "S4:cost")
def test_the_answer_is_all_of_standard_output_and_one_line_says_cost_and_reason(
    provider: Loopback, capsys: pytest.CaptureFixture[str]
):
    assert main(["run", PORTUGUESE]) == 0
    out, err = capsys.readouterr()
    assert out == "Hello there\n"
    (line,) = err.splitlines()
    assert line == (
        "0.00054 USD, 39 tokens in, 5 out: openai:gpt-4o (chat-premium), by "
        "language: pt (detected) -> chat-premium; temperature: 0.6 (language pt); output: 2048 (default)"
    )
    assert provider.asked[0][2]["temperature"] == 0.6


def test_a_prompt_comes_from_standard_input_and_options_from_flags(
    provider: Loopback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Say hello.\n"))
    words = ["run", "-", "--model", "chat-premium", "--domain", "creative", "--language", "EN", "--max-output", "9"]
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["text"] == "Hello there"
    assert said["decision"]["alias"] == "chat-premium"
    assert said["parameters"] == {"max_output_tokens": 9, "temperature": 0.9}
    assert said["meta"]["attempts"][0]["success"] is True
    assert "Say hello." in provider.prompts[0]


@pytest.mark.requirement("S4:providers")
def test_a_provider_without_a_key_is_passed_over_and_named(provider: Loopback, capsys: pytest.CaptureFixture[str]):
    assert main(["run", "hi", "--model", "reasoning"]) == 0
    off, line = capsys.readouterr().err.splitlines()
    assert off == "ullage: provider `anthropic` is off: `ANTHROPIC_API_KEY` is not set"
    assert line.endswith("before it failed: claude-3-5-sonnet (no_key)")


@pytest.mark.requirement("S4:fallback")
def test_a_key_that_is_refused_is_said_loudly(provider: Loopback, capsys: pytest.CaptureFixture[str]):
    provider.refusing = {"gpt-4o-mini": 401}
    assert main(["run", "Where are you?"]) == 0
    loud, line = capsys.readouterr().err.splitlines()
    assert loud == "ullage: openai answered 401: no"
    assert line.endswith("before it failed: gpt-4o-mini (unauthorized)")


@pytest.mark.requirement("S4:risks")
def test_a_prompt_that_is_cut_is_said_to_be(
    provider: Loopback, work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    models = {name: {**entry, "window": 4_000} for name, entry in MODELS["models"].items()}
    (work / "conf" / "models.json").write_text(json.dumps({**MODELS, "models": models}), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO("What do the words say? " * 2_000))
    assert main(["run", "-", "--cut", "--model", "chat-default", "--max-output", "9"]) == 0
    assert capsys.readouterr().err.startswith("ullage: the prompt was cut: ")


def test_an_answer_that_was_cut_off_is_said_to_be(
    provider: Loopback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    *before, last = ANSWERS["responses"]
    cut = {"type": "response.incomplete", "response": {**last["response"], "status": "incomplete"}}
    monkeypatch.setitem(ANSWERS, "responses", [*before, cut])
    assert main(["run", "Where are you?"]) == 0
    assert capsys.readouterr().err.startswith("ullage: the answer was cut off")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", " "], "the prompt is empty"),
        (["run", "hi", "--max-output", "0"], "no answer of less than one token"),
        (["run", "hi", "--tier", "gold"], "no tier is called `gold`"),
        (["run", "hi", "--model", "gpt-9"], "no model of the policy is called `gpt-9`"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anybody_is(
    provider: Loopback, capsys: pytest.CaptureFixture[str], words: list[str], said: str
):
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert provider.asked == []


def test_a_failure_ends_with_2_and_passes_no_body_on(provider: Loopback, capsys: pytest.CaptureFixture[str]):
    provider.refusing = {"gpt-4o-mini": 400}
    assert main(["run", "What is this?", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["error_code"] == "PROVIDER_FAILED"
    assert "SECRET BODY" not in err


def test_a_failure_names_every_attempt_and_the_variables_to_set(
    provider: Loopback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert main(["run", "What is this?"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: no model answered:"
    assert "  `openai`, model `gpt-4o-mini`: is off: `OPENAI_API_KEY` is not set" in lines
    assert any(line.endswith("is off: `GOOGLE_API_KEY` is not set") for line in lines)
    assert lines[-1].startswith("  give the provider that is off what it lacks")
    assert provider.asked == []


def test_a_failed_tool_call_returns_only_text(provider: Loopback, capsys: pytest.CaptureFixture[str]):
    provider.refusing = {"gpt-4o-mini": 400}
    assert main(["call", "delegate.run", '{"prompt": "What is this?"}']) == 1
    err = capsys.readouterr().err
    assert "error: `openai`, model `gpt-4o-mini`: " in err
    assert '"event"' not in err


@pytest.mark.requirement("S4:env", "S4:telemetry")
def test_structured_lines_come_where_a_variable_asks_for_them(
    provider: Loopback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ORCH_LOG_LEVEL", "debug")
    monkeypatch.setenv("ORCH_COST_ALERT_USD", "0.000001")
    assert main(["run", "What is this?"]) == 0
    out, err = capsys.readouterr()
    assert out == "Hello there\n"
    *lines, _ = err.splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["attempt", "route", "cost_alert"]


def test_an_unknown_price_is_said_to_be_unknown(provider: Loopback, work: Path, capsys: pytest.CaptureFixture[str]):
    nameless = {"aliases": {"a": "o:x"}, "models": {"o:x": {"provider": "openai", "model": "x-unheard-of"}}}
    (work / "conf" / "models.json").write_text(json.dumps(nameless), encoding="utf-8")
    (work / "conf" / "policies.json").write_text('{"routing": {"defaultAlias": "a"}}', encoding="utf-8")
    assert main(["run", "hi", "--model", "o:x"]) == 0
    assert capsys.readouterr().err.startswith("price unknown, 39 tokens in, 5 out: o:x (a), by forced: o:x")


def run_on_terminal(work: Path) -> tuple[str, list[str]]:
    """What a person sees of the answer, and the lines on standard error."""
    parent, child = pty.openpty()
    words = [sys.executable, "-m", "ullage", "run", "What is this?"]
    with subprocess.Popen(words, stdout=child, stderr=subprocess.PIPE, cwd=work, text=True) as run:
        _, err = run.communicate(timeout=60)
    os.close(child)
    shown = os.read(parent, 1000).decode()
    os.close(parent)
    return shown, err.splitlines()


@pytest.mark.requirement("S4:stream")
def test_on_a_terminal_the_answer_appears_as_it_is_written(provider: Loopback, work: Path):
    shown, lines = run_on_terminal(work)
    assert (shown, len(lines)) == ("Hello there\r\n", 1)
    provider.cut = {"gpt-4o-mini"}
    shown, (broken, line) = run_on_terminal(work)
    assert shown == "HelloHello there\r\n"
    assert broken == "ullage: the first 5 characters are of an answer that broke off; the rest is whole"
    assert "before it failed: gpt-4o-mini (truncated)" in line


@pytest.mark.requirement("S4:budgets")
def test_the_budget_of_a_day_is_shared_by_every_command(
    provider: Loopback, work: Path, capsys: pytest.CaptureFixture[str]
):
    (work / "ullage.toml").write_text("[delegate.budgets.day]\ntokens = 60\n", encoding="utf-8")
    assert main(["run", "hi", "--max-output", "10"]) == 0
    assert main(["run", "hi", "--max-output", "10"]) == 2
    assert "over the budget of this day" in capsys.readouterr().err
    assert len(provider.asked) == 1


@pytest.mark.requirement("S4:budgets")
def test_a_task_is_named_by_a_flag_and_ended_by_another(
    provider: Loopback, work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ORCH_USAGE_EXPORT", str(work / "use.csv"))
    assert main(["run", "What is this?", "--task", "docs", "--end-task"]) == 0
    assert ",docs," in (work / "use.csv").read_text(encoding="utf-8")
    assert main(["run", "What is this?", "--end-task"]) == 2
    assert "there is no task to end" in capsys.readouterr().err
