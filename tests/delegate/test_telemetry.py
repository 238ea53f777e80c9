import contextlib
import csv
import json
import logging
import subprocess
import sys
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

import httpx2
import pytest

from delegate.delegates import Both, delegate, saying
from delegate.streams import ANSWERS, Scripted
from ullage.delegate import Ask, DelegateSource, Level, Observer, ProviderFailed, RunRecord, Telemetry, UsageExport
from ullage.delegate.telemetry import COLUMNS, lines
from ullage.errors import SourceFailed
from ullage.messages import Message, Text
from ullage.tool import Call, Json, JsonObject

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S4:telemetry")]
SECRET = "the launch code is 0000"


@dataclass
class Seen:
    happenings: list[RunRecord] = field(default_factory=list[RunRecord])

    def record_run(self, run_record: RunRecord) -> None:
        self.happenings.append(run_record)


async def run(openai: Scripted, *observers: Observer) -> RunRecord:
    seen = Seen()
    async with Both(openai).client() as client:
        asking = delegate(client)
        asking.observers = (seen, *observers)
        ask = Ask(messages=(Message(role="user", parts=(Text(f"Please say: {SECRET}"),)),), task="-docs")
        try:
            await asking.run(ask)
        except ProviderFailed:
            assert seen.happenings[0].outcome is None
    return seen.happenings[0]


@pytest.mark.requirement("S4:telemetry")
async def test_a_run_is_logged_with_its_route_and_cost():
    found = list(lines(await run(Scripted([ANSWERS["chat"]])), None))
    level, line = found[-1]
    assert (level, line["event"], line["model"], line["task"]) == ("info", "route", "gpt-4o-mini", "-docs")
    assert line["cost_usd"] == pytest.approx(0.000162)
    assert [one for one, _ in found] == ["debug", "info"]
    assert (line["provider"], line["alias"], line["attempts"]) == ("openai", found[0][1]["alias"], 1)
    assert line["rationale"]
    assert (found[0][1]["event"], found[0][1]["number"], found[0][1]["provider"]) == ("attempt", 1, "openai")
    assert set(line) == {
        *("event", "task", "provider", "model", "alias", "rationale", "attempts"),
        *("input_tokens", "output_tokens", "cost_usd", "latency_ms"),
    }


@pytest.mark.requirement("S4:telemetry", "S4:env")
async def test_a_route_reports_all_attempts_with_the_time_they_took_and_waited():
    run_record = await run(Scripted([ANSWERS["chat"]]))
    (answered,) = run_record.attempts
    failed = replace(answered, success=False, kind="timeout", status=504, error="took too long", milliseconds=30.0)
    answered = replace(answered, milliseconds=200.0, waited=1_000.0)
    found = [line for _, line in lines(replace(run_record, attempts=(failed, answered)), None)]
    first, second = (line for line in found if line["event"] == "attempt")
    other = replace(failed, alias="other", provider="elsewhere", model="m")
    (route,) = (
        line for _, line in lines(replace(run_record, attempts=(other, answered)), None) if line["event"] == "route"
    )
    assert (route["alias"], route["provider"], route["attempts"]) == (answered.alias, "openai", 2)
    model = {"provider": "openai", "model": answered.model, "alias": answered.alias}
    error = {"kind": "timeout", "status": 504, "error": "took too long"}
    assert first.items() >= {**model, **error, "latency_ms": 30.0, "number": 1}.items()
    assert second.items() >= {**model, "latency_ms": 200.0, "number": 2}.items()
    assert not error.keys() & second.keys()
    (routed,) = (line for line in found if line["event"] == "route")
    assert routed["latency_ms"] == 1_230.0
    assert routed["attempts"] == 2
    assert (routed["input_tokens"], routed["output_tokens"]) == (answered.usage.input, answered.usage.output)


@pytest.mark.requirement("S4:telemetry")
async def test_fallbacks_errors_and_warnings_are_logged():
    found = [(level, line["event"]) for level, line in lines(await run(Scripted([httpx2.Response(401)])), None)]
    assert ("warn", "fallback") in found
    assert ("warn", "warning") in found
    failed = list(lines(await run(Scripted([httpx2.Response(400)])), None))
    assert failed[-1][0] == "error"
    assert "400" in str(failed[-1][1]["error"])


@pytest.mark.requirement("S4:telemetry", "S4:env")
async def test_a_call_that_costs_too_much_is_an_alert():
    run_record = await run(Scripted([ANSWERS["chat"]]))
    assert [line["event"] for _, line in lines(run_record, Decimal("0.0001"))][-1] == "cost_alert"
    assert [line["event"] for _, line in lines(run_record, Decimal(1))][-1] == "route"


FILES: Json = {"hello.py": "def hello():\n    return 1\n"}
MODELS: Json = ["chat-default", "chat-premium", "long-context"]


