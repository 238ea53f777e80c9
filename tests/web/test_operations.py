"""Health is open and says one word; metrics need a token; the access log never has content."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ullage.errors import UnknownResource
from ullage.ledger import Entry, ModelUse, Recording
from ullage.models import Usage
from ullage.store import Database
from ullage.testing import FakeRecorder, check_recorder
from ullage.tracing import Tracer
from ullage.web import AccessLog, Metrics, operations_pages
from ullage.wire import Profile, Tokens, http_app

pytestmark = pytest.mark.requirement("U:ledger")

RESULT = Entry(
    time=datetime(2026, 11, 18, 12, tzinfo=UTC), kind="result", principal="ada", session="s", client="codex",
    server="shop", tool='query"\n{evil}', tokens=300, baseline_tokens=900, saved_tokens=600, milliseconds=70.0,
    detail={"note": "secret words"},
)  # fmt: skip
USE = ModelUse(usage=Usage(input=100, output=20), dollars=Decimal("0.25"))
CALL = replace(RESULT, kind="model", tool=None, model="gpt-5", use=USE, saved_tokens=None)


def nobody(client: str | None) -> Profile:
    raise UnknownResource(f"no client is called `{client}`")


def client_of(metrics: Metrics, *, tokens: Tokens | None = None, ready: bool = True, host: str = "localhost"):
    application = http_app(nobody, tokens=tokens, pages=operations_pages(metrics, lambda: ready))
    return TestClient(application, base_url=f"http://{host}")


def test_health_is_open_without_details_and_says_when_nothing_can_be_recorded():
    tokens = Tokens.read({"ULLAGE_TOKENS": "ada:0123456789abcdef0123456789abcdef"})
    with client_of(Metrics(FakeRecorder()), tokens=tokens, ready=False, host="10.0.0.7") as client:
        ready, live = client.get("/health"), client.get("/health/live")
    assert (ready.status_code, ready.json()) == (503, {"status": "unavailable"})
    assert (live.status_code, live.json()) == (200, {"status": "ok"})


def test_metrics_need_a_token_where_tokens_are_configured_and_a_known_host():
    secret = "0123456789abcdef0123456789abcdef"
    tokens = Tokens.read({"ULLAGE_TOKENS": f"ada:{secret}"})
    with client_of(Metrics(FakeRecorder()), tokens=tokens) as client:
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    with client_of(Metrics(FakeRecorder()), host="evil.example") as client:
        assert client.get("/metrics").status_code in (403, 421)
    with client_of(Metrics(FakeRecorder())) as client:
        answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_metrics_are_sums_of_what_was_recorded_and_names_cannot_break_their_lines():
    book = FakeRecorder()
    metrics = Metrics(book)
    for entry in (RESULT, replace(RESULT, is_error=True, milliseconds=3.0), CALL):
        metrics.record(entry)
    clock = iter([0, 70_000_000, 0, 3_000_000])
    for error in (None, "tool_error"):
        with Tracer((metrics.ended,), clock=lambda: next(clock)).span(
            "tools/call",
            "server",
            mcp__method__name="tools/call",
            gen_ai__tool__name="call_tool",
            ullage__tool__name=RESULT.tool,
            network__transport="tcp",
            jsonrpc__request__id="not a label",
        ) as span:
            span.error = error
    assert len(book.entries) == 3
    lines = metrics.text().splitlines()
    assert all(line.startswith(("#", "mcp_", "gen_ai_", "ullage_")) for line in lines)
    found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    name, tool = "mcp_server_operation_duration_seconds", 'gen_ai_tool_name="query\\"\\n{evil}"'
    fine = f'{name}_bucket{{{tool},mcp_method_name="tools/call",network_transport="tcp",le='
    assert (found[fine + '"0.05"}'], found[fine + '"0.1"}'], found[fine + '"+Inf"}']) == ("0", "1", "1")
    failed = f'{name}_bucket{{error_type="tool_error",{tool},mcp_method_name="tools/call",network_transport="tcp",le='
    assert found[failed + '"0.01"}'] == "1"
    assert found['ullage_cost_usd_total{model="gpt-5"}'] == "0.25"
    assert found['ullage_tokens_saved_net{kind="result"}'] == "1200"
    about = '{gen_ai_operation_name="chat",gen_ai_provider_name="shop",gen_ai_request_model="gpt-5"'
    assert found[f"gen_ai_client_inference_usage_input_tokens_total{about}}}"] == "100"
    assert found[f'gen_ai_client_token_usage_sum{about},gen_ai_token_type="output"}}'] == "20.000000"
    assert found[f'gen_ai_client_token_usage_bucket{about},gen_ai_token_type="output",le="16"}}'] == "0"
    assert found[f'gen_ai_client_token_usage_bucket{about},gen_ai_token_type="output",le="64"}}'] == "1"
    assert found[f'gen_ai_client_operation_duration_seconds_bucket{about},le="0.08"}}'] == "1"


def test_names_that_cannot_be_encoded_are_one_label_and_break_no_answer():
    metrics = Metrics()
    for name in ("\ud800", "\udfff", "\ud800", "?"):
        metrics.record(replace(RESULT, tool=name, server=name))
    lines = [line for line in metrics.text().splitlines() if line.startswith("ullage_tool_result_tokens_total{")]
    assert len(lines) == 1
    assert metrics.text().encode().isascii()


def test_metrics_say_how_many_entries_the_ledger_lost(tmp_path: Path):
    recording = Recording(Database.open(tmp_path / "ledger.db"))
    metrics = Metrics(recording)
    recording.stop()
    metrics.record(RESULT)
    assert "ullage_ledger_lost_total 1" in metrics.text().splitlines()


def test_access_log_is_one_json_line_for_each_call_and_never_content():
    lines: list[str] = []
    log = AccessLog(FakeRecorder(), write=lines.append)
    log.record(RESULT)
    log.record(replace(RESULT, kind="definitions"))
    (line,) = lines
    assert "\n" not in line
    assert "secret words" not in line
    said = json.loads(line)
    assert (said["principal"], said["tool"], said["tokens"], said["outcome"]) == ("ada", 'query"\n{evil}', 300, "ok")


@pytest.mark.parametrize("recorder", [Metrics(FakeRecorder()), AccessLog(FakeRecorder())])
def test_both_are_recorders(recorder: Metrics | AccessLog):
    check_recorder(recorder)
