"""Logs of programs are counted once, and `ullage usage` and the status line show the sums of their raw lines."""

import csv
import io
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ullage import status_line
from ullage.app.usage_advice import five_hour_blocks, import_logs
from ullage.cli import main
from ullage.cli import usage as cli_usage
from ullage.ledger import Entry, Group, ModelUse, Spent, usage_report
from ullage.ledger.rows import KINDS, write_entries
from ullage.models import Price, shipped
from ullage.models import Usage as TokenUsage
from ullage.status_line import _MODEL_KIND
from ullage.store import Connection, Database
from upstreams import scripted, settle_in, tool, users_file

pytestmark = pytest.mark.requirement("U:usage")

START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
OPUS = "claude-opus-4-5-20251101"
PICO = Decimal("1e-12")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settle_in(tmp_path, monkeypatch)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home" / "data"))
    return tmp_path / "home"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database.open(tmp_path / "usage.db")
    yield database
    database.close()


def answer(number: int, *, output: int = 200, session: str = "s1", **about: Any) -> dict[str, Any]:  # noqa: ANN401
    usage = {
        "input_tokens": 3 + number,
        "cache_read_input_tokens": 40_000 + number,
        "cache_creation_input_tokens": 500,
        "output_tokens": output,
    }
    message = {"id": f"msg_01ABCDEFGHIJKL{number:04}", "role": "assistant", "model": OPUS, "usage": usage}
    at = (START + timedelta(minutes=number)).isoformat()
    record = {"type": "assistant", "timestamp": at, "sessionId": session, "cwd": "/w/shop", "requestId": f"r{number}"}
    return {**record, "message": message, **about}


def write_lines(path: Path, *records: object, mode: str = "w") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode, encoding="utf-8") as file:
        file.writelines((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records)


def read_in(database: Database, home: Path) -> int:
    return import_logs(database, {"HOME": str(home)}, shipped(), principal="ada").calls


def claude(home: Path, name: str) -> Path:
    return home / ".claude" / "projects" / "-w-shop" / f"{name}.jsonl"


@pytest.mark.requirement("U:usage")
def test_streamed_pieces_forks_broken_lines_and_made_up_answers_count_once_or_not_at_all(
    database: Database, home: Path
):
    lines = [answer(1, output=1), answer(1), "no JSON", {"message": "error"}, answer(2)]
    made_up = answer(3)
    made_up["message"]["model"] = "<synthetic>"
    write_lines(claude(home, "s1"), *lines, made_up)
    write_lines(claude(home, "fork"), answer(1, session="fork"), answer(2, session="fork"), answer(4, session="fork"))
    assert read_in(database, home) == 3
    spent = usage_report(database).total.spent
    assert (spent.calls, spent.output) == (3, 600)
    assert spent.input == sum(3 + n + 40_000 + n + 500 for n in (1, 2, 4))


def test_second_reading_reads_only_what_came_and_a_line_that_is_being_written_waits(database: Database, home: Path):
    path = claude(home, "s1")
    write_lines(path, answer(1))
    assert read_in(database, home) == 1
    assert import_logs(database, {"HOME": str(home)}, shipped(), principal="ada").files == 0
    whole = json.dumps(answer(2))
    with path.open("a", encoding="utf-8") as file:
        file.write(whole[:40])
    assert read_in(database, home) == 0
    with path.open("a", encoding="utf-8") as file:
        file.write(whole[40:] + "\n")
    assert read_in(database, home) == 1
    assert usage_report(database).total.spent.calls == 2


def test_cost_is_what_the_program_says_else_the_list_price_with_an_hour_of_cache_at_twice_the_input(
    database: Database, home: Path
):
    hourly = answer(2)
    hourly["message"]["usage"]["cache_creation"] = {"ephemeral_1h_input_tokens": 500}
    write_lines(claude(home, "s1"), answer(1, costUSD=0.25), hourly)
    read_in(database, home)
    per_million = Decimal(5 * 5) + Decimal("0.5") * 40_002 + Decimal(10 * 500) + Decimal(25 * 200)
    assert usage_report(database).total.spent.dollars == Decimal("0.25") + per_million / 1_000_000


def test_forked_rollout_of_codex_counts_what_its_parent_counted_once(database: Database, home: Path):
    def event(at: datetime, last: int, total: int) -> dict[str, Any]:
        counted = [{"input_tokens": n, "cached_input_tokens": n // 2, "output_tokens": n // 10} for n in (last, total)]
        info = {"last_token_usage": counted[0], "total_token_usage": counted[1]}
        payload = {"type": "token_count", "info": info}
        return {"type": "event_msg", "timestamp": at.isoformat(), "payload": payload}

    def meta(identity: str, parent: str | None) -> dict[str, Any]:
        payload = {"id": identity, "forked_from_id": parent, "cwd": "/w/shop"}
        return {"type": "session_meta", "timestamp": START.isoformat(), "payload": payload}

    model = {"type": "turn_context", "timestamp": START.isoformat(), "payload": {"model": "gpt-5.2-codex"}}
    day = timedelta(days=1)
    folder = home / ".codex" / "sessions"
    first = [event(START, 1000, 1000), event(START, 1000, 1000), event(START, 2000, 3000)]
    write_lines(folder / "a-parent.jsonl", meta("p", None), model, *first)
    again = [event(START + day, 1000, 1000), event(START + day, 2000, 3000), event(START + day, 500, 3500)]
    write_lines(folder / "b-child.jsonl", meta("c", "p"), model, *again)
    more = [*again, event(START + 2 * day, 100, 3600)]
    write_lines(home / ".codex" / "archived_sessions" / "d.jsonl", meta("g", "c"), model, *more)
    read_in(database, home)
    spent = usage_report(database).total.spent
    assert (spent.calls, spent.input, spent.cache_read, spent.output) == (4, 3600, 1800, 360)


def test_fork_of_a_fork_counts_once_though_it_is_read_before_the_session_that_it_began_from(
    database: Database, home: Path
):
    def lines(identity: str, parent: str | None, calls: int) -> list[dict[str, Any]]:
        meta = {"id": identity, "forked_from_id": parent}
        about = {"type": "session_meta", "timestamp": START.isoformat(), "payload": meta}
        totals = [{"input_tokens": 1000 * (n + 1), "output_tokens": 100 * (n + 1)} for n in range(calls)]
        last = {"input_tokens": 1000, "output_tokens": 100}
        counted = [
            {"type": "token_count", "info": {"last_token_usage": last, "total_token_usage": total}} for total in totals
        ]
        return [about, *({"type": "event_msg", "timestamp": START.isoformat(), "payload": one} for one in counted)]

    # The parent and the session before it were archived, and archived sessions are read last.
    write_lines(home / ".codex" / "sessions" / "child.jsonl", *lines("c", "p", 4))
    write_lines(home / ".codex" / "archived_sessions" / "parent.jsonl", *lines("p", "g", 3))
    write_lines(home / ".codex" / "archived_sessions" / "root.jsonl", *lines("g", None, 2))
    read_in(database, home)
    write_lines(home / ".codex" / "sessions" / "second.jsonl", *lines("d", "c", 5))
    read_in(database, home)
    spent = usage_report(database).total.spent
    assert (spent.calls, spent.input, spent.output) == (5, 5000, 500)


def counted(at: datetime, last: tuple[int, ...], total: tuple[int, ...]) -> dict[str, Any]:
    """Return a line of Codex with usage: input, output and tokens written to the cache."""
    names = ("input_tokens", "output_tokens", "cache_write_input_tokens")
    info = {
        f"{name}_token_usage": dict(zip(names, said, strict=False)) for name, said in (("last", last), ("total", total))
    }
    return {"timestamp": at.isoformat(), "type": "event_msg", "payload": {"type": "token_count", "info": info}}


def spawned(name: str, parent: str, at: datetime, **about: object) -> dict[str, Any]:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1}}}
    payload = {"id": name, "source": source, "cwd": "/w/shop", **about}
    return {"timestamp": at.isoformat(), "type": "session_meta", "payload": payload}


