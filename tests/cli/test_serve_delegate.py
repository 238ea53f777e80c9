"""`ullage serve` with models to delegate to, as an MCP client meets it: a real client, a real server, real HTTP."""

import json
import logging
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent

from app.loopback import loopback
from approving import approve
from delegate.policies import MODELS, POLICIES
from ullage.cli.load_settings import show_telemetry
from ullage.cli.serve import _describe_sources
from ullage.config import Flags, load
from ullage.ledger import read_entries
from ullage.store import Database
from upstreams import write_toml

ERAS = ("legacy", "2026-07-28")


@pytest.fixture(autouse=True)
def _quiet() -> Generator[None]:
    yield
    for name in ("ullage.delegate", "ullage.audit"):
        log = logging.getLogger(name)
        log.handlers.clear()
        log.propagate = True
        log.setLevel(logging.NOTSET)


def write_conf(work: Path) -> None:
    (work / "conf").mkdir()
    (work / "conf" / "models.json").write_text(json.dumps(MODELS), encoding="utf-8")
    (work / "conf" / "policies.json").write_text(json.dumps(POLICIES), encoding="utf-8")
    approve(work / "conf")


def said(result: CallToolResult) -> dict[str, Any]:
    assert result.meta is not None
    return result.meta["dev.ullage/delegate"]


@pytest.mark.anyio
@pytest.mark.requirement("S4:reply", "S4:fallback", "S4:telemetry", "S4:providers", "S4:schema", "U:own")
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_gets_the_answer_as_text_and_the_rest_as_metadata(
    work: Path, era: str, monkeypatch: pytest.MonkeyPatch
):
    write_conf(work)
    for name in ("ANTHROPIC_API_KEY", "ORCH_LOG_LEVEL", "ORCH_COST_ALERT_USD", "ORCH_USAGE_EXPORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    monkeypatch.setenv("GOOGLE_API_KEY", "hunter2")
    log = work.parent / "stderr"
    with loopback() as provider, log.open("w", encoding="utf-8") as errors:
        provider.refusing = {"gpt-4o": 404}
        file = work.parent / "home" / "config" / "ullage" / "ullage.toml"
        file.parent.mkdir(parents=True)
        file.write_text(f'{provider.providers()}[gateway]\nmode = "search"\n', encoding="utf-8")
        words = ["-m", "ullage", "serve", "--store", "sqlite:///kept.db"]
        program = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
        async with Client(stdio_client(program, errlog=errors), mode=era, cache=None) as client:
            assert "delegate.run" in [one.name for one in (await client.list_tools()).tools]
            result = await client.call_tool("delegate.run", {"prompt": "Você pode dizer qual é a capital da França?"})
            assert result.is_error is not True
            (block,) = result.content
            assert isinstance(block, TextContent)
            assert block.text == "Hello there"
            meta = said(result)
            assert meta["decision"] == {"provider": "openai", "model": "gpt-4o-mini", "alias": "chat-default"}
            assert meta["parameters"] == {"max_output_tokens": 2048, "temperature": 0.6}
            assert meta["rationale"][0] == "language: pt (detected) -> chat-premium"
            assert meta["usage"]["total_tokens"] == 44
            assert meta["cost"]["total"] == pytest.approx(39 * 0.000003 + 5 * 0.000009)
            assert meta["meta"]["fallback_used"] is True
            first, second = meta["meta"]["attempts"]
            assert (first["success"], first["status"], second["success"]) == (False, 404, True)
            assert result.meta is not None
            assert result.meta["dev.ullage/meta"]["tokens"]["estimated"] == 2
            refused = await client.call_tool("delegate_run", {"prompt": "hi", "metadata": {"tyre": "pro"}})
            assert refused.is_error
            given = {
                "tool_name": "delegate.run",
                "parameters": {"prompt": "What is this?", "forceModel": "long-context"},
            }
            through = await client.call_tool("call_tool", given)
            assert said(through)["decision"]["provider"] == "google"
            with anyio.fail_after(20):
                while "is off" not in log.read_text(encoding="utf-8"):
                    await anyio.sleep(0.05)
    lines = log.read_text(encoding="utf-8").splitlines()
    assert lines.count("ullage: provider `anthropic` is off: `ANTHROPIC_API_KEY` is not set") == 1
    events = [json.loads(line)["event"] for line in lines if line.startswith("{")]
    assert events == ["audit", "fallback", "warning", "route", "route"]
    assert "hunter2" not in "\n".join(lines) + json.dumps([meta, said(through)])
    assert "capital" not in "\n".join(lines)
    database = Database.open(work / "kept.db")
    entries = list(read_entries(database))
    database.close()
    called = [one.model for one in entries if one.kind == "model"]
    assert sorted(map(str, called)) == ["gemini-1.5-pro", "gpt-4o", "gpt-4o-mini"]


def test_whoever_serves_models_or_folders_is_told_of_them(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    write_toml(work / "ullage.toml", '[retrieve.docs]\nfolders = ["."]\n')
    assert _describe_sources(load(Flags(), {}, work)) == ["Behind it: folders docs."]
    write_conf(work)
    assert _describe_sources(load(Flags(), {}, work)) == ["Behind it: folders docs, models of openai."]


@pytest.mark.requirement("S4:env")
@pytest.mark.parametrize(("level", "shown"), [(None, logging.INFO), ("debug", logging.DEBUG), ("error", logging.ERROR)])
def test_lines_are_plain_json_at_the_level_of_the_variable(work: Path, level: str | None, shown: int):
    settings = load(Flags(), {"ORCH_LOG_LEVEL": level} if level else {}, work).settings
    show_telemetry(settings)
    show_telemetry(settings)
    log = logging.getLogger("ullage.delegate")
    (handler,) = log.handlers
    assert (log.level, log.propagate) == (shown, False)
    assert handler.format(logging.makeLogRecord({"msg": '{"event": "route"}'})) == '{"event": "route"}'
