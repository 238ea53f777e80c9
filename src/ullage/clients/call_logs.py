"""Model calls in the logs of agent programs, read quickly and from where the last reading stopped.

Only billing data is read: client, time, model and number of tokens. The content of sessions is read by `read_session`.
A call that is logged in several places gets the same key in each:

- Claude Code writes one answer in several lines with one message id, and copies lines into the file of a fork. The id
  is the key; an id of fewer than 16 characters cannot be the provider's and counts only together with its request id.
- Codex wrote no id at first. Its running totals are the key, together with the session. A fork, and some subagents,
  begin with a copy of their parent's totals, usually under new times: the copy is found by comparing both files. If the
  parent's file is missing, the session that the fork descends from is part of the key.
- Gemini CLI and pi: their own message ids, else client, model, usage and time.
- opencode: its message ids. A fork copies messages under new ids; its copies get the key of the original.
- Cline: its message ids; in the tasks of its extensions for editors, the task's id and the time of the row.

Answers created by a program itself (`<synthetic>`), lines that are not JSON and lines without usage are skipped.
"""

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from ullage.messages import table_at, tables_at, text_at, tokens_at
from ullage.tool import Json, JsonObject

from .cline import usage_of_metrics
from .conversation import Program, moment

__all__ = ["Lineage", "LogFile", "LoggedCall", "State", "find_lineage", "find_logs", "read_calls"]

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
    task: str | None = None
    """Of a session of Cline that began as a task: the file with the calls that were made until then."""


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
    is_fast: bool = False
    """Whether the provider was asked for a faster answer at a higher price."""
    is_regional: bool = False
    """Whether the provider had to compute the answer in one region, at a higher price."""


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
    data = environment.get("CLINE_DATA_DIR") or f"{environment.get('CLINE_DIR') or f'{home}/.cline'}/data"
    configuration = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    above = (configuration, f"{home}/Library/Application Support", environment.get("APPDATA"))
    users = [f"{one}/{editor}/User" for one in above if one for editor in _EDITORS]
    tasks = dict[str, LogFile]()
    for folder in (data, *(f"{one}/globalStorage/saoudrizwan.claude-dev" for one in users)):
        for file in _files("cline", f"{folder}/tasks", ("ui_messages.json",)):
            tasks.setdefault(Path(file.path).parent.name, file)
    yield from tasks.values()
    for file in _files("cline", environment.get("CLINE_SESSION_DATA_DIR") or f"{data}/sessions", (".messages.json",)):
        task = tasks.get(Path(file.path).name.removesuffix(".messages.json"))
        yield file if task is None else replace(file, task=task.path)


_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")


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


def read_calls(file: LogFile, state: State, lineage: "Lineage") -> Iterator[LoggedCall]:
    """Read the calls added since `state`, and update `state`.

    Args:
        file: The file.
        state: The state left by an earlier reading, or an empty dict.
        lineage: How the sessions of Codex descend from each other; new ones are added.
    """
    if file.program == "opencode":
        yield from _opencode_calls(file, state)
    elif file.program == "gemini-cli":
        yield from _gemini_calls(file)
    elif file.program == "cline":
        yield from _cline_calls(file) if file.path.endswith(".messages.json") else _cline_task_calls(file, state)
    else:
        if not _is_continued(file, state):
            state.clear()
        yield from _LINES[file.program](file, state, lineage)


_TAIL = 64
"""Bytes before the place where a reading stopped that are compared at the next one."""


def _is_continued(file: LogFile, state: State) -> bool:
    """Return whether the file still begins with what was read before, and was not rewritten or replaced."""
    offset: int = state.get("offset", 0)
    if offset > file.size:
        return False
    if not offset or "tail" not in state:
        return True
    try:
        with Path(file.path).open("rb") as stream:
            return _tail_before(stream, offset) == state["tail"]
    except OSError:
        return True


def _tail_before(stream: BinaryIO, offset: int) -> str:
    stream.seek(max(0, offset - _TAIL))
    return hashlib.blake2b(stream.read(min(offset, _TAIL)), digest_size=8).hexdigest()


