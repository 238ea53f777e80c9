"""`ullage route`: who would answer, and would the policy have paid."""

import json
from pathlib import Path

import pytest

from approving import main
from delegate.policies import MODELS, POLICIES
from ullage.cli.route import read_cases

pytestmark = pytest.mark.requirement("S4:route")

PORTUGUESE = "Você pode dizer qual é a capital da França?"
TABLE = """case,prompt,model,score,cost
1,What is this thing?,openai:gpt-4o-mini,1,0.1
1,,openai:gpt-4o,1,0.2
2,Você não sabe o que é isto?,openai:gpt-4o-mini,0,0.1
2,,openai:gpt-4o,1,0.2
"""


@pytest.fixture(autouse=True)
def _policy(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (work / "conf").mkdir()
    (work / "conf" / "models.json").write_text(json.dumps(MODELS, indent=1), encoding="utf-8")
    (work / "conf" / "policies.json").write_text(json.dumps(POLICIES, indent=1), encoding="utf-8")


def no_policy(work: Path) -> None:
    for name in ("models", "policies"):
        (work / "conf" / f"{name}.json").unlink()


@pytest.mark.requirement("S4:examples", "S4:route")
def test_the_decision_is_shown_without_a_key_and_without_asking(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert main(["route", PORTUGUESE]) == 0
    out, err = capsys.readouterr()
    first, third = out.splitlines()[1], out.splitlines()[3]
    assert first.split() == ["1", "chat-premium", "openai:gpt-4o", "2,048", "0.6", "128,000"]
    assert third.endswith("no key")
    assert "  language: pt (detected) -> chat-premium" in out.splitlines()
    assert err == "17 tokens in the prompt; no model was called\n"


@pytest.mark.requirement("S4:examples")
def test_the_second_example_of_the_contract_routes_as_stated(capsys: pytest.CaptureFixture[str]):
    wishes = ["--model", "reasoning", "--language", "en", "--tier", "enterprise", "--domain", "creative"]
    assert main(["route", "Write a poem", *wishes, "--max-output", "2048", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    first = said["candidates"][0]
    assert (first["id"], first["parameters"]) == (
        "anthropic:claude-3-5-sonnet",
        {"max_output_tokens": 2048, "temperature": 0.9},
    )
    assert (first["provider_on"], first["window"]) == (False, 200_000)
    assert said["rationale"][0] == "forced: reasoning"


def test_a_model_that_refuses_a_temperature_shows_none(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    no_policy(work)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert main(["route", "hello"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-2] == "-"


@pytest.mark.parametrize("words", [["What", "is"], ["eval"], ["eval", "a", "b"]])
def test_several_words_are_no_prompt(words: list[str], capsys: pytest.CaptureFixture[str]):
    code = main(["route", *words])
    err = capsys.readouterr().err
    assert (code, "in quotes" in err) in ((2, True), (0, False))
    assert code == (0 if words == ["eval"] else 2)


@pytest.mark.requirement("S4:lint")
def test_lint_names_file_and_line_of_each_dead_rule(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["route", "lint"]) == 1
    out, err = capsys.readouterr()
    lines = out.splitlines()
    text = (work / "conf" / "policies.json").read_text(encoding="utf-8")
    first = text.splitlines().index('  "tokenBuckets": [') + 2
    assert any(line.startswith(f"{work}/conf/policies.json:{first}: for `pt` the first bucket's") for line in lines)
    assert all(f"{work}/conf/" in line for line in lines)
    assert err == f"{len(lines)} warnings\n"
    assert main(["route", "lint", "--json"]) == 1
    assert {one["file"] for one in json.loads(capsys.readouterr().out)} == {
        f"{work}/conf/models.json",
        f"{work}/conf/policies.json",
    }


def test_lint_without_a_policy_is_reported(work: Path, capsys: pytest.CaptureFixture[str]):
    no_policy(work)
    assert main(["route", "lint"]) == 0
    assert "no policy is configured" in capsys.readouterr().err
    for name, said in (("models", {"models": {"a": {"provider": "openai", "model": "gpt-6-luna"}}}), ("policies", {})):
        (work / "conf" / f"{name}.json").write_text(json.dumps(said), encoding="utf-8")
    assert main(["route", "lint"]) == 0
    assert "no mistakes" in capsys.readouterr().err


def test_lint_warns_of_an_unconfigured_provider(work: Path, capsys: pytest.CaptureFixture[str]):
    models = {"models": {"a": {"provider": "nobody", "model": "gpt-6-luna"}}}
    for name, said in (("models", models), ("policies", {})):
        (work / "conf" / f"{name}.json").write_text(json.dumps(said), encoding="utf-8")
    assert main(["route", "lint"]) == 1
    out, err = capsys.readouterr()
    assert out == (
        f"{work}/conf/models.json:1: `a` uses provider `nobody`, which is neither built in nor configured "
        "(write a table `[providers.nobody]`)\n"
    )
    assert err == "1 warning\n"


def test_without_key_or_policy_the_decision_of_the_built_in_one_is_shown(
    work: Path, capsys: pytest.CaptureFixture[str]
):
    no_policy(work)
    assert main(["route", "What is this thing?"]) == 0
    out, err = capsys.readouterr()
    rows = out.split("\n\n")[0].splitlines()[1:]
    assert "no key" in rows[0]
    assert all("no key" in row for row in rows)
    assert err.endswith("no model was called\n")


def test_the_error_for_a_table_without_the_policys_model_has_both_names(work: Path, capsys: pytest.CaptureFixture[str]):
    (work / "t").write_text("case,prompt,model,score\n1,What is this thing?,unheard-of,1\n", encoding="utf-8")
    assert main(["route", "eval", "t"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[1] == "  the policy chooses openai:gpt-4o-mini; the table has unheard-of"


def test_a_policy_is_tried_on_a_table_of_outcomes(work: Path, capsys: pytest.CaptureFixture[str]):
    (work / "t.csv").write_text(TABLE, encoding="utf-8")
    assert main(["route", "eval", "t.csv"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split() == ["policy", "1.000", "0.150000"]
    assert out.splitlines()[-1] == "as good as `openai:gpt-4o` alone, 25% cheaper"
    assert err == "2 cases; the policy chose openai:gpt-4o-mini 1, openai:gpt-4o 1\n"
    assert main(["route", "eval", "t.csv", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["policy"]["score"], said["random"]["score"], said["oracle"]["cost"]) == (
        1.0,
        0.75,
        pytest.approx(0.15),
    )
    assert (said["cases"], said["left_out"], said["dominant"]) == (2, 0, None)


def test_a_table_may_be_json_lines_with_sizes_aliases_and_no_costs(work: Path, capsys: pytest.CaptureFixture[str]):
    cases = [
        {"prompt_tokens": 5000, "outcomes": {"long-context": {"score": 1}, "chat-default": {"score": 0}}},
        {"prompt_tokens": 10, "tier": "none", "outcomes": {"long-context": {"score": 1}, "chat-default": {"score": 0}}},
        {"case": "x", "prompt_tokens": 10, "domain": "code", "model": "long-context", "score": 0.5},
        {"case": "x", "model": "chat-default", "score": 1},
    ]
    (work / "t.jsonl").write_text("\n\n".join(map(json.dumps, cases)), encoding="utf-8")
    assert main(["route", "eval", "t.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split() == ["policy", "1.000", "-"]
    assert err.startswith("2 cases; 1 left out; the policy chose")


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ('case,prompt,model,score\n1,"one\ntwo",m,1\n1,,n,0\n', "one\ntwo"),
        ('{"prompt": "one\u2028two", "outcomes": {"m": {"score": 1}}}\n', "one\u2028two"),
    ],
)
def test_a_prompt_of_several_lines_stays_as_it_is(text: str, prompt: str):
    (case,) = read_cases(text, "t")
    assert case.prompt == prompt


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("a,b\n1,2\n", 2, "has no columns `model` and `score`"),
        ("", 2, "has no columns"),
        ("case,model,score\n1,m,good\n", 2, "line 2: no outcome can be read"),
        ('{"model": "m"}', 2, "line 1: no outcome can be read"),
        ('{"outcomes": [1]}', 2, "line 1: no outcome can be read"),
        ('{"a": 1}\n{', 2, "no outcome can be read"),
        ('{"model": "m", "score": 1}\n{', 2, "line 2 is not JSON"),
        ("case,model,score\n1,unheard-of,1\n", 1, "none of 1 case has an outcome"),
    ],
)
def test_a_table_that_says_nothing_is_refused_with_its_line(
    work: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, said: str
):
    (work / "t").write_text(text, encoding="utf-8")
    assert main(["route", "eval", "t"]) == code
    assert said in capsys.readouterr().err
