import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.messages import Format, Media, Message, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.messages.openai import read_responses
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:formats")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_a_text_alone_is_what_the_user_said() -> None:
    request = read_responses({"model": "gpt-5", "input": "Hi", "instructions": "Be brief."})
    assert request.format is Format.OPENAI_RESPONSES
    assert request.system == (Message(role="developer", parts=(Text("Be brief."),)),)
    assert request.messages == (Message(role="user", parts=(Text("Hi"),)),)


def test_each_item_is_a_message_in_its_place() -> None:
    request = read_responses(
        {
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Add."}]},
                {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "2"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two."}]},
            ]
        }
    )
    assert request.messages == (
        Message(role="user", parts=(Text("Add."),)),
        Message(role="assistant", parts=(ToolCall(name="add", arguments="{}", id="c1"),)),
        Message(role="tool", parts=(ToolResult(parts=(Text("2"),), call_id="c1"),)),
        Message(role="assistant", parts=(Text("Two."),)),
    )


def test_a_call_keeps_the_id_it_is_stored_under() -> None:
    item: Json = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": "{}"}
    assert read_responses({"input": [item]}).messages[0].parts[1] == Unknown({"id": "fc_1"})


def test_reasoning_keeps_its_summary_and_its_seal() -> None:
    item: Json = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Sums"}],
        "encrypted_content": "gAAA",
    }
    assert read_responses({"input": [item]}).messages[0].parts == (Thinking(text="Sums", signature="gAAA"),)


def test_an_output_may_hold_an_image() -> None:
    output: Json = [{"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "high"}]
    item: Json = {"type": "function_call_output", "call_id": "c1", "output": output}
    image = Media(kind="image", media_type="image/png", data="AAAA", detail="high")
    assert read_responses({"input": [item]}).messages[0].parts == (ToolResult(parts=(image,), call_id="c1"),)


def test_what_the_provider_did_itself_is_the_assistants_and_raw() -> None:
    item: Json = {"type": "web_search_call", "id": "ws_1", "action": {"query": "rain"}}
    assert read_responses({"input": [item]}).messages == (Message(role="assistant", parts=(Unknown(item),)),)


def test_the_answer_format_is_told_from_the_other_settings_of_text() -> None:
    request = read_responses(
        {"input": "Hi", "text": {"format": {"type": "json_object"}, "verbosity": "low"}, "store": False}
    )
    assert request.output_schema == {"type": "json_object"}
    assert request.settings == {"store": False, "text": {"verbosity": "low"}}


def test_a_deferred_function_is_not_shown_as_one_of_the_callers_tools() -> None:
    tool: Json = {"type": "function", "name": "far", "parameters": {}, "defer_loading": True}
    (found,) = read_responses({"input": "Hi", "tools": [tool]}).tools
    assert (found.name, found.hosted) == ("far", tool)


@pytest.mark.parametrize("item", [4, None, {"role": "prophet"}, {"type": 7}, {"type": "function_call", "name": None}])
def test_an_item_of_no_known_shape_is_kept_raw(item: Json) -> None:
    (message,) = read_responses({"input": [item]}).messages
    assert message.parts == (Unknown(item),)


@given(st.dictionaries(st.sampled_from(["input", "tools", "model", "instructions", "text"]), JSON))
def test_no_body_makes_the_reader_fail(body: dict[str, Json]) -> None:
    read_responses(body)