def _new_lines(file: LogFile, state: State, *marks: bytes) -> Iterator[JsonObject]:
    """Yield the objects of the lines that contain one of the marks. A line that is still being written is left for
    later."""
    offset = state.get("offset", 0)
    try:
        with Path(file.path).open("rb") as stream:
            stream.seek(offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    try:
                        json.loads(line)
                    except (ValueError, RecursionError):
                        break
                offset += len(line)
                if any(mark in line for mark in marks):
                    try:
                        record: Json = json.loads(line)
                    except (ValueError, RecursionError):
                        continue
                    if isinstance(record, dict):
                        yield record
            state |= {"offset": offset, "tail": _tail_before(stream, offset)}
    except OSError:
        return


_MOST_TOKENS = 10**9
_MOST_DOLLARS = 100_000
"""More of either cannot be one call's."""
_EARLIEST, _LATEST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (2020, 2100))
"""Times outside cannot be a call's, and not every calendar has them."""


def _count(value: object) -> int:
    return value if isinstance(value, int) and value is not True and 0 < value <= _MOST_TOKENS else 0


def _time(value: Json) -> float | None:
    at = moment(value)
    return None if at is None or not _EARLIEST <= (seconds := at.timestamp()) < _LATEST else seconds


def _dollars(value: Json) -> Decimal | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _MOST_DOLLARS:
        return None
    return Decimal(str(value))


def _claude_calls(file: LogFile, state: State, _: "Lineage") -> Iterator[LoggedCall]:
    for line in _new_lines(file, state, b'"usage"'):
        record = line
        if line.get("type") == "progress":  # a line of a subagent
            record = {**line, **table_at(table_at(line, "data"), "message"), "isSidechain": True}
        message = table_at(record, "message")
        usage, model = table_at(message, "usage"), message.get("model")
        at = _time(record.get("timestamp"))
        if not usage or model == _MADE_UP or at is None or record.get("isApiErrorMessage") is True:
            continue
        identity, request = message.get("id"), record.get("requestId")
        key = None
        if isinstance(identity, str):
            key = identity if len(identity) >= _SHORT else f"{identity} {request}" if request else None
        session = table_at(record, "forkedFrom").get("sessionId") or record.get("sessionId")
        # The advisor, which is another model, and compactions by the provider are not part of the sums above them.
        parts = [usage]
        if usage.get("iterations"):
            parts += [one for one in tables_at(usage, "iterations") if one.get("type") in _ITERATIONS]
        for number, counted in enumerate(parts):
            read, lifetimes = _count(counted.get("cache_read_input_tokens")), table_at(counted, "cache_creation")
            hour = _count(lifetimes.get("ephemeral_1h_input_tokens"))
            written = _count(counted.get("cache_creation_input_tokens")) or (
                hour + _count(lifetimes.get("ephemeral_5m_input_tokens"))
            )
            called = counted.get("model") if number else model
            yield LoggedCall(
                time=at,
                session=session if isinstance(session, str) else Path(file.path).stem,
                model=called if isinstance(called, str) else model if isinstance(model, str) else None,
                input=_count(counted.get("input_tokens")) + read + written,
                output=_count(counted.get("output_tokens")),
                cache_read=read,
                cache_write=written,
                cache_write_hour=min(hour, written),
                key=f"{key} {number}" if number and key is not None else key,
                project=text_at(record, "cwd") or Path(file.path).parent.name,
                dollars=None if number else _dollars(record.get("costUSD")),
                is_aside=number > 0 or record.get("isSidechain") is True,
                is_fast=usage.get("speed") == "fast" and not number,
                is_regional=usage.get("inference_geo") == "us",
            )


_ITERATIONS = frozenset({"advisor_message", "compaction"})
_TOTALS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")


