import pytest

from clients.files import Object, lines
from ullage.clients import Conversation, read_text
from ullage.messages import Format, Media, Message, Text, Thinking, ToolCall, ToolResult, Unknown, faults
from ullage.models import Usage

pytestmark = [pytest.mark.requirement("S2:formats")]

HEADER: Object = {"type": "session", "id": "s1", "cwd": "/w", "modelId": "claude-sonnet-4-5", "timestamp": "2025-12-09"}
USAGE: Object = {"input": 3, "output": 5, "cacheRead": 90, "cacheWrite": 7, "totalTokens": 105}


def said(role: str, *content, **fields) -> Object:
    return {
        "type": "message",
        "timestamp": "2025-12-08T22:41:05.306Z",
        "message": {"role": role, "content": [*content], **fields},
    }


def text(words: str) -> Object:
    return {"type": "text", "text": words}


def answered(*content, **fields) -> Object:
    return said("assistant", *content, **{"model": "claude-opus-4-5", "usage": USAGE, "stopReason": "stop", **fields})


def call(name: str) -> Object:
    return {"type": "toolCall", "id": name, "name": "read", "arguments": {"path": name}}


def result(name: str, **fields) -> Object:
    return said("toolResult", text(f"what {name} holds"), toolCallId=name, toolName="read", isError=False, **fields)


def read(*records: Object | str, header: Object = HEADER) -> Conversation:
    (found,) = read_text(lines(header, *records), "session.jsonl")
    assert faults(found.natives, found.format) == ()
    return found


def test_messages_become_neutral_ones():
    image = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    found = read(
        said("user", text("Read it."), image), answered(thinking, call("a")), result("a"), answered(text("Done."))
    )
    assert (found.program, found.format, found.id, found.model) == ("pi", Format.ULLAGE, "s1", "claude-opus-4-5")
    assert found.natives == [
        Message(role="user", parts=(Text("Read it."), Media(kind="image", media_type="image/png", data="aGk="))),
        Message(
            role="assistant",
            parts=(Thinking(text="hm", signature="sig"), ToolCall(id="a", name="read", arguments='{"path":"a"}')),
        ),
        Message(role="tool", parts=(ToolResult(parts=(Text("what a holds"),), call_id="a", name="read"),)),
        Message(role="assistant", parts=(Text("Done."),)),
    ]
    assert found.calls[0].usage == Usage(input=100, output=5, cache_read=90, cache_write=7)
    assert [one.place for one in found.calls] == [1, 3]


def test_at_a_compaction_the_summary_precedes_the_kept_messages():
    found = read(
        said("user", text("Begin.")),
        answered(text("Much.")),
        said("user", text("More.")),
        {"type": "compaction", "summary": "The summary.", "firstKeptEntryIndex": 3, "tokensBefore": 175_004},
        answered(text("Going on.")),
    )
    (compaction,) = found.compactions
    assert (compaction.place, compaction.left, compaction.before) == (4, (3, 2), 175_004)
    assert found.turns_in_window() == (3, 2, 4)
    assert found.natives[0] == Message(
        role="user", parts=(Text("<context_summary>\nThe summary.\n</context_summary>"),)
    )


def node(identity: str, parent: str | None, record: Object) -> Object:
    return {**record, "id": identity, "parentId": parent}


def test_since_version_2_only_the_branch_that_leads_to_the_end_is_read():
    compaction: Object = {"type": "compaction", "summary": "The summary.", "firstKeptEntryId": "3", "tokensBefore": 9}
    found = read(
        node("1", None, said("user", text("Begin."))),
        node("2", "1", answered(text("The first try."))),
        node("3", "1", answered(text("The second try."))),
        node("4", "3", compaction),
        node("5", "4", said("user", text("Go on."))),
        header={**HEADER, "version": 3},
    )
    assert found.turns_in_window() == (2, 1, 3)
    assert found.unread == {"lines of other branches": 1}


def test_a_ring_and_a_link_that_leads_nowhere_do_no_harm():
    nowhere = read(node("1", "1", said("user", text("Begin."))), node("2", "gone", said("user", text("Go on."))))
    assert len(nowhere.turns) == 2


def test_what_a_command_gave_and_what_extensions_said_is_the_users():
    found = read(
        {"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "a.txt", "exitCode": 2}},
        {"type": "message", "message": {"role": "bashExecution", "command": "ls", "excludeFromContext": True}},
        {"type": "message", "message": {"role": "custom", "content": "By the way."}},
        {"type": "message", "message": {"role": "branchSummary", "summary": "There."}},
        {"type": "custom_message", "content": [text("Note."), {"type": "odd", "x": 1}]},
        {"type": "branch_summary", "summary": "Elsewhere."},
        {"type": "model_change", "modelId": "gpt-5"},
        {"type": "label", "label": "here"},
    )
    said_there = [part for turn in found.turns for part in turn.native.parts]  # type: ignore[attr-defined]
    assert said_there == [
        Text("$ ls\na.txt\nIt ended with 2."),
        Text("By the way."),
        Text("<context_summary>\nThere.\n</context_summary>"),
        Text("Note."),
        Unknown({"type": "odd", "x": 1}),
        Text("<context_summary>\nElsewhere.\n</context_summary>"),
    ]
    assert found.model == "gpt-5"


def test_an_answer_that_was_broken_off_counts_for_what_it_said():
    found = read(
        said("user", text("Begin.")),
        answered({"type": "thinking", "thinking": "hm"}, call("a"), stopReason="aborted"),
        answered(text("I will"), call("b"), stopReason="aborted", usage={"input": 0}),
        answered(stopReason="error"),
    )
    assert [turn.native.parts for turn in found.turns][1:] == [(Text("I will"),)]  # type: ignore[attr-defined]
    assert found.calls == ()
