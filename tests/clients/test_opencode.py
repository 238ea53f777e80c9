import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from clients.files import Object
from ullage.clients import Conversation, read_conversations, read_text
from ullage.errors import UnreadableFile
from ullage.messages import Format, Media, Message, Text, Thinking, ToolCall, ToolResult, faults
from ullage.models import Usage

pytestmark = [pytest.mark.requirement("S2:formats")]


def message(identity: str, role: str, *parts: Object, **info) -> Object:
    about = {"id": identity, "role": role, "time": {"created": 1_794_764_799_063}}
    return {"info": {**about, **info}, "parts": [*parts]}


def text(words: str, **fields) -> Object:
    return {"type": "text", "text": words, **fields}


def tool(name: str, **state) -> Object:
    whole = {"status": "completed", "input": {"path": "a"}, "output": "much", "time": {}, **state}
    return {"type": "tool", "tool": "read", "callID": name, "state": whole}


def step(tokens: int) -> Object:
    said = {"input": tokens, "output": 5, "reasoning": 2, "cache": {"read": 90, "write": 7}}
    return {"type": "step-finish", "tokens": said}


START: Object = {"type": "step-start"}


def exported(*messages: Object) -> Conversation:
    whole = {"info": {"id": "ses_1", "title": "A title"}, "messages": [*messages]}
    (found,) = read_text(json.dumps(whole), "export.json")
    assert faults(found.natives, found.format) == ()
    return found


def test_an_export_becomes_neutral_messages_with_results_of_their_own():
    thinking = {"type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "sig"}}}
    found = exported(
        message("m1", "user", text("Read it."), text("unseen", ignored=True), {"type": "file", "mime": "text/plain"}),
        message("m2", "assistant", START, thinking, tool("c1"), step(3), modelID="gpt-5"),
        message("m3", "assistant", START, text("Done."), step(10), modelID="gpt-5", error=None),
    )
    assert (found.program, found.format, found.id, found.title) == ("opencode", Format.ULLAGE, "ses_1", "A title")
    assert found.model == "gpt-5"
    assert found.natives == [
        Message(role="user", parts=(Text("Read it."),)),
        Message(
            role="assistant",
            parts=(Thinking(text="hm", signature="sig"), ToolCall(id="c1", name="read", arguments='{"path":"a"}')),
        ),
        Message(role="tool", parts=(ToolResult(parts=(Text("much"),), call_id="c1", name="read"),)),
        Message(role="assistant", parts=(Text("Done."),)),
    ]
    assert found.calls[0].usage == Usage(input=100, output=7, cache_read=90, cache_write=7, reasoning=2)


def test_several_answers_in_one_message_are_distinguished():
    found = exported(
        message("m1", "user", text("Read it.")),
        message("m2", "assistant", START, tool("c1"), step(3), START, text("Done."), step(9)),
    )
    assert [turn.native.role for turn in found.turns] == ["user", "assistant", "tool", "assistant"]  # type: ignore[attr-defined]
    assert [call.place for call in found.calls] == [1, 3]


def test_failed_and_cleared_results_and_images_are_shown_as_the_model_sees_them():
    image = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk="}
    found = exported(
        message("m1", "user", image, {**image, "url": "https://example.org/a.png"}),
        message(
            "m2",
            "assistant",
            tool("c1", status="error", error="no such file"),
            tool("c2", status="running"),
            tool("c3", time={"compacted": 1}),
            tool("c4", attachments=[image]),
        ),
    )
    shown = [turn.native.parts for turn in found.turns]  # type: ignore[attr-defined]
    assert shown[0] == (
        Media(kind="image", media_type="image/png", data="aGk="),
        Media(kind="image", media_type="image/png", url="https://example.org/a.png"),
    )
    results = [parts[0] for parts in shown[2:]]
    assert [(one.is_error, one.parts[0].text) for one in results] == [
        (True, "no such file"),
        (True, "[Tool execution was interrupted]"),
        (False, "[Old tool result content cleared]"),
        (False, "much"),
    ]
    assert results[3].parts[1] == Media(kind="image", media_type="image/png", data="aGk=")


def test_a_summary_replaces_earlier_messages_and_the_tail_stays():
    mark = {"type": "compaction", "auto": True, "tail_start_id": "m3"}
    found = exported(
        message("m1", "user", text("Begin.")),
        message("m2", "assistant", text("Much.")),
        message("m3", "user", text("More.")),
        message("m4", "user", mark),
        message(
            "m5", "assistant", text("The summary."), summary=True, finish="stop", parentID="m4", tokens={"input": 9}
        ),
        message("m6", "user", text("Continue.")),
    )
    (compaction,) = found.compactions
    assert (compaction.place, compaction.left, compaction.before) == (4, (3, 2), 9)
    assert found.turns_in_window() == (3, 2, 4)


def test_a_summary_that_failed_lets_nothing_go():
    found = exported(
        message("m1", "user", text("Begin.")),
        message("m2", "user", {"type": "compaction"}),
        message("m3", "assistant", summary=True, error={"name": "Unknown"}),
        message("m4", "user"),
        message("m5", "assistant", START),
    )
    assert found.compactions == ()
    assert len(found.turns) == 1


def test_the_database_holds_every_session_and_is_only_read(tmp_path: Path):
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            """
            create table session (id text, title text, time_updated integer);
            create table message (id text, session_id text, time_created integer, data text);
            create table part (id text, message_id text, data text);
            insert into session values ('ses_2', 'Late', 2), ('ses_1', 'Early', 1);
            """
        )
        for session in ("ses_1", "ses_2"):
            database.execute(
                "insert into message values (?, ?, 1, ?)", (f"msg_{session}", session, json.dumps({"role": "user"}))
            )
            part = json.dumps(text(f"In {session}."))
            database.execute("insert into part values ('p', ?, ?)", (f"msg_{session}", part))
        database.execute("insert into message values ('msg_9', 'ses_2', 2, '{torn')")
        database.commit()
    before = path.read_bytes()
    found = read_conversations(path)
    assert [(one.id, one.title) for one in found] == [("ses_1", "Early"), ("ses_2", "Late")]
    assert found[1].natives == [Message(role="user", parts=(Text("In ses_2."),))]
    assert path.read_bytes() == before


def test_a_database_without_sessions_or_of_another_kind_is_refused(tmp_path: Path):
    for name, script in {
        "empty": "create table session (id, title, time_updated)",
        "other": "create table t (a)",
    }.items():
        with closing(sqlite3.connect(tmp_path / name)) as database:
            database.executescript(script)
        with pytest.raises(UnreadableFile):
            read_conversations(tmp_path / name)


def test_the_older_folder_of_files_is_read_from_the_sessions_own(tmp_path: Path):
    files = {
        "session/global/ses_1.json": {"id": "ses_1", "title": "Old"},
        "message/ses_1/msg_1.json": {"id": "msg_1", "role": "user"},
        "part/msg_1/prt_1.json": text("Begin."),
    }
    for name, value in files.items():
        path = tmp_path / "storage" / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    (found,) = read_conversations(tmp_path / "storage/session/global/ses_1.json")
    assert found.natives == [Message(role="user", parts=(Text("Begin."),))]
    nameless = tmp_path / "storage/session/global/other.json"
    nameless.write_text("{}", encoding="utf-8")
    with pytest.raises(UnreadableFile):
        read_conversations(nameless)