@pytest.mark.requirement("U:usage", "U:ledger")
@pytest.mark.parametrize("is_fork", [True, False])
def test_subagents_of_codex_count_their_own_calls_only_and_all_of_them(
    database: Database, home: Path, *, is_fork: bool
):
    """Two subagents copy their parent's totals, and make calls of the same size; two others begin with their own."""
    minute, folder = timedelta(minutes=1), home / ".codex" / "sessions"
    about = {"forked_from_id": "p"} if is_fork else {}
    old = [counted(START, (1000, 100), (1000, 100)), counted(START + minute, (2000, 200), (3000, 300))]
    parent = {"timestamp": START.isoformat(), "type": "session_meta", "payload": {"id": "p", "source": "cli"}}
    write_lines(home / ".codex" / "archived_sessions" / "p.jsonl", parent, *old)
    for name in ("a", "b"):
        later = START + 5 * minute
        copied = [{**one, "timestamp": later.isoformat()} for one in old]
        own = counted(later + minute, (500, 50), (3500, 350))
        write_lines(folder / f"{name}.jsonl", spawned(name, "p", later, **about), *copied, own)
    for name in ("c", "d"):
        later = START + 7 * minute
        own = counted(later + minute, (1000, 100), (1000, 100))
        write_lines(folder / f"{name}.jsonl", spawned(name, "p", later, **about), own)
    read_in(database, home)
    spent = {line.key: (line.spent.calls, line.spent.input) for line in usage_report(database, by="session").lines}
    assert spent == {"p": (2, 3000), "a": (1, 500), "b": (1, 500), "c": (1, 1000), "d": (1, 1000)}


@pytest.mark.parametrize("is_fork", [True, False])
def test_subagent_of_codex_counts_its_own_calls_after_its_parents_file_was_removed(
    database: Database, home: Path, *, is_fork: bool
):
    folder, about = home / ".codex" / "sessions", {"forked_from_id": "p"} if is_fork else {}
    old = [counted(START, (1000, 100), (1000, 100)), counted(START, (2000, 200), (3000, 300))]
    parent = {"timestamp": START.isoformat(), "type": "session_meta", "payload": {"id": "p", "source": "cli"}}
    write_lines(folder / "p.jsonl", parent, *old)
    read_in(database, home)
    (folder / "p.jsonl").unlink()
    write_lines(folder / "q.jsonl", spawned("q", "p", START, **about), *old, counted(START, (500, 50), (3500, 350)))
    read_in(database, home)
    assert usage_report(database).total.spent.input == 3500


def test_fork_of_codex_that_names_no_parent_is_known_by_the_first_line_that_it_copied(database: Database, home: Path):
    folder = home / ".codex" / "sessions"
    parent = codex_session("parent", START, (100, 300))
    write_lines(folder / "b-parent.jsonl", *parent)
    later = START + timedelta(days=1)
    meta, *others = codex_session("fork", later, (100, 300, 350))
    write_lines(folder / "a-fork.jsonl", meta, parent[0], *others)
    read_in(database, home)
    assert usage_report(database).total.spent.input == 350


