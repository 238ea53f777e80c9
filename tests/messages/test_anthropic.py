"""Does the reader find all that is in a Messages request, whatever its shape?"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from json import dumps

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.messages import Format, Media, Message, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.messages.anthropic import read
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:formats")


def parts_of(*blocks: Json, role: str = "user") -> tuple[object, ...]:
    return read({"messages": [{"role": role, "content": list(blocks)}]}).messages[0].parts


def test_content_as_text_and_as_one_text_block_are_the_same() -> None:
    as_text = read({"model": "claude-opus-4-5", "messages": [{"role": "user", "content": "Hi"}]})
    as_block = read(
        {"model": "claude-opus-4-5", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}
    )
    assert as_text == as_block
    assert as_text.format is Format.ANTHROPIC
    assert as_text.messages == (Message(role="user", parts=(Text("Hi"),)),)


@pytest.mark.parametrize(
    "system", ["Be kind.", [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]]
)
def test_a_system_prompt_may_be_a_text_or_blocks(system: Json) -> None:
    assert read({"system": system, "messages": []}).system == (Message(role="system", parts=(Text("Be kind."),)),)


def test_a_system_message_may_stand_among_the_messages() -> None:
    assert read({"messages": [{"role": "system", "content": "Now in Spanish."}]}).messages[0].role == "system"


def test_a_call_keeps_its_name_its_id_and_compact_arguments() -> None:
    block = {
        "type": "tool_use",
        "id": "t1",
        "name": "add",
        "input": {"x": 1, "y": [2, 3]},
        "caller": {"type": "direct"},
    }
    assert parts_of(block, role="assistant") == (ToolCall(name="add", arguments='{"x":1,"y":[2,3]}', id="t1"),)


@pytest.mark.parametrize(
    ("content", "parts"),
    [("3", (Text("3"),)), ([{"type": "text", "text": "3"}], (Text("3"),)), (None, ()), ([], ())],
)
def test_a_result_may_hold_a_text_blocks_or_nothing(content: Json, parts: tuple[Text, ...]) -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content, "is_error": True}
    assert parts_of(block) == (ToolResult(parts=parts, call_id="t1", is_error=True),)


def test_the_result_of_a_tool_that_anthropic_ran_is_named_by_its_type() -> None:
    found: Json = {"type": "web_search_result", "title": "Sky", "url": "https://example.org"}
    block = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [found]}
    assert parts_of(block) == (ToolResult(parts=(Unknown(found),), call_id="s1", name="web_search_tool_result"),)


def test_thinking_keeps_its_signature_and_redacted_thinking_is_all_signature() -> None:
    content: list[Json] = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
    ]
    assert parts_of(*content) == (Thinking(text="Hm.", signature="s"), Thinking(text="", signature="d"))


@pytest.mark.parametrize(
    ("source", "medium"),
    [
        (
            {"type": "base64", "media_type": "image/png", "data": "aGk="},
            Media(kind="image", media_type="image/png", data="aGk="),
        ),
        ({"type": "url", "url": "https://example.org/a.png"}, Media(kind="image", url="https://example.org/a.png")),
        ({"type": "file", "file_id": "file_1"}, Media(kind="image", url="file_1")),
    ],
)
def test_an_image_is_found_wherever_its_bytes_are(source: Json, medium: Media) -> None:
    assert parts_of({"type": "image", "source": source}) == (medium,)


def test_a_text_document_gives_its_text_and_what_is_said_about_it() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "Grass is green."}
    block = {"type": "document", "source": source, "title": "Facts", "citations": {"enabled": True}}
    said = {"title": "Facts", "citations": {"enabled": True}, "media_type": "text/plain"}
    assert parts_of(block) == (Text("Grass is green."), Unknown({"document": said}))


def test_a_document_of_blocks_gives_them_all_and_a_pdf_is_a_medium() -> None:
    blocks = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "One."}]}}
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}}
    assert parts_of(blocks) == (Text("One."), Unknown({"document": {}}))
    assert parts_of(pdf)[0] == Media(kind="document", media_type="application/pdf", data="aGk=")


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "container_upload", "file_id": "f"},
        {"type": "text"},
        {"type": "image", "source": {"type": "base64"}},
        {"type": "tool_use", "input": {}},
        {"type": 7},
        {"no": "type"},
        3,
        None,
        ["nested"],
    ],
)
def test_a_block_of_unknown_shape_is_kept_raw(odd: Json) -> None:
    assert parts_of(odd) == (Unknown(odd),)


def test_what_stands_beside_a_known_block_is_kept() -> None:
    assert parts_of({"type": "text", "text": "So.", "citations": [{"cited_text": "x"}]}) == (
        Text("So."),
        Unknown({"citations": [{"cited_text": "x"}]}),
    )


def test_a_message_of_unknown_role_is_kept_raw() -> None:
    assert read({"messages": [{"role": "narrator", "content": "Once"}, "twice"]}).messages == (
        Message(role="user", parts=(Unknown({"role": "narrator", "content": "Once"}),)),
        Message(role="user", parts=(Unknown("twice"),)),
    )


def test_own_tools_are_taken_apart_and_all_others_stay_raw() -> None:
    schema: Json = {"type": "object", "properties": {}}
    own: Json = {
        "name": "a",
        "description": "A.",
        "input_schema": schema,
        "strict": True,
        "cache_control": {"type": "ephemeral"},
    }
    later: Json = {"name": "b", "input_schema": schema, "defer_loading": True}
    theirs: Json = {"type": "web_search_20250305", "name": "web_search"}
    first, second, third, fourth = read({"messages": [], "tools": [own, later, theirs, "?"]}).tools
    assert (first.name, first.description, first.schema, first.strict, first.hosted) == ("a", "A.", schema, True, None)
    assert (second.name, second.hosted) == ("b", later)
    assert (third.name, third.hosted) == ("web_search", theirs)
    assert fourth.hosted == {"tool": "?"}


@pytest.mark.parametrize(
    "body", [{"output_format": {"type": "json_schema"}}, {"output_config": {"format": {"type": "json_schema"}}}]
)
def test_the_schema_of_the_answer_is_found_in_both_places(body: dict[str, Json]) -> None:
    assert read(body).output_schema == {"type": "json_schema"}


def test_every_other_key_goes_to_the_settings() -> None:
    request = read({"model": "m", "messages": [], "max_tokens": 5, "thinking": {"type": "adaptive"}, "odd": None})
    assert request.settings == {"max_tokens": 5, "thinking": {"type": "adaptive"}, "odd": None}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "x", "id"]), inner, max_size=3)
    ),
    max_leaves=8,
)
kinds = st.sampled_from(["text", "thinking", "image", "document", "tool_use", "tool_result", "mcp_tool_result", "new"])
keys = st.sampled_from(["text", "source", "content", "input", "name", "id", "data", "title", "citations", "thinking"])
blocks = st.builds(lambda kind, rest: {**rest, "type": kind}, kinds, st.dictionaries(keys, json_values, max_size=4))


@given(st.lists(blocks | json_values, max_size=4))
def test_no_text_of_any_content_is_lost(content: list[Json]) -> None:
    request = read({"messages": [{"role": "user", "content": content}]})
    kept = "\n".join(_texts(request))
    for text in _texts([_without_marks(block) for block in content]):
        assert text in kept or dumps(text, ensure_ascii=False)[1:-1] in kept


@given(st.dictionaries(st.sampled_from(["model", "system", "messages", "tools", "output_config", "x"]), json_values))
def test_no_body_makes_the_reader_fail(body: dict[str, Json]) -> None:
    read(body)


def _without_marks(block: object) -> object:
    return {key: value for key, value in block.items() if key != "type"} if isinstance(block, dict) else block


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(getattr(value, field.name))