@pytest.mark.requirement("S4:telemetry", "S4:env")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("delegate.diff", {"prompt": "Please x", "files": FILES}),
        ("delegate.tests", {"files": FILES}),
        ("delegate.consensus", {"prompt": "Greet", "models": MODELS, "judge": "chat-default"}),
    ],
)
async def test_several_runs_of_a_call_count_as_one_call_in_the_budget(
    tool: str, arguments: JsonObject, caplog: pytest.LogCaptureFixture
):
    seen = Seen()
    await call(tool, arguments, seen)
    costs = [one.cost.total for one in seen.happenings if one.cost is not None and one.cost.total is not None]
    assert len(costs) == len(seen.happenings) >= 3
    whole = sum(costs, Decimal(0))
    for threshold, expected in ((Decimal(0), 1), (max(costs), 1), (whole / 2, 1), (whole, 0)):
        caplog.clear()
        await call(tool, arguments, Telemetry(level="warn", cost_alert=threshold))
        alerts = [line for line in map(json.loads, caplog.messages) if line["event"] == "cost_alert"]
        assert len(alerts) == expected, threshold
        assert all(threshold < Decimal(str(one["cost_usd"])) <= whole for one in alerts)


async def call(tool: str, arguments: JsonObject, observer: Observer) -> None:
    async with Both(Scripted([saying("This is no patch, and no tests.")])).client() as client:
        asking = delegate(client)
        asking.observers = (observer,)
        with contextlib.suppress(SourceFailed):
            await DelegateSource(delegate=asking).call(Call(tool=tool, arguments=arguments))


@pytest.mark.requirement("S4:telemetry")
async def test_what_is_known_to_have_cost_too_much_is_an_alert_though_the_rest_has_no_price():
    run_record = await run(Scripted([ANSWERS["chat"]]))
    (answered,) = run_record.attempts
    assert answered.cost is not None
    for cost in (None, replace(answered.cost, currency="EUR")):
        some = replace(run_record, attempts=(replace(answered, cost=cost), answered), cost=None)
        assert [line["event"] for _, line in lines(some, Decimal("0.0001"))][-1] == "cost_alert"
        none = replace(run_record, attempts=(replace(answered, cost=cost),), cost=cost)
        assert [line["event"] for _, line in lines(none, Decimal("0.0001"))][-1] == "route"


@pytest.mark.requirement("S4:telemetry", "S4:env")
@pytest.mark.parametrize(("level", "events"), [("debug", 2), ("info", 1), ("warn", 0), ("error", 0)])
async def test_only_what_matters_enough_is_logged_and_never_a_prompt(
    level: Level, events: int, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "ullage.delegate")
    await run(Scripted([ANSWERS["chat"]]), Telemetry(level=level))
    assert len(caplog.messages) == events
    assert all(json.loads(message) for message in caplog.messages)
    assert SECRET not in caplog.text


@pytest.mark.requirement("S4:telemetry", "S4:env")
async def test_each_attempt_is_a_line_of_the_export(tmp_path: Path):
    export = UsageExport(tmp_path / "deep" / "usage.csv")
    await run(Scripted([httpx2.Response(401)]), export)
    await run(Scripted([ANSWERS["chat"]]), export)
    with export.path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["model"], row["success"], row["error"]) for row in rows] == [
        ("gpt-4o-mini", "False", "unauthorized"),
        ("gemini-1.5-pro", "True", ""),
        ("gpt-4o-mini", "True", ""),
    ]
    assert rows[0]["task"] == "'-docs", "nothing is taken for a formula"
    assert rows[2]["cost"] == "0.000162"
    assert SECRET not in export.path.read_text(encoding="utf-8")


async def test_an_export_that_cannot_be_written_is_said_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    export = UsageExport(tmp_path)
    for _ in range(2):
        assert (await run(Scripted([ANSWERS["chat"]]), export)).outcome is not None
    assert caplog.text.count("cannot be written") == 1


_WRITER = """
import sys
from pathlib import Path
from ullage.delegate.telemetry import _append
for number in range(200):
    _append(Path(sys.argv[1]), [[sys.argv[2], number, "x" * 300]])
"""


@pytest.mark.requirement("S4:telemetry")
def test_processes_that_share_an_export_never_mix_their_lines(tmp_path: Path):
    place = tmp_path / "usage.csv"
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(place), str(one)]) for one in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    with place.open(encoding="utf-8", newline="") as file:
        heading, *rows = csv.reader(file)
    assert tuple(heading) == COLUMNS
    assert len(rows) == 600
    assert all(len(row) == 3 for row in rows)


@pytest.mark.requirement("S4:cost", "S4:usage")
async def test_the_usage_of_an_answer_is_that_of_the_attempt_that_answered():
    run_record = await run(Scripted([httpx2.Response(401)]))
    assert run_record.outcome is not None
    refused, answered = run_record.attempts
    assert refused.usage != answered.usage
    assert (run_record.outcome.usage, run_record.outcome.usage_reported) == (answered.usage, answered.usage_reported)
    assert run_record.outcome.attempts == (refused, answered)


@pytest.mark.requirement("S4:telemetry", "S4:env")
async def test_a_route_is_logged_and_an_attempt_is_not_unless_debugging(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "ullage.delegate")
    await run(Scripted([ANSWERS["chat"]]), Telemetry())
    assert [json.loads(each.getMessage())["event"] for each in caplog.records] == ["route"]
    caplog.clear()
    await run(Scripted([ANSWERS["chat"]]), Telemetry(level="debug"))
    assert [json.loads(each.getMessage())["event"] for each in caplog.records] == ["attempt", "route"]
    caplog.clear()
    await run(Scripted([ANSWERS["chat"]]), Telemetry(level="warn"))
    assert caplog.records == []
