"""Are OpenAI's own rules held in chat and in Responses, and only those?"""

import pytest

from ullage.messages import Format
from ullage.messages.validate_history import faults
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:compact:valid")

Item = dict[str, Json]

ASKED: Item = {"role": "user", "content": "hello"}
SAID: Item = {"role": "assistant", "content": "so"}


def chat(*messages: Json) -> list[str]:
    return list(faults(list(messages), Format.OPENAI_CHAT))


def calls(*ids: str) -> Item:
    return {"role": "assistant", "tool_calls": [{"id": one, "function": {"name": "look"}} for one in ids]}


def answer(identity: str) -> Item:
    return {"role": "tool", "tool_call_id": identity, "content": "done"}


def test_calls_are_answered_before_the_next_message() -> None:
    assert chat(ASKED, calls("a", "b"), answer("b"), answer("a"), SAID) == []
    assert chat(ASKED, calls("a", "b"), answer("b"), SAID) == ["the call `a` has no result before the next message"]
    assert chat(ASKED, calls("a"), answer("a"), answer("a")) == ["the result of `a` has no call before it"]
    assert chat(ASKED, calls("a"), answer("a"), SAID, answer("a")) == ["the result of `a` has no call before it"]


def test_not_even_the_system_speaks_between_a_call_and_its_result() -> None:
    said: Item = {"role": "system", "content": "be brief"}
    assert chat(ASKED, calls("a"), said, answer("a")) == [
        "the call `a` has no result before the next message",
        "the result of `a` has no call before it",
    ]


def test_ids_are_unique_in_a_message_and_may_be_missing() -> None:
    assert chat(ASKED, calls("a", "a"), answer("a"), answer("a")) == ["two calls of one message have the id `a`"]
    assert chat(ASKED, calls("", ""), answer(""), answer("")) == []


@pytest.mark.parametrize("instead", [{"refusal": "no"}, {"function_call": {"name": "look"}}, {"audio": {"id": "x"}}])
def test_only_one_who_does_something_else_needs_no_content(instead: Item) -> None:
    assert chat(ASKED, {"role": "assistant", "content": None}) == ["a message of the role `assistant` has no content"]
    assert chat({"role": "user"}) == ["a message of the role `user` has no content"]
    assert chat(ASKED, {"role": "assistant", "content": None, **instead}) == []
    assert chat({"role": "user", "content": ""}) == []


def test_a_list_without_items_is_refused() -> None:
    assert chat({"role": "user", "content": []}) == ["a message of the role `user` has an empty list"]
    assert chat(ASKED, {**SAID, "tool_calls": []}) == ["a message of the role `assistant` has an empty list"]


def responses(*items: Json, original: list[Json] | None = None) -> list[str]:
    return list(faults(list(items), Format.OPENAI_RESPONSES, original=original))


def called(identity: str, kind: str = "function_call", **more: Json) -> Item:
    return {"type": kind, "call_id": identity, "name": "look", **more}


def output(identity: str, kind: str = "function_call_output") -> Item:
    return {"type": kind, "call_id": identity, "output": "done"}


def reasoning(identity: str) -> Item:
    return {"type": "reasoning", "id": identity, "summary": [], "encrypted_content": f"sealed {identity}"}


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call", "computer_call", "local_shell_call"])
def test_every_call_has_its_output_and_every_output_its_call(kind: str) -> None:
    assert responses(ASKED, called("a", kind), called("b", kind), output("b"), output("a", f"{kind}_output")) == []
    assert responses(ASKED, called("a", kind)) == ["the call `a` has no output"]
    assert responses(ASKED, output("a", f"{kind}_output")) == ["the output of `a` has no call before it"]
    assert responses(ASKED, output("a"), called("a", kind)) == [
        "the output of `a` has no call before it",
        "the call `a` has no output",
    ]


def test_a_search_for_tools_may_have_no_output() -> None:
    assert responses(ASKED, called("s", "tool_search_call"), SAID) == []
    assert responses(ASKED, called("s", "tool_search_call"), output("s", "tool_search_output")) == []
    assert responses(ASKED, output("s", "tool_search_output")) == ["the output of `s` has no call before it"]


def test_what_openai_runs_itself_needs_no_output() -> None:
    assert responses(ASKED, {"type": "web_search_call", "id": "ws"}, SAID) == []


def test_reasoning_is_followed_by_an_item_of_the_models() -> None:
    assert responses(ASKED, reasoning("r"), reasoning("q"), called("a"), output("a")) == []
    assert responses(ASKED, reasoning("r"), SAID) == []
    for after in ([], [ASKED], [output("a")]):
        items = [ASKED, called("a"), output("a")] if after == [] else [ASKED, called("a")]
        told = responses(*items, reasoning("r"), *after)
        assert "the reasoning `r` has not the item that followed it" in told


def test_no_two_items_have_one_id() -> None:
    assert responses(ASKED, reasoning("r"), SAID, reasoning("r"), SAID) == ["two items have the id `r`"]


def test_a_message_without_content_is_refused() -> None:
    assert responses({"role": "user", "content": []}) == ["a message has an empty list"]


def test_reasoning_stays_as_it_was() -> None:
    original: list[Json] = [ASKED, reasoning("r"), SAID]
    assert responses(*original, original=original) == []
    other = {**reasoning("r"), "encrypted_content": "broken"}
    assert responses(ASKED, other, SAID, original=original) == ["an item of reasoning is not what it was"]


def test_an_item_that_is_known_by_its_id_keeps_the_reasoning_before_it() -> None:
    first, second = called("a", id="fc_a"), called("b", id="fc_b")
    outputs = [output("a"), output("b")]
    original: list[Json] = [ASKED, reasoning("r"), first, second, *outputs]
    assert responses(ASKED, first, second, *outputs, original=original) == [
        "the reasoning before the item `fc_a` is missing",
        "the reasoning before the item `fc_b` is missing",
    ]
    assert responses(ASKED, called("a"), output("a"), original=original) == []
    assert responses(ASKED, reasoning("r"), first, output("a"), original=original) == []


def test_the_user_may_speak_after_what_the_model_or_a_tool_said() -> None:
    approval: Item = {"type": "mcp_approval_response", "approve": True, "call_id": "m"}
    said: Item = {"role": "developer", "content": "be brief"}
    assert responses(ASKED, SAID, ASKED, approval, ASKED, original=[]) == []
    assert responses(ASKED, said, ASKED, original=[]) == ["two turns of the user's are adjacent"]


def test_an_output_may_answer_a_call_that_is_given_by_reference() -> None:
    output: Json = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    reference: Json = {"type": "item_reference", "id": "fc_1"}
    assert faults([ASKED, reference, output], Format.OPENAI_RESPONSES) == ()
    assert faults([ASKED, output], Format.OPENAI_RESPONSES) == ("the output of `c1` has no call before it",)
