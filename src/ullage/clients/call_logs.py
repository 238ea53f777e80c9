"""Model calls in the logs of agent programs, read quickly and from where the last reading stopped.

Only billing data is read: client, time, model and number of tokens. The content of sessions is read by `read_session`.
A call that is logged in several places gets the same key in each:

- Claude Code writes one answer in several lines with one message id, and copies lines into the file of a fork. The id
  is the key; an id of fewer than 16 characters cannot be the provider's and counts only together with its request id.
- Codex writes no id. Its running totals are the key, together with the session that a fork descends from, because a
  fork begins with a copy of its parent's lines under new times.
- Gemini CLI, opencode and pi: their own message ids, else client, model, usage and time.

Answers created by a program itself (`<synthetic>`), lines that are not JSON and lines without usage are skipped.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from ullage.messages import table_at, tables_at, text_at, tokens_at
from ullage.tool import Json, JsonObject

from .conversation import Program, moment

__all__ = ["LogFile", "LoggedCall", "State", "find_logs", "read_calls"]

State = dict[str, Any]
"""The state of a file kept between readings, as JSON."""
_SHORT = 16
"""Ids shorter than this many characters are not a provider's."""
_MADE_UP = "<synthetic>"


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file of an agent program."""

    program: Program
    path: str
    size: int
    changed: float


@dataclass(slots=True, kw_only=True)
class LoggedCall:
    """A model call found in a log."""

    time: float
    session: str
    model: str | None
    input: int
    """All input tokens, including those read from and written to a cache."""
    output: int
    """All output tokens, including reasoning."""
    cache_read: int = 0
    cache_write: int = 0
    cache_write_hour: int = 0
    """The part of `cache_write` that the provider keeps for an hour."""
    reasoning: int = 0
    key: str | None = None
    project: str | None = None
    dollars: Decimal | None = None
    """The cost that the program reports."""
    is_aside: bool = False
    """Whether another agent of the program made the call, with a different prompt."""


def find_logs(environment: Mapping[str, str]) -> Iterator[LogFile]:
    """Yield the log files of all supported programs, in the order of their paths."""
    home = environment.get("HOME") or str(Path.home())
    for program, folder, endings in _folders(environment, home):
        yield from _files(program, folder, endings)
    data = environment.get("XDG_DATA_HOME") or f"{home}/.local/share"
    stored = Path(data, "opencode", "opencode.db")
    if stored.is_file():
        # While a database in WAL mode is written, only the file beside it changes immediately.
        found = [one.stat() for one in (stored, Path(f"{stored}-wal")) if one.is_file()]
        yield LogFile("opencode", str(stored), sum(one.st_size for one in found), max(one.st_mtime for one in found))


def _folders(environment: Mapping[str, str], home: str) -> Iterator[tuple[Program, str, tuple[str, ...]]]:
    claude = environment.get("CLAUDE_CONFIG_DIR")
    named = [one.strip() for one in claude.split(",")] if claude else [f"{home}/.config/claude", f"{home}/.claude"]
    for folder in named:
        yield "claude-code", f"{folder}/projects", (".jsonl",)
    codex = environment.get("CODEX_HOME") or f"{home}/.codex"
    for folder in ("sessions", "archived_sessions"):
        yield "codex", f"{codex}/{folder}", (".jsonl",)
    gemini = environment.get("GEMINI_CLI_HOME") or home
    yield "gemini-cli", f"{gemini}/.gemini/tmp", (".json", ".jsonl")
    data = environment.get("XDG_DATA_HOME") or f"{home}/.local/share"
    yield "opencode", f"{data}/opencode/storage/message", (".json",)
    yield "pi", f"{home}/.pi/agent/sessions", (".jsonl",)


def _files(program: Program, folder: str, endings: tuple[str, ...]) -> Iterator[LogFile]:
    try:
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(program, entry.path, endings)
            elif entry.name.endswith(endings) and entry.is_file():
                about = entry.stat()
                if program != "gemini-cli" or "chats" in entry.path:
                    yield LogFile(program, entry.path, about.st_size, about.st_mtime)
        except OSError:
            continue


def read_calls(file: LogFile, state: State, roots: dict[str, str]) -> Iterator[LoggedCall]:
    """Read the calls added since `state`, and update `state`.

    Args:
        file: The file.
        state: The state left by an earlier reading, or an empty dict.
        roots: Codex sessions mapped to the sessions that they descend from; new ones are added.
    """
    if file.program == "opencode":
        yield from _opencode_calls(file, state)
    elif file.program == "gemini-cli":
        yield from _gemini_calls(file)
    else:
        if state.get("offset", 0) > file.size:  # the file was rewritten
            state.clear()
        yield from _LINES[file.program](file, state, roots)


def _new_lines(file: LogFile, state: State, *marks: bytes) -> Iterator[JsonObject]:
    """Yield the objects of the lines that contain one of the marks. A line that is still being written is left for
    later."""
    offset = state.get("offset", 0)
    try:
        with Path(file.path).open("rb") as stream:
            stream.seek(offset)
            for line in stream:
                if not line.endswith(b"\n") and not _is_whole(line):
                    break
                offset += len(line)
                if any(mark in line for mark in marks):
                    try:
                        record: Json = json.loads(line)
                    except (ValueError, RecursionError):
                        continue
                    if isinstance(record, dict):
                        yield record
    except OSError:
        return
    state["offset"] = offset


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _time(value: Json) -> float | None:
    at = moment(value)
    return None if at is None else at.timestamp()


def _dollars(value: Json) -> Decimal | None:
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _claude_calls(file: LogFile, state: State, _: dict[str, str]) -> Iterator[LoggedCall]:
    for record in _new_lines(file, state, b'"usage"'):
        message = table_at(record, "message")
        usage, model = table_at(message, "usage"), message.get("model")
        at = _time(record.get("timestamp"))
        if not usage or model == _MADE_UP or at is None or record.get("isApiErrorMessage") is True:
            continue
        read, write = _count(usage.get("cache_read_input_tokens")), _count(usage.get("cache_creation_input_tokens"))
        identity, request = message.get("id"), record.get("requestId")
        key = None
        if isinstance(identity, str):
            key = identity if len(identity) >= _SHORT else f"{identity} {request}" if request else None
        session = record.get("sessionId")
        yield LoggedCall(
            time=at,
            session=session if isinstance(session, str) else Path(file.path).stem,
            model=model if isinstance(model, str) else None,
            input=_count(usage.get("input_tokens")) + read + write,
            output=_count(usage.get("output_tokens")),
            cache_read=read,
            cache_write=write,
            cache_write_hour=_count(table_at(usage, "cache_creation").get("ephemeral_1h_input_tokens")),
            key=key,
            project=text_at(record, "cwd") or Path(file.path).parent.name,
            dollars=_dollars(record.get("costUSD")),
            is_aside=record.get("isSidechain") is True,
        )


_TOTALS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")


def _codex_calls(file: LogFile, state: State, roots: dict[str, str]) -> Iterator[LoggedCall]:
    marks = (b'"token_count"', b'"turn_context"', b'"session_meta"', b'"token_usage_record"')
    for record in _new_lines(file, state, *marks):
        payload = table_at(record, "payload")
        match record.get("type"):
            case "session_meta" if "id" not in state:  # a fork repeats its parent's
                identity = text_at(payload, "id") or Path(file.path).stem
                parent = text_at(payload, "forked_from_id")
                root = identity if parent is None else roots.get(parent, parent)
                roots[identity] = root
                state |= {"id": identity, "root": root, "cwd": text_at(payload, "cwd")}
            case "turn_context":
                state["model"] = text_at(payload, "model") or state.get("model")
            case "token_usage_record":
                state["recorded"] = True
                at, said = _time(record.get("timestamp")), table_at(payload, "usage")
                if at is not None and said:
                    yield _codex_call(file, state, at, said, text_at(payload, "response_id"))
            case "event_msg" if payload.get("type") == "token_count" and not state.get("recorded"):
                yield from _codex_counted(file, state, record, table_at(payload, "info"))
            case _:
                pass


def _codex_counted(file: LogFile, state: State, record: JsonObject, info: JsonObject) -> Iterator[LoggedCall]:
    """Yield one call, unless the totals are equal to those of the previous line, which older versions repeat."""
    said, at = table_at(info, "total_token_usage"), _time(record.get("timestamp"))
    totals = [tokens_at(said, name) or 0 for name in _TOTALS]
    before: list[int] = state.get("totals") or [0] * len(_TOTALS)
    if not said or at is None or totals == before:
        return
    last: JsonObject = table_at(info, "last_token_usage")
    is_growing = all(now >= then for now, then in zip(totals, before, strict=True))
    if not last or (is_growing and "totals" in state):
        # Totals include calls without a line of their own. The first totals of a file may continue those of another.
        base = before if is_growing else [0] * len(_TOTALS)
        last = {name: now - then for name, now, then in zip(_TOTALS, totals, base, strict=True)}
    state["totals"] = totals
    state["model"] = text_at(info, "model") or state.get("model")
    root = state.get("root") or Path(file.path).stem
    yield _codex_call(file, state, at, last, f"codex {root} {totals}")


def _codex_call(file: LogFile, state: State, at: float, said: JsonObject, key: str | None) -> LoggedCall:
    whole, output = tokens_at(said, "input_tokens") or 0, tokens_at(said, "output_tokens") or 0
    return LoggedCall(
        time=at,
        session=state.get("id") or Path(file.path).stem,
        model=state.get("model"),
        input=whole,
        output=output,
        cache_read=min(whole, tokens_at(said, "cached_input_tokens") or 0),
        reasoning=min(output, tokens_at(said, "reasoning_output_tokens") or 0),
        key=key,
        project=state.get("cwd"),
    )


def _pi_calls(file: LogFile, state: State, _: dict[str, str]) -> Iterator[LoggedCall]:
    for record in _new_lines(file, state, b'"usage"', b'"session"'):
        if record.get("type") == "session":
            state |= {"id": text_at(record, "id"), "cwd": text_at(record, "cwd")}
        message = table_at(record, "message")
        usage, at = table_at(message, "usage"), _time(record.get("timestamp"))
        if message.get("role") != "assistant" or not usage or at is None:
            continue
        read, write = _count(usage.get("cacheRead")), _count(usage.get("cacheWrite"))
        yield LoggedCall(
            time=at,
            session=state.get("id") or Path(file.path).stem,
            model=text_at(message, "model"),
            input=_count(usage.get("input")) + read + write,
            output=_count(usage.get("output")),
            cache_read=read,
            cache_write=write,
            project=state.get("cwd"),
            dollars=_dollars(table_at(usage, "cost").get("total")),
        )


def _gemini_calls(file: LogFile) -> Iterator[LoggedCall]:
    """Read the whole file each time: it is rewritten, and a message replaces its earlier version."""
    try:
        text = Path(file.path).read_text("utf-8", "replace")
    except OSError:
        return
    records = list(_values(text))
    session = next((text_at(one, "sessionId") for one in records if text_at(one, "sessionId")), Path(file.path).stem)
    fallback = next((text_at(one, "model") for one in records if text_at(one, "model")), None)
    said: dict[str, JsonObject] = {}
    for record in records:
        for message in (record, *tables_at(record, "messages"), *tables_at(table_at(record, "$set"), "messages")):
            if message.get("type") == "gemini" and table_at(message, "tokens"):
                said[text_at(message, "id") or str(len(said))] = message
    for identity, message in said.items():
        tokens, at = table_at(message, "tokens"), _time(message.get("timestamp"))
        if at is None:
            continue
        whole = _count(tokens.get("input")) + _count(tokens.get("tool"))
        yield LoggedCall(
            time=at,
            session=str(session),
            model=text_at(message, "model") or fallback,
            input=whole,
            output=_count(tokens.get("output")) + _count(tokens.get("thoughts")),
            cache_read=min(whole, _count(tokens.get("cached"))),
            reasoning=_count(tokens.get("thoughts")),
            key=f"gemini-cli {session} {identity}",
            project=Path(file.path).parents[1].name,
        )


def _values(text: str) -> Iterator[JsonObject]:
    """Yield the objects of a text that is one JSON value, or one value per line."""
    try:
        values: list[Json] = [json.loads(text)]
    except (ValueError, RecursionError):
        values = []
        for line in text.split("\n"):
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError):
                continue
    yield from (value for value in values if isinstance(value, dict))


def _opencode_calls(file: LogFile, state: State) -> Iterator[LoggedCall]:
    if not file.path.endswith(".db"):
        for record in _values(Path(file.path).read_text("utf-8", "replace")):
            yield from _opencode_call(record, text_at(record, "id"), text_at(record, "sessionID"))
        return
    since, latest = state.get("since", 0), state.get("since", 0)
    query = "SELECT id, session_id, data, time_created FROM message WHERE time_created >= ? ORDER BY time_created"
    try:
        with closing(sqlite3.connect(f"{Path(file.path).as_uri()}?mode=ro", uri=True)) as database:
            for identity, session, data, created in database.execute(query, (since - _SETTLED,)):
                latest = max(latest, created)
                for record in _values(data):
                    yield from _opencode_call(record, identity, session)
    except sqlite3.Error:
        return
    state["since"] = latest


_SETTLED = 24 * 3600 * 1000
"""Milliseconds after which an answer of opencode is certainly complete."""


def _opencode_call(record: JsonObject, identity: str | None, session: str | None) -> Iterator[LoggedCall]:
    tokens, at = table_at(record, "tokens"), _time(table_at(record, "time").get("created"))
    if record.get("role", "assistant") != "assistant" or not tokens or at is None or identity is None:
        return
    cache, reasoning = table_at(tokens, "cache"), _count(tokens.get("reasoning"))
    read, write = _count(cache.get("read")), _count(cache.get("write"))
    whole, output = _count(tokens.get("input")) + read + write, _count(tokens.get("output")) + reasoning
    if not whole and not output:  # it failed
        return
    yield LoggedCall(
        time=at,
        session=session or "",
        model=text_at(record, "modelID"),
        input=whole,
        output=output,
        cache_read=read,
        cache_write=write,
        reasoning=reasoning,
        key=f"opencode {identity}",
        project=text_at(table_at(record, "path"), "cwd"),
        dollars=_dollars(record.get("cost")),
    )


_LINES: Mapping[str, Callable[[LogFile, State, dict[str, str]], Iterator[LoggedCall]]] = {
    "claude-code": _claude_calls,
    "codex": _codex_calls,
    "pi": _pi_calls,
}
