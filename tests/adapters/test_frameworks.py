"""Agents of other makers with a model that is scripted, through sessions that are compacted several times."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.heavy, pytest.mark.requirement("S2:formats")]

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".bench" / "adapters" / "bin" / "python"


def run_in_frameworks(script: str, *arguments: str) -> str:
    """What the script prints."""
    if not PYTHON.with_name("..").joinpath(".installed").exists():
        pytest.fail("the frameworks are not installed; run `make test-heavy`")
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests/adapters"))
    done = subprocess.run(
        [str(PYTHON), str(ROOT / "tests" / "adapters" / script), *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(script: str) -> dict[str, Any]:
    return json.loads(run_in_frameworks(script).splitlines()[-1])


@pytest.mark.parametrize("framework", ["pydantic-ai", "openai-agents", "langchain"])
def test_the_example_of_each_framework_runs(framework: str):
    printed = run_in_frameworks("run_example.py", framework, str(ROOT / "docs" / "python.md")).splitlines()
    assert printed[-1] == "3 crates of tea."
    assert len([line for line in printed if line.startswith("{'type': 'context_status'")]) >= 3


@pytest.mark.requirement("S2:formats", "S2:long")
@pytest.mark.parametrize("script", ["with_langchain.py", "with_pydantic_ai.py", "with_openai_agents.py"])
def test_sixty_calls_of_the_model_fit_a_small_window(script: str):
    """That no request was refused, invalid or too large, the script itself sees to."""
    found = measured(script)
    assert found["compacted"] >= 5
    assert found["after"] < 50
    assert found["tiers"] == ["summarise"], "by the agent's own model"
    assert found["summaries"] >= found["compacted"]
    assert found["warnings"] == [""]
    assert found["off"] < 0.03
    assert found["same"] > 5, "what is kept is what was given"
