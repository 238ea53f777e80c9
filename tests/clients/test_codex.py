import pytest

from clients.files import Object, lines
from ullage.clients import Conversation, read_text
from ullage.messages import Format, faults
from ullage.models import Usage

pytestmark = [pytest.mark.requirement("S2:formats")]


def line(kind: str, **payload) -> Object:
    return {"timestamp": "2026-11-15T17:46:33.055Z", "type": kind, "payload": payload}


def said(role: str, text: str) -> Object:
    kind = "output_text" if role == "assistant" else "input_text"
    return line("response_item", type="message", role=role, content=[{"type": kind, "text": text}])


def call(name: str) -> Object:
    return line("response_item", type="function_call", name="shell", arguments="{}", call_id=name)


def output(name: str) -> Object:
    private = {"internal_chat_message_metadata_passthrough": {"turn_id": "t"}}
    return line("response_item", type="function_call_output", call_id=name, output="much", **private)


def used(tokens: int) -> Object:
    usage = {"input_tokens": tokens, "cached_input_tokens": 60, "output_tokens": 9, "reasoning_output_tokens": 4}
    return line("token_usage_record", usage=usage)


def count(total: int, last: int) -> Object:
    info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": last}}
    return line("event_msg", type="token_count", info={**info, "model_context_window": 258_400})


META = line("session_meta", id="s1", base_instructions={"text": "You code."})
CONTEXT = line("turn_context", model="gpt-5")


def read(*records: Object | str) -> Conversation:
    (found,) = read_text(lines(META, CONTEXT, *records), "rollout.jsonl")
    assert faults(found.natives, found.format) == ()
    return found


def test_items_calls_and_the_window_are_read():
    found = read(
        said("user", "Do it."),
        call("c1"),
        output("c1"),
        used(100),
        count(100, 100),
        said("assistant", "Done."),
        used(150),
    )
    assert (found.program, found.format, found.id) == ("codex", Format.OPENAI_RESPONSES, "s1")
    assert (found.model, found.window, found.system, found.tools) == ("gpt-5", 258_400, "You code.", None)
    assert [one.place for one in found.calls] == [1, 3]
    assert found.calls[0].usage == Usage(input=100, output=9, cache_read=60, reasoning=4)
    assert found.natives[2] == {"type": "function_call_output", "call_id": "c1", "output": "much"}


def test_older_files_repeat_the_last_usage_and_it_is_taken_once():
    found = read(
        said("user", "Do it."),
        call("c1"),
        output("c1"),
        count(100, 100),
        count(100, 100),
        said("assistant", "Done."),
        count(250, 150),
        line("event_msg", type="token_count", info=None),
    )
    assert [(one.place, one.usage and one.usage.input) for one in found.calls] == [(1, 100), (3, 150)]


def test_an_answer_without_a_report_is_a_call_nevertheless():
    found = read(said("user", "Do it."), call("c1"), output("c1"), said("assistant", "Done."))
    assert [(one.place, one.usage) for one in found.calls] == [(1, None), (3, None)]


def test_a_compaction_replaces_everything():
    history = [said("user", "Do it.")["payload"], said("user", "The summary.")["payload"]]
    found = read(
        said("user", "Do it."),
        said("assistant", "Much."),
        used(90_000),
        line("compacted", message="The summary.", replacement_history=history),
        said("assistant", "Going on."),
        used(4_000),
    )
    assert [(one.place, one.left) for one in found.compactions] == [(4, (2, 3))]
    assert found.turns_in_window() == (2, 3, 4)


def test_an_older_compaction_keeps_what_the_user_said():
    found = read(said("user", "Do it."), said("assistant", "Much."), line("compacted", message="The summary."))
    assert found.turns_in_window() == (2, 0)
    assert "The summary." in str(found.natives[0])


def test_what_was_taken_back_is_counted_and_not_read():
    found = read(
        said("user", "Do it."),
        said("assistant", "Yes."),
        said("user", "No, that."),
        said("assistant", "That."),
        line("event_msg", type="thread_rolled_back", num_turns=1),
        line("event_msg", type="thread_rolled_back", num_turns=7),
        said("user", "Or this."),
    )
    assert [one["content"][0]["text"] for one in found.natives] == ["Do it.", "Yes.", "Or this."]  # type: ignore[index]
    assert found.unread == {"messages that were taken back": 2}
    assert len(found.calls) == 1


def test_what_is_not_sent_and_lines_of_other_kinds_are_passed_over():
    found = read(
        "{torn",
        said("user", "Do it."),
        line("response_item", type="ghost_snapshot", ghost_commit={}),
        line("world_state", state={}),
        line("event_msg", type="task_started"),
        used(100),
    )
    assert len(found.turns) == 1
    assert found.calls == ()
    assert found.unread == {"lines that are not JSON": 1}
