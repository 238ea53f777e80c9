"""The guide to delegating, as somebody follows it."""

import ast
import inspect
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.loopback import loopback
from approving import examine
from delegate.policies import MODELS, POLICIES
from ullage.cli.route import read_cases
from ullage.config import Flags, Places
from ullage.delegate import DELEGATE, TOOLS, DelegateSource
from ullage.retrieve import TOOL
from ullage.tool import Call

GUIDE = (Path(__file__).parents[2] / "docs" / "delegate.md").read_text(encoding="utf-8")
PYTHON = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")


def indented(heading: str) -> list[str]:
    """The blocks of a section that are set off."""
    section = GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", section, re.MULTILINE)
    return ["\n".join(line[4:] for line in block.splitlines()) for block in blocks]


def test_the_guide_fits_on_a_few_screens_and_names_every_tool():
    assert len(GUIDE.splitlines()) < 150
    assert all(f"`{tool.name}(" in GUIDE for tool in (*TOOLS, TOOL))


@pytest.mark.requirement("S4:config")
def test_the_policy_of_the_guide_is_one(tmp_path: Path):
    (settings,) = [block for block in indented("Set up") if "[delegate.aliases]" in block]
    (tmp_path / "ullage.toml").write_text(settings, encoding="utf-8")
    places = Places(home=tmp_path, config=tmp_path / "c", data=tmp_path / "d")
    loaded = examine(Flags(), {}, tmp_path, places=places)
    assert not loaded.errors
    assert "ollama" in {one.name for one in loaded.settings.providers}
    policy = loaded.settings.delegate.policy
    assert policy is not None
    assert set(policy.models) == {"openai:gpt-6-luna", "ollama:qwen3"}


def test_both_tables_of_outcomes_in_the_guide_can_be_read():
    rows, line = indented("Route")[1].split("\n\n")
    (case,) = read_cases(rows, "t.csv")
    assert set(case.outcomes) == {"openai:gpt-6-luna", "ollama:qwen3"}
    (case,) = read_cases(line, "t.jsonl")
    assert (case.prompt_tokens, case.outcomes["openai:gpt-6-luna"].cost) == (900, 0.002)


@pytest.mark.anyio
@pytest.mark.requirement("S4:reply")
async def test_the_python_of_the_guide_runs(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    (work / "conf").mkdir()
    for name, said in (("models", MODELS), ("policies", POLICIES)):
        (work / "conf" / f"{name}.json").write_text(json.dumps(said), encoding="utf-8")
    with loopback() as provider:
        user = work.parent / "home" / "config" / "ullage" / "ullage.toml"
        user.parent.mkdir(parents=True)
        user.write_text(provider.providers(), encoding="utf-8")
        found: dict[str, Any] = {}
        (meta,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
        section = PYTHON.partition("## Delegate a prompt\n")[2].partition("\n## ")[0]
        (program,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        await _run(program, found)
        assert found["outcome"].completion.text == "Hello there"
        assert found["outcome"].cost.total is not None
        again: Any = _Again(found["delegate"].policy, found["outcome"])
        reply = await DelegateSource(delegate=again).call(Call(tool="delegate.run", arguments={"prompt": "hi"}))
        found["result"] = {"_meta": dict(reply.meta)}
        await _run(meta, found)
        assert found["delegate_meta"] == reply.meta[DELEGATE]


async def _run(block: str, found: dict[str, Any]) -> None:
    outcome = eval(compile(block, "delegate.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), found)
    if inspect.iscoroutine(outcome):
        await outcome


@dataclass
class _Again:
    """A delegate that gives the same outcome once more."""

    policy: Any
    outcome: Any
    observers: tuple[Any, ...] = ()

    async def run(self, *_: object) -> Any:  # noqa: ANN401
        return self.outcome
