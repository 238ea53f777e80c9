"""What docs/sql.md says, done, and what it sends its readers to docs/results.md for."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

from sql.fakes import asker
from ullage.app import meter
from ullage.gateway import Metered, References
from ullage.testing import FakeRecorder
from ullage.tool import Call

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "results.md").read_text(encoding="utf-8"), re.DOTALL)

pytestmark = pytest.mark.anyio


async def result(**arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    """What an MCP client gets."""
    counting = meter()
    source = Metered(
        inner=asker().source,
        meter=counting,
        recorder=FakeRecorder(),
        clock=time.perf_counter,
        reference=References(counting.models),
    )
    reply = await source.call(Call(tool="query", arguments={"sql": "SELECT id, name FROM orders", **arguments}))
    return {"content": list(reply.content), "_meta": dict(reply.meta)}


def follow(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"result": answer}
    for block in RECIPES:
        exec(block, found)
    return found


@pytest.mark.requirement("S0:recipes")
async def test_the_recipes_show_cost_slowness_and_truncation():
    assert len(RECIPES) == 3
    assert "(results.md#recipes)" in GUIDE
    whole = await result()
    found = follow(whole)
    tokens = whole["_meta"]["dev.ullage/meta"]["tokens"]["estimated"]
    assert tokens == meter().count(whole["content"][0]["text"], "gpt-4o").tokens
    assert found["cost"] == pytest.approx(tokens / 1000 * 0.0025)
    assert found["warnings"] == []
    cut = await result(max_rows=2)
    cut["_meta"]["dev.ullage/meta"]["performance"]["executionTimeMs"] = 1000.5
    assert follow(cut)["warnings"] == ["slow: 1000 ms", "not all rows: 2 shown, the limit is 1000"]
    cut["_meta"]["dev.ullage/meta"]["performance"]["executionTimeMs"] = 1000
    assert follow(cut)["warnings"] == ["not all rows: 2 shown, the limit is 1000"]


def test_every_place_that_the_guide_names_is_there():
    named = re.findall(r"`(tests/[\w/.]+)`", GUIDE)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
