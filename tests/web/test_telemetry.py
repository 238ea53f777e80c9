"""Traces and metrics go to the collector that the user named, without content; by default nothing is sent."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from app.loopback import loopback
from ullage.config import Telemetry
from ullage.tracing import Span, TraceContext, Tracer, child_span, trace_fields, trace_of
from ullage.web import Exporter, Metrics, Target, targets_of
from upstreams import scripted, settle_in, users_file, write_toml

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
Object = dict[str, Any]


@dataclass
class Collector:
    """What a collector received, by path."""

    address: str = ""
    status: int = 200
    delay: float = 0.0
    bodies: list[tuple[str, Object]] = field(default_factory=list[tuple[str, Object]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def spans(self) -> list[Object]:
        return [span for _, span in self._of("/v1/traces", "resourceSpans", "scopeSpans", "spans")]

    def metrics(self) -> dict[str, Object]:
        return {one["name"]: one for _, one in self._of("/v1/metrics", "resourceMetrics", "scopeMetrics", "metrics")}

    def _of(self, path: str, *keys: str) -> Iterator[tuple[Object, Object]]:
        for where, body in self.bodies:
            if where.partition("?")[0] == path:
                for resource in body[keys[0]]:
                    for scope in resource[keys[1]]:
                        yield from ((resource, one) for one in scope[keys[2]])


@contextmanager
def collector() -> Generator[Collector]:
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            time.sleep(found.delay)
            found.bodies.append((self.path, body))
            found.headers.append({key.lower(): value for key, value in self.headers.items()})
            self.send_response(found.status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def named(found: Collector) -> str:
    return f'[telemetry]\nendpoint = "{found.address}"\n'


def attributes(one: Object) -> Object:
    return {pair["key"]: next(iter(pair["value"].values())) for pair in one["attributes"]}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settle_in(tmp_path, monkeypatch)
    for name in [one for one in os.environ if one.startswith(("OTEL_", "ULLAGE_TELEMETRY"))]:
        monkeypatch.delenv(name)
    return tmp_path / "work"


def serve(*messages: Object, program: str = sys.executable, **variables: str) -> tuple[dict[int, Object], str, float]:
    """Run `ullage serve` on these requests; return its answers by id, its log, and how long it took."""
    greeting = [
        {
            "method": "initialize",
            "id": 0,
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in (*greeting, *messages))
    began = time.monotonic()
    ended = subprocess.run(
        [program, "-m", "ullage", "serve", "--client", "codex"],
        input=lines, capture_output=True, text=True, env={**os.environ, **variables}, timeout=120, check=True,
    )  # fmt: skip
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    return {one["id"]: one for one in answers if "id" in one}, ended.stderr, time.monotonic() - began


def call(number: int, tool: str, /, meta: Object | None = None, **arguments: Any) -> Object:  # noqa: ANN401
    params: Object = {"name": tool, "arguments": arguments}
    return {"method": "tools/call", "id": number, "params": {**params, **({"_meta": meta} if meta else {})}}


SECRET = "a secret sentence"
HELLO = f"Say hello. {SECRET}"
PLAIN = "[results]\nencode = false\n"
BAGGAGE = {"traceparent": PARENT, "baggage": "user=ada"}


@pytest.mark.requirement("S4:telemetry", "U:ledger")
def test_one_trace_leads_from_the_client_through_ullage_to_the_server(work: Path):
    with collector() as found:
        notes = scripted()
        write_toml(
            users_file(work.parent),
            named(found) + 'headers = { api-key = "${COLLECTOR_KEY}" }\n' + PLAIN,
            notes=notes,
        )
        answers, log, _ = serve(
            call(
                1,
                "call_tool_write",
                {"traceparent": PARENT, "tracestate": "vendor=1"},
                tool_name="notes__seen",
                parameters={},
            ),
            call(2, "call_tool_write", tool_name="notes__echo", parameters={"text": SECRET}),
            call(3, "no_such_tool"),
            COLLECTOR_KEY="key-of-the-collector",
        )
    assert answers[3]["error"]["code"] == -32602
    spans = found.spans()
    by_id = {span["spanId"]: span for span in spans}
    mine = [span for span in spans if span["traceId"] == TRACE]
    asked, sent = (next(span for span in mine if span["kind"] == kind) for kind in (2, 3))
    assert (asked["parentSpanId"], asked["traceState"]) == ("00f067aa0ba902b7", "vendor=1")
    assert by_id[sent["parentSpanId"]] is asked
    assert (asked["name"], sent["name"]) == ("tools/call call_tool_write", "tools/call seen")
    assert attributes(asked) == attributes(asked) | {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "call_tool_write",
        "ullage.server.name": "notes",
        "ullage.tool.name": "seen",
        "network.transport": "pipe",
        "mcp.protocol.version": "2025-06-18",
        "jsonrpc.request.id": "1",
        "ullage.client": "codex",
    }
    assert attributes(sent)["gen_ai.tool.name"] == "seen"
    seen = json.loads(answers[1]["result"]["content"][0]["text"])
    meta = [one["params"]["_meta"] for one in seen if one["method"] == "tools/call"][-1]
    assert meta["traceparent"] == f"00-{TRACE}-{sent['spanId']}-01", "the server's parent is Ullage's own request"
    assert meta["tracestate"] == "vendor=1"
    (unknown,) = [span for span in spans if span["name"] == "tools/call no_such_tool"]
    assert (unknown["status"], attributes(unknown)["error.type"]) == ({"code": 2}, "-32602")
    assert all(int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) for span in spans)
    sent_texts = json.dumps(found.bodies)
    assert SECRET not in sent_texts, "content is never exported"
    assert "key-of-the-collector" not in sent_texts + log
    assert {one["api-key"] for one in found.headers} == {"key-of-the-collector"}
    duration = found.metrics()["mcp.server.operation.duration"]["histogram"]["dataPoints"]
    counts = {(attributes(point).get("gen_ai.tool.name"), attributes(point).get("error.type")) for point in duration}
    assert {("seen", None), ("echo", None), ("no_such_tool", "-32602")} <= counts
    assert all(sum(map(int, point["bucketCounts"])) == int(point["count"]) for point in duration)
    assert "ullage.tool.result.tokens" in found.metrics()


def test_model_calls_carry_the_trace_and_are_spans_with_usage_and_no_prompt(work: Path):
    with collector() as found, loopback(gpt_6_luna=503) as models:
        write_toml(users_file(work.parent), f"{named(found)}{models.providers()}[delegate]\n")
        answers, _, _ = serve(
            call(1, "delegate.run", {"traceparent": PARENT}, prompt=HELLO, metadata={"language": "en"}),
            OPENAI_API_KEY="sk-" + "0" * 20,
            ANTHROPIC_API_KEY="sk-ant-" + "0" * 20,
        )
    assert answers[1]["result"]["content"][0]["text"] == "Hello there"
    calls = [span for span in found.spans() if "gen_ai.request.model" in attributes(span)]
    assert len(calls) == len(models.asked) >= 2, "failed attempts are spans too"
    assert {span["traceId"] for span in calls} == {TRACE}
    for span, (_, headers, _) in zip(calls, models.asked, strict=True):
        assert headers["traceparent"] == f"00-{TRACE}-{span['spanId']}-01"
    assert attributes(calls[0])["error.type"] == "503"
    told = attributes(calls[-1])
    assert (told["gen_ai.operation.name"], told["gen_ai.provider.name"]) == ("chat", "anthropic")
    assert int(told["gen_ai.usage.input_tokens"]) > 0
    assert SECRET not in json.dumps(found.bodies)
    usage = found.metrics()["gen_ai.client.token.usage"]["histogram"]["dataPoints"]
    assert {attributes(point)["gen_ai.token.type"] for point in usage} == {"input", "output"}


def test_trace_context_is_passed_on_without_any_telemetry_and_nothing_is_sent(work: Path):
    with collector() as found, loopback() as models:
        write_toml(users_file(work.parent), f"{models.providers()}[delegate]\n{PLAIN}", notes=scripted())
        answers, _, _ = serve(
            call(1, "call_tool_write", BAGGAGE, tool_name="notes__seen", parameters={}),
            call(2, "delegate.run", BAGGAGE, prompt="Say hello."),
            OTEL_EXPORTER_OTLP_ENDPOINT=found.address,
            OPENAI_API_KEY="sk-" + "0" * 20,
        )
    assert found.bodies == [], "the variable alone sends nothing: the user's settings must say so"
    seen = json.loads(answers[1]["result"]["content"][0]["text"])
    assert [one["params"]["_meta"]["traceparent"] for one in seen if one["method"] == "tools/call"][-1] == PARENT
    (_, headers, _) = models.asked[-1]
    assert headers["traceparent"] == PARENT
    assert "baggage" not in headers, "it may say who the user is"


def test_project_never_decides_where_telemetry_goes(work: Path):
    with collector() as found:
        write_toml(work / "ullage.toml", f"{named(found)}export = true\n", notes=scripted())
        os.chdir(work)
        serve(call(1, "call_tool_write", tool_name="notes__echo", parameters={"text": "x"}))
    assert found.bodies == []


def test_collector_that_hangs_holds_up_neither_a_call_nor_the_end(work: Path):
    with collector() as found:
        found.delay = 20
        write_toml(users_file(work.parent), named(found), notes=scripted())
        requests = [
            call(number, "call_tool_write", tool_name="notes__echo", parameters={"text": "x"}) for number in range(1, 4)
        ]
        answers, log, took = serve(*requests, OTEL_BSP_SCHEDULE_DELAY="50")
    assert [answers[number]["result"]["content"][0]["text"] for number in (1, 2, 3)] == ["x", "x", "x"]
    assert took < 15
    assert "spans were not exported" in log


def span_of(tracer: Tracer, name: str = "tools/list") -> Span:
    with tracer.span(name, "server", None, mcp__method__name=name) as span:
        return span


def test_exporter_drops_what_it_cannot_send_and_says_so_once(caplog: pytest.LogCaptureFixture):
    with collector() as found:
        found.status = 503
        target = {"traces": Target(url=f"{found.address}/v1/traces?key=hidden")}
        exporter = Exporter(target, None, {"OTEL_BSP_SCHEDULE_DELAY": "50"}, version="1")
        tracer = Tracer((exporter.ended,))
        for _ in range(4_200):
            span_of(tracer)
        time.sleep(0.5)
        assert exporter.dropped == 4_200 - 4_096
        # What was refused until here contains spans that were dropped later.
        found.bodies.clear()
        found.status = 200
        exporter.stop(timeout=10)
    assert caplog.text.count("cannot be exported (HTTP 503)") == 1
    assert "hidden" not in caplog.text
    assert len({one["spanId"] for one in found.spans()}) == 4_096


def test_unsampled_trace_is_passed_on_and_not_exported():
    with collector() as found:
        exporter = Exporter({"traces": Target(url=f"{found.address}/v1/traces")}, None, {}, version="1")
        tracer, parent = Tracer((exporter.ended,)), trace_of({"traceparent": PARENT[:-1] + "0"})
        with tracer.span("tools/call", "server", parent), child_span("tools/call x") as child:
            assert child is not None
            assert trace_fields() == {"traceparent": f"00-{TRACE}-{child.context.span_id}-00"}
        exporter.stop()
    assert found.bodies == []


@pytest.mark.parametrize(
    "parent",
    [
        None,
        7,
        "",
        "00-1-2-03",
        PARENT.upper(),
        PARENT.replace(TRACE, "0" * 32),
        PARENT.replace("00f067aa0ba902b7", "0" * 16),
        "ff" + PARENT[2:],
        PARENT + "-more",
        PARENT + "\n",
    ],
)
def test_invalid_trace_context_is_none(parent: object):
    assert trace_of({"traceparent": parent}) is None


def test_later_version_of_the_trace_context_is_understood():
    assert trace_of({"traceparent": "01" + PARENT[2:] + "-more"}) == TraceContext(TRACE, "00f067aa0ba902b7")


def test_child_span_after_its_request_has_ended_belongs_to_no_other_request():
    ended: list[Span] = []
    tracer = Tracer((ended.append,))
    span_of(tracer)
    with child_span("tools/call x") as span:
        assert span is None
    assert (len(ended), trace_fields()) == (1, {})


def test_headers_of_the_variables_go_to_the_address_of_the_variables_only():
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1/base/",
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20key",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:2/own",
    }
    found = targets_of(Telemetry(export=True), variables)
    assert {signal: target.url for signal, target in found.items()} == {
        "traces": "http://127.0.0.1:2/own",
        "metrics": "http://127.0.0.1:1/base/v1/metrics",
    }
    assert found["metrics"].headers == {"api-key": "a key"}
    named = targets_of(Telemetry(endpoint="http://127.0.0.1:3"), variables)
    assert {target.url for target in named.values()} == {
        "http://127.0.0.1:3/v1/traces",
        "http://127.0.0.1:3/v1/metrics",
    }
    assert not any(target.headers for target in named.values())
    assert targets_of(Telemetry(), variables) == {}
    assert targets_of(Telemetry(export=False, endpoint="http://127.0.0.1:3"), {}) == {}
    assert targets_of(Telemetry(export=True), {**variables, "OTEL_SDK_DISABLED": "true"}) == {}
    assert list(targets_of(Telemetry(export=True), {**variables, "OTEL_METRICS_EXPORTER": "none"})) == ["traces"]


def test_names_of_many_tools_do_not_make_a_series_each():
    metrics = Metrics()
    tracer = Tracer((metrics.ended,))
    for number in range(2_100):
        with tracer.span("tools/call", "server", None, mcp__method__name="tools/call", gen_ai__tool__name=f"t{number}"):
            pass
    series = metrics.histograms()["mcp.server.operation.duration"]
    assert len(series) == 2_001
    assert sum(one.count for one in series.values()) == 2_100
