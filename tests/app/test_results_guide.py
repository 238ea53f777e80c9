"""The guide to results, as somebody follows it."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from approving import load
from ullage.app.build_gateway import open_gateway
from ullage.config import Flags
from ullage.tool import Call
from upstreams import scripted, tool, write_toml

GUIDE = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")


def followed(meta: dict[str, Any]) -> dict[str, Any]:
    """What the guide's lines of Python make of a reply."""
    found: dict[str, Any] = {"result": {"_meta": {"dev.ullage/meta": meta}}}
    for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        exec(compile(block, "results.md", "exec"), found)
    return found


def reply(milliseconds: float, **data: object) -> dict[str, Any]:
    told = {"tokens": {"estimated": 1250}, "performance": {"executionTimeMs": milliseconds, "cachedResult": False}}
    return {**told, "data": data} if data else told


@pytest.mark.requirement("S0:recipes")
def test_the_recipes_reckon_costs_and_warn_of_slow_and_shortened_answers():
    quick = followed(reply(1000.0, rowCount=3, columnCount=1, truncated=False, maxRowsLimit=1000))
    assert quick["cost"] == pytest.approx(0.003125)
    assert quick["warnings"] == []
    slow = followed(reply(1000.4, rowCount=10, columnCount=1, truncated=True, maxRowsLimit=10))
    assert slow["warnings"] == ["slow: 1000 ms", "not all rows: 10 shown, the limit is 10"]
    cut = followed(reply(1, rowCount=10, columnCount=1, truncated=True))
    assert cut["warnings"] == ["not all rows: 10 shown, the limit is what fits"]
    assert followed(reply(1))["warnings"] == []


@pytest.mark.anyio
async def test_what_the_guide_shows_of_a_cut_result_is_what_a_model_reads(work: Path):
    write_toml(work / "ullage.toml", "[results]\nbudget = 500\n", notes=scripted(tool("give")))
    rows = [{"id": number, "name": f"item {number}"} for number in range(2_000)]
    given: dict[str, Any] = {"result": {"content": [{"type": "text", "text": json.dumps(rows)}]}}
    loaded = load(Flags(), os.environ, work)
    async with open_gateway(loaded, environment=os.environ) as gateway:
        await gateway.view(30)
        reply = await gateway.flagged(None).source.call(Call(tool="notes__give", arguments=given))
    *_, last = str(reply.content[-1]["text"]).splitlines()
    (shown,) = re.findall(r"\[\d+ of 2000 records .*\]", GUIDE)
    assert re.sub(r"\d+", "N", last) == re.sub(r"\d+", "N", shown)
