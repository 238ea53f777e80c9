import json

import pytest

from clients.files import Object, lines
from ullage.clients import Conversation, read_text, rewrite_text
from ullage.clients.read_session import holder_of
from ullage.messages import Format

pytestmark = [pytest.mark.requirement("S2:formats")]

CHAT: list[Object] = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Read it."},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "much"},
    {"role": "assistant", "content": "Done."},
]
TOOLS = [{"name": "f", "input_schema": {"type": "object"}}]
SAID: list[Object] = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hi."}]
RESPONSES: list[Object] = [
    {"role": "user", "content": "Hi."},
    {"type": "reasoning", "summary": [], "encrypted_content": "x"},
    {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"},
    {"type": "function_call_output", "call_id": "c", "output": "much"},
]


def read(value: object) -> Conversation:
    (found,) = read_text(json.dumps(value), "x.json")
    return found


def test_a_list_is_told_by_its_shape_and_knows_neither_system_nor_tools():
    found = read(CHAT)
    assert (found.program, found.format, found.model) == ("messages", Format.OPENAI_CHAT, None)
    assert (found.system, found.tools) == (None, None)
    assert [one.place for one in found.calls] == [2, 4]
    assert found.natives == CHAT


def test_lines_with_a_message_each_are_a_list():
    (found,) = read_text(lines(*CHAT, "{torn", '"a text"'), "x.jsonl")
    assert len(found.turns) == 5
    assert found.unread == {"lines that are not JSON": 1, "values that are no message": 1}


@pytest.mark.parametrize(
    ("body", "kind", "system", "tools"),
    [
        ({"model": "gpt-4o", "messages": CHAT}, Format.OPENAI_CHAT, "", ()),
        (
            {"model": "claude", "system": "Help.", "messages": SAID, "tools": TOOLS},
            Format.ANTHROPIC,
            "Help.",
            (*TOOLS,),
        ),
        ({"model": "gpt-5", "instructions": "Help.", "input": RESPONSES}, Format.OPENAI_RESPONSES, "Help.", ()),
        (
            {
                "systemInstruction": {"parts": [{"text": "Help."}]},
                "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
            },
            Format.GEMINI,
            {"parts": [{"text": "Help."}]},
            (),
        ),
    ],
)
def test_of_a_body_all_is_known(body: Object, kind: Format, system: object, tools: tuple[object, ...]):
    found = read(body)
    assert (found.format, found.system, found.tools) == (kind, system, tools)
    assert found.model == body.get("model")
    assert found.natives == body[holder_of(body) or ""]


def test_parts_of_one_answer_are_one_call():
    assert [one.place for one in read({"model": "gpt-5", "input": RESPONSES}).calls] == [1]


def test_lines_with_a_body_each_are_conversations_of_their_own():
    bodies = [{"model": "gpt-4o", "messages": CHAT[:2]}, {"model": "gpt-4o", "messages": CHAT}]
    assert [len(one.turns) for one in read_text(lines(*bodies), "x.jsonl")] == [2, 5]


def test_what_is_no_message_is_counted():
    found = read({"model": "gpt-4o", "messages": [*SAID, 7, {"odd": 1}]})
    assert found.unread == {"values that are no message": 2}


def test_a_message_that_has_an_input_is_no_body():
    assert holder_of({"role": "user", "content": "x", "input": []}) is None


def test_other_messages_are_put_into_the_same_shape():
    body = {"model": "gpt-4o", "messages": CHAT, "temperature": 1}
    assert json.loads(rewrite_text(json.dumps(body), SAID)) == {**body, "messages": SAID}
    assert json.loads(rewrite_text(json.dumps(CHAT), SAID)) == SAID
    assert rewrite_text(lines(*CHAT), SAID) == lines(*SAID)
