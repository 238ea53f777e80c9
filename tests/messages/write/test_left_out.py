"""What a format cannot say, and what a strict provider would refuse, is left out or put so that it is taken."""

import pytest

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    write_message,
)
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:formats")

CHAT, RESPONSES, ANTHROPIC, GEMINI = (
    Format.OPENAI_CHAT,
    Format.OPENAI_RESPONSES,
    Format.ANTHROPIC,
    Format.GEMINI,
)
WIRES = (CHAT, RESPONSES, ANTHROPIC, GEMINI)
SO = Text("So.")
SEALED = {
    ANTHROPIC: Thinking(text="hm", signature="s", sealed_as="signature"),
    GEMINI: Thinking(text="hm", signature="s", sealed_as="thought_signature"),
    RESPONSES: Thinking(text="hm", signature="s", sealed_as="encrypted"),
}
REDACTED = Thinking(text="", signature="s", sealed_as="redacted")


def _content(native: dict[str, Json]) -> Json:
    return native.get("content", native.get("parts"))


@pytest.mark.parametrize("format", list(SEALED))
@pytest.mark.parametrize("owner", list(SEALED))
def test_thinking_goes_back_to_whoever_sealed_it_and_to_nobody_else(owner: Format, format: Format):  # noqa: A002
    natives = write_message(Message(role="assistant", parts=(SEALED[owner], SO)), format)
    assert ("hm" in str(natives)) is (owner is format)


def test_redacted_thinking_goes_back_as_such():
    block = {"type": "redacted_thinking", "data": "s"}
    assert write_message(Message(role="assistant", parts=(REDACTED,)), ANTHROPIC) == [
        {"role": "assistant", "content": [block]}
    ]
    assert write_message(Message(role="assistant", parts=(REDACTED,)), GEMINI) == []


def test_thinking_that_nobody_sealed_goes_only_where_it_needs_no_seal():
    message = Message(role="assistant", parts=(Thinking(text="hm"), SO))
    assert [_content(write_message(message, wire)[-1]) for wire in WIRES] == [
        "So.",
        "So.",
        "So.",
        [{"text": "hm", "thought": True}, {"text": "So."}],
    ]


def _media(kind: str, **place: str) -> Media:
    return Media(kind=kind, **place)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("role", "part", "format"),
    [
        ("user", _media("video", url="https://example.org/x"), CHAT),
        ("user", _media("image", url="file-1"), CHAT),
        ("user", _media("image", url="gs://b/x"), CHAT),
        ("user", _media("audio", url="https://example.org/x"), CHAT),
        ("user", _media("audio", data="AA==", media_type="audio/ogg"), CHAT),
        ("user", _media("document", url="https://example.org/x"), CHAT),
        ("user", _media("audio", data="AA=="), RESPONSES),
        ("user", _media("document", url="gs://b/x"), RESPONSES),
        ("user", _media("audio", data="AA=="), ANTHROPIC),
        ("user", _media("image", data="AA==", media_type="image/tiff"), ANTHROPIC),
        ("user", _media("image", url="gs://b/x"), ANTHROPIC),
        ("user", _media("document", data="AA==", media_type="text/csv"), ANTHROPIC),
        ("user", _media("document"), ANTHROPIC),
        ("user", _media("image", url="file-1"), GEMINI),
        ("system", _media("image", data="AA=="), CHAT),
        ("system", _media("image", data="AA=="), GEMINI),
        *(("assistant", _media("image", data="AA=="), wire) for wire in WIRES[:3]),
        *(("user", ToolCall(name="f", arguments="{}", id="1"), wire) for wire in WIRES),
        *(("user", Thinking(text="", signature="s"), wire) for wire in WIRES),
        *(("assistant", Unknown({"type": "novel"}), wire) for wire in WIRES),
        *(("assistant", Unknown(5), wire) for wire in WIRES),
        ("user", Text(" \n"), ANTHROPIC),
    ],
)
def test_what_has_no_place_is_left_out_and_the_rest_is_said(role: Role, part: Part, format: Format):  # noqa: A002
    alone = Message(role=role, parts=(part,))
    assert write_message(alone, format) == []
    beside = Message(role=role, parts=(part, SO))
    assert write_message(beside, format) == write_message(Message(role=role, parts=(SO,)), format)


def test_a_signature_with_nothing_behind_it_comes_on_an_empty_text():
    message = Message(role="assistant", parts=(SO, Thinking(text="", signature="a"), Thinking(text="", signature="b")))
    (content,) = write_message(message, GEMINI)
    assert content["parts"] == [
        {"text": "So."},
        {"text": "", "thoughtSignature": "a"},
        {"text": "", "thoughtSignature": "b"},
    ]