_WRITTEN_AT_ONCE = 2.0
"""Seconds after the beginning of a subagent within which copied lines are written, and no call can have ended."""
_CodexTotals = list[tuple[list[int], float]]
"""Running totals and their times, without repetitions."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """How the sessions of Codex descend from each other."""

    roots: dict[str, str]
    """The session that each session descends from, however far back."""
    files: Mapping[str, str]
    """The files of the sessions that still exist."""


def _codex_calls(file: LogFile, state: State, lineage: Lineage) -> Iterator[LoggedCall]:
    marks = (b'"token_count"', b'"turn_context"', b'"session_meta"', b'"token_usage_record"')
    for record in _new_lines(file, state, *marks):
        payload = table_at(record, "payload")
        match record.get("type"):
            case "session_meta" if "id" not in state:
                identity = text_at(payload, "id") or Path(file.path).stem
                parent = _codex_parent(payload, lineage.roots)
                above = None if parent is None else lineage.files.get(parent)
                if above is not None and above != file.path:
                    state["copied"] = _count_copied(file.path, above, record)
                root = identity if above is not None or parent is None else lineage.roots.get(parent, parent)
                root = lineage.roots.get(identity, root)
                lineage.roots[identity] = root
                state |= {"id": identity, "root": root, "cwd": text_at(payload, "cwd")}
            case "session_meta" if "totals" not in state and "copied" not in state:
                # Older versions name no parent, but copy its first line too.
                parent = text_at(payload, "id")
                if parent is not None and parent != state["id"]:
                    state["root"] = lineage.roots[state["id"]] = lineage.roots.get(parent, parent)
            case "turn_context":
                state["model"] = text_at(payload, "model") or state.get("model")
            case "token_usage_record":
                at, said = _time(record.get("timestamp")), table_at(payload, "usage")
                is_counted = not state.get("recorded") and state.get("counted") == _codex_figures(said)
                state["recorded"] = True
                if at is not None and said and not is_counted:
                    yield _codex_call(file, state, at, said, text_at(payload, "response_id"))
            case "event_msg" if payload.get("type") == "token_count" and not state.get("recorded"):
                yield from _read_codex_usage(file, state, record, table_at(payload, "info"))
            case _:
                pass


def _codex_parent(payload: JsonObject, known: Mapping[str, str]) -> str | None:
    """Return the session that a fork or a subagent began from. A subagent of an unknown session may have copied
    nothing from it."""
    spawned = table_at(table_at(table_at(payload, "source"), "subagent"), "thread_spawn")
    parent = text_at(spawned, "parent_thread_id")
    return text_at(payload, "forked_from_id") or (parent if parent in known else None)


def find_lineage(files: Iterable[LogFile], known: Mapping[str, str], paths: Mapping[str, str]) -> Lineage:
    """Return how the Codex sessions of these files, and of files that were read before, descend from each other.

    A fork may be read before the session that it began from, so all are known before the first call is read. A session
    whose calls were already counted from the copies in others keeps its own root.

    Args:
        files: Files that were not read before; those of other programs are ignored.
        known: The roots of the sessions that were read before.
        paths: Their files, as far as they still exist.
    """
    parents, found = dict[str, str | None](), dict(paths)
    for file in files:
        if file.program == "codex":
            with suppress(OSError, ValueError, RecursionError), Path(file.path).open("rb") as stream:
                about: Json = json.loads(stream.readline())
                payload: JsonObject = table_at(about, "payload") if isinstance(about, dict) else {}
                identity = text_at(payload, "id")
                if identity is not None:
                    parents[identity], found[identity] = _codex_parent(payload, known), file.path
    roots, taken = dict(known), frozenset(known.values())
    for session, above in parents.items():
        # The copies of a fork whose parent is here are found by comparing both, and the rest are its own calls.
        if above is None or above in found or session in taken:
            roots.setdefault(session, session)
        else:
            roots.setdefault(session, known.get(above, above))
    return Lineage(roots, found)


def _read_codex_totals(path: str) -> _CodexTotals:
    found: _CodexTotals = []
    try:
        with Path(path).open("rb") as stream:
            for line in stream:
                if b'"token_count"' not in line:
                    continue
                with suppress(ValueError, RecursionError):
                    record: Json = json.loads(line)
                    if not isinstance(record, dict):
                        continue
                    said = table_at(table_at(table_at(record, "payload"), "info"), "total_token_usage")
                    totals, at = _codex_figures(said), _time(record.get("timestamp"))
                    if said and at is not None and (not found or found[-1][0] != totals) and any(totals):
                        found.append((totals, at))
    except OSError:
        pass
    return found


def _count_copied(path: str, above: str, meta: JsonObject) -> int:
    """Return how many calls at the beginning of a session are copies of its parent's."""
    own, others = _read_codex_totals(path), _read_codex_totals(above)
    start = next((place for place, one in enumerate(others) if own and one[0] == own[0][0]), None)
    if start is None:
        return 0
    pairs = list(zip(own, others[start:], strict=False))
    copied = next((place for place, (mine, other) in enumerate(pairs) if mine[0] != other[0]), len(pairs))
    is_subagent = bool(table_at(table_at(meta, "payload"), "source"))
    begun = _time(meta.get("timestamp")) or 0.0
    # A subagent that begins anew may happen to have the totals of its parent's first call.
    if copied == 1 and is_subagent and own[0][1] > begun + _WRITTEN_AT_ONCE and own[0][1] != others[start][1]:
        return 0
    return copied


