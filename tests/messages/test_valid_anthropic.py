"""Are Anthropic's own rules held, and only those?"""

import pytest

from ullage.messages import Format
from ullage.messages.validate_history import faults
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:compact:valid")

Block = dict[str, Json]


def user(*content: Json) -> dict[str, Json]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Json) -> dict[str, Json]:
    return {"role": "assistant", "content": list(content)}


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def call(identity: str) -> Block:
    return {"type": "tool_use", "id": identity, "name": "look", "input": {}}


def result(identity: str, content: Json = "done") -> Block:
    return {"type": "tool_result", "tool_use_id": identity, "content": content}


def thinking(words: str) -> Block:
    return {"type": "thinking", "thinking": words, "signature": f"sealed {words}"}


def found(*messages: Json, original: list[Json] | None = None) -> list[str]:
    return list(faults(list(messages), Format.ANTHROPIC, original=original))


ASKED = user(text("hello"))


@pytest.mark.parametrize("content", ["", [], None])
def test_only_the_assistants_last_message_may_be_empty(content: Json) -> None:
    assert found({"role": "user", "content": content}) == ["a message of the role `user` has no content"]
    assert found(ASKED, {"role": "assistant", "content": content}, ASKED) == [
        "a message of the role `assistant` has no content"
    ]
    assert found(ASKED, {"role": "assistant", "content": content}) == []


@pytest.mark.parametrize("words", ["", " \n"])
def test_no_text_block_is_empty_not_even_in_a_result(words: str) -> None:
    assert found(user(text("hello"), text(words))) == ["a message of the role `user` has an empty text block"]
    inside = user(result("a", [text(words)]))
    assert found(ASKED, assistant(call("a")), inside) == ["a message of the role `user` has an empty text block"]


def test_a_result_may_be_empty() -> None:
    assert found(ASKED, assistant(call("a")), user(result("a", ""))) == []
    assert found(ASKED, assistant(call("a")), user({"type": "tool_result", "tool_use_id": "a"})) == []


def test_the_last_message_of_the_assistant_does_not_end_in_white_space() -> None:
    assert found(ASKED, assistant(text("so "))) == ["the assistant's last message ends in white space"]
    assert found(ASKED, assistant(text("so ")), ASKED) == []


def test_results_stand_first_in_the_next_message() -> None:
    calls = assistant(call("a"), call("b"))
    assert found(ASKED, calls, user(result("b"), result("a"), text("thanks"))) == []
    assert found(ASKED, calls, user(result("a"), text("wait"), result("b"))) == [
        "something comes before the result of `b`"
    ]
    assert found(ASKED, calls, user(result("a"))) == ["the call `b` has no result in the next turn"]
    assert found(ASKED, calls, user(result("a"), result("b")), assistant(text("so")), user(result("a"))) == [
        "the result of `a` has no call in the turn before"
    ]


def test_a_call_has_one_result_and_an_id_of_its_own() -> None:
    assert found(ASKED, assistant(call("a")), user(result("a"), result("a"))) == ["the call `a` has 2 results"]
    assert found(ASKED, assistant(call("a"), call("a")), user(result("a"))) == ["two calls of one turn have the id `a`"]


def test_neighbours_of_one_role_are_one_turn() -> None:
    parted = [ASKED, assistant(call("a")), assistant(call("b")), user(result("a")), user(result("b"))]
    assert found(*parted) == []


def test_the_system_may_speak_among_the_messages() -> None:
    said: Block = {"role": "system", "content": "be brief"}
    assert found(ASKED, assistant(call("a")), said, user(result("a")), original=[]) == []


def search(identity: str) -> Block:
    return {"type": "server_tool_use", "id": identity, "name": "web_search", "input": {}}


def hits(identity: str) -> Block:
    return {"type": "web_search_tool_result", "tool_use_id": identity, "content": []}


def test_what_the_server_ran_stands_with_its_result() -> None:
    assert found(ASKED, assistant(search("s"), hits("s"), text("so")), ASKED) == []
    assert found(ASKED, assistant(search("s")), ASKED) == ["the server's call `s` has no result"]
    assert found(ASKED, assistant(hits("s"))) == ["the server's result of `s` has no call before it"]


def test_what_the_server_runs_may_not_have_ended() -> None:
    assert found(ASKED, assistant(search("s"))) == []
    calling_from_code = [ASKED, assistant(search("s"), call("a")), user(result("a")), assistant(hits("s"), text("so"))]
    assert found(*calling_from_code) == []


def test_a_turn_does_not_end_in_thinking() -> None:
    assert found(ASKED, assistant(thinking("hm"))) == ["a turn of the assistant's ends in thinking"]


def test_thinking_stays_as_it_was() -> None:
    original: list[Json] = [ASKED, assistant(thinking("hm"), call("a")), user(result("a"))]
    assert found(*original, original=original) == []
    other = assistant({**thinking("hm"), "thinking": "ha"}, call("a"))
    assert found(ASKED, other, user(result("a")), original=original) == ["a thinking block is not what it was"]


def test_thinking_is_missing_only_where_the_user_has_not_spoken_since() -> None:
    original: list[Json] = [ASKED, assistant(thinking("hm"), call("a")), user(result("a"))]
    without: list[Json] = [ASKED, assistant(call("a")), user(result("a"))]
    assert found(*without, original=original) == ["the thinking before the call `a` is missing"]
    assert found(*without[1:], original=original)[-1] == "the thinking before the call `a` is missing"
    more: list[Json] = [assistant(text("so")), ASKED]
    assert found(*without, *more, original=[*original, *more]) == []
