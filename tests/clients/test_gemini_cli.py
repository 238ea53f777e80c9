import json

import pytest

from clients.files import Object, lines
from ullage.clients import Conversation, read_text
from ullage.messages import Format, faults
from ullage.models import Usage

pytestmark = [pytest.mark.requirement("S2:formats")]

HEADER: Object = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-11-15T17:46:35.707Z"}


def record(identity: str, kind: str, content: object, **fields) -> Object:
    return {
        "id": identity,
        "timestamp": f"2026-11-15T17:46:35.{identity[-1]}07Z",
        "type": kind,
        "content": content,
        **fields,
    }


def answer(identity: str, content: object, *calls: Object) -> Object:
    tokens = {"input": 100, "output": 5, "cached": 60, "thoughts": 3, "tool": 0, "total": 108}
    return record(identity, "gemini", content, model="gemini-2.5-pro", tokens=tokens, toolCalls=[*calls])


def response(name: str) -> Object:
    return {"functionResponse": {"id": name, "name": "read_file", "response": {"output": "much"}}}


def call(name: str) -> Object:
    return {"id": name, "name": "read_file", "args": {"path": "a"}, "result": [response(name)], "status": "success"}


def read(*records: Object | str) -> Conversation:
    (found,) = read_text(lines(HEADER, *records), "session.jsonl")
    assert faults(found.natives, found.format) == ()
    return found


CALLED = {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}}]}


def test_a_rewritten_message_replaces_the_first_and_a_result_occurs_once():
    found = read(
        record("m1", "user", [{"text": "Read it."}]),
        answer("m2", ""),
        {"$set": {"lastUpdated": "2026-11-15T17:46:35.722Z"}},
        answer("m2", "", call("c1")),
        record("m3", "user", [response("c1")]),
        record("m4", "info", "Something to the user."),
        answer("m5", "Done."),
    )
    assert (found.program, found.format, found.id, found.model) == (
        "gemini-cli",
        Format.GEMINI,
        "s1",
        "gemini-2.5-pro",
    )
    assert found.natives == [
        {"role": "user", "parts": [{"text": "Read it."}]},
        CALLED,
        {"role": "user", "parts": [response("c1")]},
        {"role": "model", "parts": [{"text": "Done."}]},
    ]
    assert [one.place for one in found.calls] == [1, 3]
    assert found.calls[0].usage == Usage(input=100, output=8, cache_read=60, reasoning=3)


def test_a_session_taken_up_again_is_no_compaction():
    again = answer("m2", [CALLED["parts"][0]], call("c1"))
    found = read(
        record("m1", "user", "Read it."),
        answer("m2", "", call("c1")),
        record("m3", "user", "/help"),
        {"$set": {"messages": [record("m1", "user", ["Read it."]), again, record("m9", "user", {"text": "On."})]}},
        answer("m4", "Yes."),
    )
    assert found.compactions == ()
    assert found.natives[1:3] == [CALLED, {"role": "user", "parts": [response("c1"), {"text": "On."}]}]
    assert len(found.calls) == 2


def test_a_compression_leaves_a_summary_in_place_of_dropped_messages():
    found = read(
        record("m1", "user", "Begin."),
        answer("m2", "Much."),
        record("m3", "user", "More."),
        answer("m4", "Yes."),
        {
            "$set": {
                "messages": [record("m7", "user", "<state_snapshot>It is so.</state_snapshot>"), answer("m4", "Yes.")]
            }
        },
        record("m5", "user", "Go on."),
        answer("m6", "Going on."),
    )
    (compaction,) = found.compactions
    assert (compaction.place, compaction.left) == (8, (4, 5, 6, 7))
    assert found.turns_in_window() == (4, 5, 6, 7)
    assert [one.place for one in found.calls] == [1, 3, 7]


def test_what_was_taken_back_is_gone():
    found = read(record("m1", "user", "Begin."), answer("m2", "No."), {"$rewindTo": "m2"}, {"$rewindTo": "gone"})
    assert len(found.turns) == 1


def test_the_older_form_is_one_value():
    whole = {**HEADER, "messages": [record("m1", "user", "Begin."), record("m2", "gemini", "Yes.")]}
    (found,) = read_text(json.dumps(whole), "session.json")
    assert len(found.turns) == 2
    assert found.calls[0].usage is None