def _codex_figures(said: JsonObject) -> list[int]:
    return [tokens_at(said, name) or 0 for name in _TOTALS]


def _read_codex_usage(file: LogFile, state: State, record: JsonObject, info: JsonObject) -> Iterator[LoggedCall]:
    """Yield one call, unless the totals are equal to those of the previous line, which older versions repeat."""
    said, at = table_at(info, "total_token_usage"), _time(record.get("timestamp"))
    totals = _codex_figures(said)
    before: list[int] = state.get("totals") or [0] * len(_TOTALS)
    if not said or at is None or totals == before:
        return
    last: JsonObject = table_at(info, "last_token_usage")
    is_growing = all(now >= then for now, then in zip(totals, before, strict=True))
    written = (tokens_at(said, _CODEX_WRITTEN) or 0) - state.get("written", 0)
    if not last or (is_growing and "totals" in state):
        # Totals include calls without a line of their own. The first totals of a file may continue those of another.
        base = before if is_growing else [0] * len(_TOTALS)
        last = {name: now - then for name, now, then in zip(_TOTALS, totals, base, strict=True)}
        last[_CODEX_WRITTEN] = max(0, written)
    state |= {"totals": totals, "written": tokens_at(said, _CODEX_WRITTEN) or 0, "counted": _codex_figures(last)}
    state["model"] = text_at(info, "model") or state.get("model")
    if state.get("copied"):
        state["copied"] -= 1
        return
    root = state.get("root") or Path(file.path).stem
    yield _codex_call(file, state, at, last, f"codex {root} {totals}")


_CODEX_WRITTEN = "cache_write_input_tokens"


def _codex_call(file: LogFile, state: State, at: float, said: JsonObject, key: str | None) -> LoggedCall:
    whole, output = _count(tokens_at(said, "input_tokens")), _count(tokens_at(said, "output_tokens"))
    read = min(whole, _count(tokens_at(said, "cached_input_tokens")))
    return LoggedCall(
        time=at,
        session=state.get("id") or Path(file.path).stem,
        model=state.get("model"),
        input=whole,
        output=output,
        cache_read=read,
        cache_write=min(whole - read, _count(tokens_at(said, _CODEX_WRITTEN))),
        reasoning=min(output, _count(tokens_at(said, "reasoning_output_tokens"))),
        key=key,
        project=state.get("cwd"),
    )


