"""Do budgets hold where everything stands around them that does in a gateway?"""

import json
import time
from typing import Any

import pytest

from gateway.results.bench_of_results import ADA, BOB, METER, ONWARD, REFERENCES, TOY, meta, records, text
from ullage.gateway.access_rules import Guarded
from ullage.gateway.find.find_settings import FindSettings
from ullage.gateway.find.find_source import Find
from ullage.gateway.find.tool_forms import NAMES
from ullage.gateway.merge.merge import Merge
from ullage.gateway.merge.tool_view import Member
from ullage.gateway.reply_metadata import Metered
from ullage.gateway.results import BUDGET, Budgeted, ResultReader, ResultRules, Vault
from ullage.options import Rules
from ullage.testing import FakeRecorder, FakeSource
from ullage.tool import Call, Caller, Json, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:budget")]

RULES = ResultRules(budget=400)


def gateway() -> tuple[Metered, FakeSource]:
    async def answer(_: Call) -> Reply:
        return Reply.text(json.dumps(records(900)))

    vault, source = Vault(), FakeSource(offered=(TOY,), answer=answer)
    reader = ResultReader(vault=vault, rules=lambda: RULES, meter=METER, reference=REFERENCES)
    merge = Merge(
        [
            Member(name="ullage", source=reader, prefix="", own=True, rules=Rules(pinned=("read_result",))),
            Member(name="shop", source=source, prefix="shop"),
        ],
        reserved=NAMES,
    )
    budgeted = Budgeted(
        inner=Guarded(merge),
        rules=lambda: RULES,
        vault=vault,
        meter=METER,
        reference=REFERENCES,
    )
    find = Find(budgeted, METER, FindSettings(mode="search"))
    metered = Metered(inner=find, meter=METER, recorder=FakeRecorder(), clock=time.perf_counter, reference=REFERENCES)
    return metered, source


@pytest.mark.requirement("U:budget", "S1:surface")
async def test_the_surface_reads_what_it_called():
    metered, source = gateway()
    assert [tool.name for tool in (await metered.tools()).tools] == [*NAMES, "read_result"]

    async def call(tool: str, caller: Caller = ADA, **arguments: Json) -> Reply:
        return await metered.call(Call(tool=tool, arguments=arguments, caller=caller))

    small = await call("call_tool_write", tool_name="toy", parameters={}, max_tokens=150)
    assert meta(small)["tokens"]["estimated"] <= 150
    assert source.calls.pop().arguments == {}, "the budget is not the tool's"
    reply = await call("call_tool_write", tool_name="toy", parameters={})
    assert 150 < meta(reply)["tokens"]["estimated"] <= 400
    assert meta(reply)["data"]["truncated"]
    name, reached, offset = meta(reply)["handle"], list[str](), 0
    while True:
        page = await call("read_result", handle=name, offset=offset, max_tokens=2_000)
        assert 400 < meta(page)["tokens"]["estimated"] <= 2_000 or "no more" in text(page)
        reached += [line.split(",")[0] for line in text(page).splitlines()[1:-1]]
        onward = ONWARD.search(text(page).splitlines()[-1])
        if onward is None:
            break
        offset = int(onward[1])
    assert reached == [str(one) for one in range(900)]
    assert len(source.calls) == 1
    stranger: Any = json.loads(text(await call("read_result", BOB, handle=name)))
    assert stranger["error_code"] == "UNKNOWN_HANDLE"
    nobody: Any = json.loads(text(await call("read_result", BOB, handle="r" + "0" * 18)))
    assert {**stranger, "message": ""} == {**nobody, "message": ""}


async def test_the_budget_of_a_call_stands_beside_it():
    metered, _ = gateway()
    reply = await metered.call(Call(tool="shop__toy", caller=ADA, meta={BUDGET: 120}))
    assert meta(reply)["tokens"]["estimated"] <= 120