def test_call_that_codex_writes_in_two_kinds_of_lines_counts_once_in_either_order(database: Database, home: Path):
    def record(number: int, size: int) -> dict[str, Any]:
        usage = {"input_tokens": size, "output_tokens": size // 10}
        payload = {"response_id": f"resp_{number}", "usage": usage}
        return {"timestamp": START.isoformat(), "type": "token_usage_record", "payload": payload}

    meta = {"timestamp": START.isoformat(), "type": "session_meta", "payload": {"id": "p"}}
    first, second = counted(START, (1000, 100), (1000, 100)), counted(START, (2000, 200), (3000, 300))
    write_lines(home / ".codex" / "sessions" / "p.jsonl", meta, first, record(1, 1000), second, record(2, 2000))
    copied = [spawned("c", "p", START), first, second, record(3, 500), counted(START, (500, 50), (3500, 350))]
    write_lines(home / ".codex" / "sessions" / "q.jsonl", *copied)
    read_in(database, home)
    spent = usage_report(database).total.spent
    assert (spent.calls, spent.input, spent.output) == (3, 3500, 350)


def test_tokens_that_codex_writes_to_the_cache_cost_their_own_price(database: Database, home: Path):
    meta = {"timestamp": START.isoformat(), "type": "session_meta", "payload": {"id": "p"}}
    model = {"timestamp": START.isoformat(), "type": "turn_context", "payload": {"model": "gpt-5.6-sol"}}
    lines = [counted(START, (9000, 100, 3000), (9000, 100, 3000)), counted(START, (0, 0, 0), (10_000, 200, 3500))]
    write_lines(home / ".codex" / "sessions" / "p.jsonl", meta, model, *lines)
    read_in(database, home)
    spent = usage_report(database).total.spent
    assert (spent.calls, spent.input, spent.cache_write) == (2, 10_000, 3500)
    assert spent.dollars == (4 * Decimal(6500) + 5 * Decimal(3500) + 20 * Decimal(200)) / 1_000_000


@pytest.mark.requirement("U:usage", "U:ledger")
@pytest.mark.parametrize("is_database", [True, False])
def test_messages_that_a_fork_of_opencode_copied_under_new_ids_count_once(
    database: Database, home: Path, *, is_database: bool
):
    milliseconds = round(START.timestamp() * 1000)

    def identity(at: int) -> str:
        return f"msg_{at % 2**36:09x}001abcdefghijklmn"

    def message(session: str, name: str, size: int) -> dict[str, Any]:
        tokens = {"input": size, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        times = {"created": milliseconds + size, "completed": milliseconds + size + 500}
        about = {"role": "assistant", "tokens": tokens, "time": times, "modelID": "gpt-5"}
        return {"id": name, "sessionID": session, **about}

    day = 86_400_000
    kept = [message("ses_1", identity(milliseconds + size), size) for size in (100, 200)]
    copies = [message("ses_2", identity(milliseconds + day + size), size) for size in (100, 200)]
    alone = [message(f"ses_{n}", identity(milliseconds + n * day + 700), 700) for n in (3, 4)]
    store = home / ".local" / "share" / "opencode"
    store.mkdir(parents=True)
    for one in (*copies, *kept, *alone):
        if not is_database:
            write_lines(store / "storage" / "message" / one["sessionID"] / f"{one['id']}.json", one)
            continue
        with sqlite3.connect(store / "opencode.db") as opened:
            opened.execute("CREATE TABLE IF NOT EXISTS message (id TEXT, session_id, data, time_created INTEGER)")
            row = (one["id"], one["sessionID"], json.dumps(one), one["time"]["created"])
            opened.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
    read_in(database, home)
    spent = usage_report(database).total.spent
    assert (spent.calls, spent.input) == (3, 1000)


def test_advisor_and_compactions_are_calls_beside_the_answer_in_whose_line_they_are(database: Database, home: Path):
    counted = {"input_tokens": 1000, "output_tokens": 100}
    iterations = [
        {"type": "message", **counted},
        {"type": "advisor_message", "model": "claude-sonnet-4-6", **counted},
        {"type": "compaction", **counted},
    ]
    said = answer(1)
    said["message"]["usage"]["iterations"] = iterations
    write_lines(claude(home, "s1"), said, said, answer(2))
    read_in(database, home)
    total = usage_report(database).total
    assert {name: one.calls for name, one in total.models.items()} == {OPUS: 3, "claude-sonnet-4-6": 1}
    plain = sum(3 + n + 40_000 + n + 500 for n in (1, 2))
    assert (total.spent.input, total.spent.missed) == (plain + 2000, 0)


def test_line_of_a_subagent_in_its_parents_file_counts_once(database: Database, home: Path):
    inner = {key: value for key, value in answer(3).items() if key in ("type", "timestamp", "message", "requestId")}
    about = {"type": "progress", "timestamp": START.isoformat(), "sessionId": "s1", "cwd": "/w/shop"}
    write_lines(claude(home, "s1"), answer(1), {**about, "data": {"type": "agent_progress", "message": inner}})
    write_lines(home / ".claude/projects/-w-shop/s1/subagents/agent-a.jsonl", answer(3, isSidechain=True))
    write_lines(claude(home, "s2"), {**about, "data": {"message": {**inner, "message": answer(4)["message"]}}})
    assert read_in(database, home) == 3
    assert usage_report(database).total.spent.input == sum(3 + n + 40_000 + n + 500 for n in (1, 3, 4))


@pytest.mark.parametrize(
    ("model", "usage", "factor"),
    [
        ("claude-opus-4-6", {}, 1),
        ("claude-opus-4-6", {"speed": "fast"}, 6),
        ("claude-opus-4-8", {"speed": "fast"}, 2),
        ("claude-opus-4-8", {"speed": "fast", "inference_geo": "us"}, Decimal("2.2")),
        ("claude-sonnet-4-6", {"speed": "fast"}, None),
        ("claude-opus-4-6", {"inference_geo": "us"}, Decimal("1.1")),
        (
            "claude-opus-4-6",
            {"cache_creation_input_tokens": 0, "cache_creation": {"ephemeral_5m_input_tokens": 500}},
            1,
        ),
    ],
)
def test_fast_and_regional_answers_cost_more_than_the_list_price(
    database: Database, home: Path, model: str, usage: dict[str, Any], factor: Decimal | None
):
    said = answer(1)
    said["message"]["model"] = model
    said["message"]["usage"] |= usage
    write_lines(claude(home, "s1"), said)
    read_in(database, home)
    listed = (5 * Decimal(4) + Decimal("0.5") * 40_001 + Decimal("6.25") * 500 + 25 * Decimal(200)) / 1_000_000
    assert usage_report(database).total.spent.dollars == (None if factor is None else listed * factor)


HOSTILE: list[Any] = [
    *(None, True, -1, 1.5, 1e30, float("nan"), float("inf"), 2**63, 10**400, "x", [], {}, [1], "\ud800", "\0"),
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-99-99", -1e18, 1e18, "a" * 5000),
]


def replace_parts(value: Any, chance: random.Random) -> Any:  # noqa: ANN401 - any JSON
    """Return a copy of a value in which some parts are hostile or missing."""
    if chance.random() < 0.05:
        return chance.choice(HOSTILE)
    if isinstance(value, dict):
        held = {key: replace_parts(one, chance) for key, one in value.items()}
        return {key: one for key, one in held.items() if chance.random() > 0.01}
    return [replace_parts(one, chance) for one in value] if isinstance(value, list) else value


def logs_of_all_programs() -> dict[str, list[Any]]:
    """Return lines of logs of every program, by the path of the file below the home folder."""
    at = START.timestamp() * 1000
    totals = [{"input_tokens": 100 * n, "cached_input_tokens": 50 * n, "output_tokens": 10 * n} for n in (1, 2, 3)]
    counted = [
        {"type": "token_count", "info": {"last_token_usage": totals[0], "total_token_usage": one}} for one in totals
    ]
    usage = {"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 1, "cost": {"total": 0.01}}
    tokens = {"input": 100, "output": 50, "cached": 20, "thoughts": 30, "tool": 0}
    said = {"input": 1000, "output": 500, "reasoning": 10, "cache": {"read": 100, "write": 50}}
    metrics = {"inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 2, "cacheWriteTokens": 1, "cost": 0.01}
    row = {"tokensIn": 10, "tokensOut": 5, "cacheWrites": 1, "cacheReads": 2, "cost": 0.01}
    when = START.isoformat()
    return {
        ".claude/projects/-w/s1.jsonl": [answer(n) for n in range(4)],
        ".codex/sessions/a.jsonl": [
            {"type": "session_meta", "timestamp": when, "payload": {"id": "p", "cwd": "/w", "forked_from_id": "o"}},
            {"type": "turn_context", "timestamp": when, "payload": {"model": "gpt-5"}},
            *({"type": "event_msg", "timestamp": when, "payload": one} for one in counted),
        ],
        ".gemini/tmp/h/chats/session-1.json": [
            {"sessionId": "g", "messages": [
                {"id": f"m{n}", "type": "gemini", "timestamp": when, "model": "gemini-2.5-pro", "tokens": tokens}
                for n in range(3)
            ]}
        ],
        ".local/share/opencode/storage/message/s/m1.json": [
            {"id": "m1", "sessionID": "s", "role": "assistant", "modelID": OPUS, "cost": 0.05, "tokens": said,
             "time": {"created": at}, "path": {"cwd": "/w"}}
        ],
        ".pi/agent/sessions/w/1.jsonl": [
            {"type": "session", "id": "p1", "cwd": "/w"},
            {"type": "message", "timestamp": when, "message": {"role": "assistant", "model": OPUS, "usage": usage}},
        ],
        ".cline/data/sessions/s1/s1.messages.json": [
            {"sessionId": "s1", "messages": [
                {"id": "c1", "role": "assistant", "ts": at, "modelInfo": {"id": OPUS}, "metrics": metrics}
            ]}
        ],
        ".cline/data/tasks/1/ui_messages.json": [
            [{"ts": at, "type": "say", "say": "api_req_started", "text": json.dumps(row)}]
        ],
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_logs_with_any_values_are_read_and_counted_the_same_again(database: Database, home: Path, seed: int):
    chance = random.Random(seed)
    for name, lines in logs_of_all_programs().items():
        path = home / name
        path.parent.mkdir(parents=True)
        hostile = "".join(json.dumps(replace_parts(line, chance)) + "\n" for line in lines).encode()
        cut = chance.randrange(len(hostile)) if chance.random() < 0.2 else len(hostile)
        path.write_bytes(hostile[:cut])
    read_in(database, home)
    reports = [usage_report(database, by=by) for by in ("day", "session", "model", "project", "client")]
    assert len({(one.total.spent.calls, one.total.spent.input, one.total.spent.dollars) for one in reports}) == 1
    assert usage_report(database, recount=True).total.spent == reports[0].total.spent
    database.write(lambda connection: connection.execute("DELETE FROM ullage_log_files"))
    read_in(database, home)
    assert usage_report(database).total.spent == reports[0].total.spent


def test_gemini_and_opencode_are_read_and_what_they_write_again_takes_its_place(database: Database, home: Path):
    tokens = {"input": 100, "output": 50, "cached": 20, "thoughts": 30, "tool": 0, "total": 180}
    message = {
        "id": "m1",
        "type": "gemini",
        "timestamp": START.isoformat(),
        "model": "gemini-2.5-pro",
        "tokens": tokens,
    }
    path = home / ".gemini" / "tmp" / "abc" / "chats" / "session-1.json"
    write_lines(path, {"sessionId": "g", "projectHash": "abc", "messages": [message]})
    said = {"input": 1000, "output": 500, "reasoning": 10, "cache": {"read": 100, "write": 50}}
    info = {"id": "msg_1", "sessionID": "ses", "role": "assistant", "modelID": OPUS, "cost": 0.05, "tokens": said}
    other = home / ".local" / "share" / "opencode" / "storage" / "message" / "ses" / "msg_1.json"
    write_lines(other, {**info, "time": {"created": START.timestamp() * 1000}})
    assert read_in(database, home) == 2
    message["tokens"] = {**tokens, "output": 60}
    write_lines(path, {"sessionId": "g", "projectHash": "abc", "messages": [message]}, mode="w")
    read_in(database, home)
    lines = {line.key: line.spent for line in usage_report(database, by="client").lines}
    gemini, opencode = lines["gemini-cli"], lines["opencode"]
    assert (gemini.calls, gemini.input, gemini.output, gemini.cache_read, gemini.reasoning) == (1, 100, 90, 20, 30)
    assert (opencode.input, opencode.output, opencode.dollars) == (1150, 510, Decimal("0.05"))


def test_gemini_subagent_is_of_the_project_of_its_session(database: Database, home: Path):
    tokens = {"input": 100, "output": 50}
    message = {"id": "m1", "type": "gemini", "timestamp": START.isoformat(), "tokens": tokens}
    chats = home / ".gemini" / "tmp" / "shop" / "chats"
    write_lines(chats / "session-1.json", {"sessionId": "g", "messages": [message]})
    write_lines(chats / "parent" / "agent.json", {"sessionId": "a", "messages": [message]})
    read_in(database, home)
    assert {line.key: line.spent.calls for line in usage_report(database, by="project").lines} == {"shop": 2}


@pytest.mark.parametrize("span", [["--since", "0d"], ["--since", "-3d"], ["--since", "today", "--until", "yesterday"]])
def test_days_in_the_future_or_in_the_wrong_order_are_refused(home: Path, tmp_path: Path, span: list[str]):
    flags = [f"{span[0]}={span[1]}", *span[2:]]
    assert main(["usage", *flags, "--store", f"sqlite:///{tmp_path}/kept.db"]) == 2


def test_cache_that_was_lost_costs_the_difference_to_reading_it(database: Database, home: Path):
    lost = answer(2)
    lost["message"]["usage"] |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 41_000}
    write_lines(claude(home, "s1"), answer(1), lost)
    read_in(database, home)
    spent = usage_report(database).total.spent
    shared = 4 + 40_001 + 500
    assert spent.missed == shared
    assert spent.missed_dollars == shared * (Decimal("6.25") - Decimal("0.5")) / 1_000_000


def test_blocks_last_five_hours_from_the_full_hour(database: Database, home: Path):
    write_lines(claude(home, "s1"), *(answer(n) for n in (30, 200, 299, 301, 900)))
    read_in(database, home)
    blocks = five_hour_blocks(database, since=date(2026, 11, 1), until=None, zone=UTC)
    assert [(one.start.hour, one.spent.calls) for one in blocks] == [(8, 3), (13, 1), (23, 1)]


@pytest.mark.requirement("U:usage", "U:ledger")
def test_every_figure_of_usage_and_the_status_line_is_a_sum_of_the_raw_replies(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    now = datetime.now(UTC)
    raw = [answer(n, timestamp=(now - timedelta(seconds=n)).isoformat()) for n in range(1, 40)]
    write_lines(claude(home, "s1"), *raw)
    store = f"sqlite:///{tmp_path}/kept.db"
    entries = [
        Entry(
            time=now, kind="result", principal="ada", session="mcp", client="claude-code", server="shop", tool="query",
            tokens=300, baseline_tokens=300 + 100 * n, saved_tokens=100 * n, is_error=n == 3,
        )
        for n in range(5)
    ]  # fmt: skip
    database = Database.open(store)
    database.write(lambda connection: write_entries(connection, entries))
    database.close()
    assert main(["usage", "--since", "2d", "--json", "--store", store]) == 0
    printed = json.loads(capsys.readouterr().out)
    usages = [one["message"]["usage"] for one in raw]
    dollars = sum(
        5 * one["input_tokens"] + 0.5 * one["cache_read_input_tokens"] + 6.25 * one["cache_creation_input_tokens"]
        + 25 * one["output_tokens"] for one in usages
    ) / 1_000_000  # fmt: skip
    spent, total = printed["total"]["spent"], printed["total"]
    assert spent["calls"] == len(raw)
    assert spent["inputTokens"] == sum(one["input_tokens"] for one in usages)
    assert spent["cacheReadTokens"] == sum(one["cache_read_input_tokens"] for one in usages)
    assert spent["cacheWriteTokens"] == sum(one["cache_creation_input_tokens"] for one in usages)
    assert spent["outputTokens"] == sum(one["output_tokens"] for one in usages)
    assert spent["dollars"] == pytest.approx(dollars)
    assert (total["saved"]["netTokens"], total["saved"]["results"]) == (1000, 1000)
    assert total["saved"]["dollars"] == pytest.approx(1000 * 5 / 1_000_000)
    assert total["tools"] == {"uses": 5, "errors": 1, "tokens": 1500, "requests": 5}

    assert main(["usage", "--since", "2d", "--by", "tool", "--csv", "--store", store]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(one["tool_uses"], one["saved_tokens"]) for one in rows if one["tool"] == "query"] == [("5", "1000")]

    given = {"session_id": "s1", "model": {"display_name": "Opus"}, "context_window": {"used_percentage": 41.6}}
    line = subprocess.run(
        [sys.executable, "-m", "ullage", "statusline", "--json", "--store", store],
        input=json.dumps(given), capture_output=True, text=True, check=True,
    )  # fmt: skip
    shown = json.loads(line.stdout)
    assert shown["windowPercent"] == 41.6
    assert shown["sessionDollars"] == pytest.approx(dollars)
    midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    if now - timedelta(seconds=45) >= midnight:
        assert shown["todayDollars"] == pytest.approx(dollars)
        assert shown["todaySavedTokens"] == 1000


@pytest.mark.requirement("U:usage", "U:ledger")
def test_file_that_was_replaced_by_a_longer_one_is_read_from_its_beginning(database: Database, home: Path):
    write_lines(claude(home, "s1"), *(answer(n) for n in range(5)))
    read_in(database, home)
    write_lines(claude(home, "s1"), *(answer(n) for n in range(100, 104)), *(answer(n) for n in range(5)))
    read_in(database, home)
    write_lines(claude(home, "s1"), *(answer(n, output=10_000) for n in range(200, 240)))
    read_in(database, home)
    spent = usage_report(database, by="model").total.spent
    assert (spent.calls, spent.output) == (49, 9 * 200 + 40 * 10_000)


@pytest.mark.requirement("U:usage", "U:ledger")
@pytest.mark.parametrize("is_at_once", [True, False])
def test_call_is_of_the_time_and_session_at_which_it_was_first_made(
    database: Database, home: Path, *, is_at_once: bool
):
    """A fork copies its parent's lines under new times, and is read first here."""
    folder = home / ".codex" / "sessions"
    fork = codex_session("fork", START + timedelta(days=9), (100, 300, 350), forked_from_id="parent")
    parent = codex_session("parent", START, (100, 300))
    write_lines(folder / "a-fork.jsonl", *fork)
    if not is_at_once:
        read_in(database, home)
    write_lines(folder / "b-parent.jsonl", *parent)
    read_in(database, home)
    days = {line.key: (line.spent.calls, line.spent.input) for line in usage_report(database, by="day").lines}
    assert days == {"2026-11-02": (2, 300), "2026-11-11": (1, 50)}
    sessions = {line.key: line.spent.calls for line in usage_report(database, by="session").lines if line.spent.calls}
    assert sessions == {"parent": 2, "fork": 1}
    assert read_in(database, home) == 0
    assert usage_report(database, by="day", recount=True) == usage_report(database, by="day")


def test_call_that_a_fork_of_claude_code_copied_is_of_the_session_that_made_it(database: Database, home: Path):
    about = {"session": "b", "forkedFrom": {"sessionId": "s1", "messageUuid": "u"}}
    write_lines(claude(home, "a-fork"), answer(1, **about), answer(2, **about), answer(3, session="b"))
    read_in(database, home)
    write_lines(claude(home, "s1"), answer(1), answer(2))
    read_in(database, home)
    sessions = {line.key: line.spent.calls for line in usage_report(database, by="session").lines}
    assert sessions == {"s1": 2, "b": 1}


def codex_session(name: str, start: datetime, totals: tuple[int, ...], **about: object) -> list[object]:
    """Return the lines of a session with these running totals of its input."""
    at, last = start.isoformat(), 0
    lines: list[object] = [
        {"timestamp": at, "type": "session_meta", "payload": {"id": name, **about}},
        {"timestamp": at, "type": "turn_context", "payload": {"model": "gpt-5"}},
    ]
    for total in totals:
        info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": total - last}}
        lines.append({"timestamp": at, "type": "event_msg", "payload": {"type": "token_count", "info": info}})
        last = total
    return lines


@pytest.mark.requirement("U:usage")
def test_session_that_opencode_imported_later_is_read_with_its_old_times(database: Database, home: Path):
    path = home / "data" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)

    def put(identity: str, at: datetime) -> None:
        milliseconds = at.timestamp() * 1000
        tokens = {"input": 10, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        data = {"role": "assistant", "tokens": tokens, "time": {"created": milliseconds}, "modelID": "gpt-5"}
        with sqlite3.connect(path) as opened:
            opened.execute(
                "CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id, data, time_created INTEGER)"
            )
            opened.execute("INSERT INTO message VALUES (?, 's', ?, ?)", (identity, json.dumps(data), milliseconds))

    environment = {"HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
    put("new", START)
    import_logs(database, environment, shipped(), principal="ada")
    put("imported", START - timedelta(days=40))
    import_logs(database, environment, shipped(), principal="ada")
    assert usage_report(database, by="model").total.spent.calls == 2


@pytest.mark.requirement("U:usage", "U:ledger")
@pytest.mark.parametrize("by", ["client", "day", "session"])
def test_what_the_gateway_saved_is_priced_by_the_models_in_the_logs_of_the_same_program(
    database: Database, home: Path, by: Group
):
    write_lines(claude(home, "s1"), answer(1))
    read_in(database, home)
    other = Entry(
        time=START, kind="model", principal="ada", session="d", client="codex", model="gpt-5", tokens=10_000_000,
        use=ModelUse(usage=TokenUsage(input=10_000_000, output=1), dollars=Decimal(1)),
    )  # fmt: skip
    # `ullage install claude` and `ullage install gemini` name the profiles so.
    saved = Entry(
        time=START, kind="definitions", principal="ada", session="g", client="claude", tokens=1, saved_tokens=1_000_000
    )
    database.write(lambda connection: write_entries(connection, [other, saved, replace(saved, client="gemini")]))
    prices = {OPUS: Decimal("0.0000005"), "gpt-5": Decimal("0.0000001")}

    def price(name: str) -> Price:
        day = date(2026, 11, 1)
        return Price(currency="USD", input=Decimal(1), output=Decimal(1), cache_read=prices[name], source="", date=day)

    report = usage_report(database, by=by, prices=price)
    assert report.total.saved.dollars == Decimal("0.5") + Decimal("0.1")
    if by == "client":
        assert [one.key for one in report.lines] == ["claude-code", "codex", "gemini-cli"]
        assert (report.lines[0].spent.calls, report.lines[0].saved.dollars) == (1, Decimal("0.5"))


@pytest.mark.requirement("U:usage")
@pytest.mark.parametrize(
    ("program", "command"), [("claude", "ullage install claude"), ("gemini", "ullage install gemini")]
)
def test_definitions_that_a_program_carries_are_a_change_worth_making(
    program: str, command: str, home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    now = datetime.now(UTC).isoformat()
    if program == "claude":
        write_lines(claude(home, "s1"), *(answer(n, timestamp=now) for n in range(30)))
        settings, price = home / ".claude.json", Decimal("0.0000005")
    else:
        tokens = {"input": 100, "output": 10, "cached": 0, "thoughts": 0, "tool": 0, "total": 110}
        messages = [
            {"id": f"m{n}", "type": "gemini", "timestamp": now, "model": "gemini-2.5-pro", "tokens": tokens}
            for n in range(30)
        ]
        path = home / ".gemini" / "tmp" / "x" / "chats" / "session-1.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"sessionId": "g", "messages": messages}))
        settings, price = home / ".gemini" / "settings.json", Decimal("0.000000125")
    server = scripted(tool("echo", "Says a text again. " * 2000))
    settings.write_text(json.dumps({"mcpServers": {"fs": server}}))
    store = f"sqlite:///{tmp_path}/kept.db"
    assert main(["tools", "--store", store, "--json"]) == 0
    capsys.readouterr()
    assert main(["usage", "--json", "--store", store]) == 0
    (advice,) = [one for one in json.loads(capsys.readouterr().out)["advice"] if one["command"] == command]
    with sqlite3.connect(f"{tmp_path}/kept.db") as opened:
        (weight,) = opened.execute("SELECT SUM(token_count) FROM ullage_tools").fetchone()
    assert advice["tokens"] == 30 * weight
    assert advice["dollars"] == pytest.approx(float(30 * weight * price))


def test_words_of_others_are_no_formula_in_csv_and_no_escape_on_a_terminal(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    write_lines(claude(home, "s1"), answer(1, cwd="=cmd()|x"), answer(2, cwd="\x1b[31mred"))
    store = f"sqlite:///{tmp_path}/kept.db"
    assert main(["usage", "--by", "project", "--csv", "--store", store]) == 0
    assert "'=cmd()|x" in capsys.readouterr().out
    assert main(["usage", "--by", "project", "--store", store]) == 0
    assert "\x1b[31m" not in capsys.readouterr().out


def test_narrow_terminal_shows_the_cost_of_each_session(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cli_usage, "screen", lambda: 80)
    long = {"session": "a-session-of-some-length", "cwd": "/w/a-project-of-some-length", "costUSD": 12.5}
    now = datetime.now(UTC).isoformat()
    write_lines(claude(home, "s1"), *(answer(n, timestamp=now, **long) for n in range(2)))
    assert main(["usage", "--by", "session", "--store", f"sqlite:///{tmp_path}/kept.db"]) == 0
    header, row, *_ = capsys.readouterr().out.splitlines()[2:]
    assert header.split()[-1] == "cost"
    assert "written" not in header
    assert row.endswith("$25.00")
    assert max(map(len, (header, row))) <= 80
    assert main(["usage", "--by", "block", "--store", f"sqlite:///{tmp_path}/kept.db"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[-2:] == ["cost", "state"]
    assert row.split()[-2:] == ["$25.00", "active"]
    assert max(map(len, (header, row))) <= 80


def test_cache_misses_without_a_known_price_name_no_money(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    now = datetime.now(UTC)
    calls = [answer(n, timestamp=(now + timedelta(seconds=n)).isoformat()) for n in range(2)]
    calls[1]["message"]["usage"] |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 41_000}
    for call in calls:
        call["message"]["model"] = "some-model-without-a-price"
    write_lines(claude(home, "s1"), *calls)
    assert main(["usage", "--store", f"sqlite:///{tmp_path}/kept.db"]) == 0
    shown = capsys.readouterr().out
    assert "40.5k tokens that had been cached were sent again\n" in shown


def test_usage_without_any_session_says_so(home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["usage", "--store", f"sqlite:///{tmp_path}/kept.db"]) == 0
    assert "No usage was recorded since " in capsys.readouterr().out


def test_tools_that_nobody_called_are_named_with_what_they_weigh(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    now = datetime.now(UTC)
    write_lines(claude(home, "s1"), answer(1, timestamp=now.isoformat()))
    store = f"sqlite:///{tmp_path}/kept.db"
    database = Database.open(store)
    moment = now.timestamp()

    def write(connection: Connection) -> None:
        connection.execute(
            'INSERT INTO ullage_servers (id, name, "key", created, updated, seen) '
            "VALUES ('s', 'shop', 'k', :t, :t, :t)",
            {"t": moment},
        )
        for place, (name, tokens) in enumerate((("query", 70), ("schema", 130), ("drop", 300))):
            connection.execute(
                "INSERT INTO ullage_tools (id, server_id, position, name, definition, definition_hash, token_count, "
                "created, updated) VALUES (:id, 's', :place, :id, '{}', :id, :tokens, :t, :t)",
                {"id": name, "place": place, "tokens": tokens, "t": moment},
            )
        use = Entry(
            time=now, kind="result", principal="ada", session="m", client="claude-code", server="shop", tool="query",
            tokens=10,
        )  # fmt: skip
        write_entries(connection, [use, use])

    database.write(write)
    database.close()
    assert main(["usage", "--json", "--store", store]) == 0
    (unused,) = json.loads(capsys.readouterr().out)["unusedTools"]
    dollars = unused.pop("dollars")
    assert unused == {"server": "shop", "unused": ["drop", "schema"], "tools": 3, "tokens": 430}
    assert dollars == pytest.approx(430 * 2 * 0.5 / 1_000_000), "two requests, at the price of reading a cache"
    assert main(["usage", "--by", "tool", "--store", store]) == 0
    shown = capsys.readouterr().out
    assert "Never used" in shown
    assert "shop: 2 of 3 tools, 430 tokens" in shown


def test_blocks_are_written_as_csv_too(home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    write_lines(claude(home, "s1"), answer(1, timestamp=datetime.now(UTC).isoformat()))
    assert main(["usage", "--by", "block", "--csv", "--store", f"sqlite:///{tmp_path}/kept.db"]) == 0
    (block,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (block["client"], block["calls"]) == ("claude-code", "1")


def test_status_line_knows_which_sums_are_of_model_calls():
    assert KINDS[_MODEL_KIND] == "model"


def cline_row(say: str, minute: int, **said: object) -> dict[str, object]:
    at = int((START + timedelta(minutes=minute)).timestamp() * 1000)
    return {"ts": at, "type": "say", "say": say, "text": json.dumps(said)}


def cline_call(minute: int, fresh: int, output: int, **more: object) -> dict[str, object]:
    model = {"modelId": OPUS, "providerId": "anthropic", "mode": "act"}
    return cline_row("api_req_started", minute, request="…", tokensIn=fresh, tokensOut=output, **more) | {
        "modelInfo": model
    }


def cline_task(home: Path, *rows: object, editor: str = "Code", task: str = "1767225600000") -> Path:
    store = home / ".config" / editor / "User" / "globalStorage" / "saoudrizwan.claude-dev"
    path = store / "tasks" / task / "ui_messages.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def spent_by(database: Database, group: Group = "client") -> dict[str, Spent]:
    return {line.key: line.spent for line in usage_report(database, by=group).lines}


def test_task_of_cline_counts_the_calls_of_its_rows_once_although_the_file_is_rewritten(database: Database, home: Path):
    first = cline_call(1, 100, 20, cacheReads=1_000, cacheWrites=50, cost=0.02)
    unfinished = cline_row("api_req_started", 2, request="…")
    path = cline_task(home, cline_row("task", 0), first, unfinished)
    history = path.parents[2] / "state" / "taskHistory.json"
    history.parent.mkdir()
    history.write_text(json.dumps([{"id": path.parent.name, "cwdOnTaskInitialization": "/w/shop"}]), encoding="utf-8")
    (path.parent / "task_metadata.json").write_text(
        json.dumps({"model_usage": [{"ts": 0, "model_id": "gpt-4o"}, {"ts": 2e12, "model_id": "other"}]}),
        encoding="utf-8",
    )
    old = [cline_row("api_req_started", 3, request="…"), cline_row("api_req_finished", 4, tokensIn=10, tokensOut=4)]
    assert read_in(database, home) == 1
    cline_task(home, cline_row("task", 0), first, cline_call(2, 7, 3), *old)
    assert read_in(database, home) == 2
    spent = spent_by(database)["cline"]
    assert (spent.calls, spent.input, spent.output) == (3, 1_150 + 7 + 10, 20 + 3 + 4)
    assert (spent.cache_read, spent.cache_write) == (1_000, 50)
    list_prices = (Decimal(7 * 5 + 3 * 25) + Decimal(10) * Decimal("2.5") + 4 * 10) / 1_000_000
    assert spent.dollars == Decimal("0.02") + list_prices
    assert set(spent_by(database, "model")) == {OPUS, "gpt-4o"}, "the model of a row, else of its time"
    assert set(spent_by(database, "project")) == {"/w/shop"}


def test_calls_that_cline_removed_and_added_up_are_counted_once(database: Database, home: Path):
    calls = [cline_call(n, 100 * n, 10 * n, cost=0.01 * n) for n in (1, 2, 3)]
    cline_task(home, *calls)
    read_in(database, home)
    sums = cline_row("deleted_api_reqs", 9, tokensIn=500 + 40, tokensOut=50 + 4, cost=0.05 + 0.04)
    cline_task(home, calls[0], sums)  # the second and third, and one that was never read
    read_in(database, home)
    cline_task(home, calls[0], sums, cline_call(10, 1, 1, cost=0.001))
    read_in(database, home)
    spent = spent_by(database)["cline"]
    assert (spent.calls, spent.input, spent.output) == (5, 600 + 40 + 1, 60 + 4 + 1)
    assert spent.dollars == pytest.approx(Decimal("0.101"))
    everything = cline_row("deleted_api_reqs", 12, tokensIn=541, tokensOut=55, cost=0.091)
    cline_task(home, calls[0], everything)  # of which nothing is new
    read_in(database, home)
    assert spent_by(database)["cline"] == spent


def test_task_in_two_editors_is_read_from_the_first(database: Database, home: Path):
    cline_task(home, cline_call(1, 100, 10), editor="Code")
    cline_task(home, cline_call(1, 100, 10), cline_call(2, 5, 5), editor="Cursor")
    assert read_in(database, home) == 1


def test_session_of_cline_counts_its_messages_and_what_it_was_as_a_task_only_once(database: Database, home: Path):
    def said(minute: int, identity: str, **metrics: float) -> dict[str, object]:
        at = int((START + timedelta(minutes=minute)).timestamp() * 1000)
        answer: dict[str, object] = {"id": identity, "role": "assistant", "ts": at, "content": []}
        return answer | {"modelInfo": {"id": f"anthropic/{OPUS}"}, "metrics": metrics}

    cline_task(home, cline_call(1, 100, 10, cost=0.01), cline_row("completion_result", 3), task="s1")
    whole = {"inputTokens": 1_000, "outputTokens": 30, "cacheReadTokens": 900, "cacheWriteTokens": 40, "cost": 0.5}
    apart = {"inputTokens": 3, "outputTokens": 5, "cacheReadTokens": 90, "cacheWriteTokens": 7}
    messages = [
        {"role": "user", "ts": 0, "content": "Hi."},
        said(2, "m1", inputTokens=100, outputTokens=10, cost=0.01),  # the task's
        said(5, "m2", **whole),
        said(6, "m3", **apart),
    ]
    folder = home / ".cline" / "data" / "sessions" / "s1"
    write_lines(folder / "s1.messages.json", {"agent": "lead", "sessionId": "s1", "messages": messages})
    write_lines(folder / "s1.json", {"session_id": "s1", "model": "other", "cwd": "/w/shop"})
    read_in(database, home)
    spent = spent_by(database, "session")["s1"]
    assert (spent.calls, spent.input, spent.output) == (3, 100 + 1_000 + 100, 45)
    assert (spent.cache_read, spent.cache_write) == (990, 47)
    list_price = (3 * 5 + 90 * Decimal("0.5") + 7 * Decimal("6.25") + 5 * 25) / 1_000_000
    assert spent.dollars == Decimal("0.51") + list_price


def test_broken_files_of_cline_are_no_calls_and_no_failure(database: Database, home: Path):
    path = cline_task(home, 3, {"say": "api_req_started"}, cline_row("api_req_started", 1, tokensIn="many"))
    path.with_name("task_metadata.json").write_text("[", encoding="utf-8")
    folder = home / ".cline" / "data" / "sessions" / "s1"
    write_lines(folder / "s1.messages.json", "{")
    write_lines(folder / "s2.messages.json", [], {"messages": [{"role": "assistant", "metrics": 3}]})
    assert read_in(database, home) == 0


STATUS_FLAGS = ([], ["--json"], ["--store", "STORE"], ["--store=STORE", "--json"])


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ('{"context_window": {"used_percentage": NaN}, "cost": {"total_cost_usd": 1.5}}', "$1.50 session"),
        ('{"context_window": {"used_percentage": 41}, "cost": {"total_cost_usd": -Infinity}}', "41% of the window"),
        ('{"context_window": {"used_percentage": 41}, "cost": {"total_cost_usd": 1e308}}', "41% of the window"),
        ('{"cost": {"total_cost_usd": 1%s}, "model": {"display_name": "Opus"}}' % ("0" * 400), "Opus"),
        ('{"session_id": "\\ud800", "model": {"display_name": "Opus"}}', "Opus"),
    ],
)
def test_status_line_shows_what_it_can_whatever_it_is_given(
    given: str, shown: str, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(status_line, "_read_logs_aside", lambda _: None)
    users_file(home.parent).parent.mkdir(parents=True, exist_ok=True)
    for settings in ("", "[store\n", "[store]\nurl = 3\n", "[store]\nurl = '\udcff'\n"):
        users_file(home.parent).write_bytes(settings.encode("utf-8", "surrogateescape"))
        reader, writer = os.pipe()
        os.write(writer, given.encode())
        os.close(writer)
        with os.fdopen(reader) as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            status_line.print_status_line()
        (line,) = capsys.readouterr().out.splitlines()
        assert line.split(" · ")[0] == shown
        assert "nan" not in line
        assert len(line) < 200


@pytest.mark.parametrize("flags", STATUS_FLAGS, ids=" ".join)
def test_status_line_loads_neither_parser_settings_nor_database_library(home: Path, tmp_path: Path, flags: list[str]):
    store = f"sqlite:///{tmp_path}/kept.db"
    write_lines(claude(home, "s1"), answer(1, timestamp=datetime.now(UTC).isoformat()))
    assert main(["usage", "--json", "--store", store]) == 0
    arguments = ["statusline", *(one.replace("STORE", store) for one in flags)]
    environment = {**os.environ, "ULLAGE_STORE": store} if "STORE" not in "".join(flags) else dict(os.environ)
    given = json.dumps({"session_id": "s1", "context_window": {"used_percentage": 41.6}})
    words = [sys.executable, "-X", "importtime", "-m", "ullage", *arguments]
    line = subprocess.run(words, input=given, env=environment, capture_output=True, text=True, check=True)
    assert "session" in line.stdout.lower(), "the figures of the session's calls"
    assert "41.6" in line.stdout or "42% of the window" in line.stdout
    loaded = {one.rpartition("|")[2].strip() for one in line.stderr.splitlines() if one.startswith("import time:")}
    assert {one for one in loaded if one.startswith("ullage")} == {"ullage", "ullage.start", "ullage.status_line"}
    assert loaded.isdisjoint({"argparse", "asyncio", "sqlalchemy", "numpy", "mcp", "pydantic", "httpx2"})