def _pi_calls(file: LogFile, state: State, _: "Lineage") -> Iterator[LoggedCall]:
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
    folders = Path(file.path).parent.parts
    project = folders[max((place for place, name in enumerate(folders) if name == "chats"), default=0) - 1]
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
            project=project,
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
        with suppress(OSError):
            for record in _values(Path(file.path).read_text("utf-8", "replace")):
                identity = text_at(record, "id")
                if (made := _copied_at(record, identity)) is not None:
                    files = _opencode_files(Path(file.path).parents[1])
                    identity = next((files[one] for one in (made, made - 1) if one in files), f"copied {made}")
                yield from _opencode_call(record, identity, text_at(record, "sessionID"))
        return
    since, latest, row = state.get("since", 0), state.get("since", 0), state.get("row", 0)
    # An imported session is new with old times.
    query = (
        "SELECT id, session_id, data, time_created, rowid FROM message WHERE time_created >= ? OR rowid > ? "
        "ORDER BY time_created, id"
    )
    originals: dict[int, str] | None = None
    try:
        with closing(sqlite3.connect(f"{Path(file.path).as_uri()}?mode=ro", uri=True)) as database:
            for identity, session, data, created, number in database.execute(query, (since - _SETTLED, row)):
                latest, row = max(latest, created), max(row, number)
                for record in _values(data):
                    original = identity
                    if (made := _copied_at(record, identity)) is not None:
                        if originals is None:
                            originals = _index_ids(one for (one,) in database.execute("SELECT id FROM message"))
                        there = (originals[one] for one in (made, made - 1) if one in originals)
                        original = next(there, f"copied {made}")
                    yield from _opencode_call(record, original, session)
    except sqlite3.Error:
        return
    state |= {"since": latest, "row": row}


_OPENCODE_ID = re.compile(r"msg_([0-9a-f]{9})[0-9a-f]{3}\w+")
"""An id with 36 bits of the time at which it was made, in milliseconds."""
_COPIED_AFTER = 60_000
"""Milliseconds by which the id of a copy is younger than its message; others are made at the same time."""


def _copied_at(record: JsonObject, identity: str | None) -> int | None:
    """Return the time in the id of the original, if a fork copied this message under a new id."""
    at = _time(table_at(record, "time").get("created"))
    found = None if identity is None else _OPENCODE_ID.fullmatch(identity)
    if at is None or found is None:
        return None
    made = round(at * 1000) % 2**36
    return made if _COPIED_AFTER < (int(found[1], 16) - made) % 2**36 < 2**35 else None


def _index_ids(identities: Iterable[str]) -> dict[int, str]:
    """Return the ids of messages by the time in them."""
    found = ((_OPENCODE_ID.fullmatch(one), one) for one in identities)
    return {int(match[1], 16): one for match, one in found if match is not None}


@lru_cache(maxsize=2)
def _opencode_files(store: Path) -> Mapping[int, str]:
    return _index_ids(one.stem for one in store.glob("*/msg_*.json"))


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


def _cline_calls(file: LogFile) -> Iterator[LoggedCall]:
    """Read a session of Cline. Calls from the time when it was a task are those of the task's file."""
    document, about = _read_json(file.path), _read_json(file.path.replace(".messages.json", ".json"))
    if not isinstance(document, dict):
        return
    session = text_at(document, "sessionId") or Path(file.path).name.removesuffix(".messages.json")
    named = about if isinstance(about, dict) else {}
    rows = [] if file.task is None else _read_rows(file.task)
    begun = max((at for row in rows if (at := _time(row.get("ts"))) is not None), default=0.0)
    for message in tables_at(document, "messages"):
        metrics, at = table_at(message, "metrics"), _time(message.get("ts"))
        usage = usage_of_metrics(metrics)
        if usage is None or at is None or at <= begun or not (usage.input or usage.output):
            continue
        identity = text_at(message, "id")
        yield LoggedCall(
            time=at,
            session=session,
            model=text_at(table_at(message, "modelInfo"), "id") or text_at(named, "model"),
            input=usage.input or 0,
            output=usage.output or 0,
            cache_read=usage.cache_read or 0,
            cache_write=usage.cache_write or 0,
            key=None if identity is None else f"cline {session} {identity}",
            project=text_at(named, "workspace_root") or text_at(named, "cwd"),
            dollars=_dollars(metrics.get("cost")),
        )


_CLINE_FIGURES = ("tokensIn", "tokensOut", "cacheWrites", "cacheReads", "cost")
_CLINE_ROWS = frozenset({"api_req_started", "deleted_api_reqs", "subagent_usage"})
_ClineFigures = list[float | None]
"""In the order of `_CLINE_FIGURES`. Input tokens are those beside the cache; None is a cost that is not stated."""