@pytest.mark.parametrize(
    ("given", "format", "expected"),
    [
        ("toolu_1", ANTHROPIC, "toolu_1"),
        ("functions.f:0", ANTHROPIC, "functions_f_0_b9a7d792"),
        ("c" * 41, CHAT, "c" * 31 + "_cd746718"),
        ("c" * 64, RESPONSES, "c" * 64),
        ("functions.f:0", CHAT, "functions.f:0"),
        (None, CHAT, "call_f"),
    ],
)
def test_an_id_is_put_so_that_it_is_taken_alike_for_call_and_result(given: str, format: Format, expected: str):  # noqa: A002
    call = write_message(Message(role="assistant", parts=(ToolCall(name="f", arguments="{}", id=given),)), format)
    result = ToolResult(parts=(SO,), call_id=given, name="f")
    (answer,) = write_message(Message(role="tool", parts=(result,)), format)
    assert f"'{expected}'" in str(call)
    assert f"'{expected}'" in str(answer)


@pytest.mark.parametrize("arguments", ["[1]", "NaN", '{"a": NaN}', "{", "[" * 100_000])
@pytest.mark.parametrize(("format", "key"), [(ANTHROPIC, "input"), (GEMINI, "args")])
def test_arguments_that_are_no_object_are_put_into_one(arguments: str, format: Format, key: str):  # noqa: A002
    (native,) = write_message(Message(role="assistant", parts=(ToolCall(name="f", arguments=arguments),)), format)
    assert str({key: {"arguments": arguments}})[1:-1] in str(native)


def test_a_result_that_is_neither_text_nor_medium_is_said_as_json():
    result = ToolResult(parts=(Unknown({"type": "novel", "é": 1}), Unknown({"mark": 1}), Unknown([2])), call_id="1")
    message = Message(role="tool", parts=(result,))
    said = ['{"type":"novel","é":1}', "[2]"]
    assert write_message(message, CHAT)[0]["content"] == [{"type": "text", "text": text} for text in said]
    assert write_message(message, GEMINI)[0]["parts"] == [
        {"functionResponse": {"id": "1", "name": "tool", "response": {"output": "\n".join(said)}}}
    ]


@pytest.mark.parametrize(("format", "key"), [(CHAT, "content"), (RESPONSES, "output")])
def test_a_result_that_says_nothing_is_an_empty_text(format: Format, key: str):  # noqa: A002
    message = Message(role="tool", parts=(ToolResult(parts=(), call_id="1"),))
    assert write_message(message, format)[0][key] == ""


def test_what_only_anthropic_puts_into_a_result_stays_as_it_is():
    block: Json = {"type": "tool_reference", "tool_name": "f"}
    (native,) = write_message(
        Message(role="user", parts=(ToolResult(parts=(Unknown(block), SO), call_id="1"),)), ANTHROPIC
    )
    assert native["content"] == [
        {"type": "tool_result", "tool_use_id": "1", "content": [block, {"type": "text", "text": "So."}]}
    ]


def test_a_file_without_a_name_gets_one_and_a_kept_file_goes_by_its_id():
    parts = (_media("document", data="AA=="), _media("document", url="file-1"))
    pdf = "data:application/pdf;base64,AA=="
    assert write_message(Message(role="user", parts=parts), CHAT)[0]["content"] == [
        {"type": "file", "file": {"filename": "document.pdf", "file_data": pdf}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]
    assert write_message(Message(role="user", parts=parts), RESPONSES)[0]["content"] == [
        {"type": "input_file", "filename": "document.pdf", "file_data": pdf},
        {"type": "input_file", "file_id": "file-1"},
    ]


def test_a_call_keeps_the_namespace_it_was_made_in():
    parts = (ToolCall(name="f", arguments="{}", id="c1"), Unknown({"id": "fc_1"}), Unknown({"namespace": "n"}))
    assert write_message(Message(role="assistant", parts=parts), RESPONSES) == [
        {"type": "function_call", "id": "fc_1", "namespace": "n", "call_id": "c1", "name": "f", "arguments": "{}"}
    ]


def test_a_custom_call_of_a_chat_stays_as_it_is():
    call: Json = {"id": "1", "type": "custom", "custom": {"name": "f", "input": "x"}}
    assert write_message(Message(role="assistant", parts=(Unknown(call),)), CHAT) == [
        {"role": "assistant", "content": None, "tool_calls": [call]}
    ]


def test_words_in_a_message_of_results_are_the_users():
    message = Message(role="tool", parts=(SO, ToolResult(parts=(Text("x"),), call_id="1")))
    assert [native.get("role") for native in write_message(message, CHAT)] == ["tool", "user"]
    assert [native.get("role") for native in write_message(message, RESPONSES)] == [None, "user"]
    assert [native.get("role") for native in write_message(message, ANTHROPIC)] == ["user"]


def test_the_answer_of_a_server_tool_is_an_answer_of_any_tool_elsewhere():
    parts = (
        ToolCall(name="web_search", arguments="{}", id="srvtoolu_1"),
        ToolResult(parts=(Unknown({"type": "found"}),), call_id="srvtoolu_1", name="web_search_tool_result"),
        SO,
    )
    message = Message(role="assistant", parts=parts)
    assert [native["role"] for native in write_message(message, CHAT)] == ["assistant", "tool", "assistant"]
    assert [native["role"] for native in write_message(message, GEMINI)] == ["model", "user", "model"]
    assert [native["role"] for native in write_message(message, ANTHROPIC)] == ["assistant"]
