import pytest

from clients.files import Object, lines
from ullage.clients import Conversation, read_text
from ullage.messages import Format, faults
from ullage.models import Usage

pytestmark = [pytest.mark.requirement("S2:formats")]


def line(uuid: str, parent: str | None, kind: str = "user", **fields) -> Object:
    about = {"isSidechain": False, "sessionId": "s1", "timestamp": "2026-11-15T17:46:31.958Z"}
    return {**about, "uuid": uuid, "parentUuid": parent, "type": kind, **fields}


def asked(uuid: str, parent: str | None, content: object = "Read it.", **fields) -> Object:
    return line(uuid, parent, message={"role": "user", "content": content}, **fields)


def answered(uuid: str, parent: str, block: Object, answer: str = "m1", **fields) -> Object:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 5}
    message = {"id": answer, "role": "assistant", "model": "claude-sonnet-4-5", "content": [block], "usage": usage}
    return line(uuid, parent, "assistant", message=message, **fields)


def call(name: str) -> Object:
    return {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": f"{name}.txt"}}


def result(name: str) -> Object:
    return {"type": "tool_result", "tool_use_id": name, "content": f"what {name} holds"}


def text(said: str) -> Object:
    return {"type": "text", "text": said}


def read(*records: Object | str) -> Conversation:
    (found,) = read_text(lines(*records), "session.jsonl")
    assert faults(found.natives, found.format) == ()
    return found


def test_an_answer_that_is_several_lines_is_one_message_and_one_call():
    found = read(
        {"type": "queue-operation", "operation": "enqueue"},
        asked("1", None),
        answered("2", "1", text("I read.")),
        answered("3", "2", call("a")),
        asked("4", "3", [result("a")]),
        answered("5", "4", text("Done."), answer="m2"),
    )
    assert (found.program, found.format, found.id) == ("claude-code", Format.ANTHROPIC, "s1")
    assert found.model == "claude-sonnet-4-5"
    assert found.natives == [
        {"role": "user", "content": [text("Read it.")]},
        {"role": "assistant", "content": [text("I read."), call("a")]},
        {"role": "user", "content": [result("a")]},
        {"role": "assistant", "content": [text("Done.")]},
    ]
    assert [one.place for one in found.calls] == [1, 3]
    assert found.calls[0].usage == Usage(input=100, output=5, cache_read=90, cache_write=7)
    assert found.turns[0].at is not None


def test_calls_side_by_side_whose_results_hang_on_the_tree_each_by_itself_are_put_together():
    found = read(
        asked("1", None),
        answered("2", "1", call("a")),
        asked("3", "2", [result("a")]),
        answered("4", "2", call("b")),
        asked("5", "4", [result("b")]),
        answered("6", "5", text("Done."), answer="m2"),
    )
    assert found.natives[1:3] == [
        {"role": "assistant", "content": [call("a"), call("b")]},
        {"role": "user", "content": [result("a"), result("b")]},
    ]
    assert found.unread == {}


def test_a_branch_that_was_left_is_counted_and_not_read():
    found = read(
        asked("1", None),
        answered("2", "1", text("The first try.")),
        answered("3", "1", text("The second try."), answer="m2"),
        asked("4", "3", "Go on."),
    )
    assert [one["content"][0]["text"] for one in found.natives] == ["Read it.", "The second try.", "Go on."]  # type: ignore[index]
    assert found.unread == {"lines of other branches": 1}


def test_what_agents_of_its_own_did_is_left_out_unless_the_file_is_theirs():
    theirs = asked("9", None, "Look around.", isSidechain=True)
    found = read(asked("1", None), theirs, answered("2", "1", text("Done.")))
    assert len(found.turns) == 2
    assert found.unread == {"lines of agents of its own": 1}
    assert len(read(theirs, answered("8", "9", text("I looked."), isSidechain=True)).turns) == 2


def test_at_a_compaction_the_summary_and_the_kept_messages_replace_the_rest():
    kept = {"uuids": ["4"], "allUuids": ["4"]}
    told = {"trigger": "auto", "preTokens": 150_000, "postTokens": 9_000, "preservedMessages": kept}
    mark = line("5", None, "system", subtype="compact_boundary", logicalParentUuid="4", compactMetadata=told)
    found = read(
        asked("1", None),
        answered("2", "1", text("Much.")),
        asked("3", "2", "More."),
        answered("4", "3", text("The last word."), answer="m2"),
        mark,
        asked("6", "5", "The summary.", isCompactSummary=True),
        asked("7", "6", "Go on."),
        answered("8", "7", text("Going on."), answer="m3"),
    )
    (compaction,) = found.compactions
    assert (compaction.place, compaction.left, compaction.before, compaction.after) == (5, (4, 3), 150_000, 9_000)
    assert found.turns_in_window() == (4, 3, 5, 6)
    assert found.turns_in_window(3) == (0, 1, 2)
    assert len(found.calls) == 3


def test_a_preserved_segment_is_identified_by_its_ends():
    told = {"preservedSegment": {"headUuid": "2", "tailUuid": "4"}}
    mark = line("5", None, "system", subtype="compact_boundary", logicalParentUuid="4", compactMetadata=told)
    found = read(
        asked("1", None),
        answered("2", "1", call("a")),
        asked("3", "2", [result("a")]),
        answered("4", "3", text("The last word."), answer="m2"),
        mark,
        asked("6", "5", "The summary.", isCompactSummary=True),
        asked("7", "6", "Go on."),
    )
    assert found.turns_in_window() == (4, 1, 2, 3, 5)


def test_what_the_program_says_on_its_own_account_is_part_of_the_users_turn():
    rendered = [{"content": "<system-reminder>Today is a day.</system-reminder>"}]
    found = read(
        asked("1", None),
        line("2", "1", "attachment", attachment={"type": "date"}, rendered=rendered),
        line("3", "2", "attachment", attachment={"type": "session_context"}),
        answered("4", "3", text("Done.")),
    )
    assert found.natives[0] == {"role": "user", "content": [text("Read it."), text(rendered[0]["content"])]}


def test_newer_files_hold_the_system_prompt_and_the_tools():
    shape = {"system": [text("You help.")], "tools": [{"name": "Read", "input_schema": {}}]}
    found = read(asked("1", None), {"type": "api-request-shape", "shape": shape}, answered("2", "1", text("Yes.")))
    assert found.system == [text("You help.")]
    assert found.tools == ({"name": "Read", "input_schema": {}},)
    assert read(asked("1", None)).tools is None


def test_an_answer_that_the_program_invented_is_not_a_call():
    made_up = answered("2", "1", text("No response requested."))
    made_up["message"]["model"] = "<synthetic>"
    error = answered("3", "2", text("API Error: 529"), answer="m2", isApiErrorMessage=True)
    found = read(asked("1", None), made_up, error, asked("4", "3", "Again."))
    assert found.calls == ()
    assert len(found.turns) == 3


@pytest.mark.parametrize("parent", ["gone", "3"])
def test_a_broken_link_and_a_ring_lead_to_the_line_before(parent: str):
    found = read(
        "not JSON",
        asked("1", None),
        answered("2", "1", text("Yes.")),
        asked("3", parent, "Go on."),
    )
    assert len(found.turns) >= 1
    assert found.unread["lines that are not JSON"] == 1