def _cline_task_calls(file: LogFile, state: State) -> Iterator[LoggedCall]:
    """Read a task of Cline's extensions. The whole file is read each time, because it is rewritten.

    When messages are removed, as by restoring a checkpoint, Cline adds a row with the sums of those removed. What was
    read from the removed rows before is counted already, and only the rest of the sums is counted then.
    """
    folder = Path(file.path).parent
    known: dict[str, _ClineFigures] = state.get("rows") or {}
    counted: dict[str, _ClineFigures] = state.get("counted") or {}
    """What was counted of rows with sums."""
    found = {
        f"{row.get('say')} {row.get('ts')}": (row, figures)
        for row in _cline_rows(_read_rows(file.path))
        if (figures := _cline_figures(row)) is not None
    }
    removed = [state.get("removed") or [0] * len(_CLINE_FIGURES), *(known[key] for key in known if key not in found)]
    gone = [sum(one or 0 for one in column) for column in zip(*removed, strict=True)]
    metadata, folders = _read_json(str(folder / "task_metadata.json")), _task_folders(folder.parent.parent)
    models = tables_at(metadata, "model_usage") if isinstance(metadata, dict) else []
    for key, (row, figures) in found.items():
        at = _time(row.get("ts"))
        if row.get("say") == "deleted_api_reqs" and key not in counted:
            sums = [one or 0 for one in figures]
            counted[key] = [max(0, now - then) for now, then in zip(sums, gone, strict=True)]
            gone = [max(0, then - now) for now, then in zip(sums, gone, strict=True)]
        *tokens, cost = counted.get(key, figures)
        fresh, output, write, read = (int(one or 0) for one in tokens)
        if at is None or not (fresh or output or read or write):
            continue
        used = [one for one in models if (_time(one.get("ts")) or 0.0) <= at]
        yield LoggedCall(
            time=at,
            session=folder.name,
            model=text_at(table_at(row, "modelInfo"), "modelId") or text_at(used[-1] if used else {}, "model_id"),
            input=fresh + read + write,
            output=output,
            cache_read=read,
            cache_write=write,
            key=f"cline {folder.name} {key}",
            project=folders.get(folder.name),
            dollars=_dollars(cost),
        )
    state |= {"rows": {key: figures for key, (_, figures) in found.items()}, "counted": counted, "removed": gone}


def _read_rows(path: str) -> list[JsonObject]:
    rows = _read_json(path)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _cline_rows(rows: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield the rows of model calls. In old tasks, the figures of a call are in a second row, written at its end."""
    started: JsonObject | None = None
    for row in rows:
        said = text_at(row, "say")
        if said == "api_req_finished" and started is not None:
            yield {**started, "text": row.get("text")}
            started = None
        elif said in _CLINE_ROWS:
            if started is not None:
                yield started
            started = row
    if started is not None:
        yield started


def _cline_figures(row: JsonObject) -> _ClineFigures | None:
    """Return the figures of a row; None where it has none."""
    try:
        said: Json = json.loads(text_at(row, "text") or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    *tokens, cost = (said.get(name) for name in _CLINE_FIGURES)
    dollars = _dollars(cost)
    return [*(_count(one) for one in tokens), None if dollars is None else float(dollars)]


def _task_folders(store: Path) -> Mapping[str, str]:
    """Return the working folders of the tasks in a store of Cline by their ids, as far as it lists them in a file."""
    file = store / "state" / "taskHistory.json"
    try:
        return _read_task_folders(file, file.stat().st_mtime)
    except OSError:
        return {}


@lru_cache(maxsize=4)
def _read_task_folders(file: Path, _: float) -> Mapping[str, str]:
    found = ((str(one.get("id")), text_at(one, "cwdOnTaskInitialization")) for one in _read_rows(str(file)))
    return {task: folder for task, folder in found if folder is not None}


def _read_json(path: str) -> Json:
    try:
        return json.loads(Path(path).read_text("utf-8", "replace"))
    except (OSError, ValueError, RecursionError):
        return None


_LINES: Mapping[str, Callable[[LogFile, State, Lineage], Iterator[LoggedCall]]] = {
    "claude-code": _claude_calls,
    "codex": _codex_calls,
    "pi": _pi_calls,
}
