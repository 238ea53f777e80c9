"""Are Google's own rules held, and only those?"""

import pytest

from ullage.messages import Format
from ullage.messages.validate_history import faults
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:compact:valid")


def user(*parts: Json) -> dict[str, Json]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Json) -> dict[str, Json]:
    return {"role": "model", "parts": list(parts)}


def call(name: str, signature: str | None = None, path: str = "a.py") -> dict[str, Json]:
    part: dict[str, Json] = {"functionCall": {"name": name, "args": {"path": path}}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def response(name: str) -> dict[str, Json]:
    return {"functionResponse": {"name": name, "response": {"ok": True}}}


def found(*contents: Json, original: list[Json] | None = None) -> list[str]:
    return list(faults(list(contents), Format.GEMINI, original=original))


ASKED = user({"text": "hello"})


def test_responses_follow_their_calls_as_many_as_there_are() -> None:
    assert found(ASKED, model(call("read"), call("read")), user(response("read"), response("read"))) == []
    assert found(ASKED, model(call("read"), call("read")), user(response("read"))) == [
        "a call of `read` has no response in the next turn"
    ]
    assert found(ASKED, model(call("read")), user(response("read"), response("read"))) == [
        "a response of `read` has no call in the turn before"
    ]
    assert found(ASKED, model(call("read")), user(response("list"))) == [
        "a call of `read` has no response in the next turn",
        "a response of `list` has no call in the turn before",
    ]


def test_neighbours_of_one_role_are_one_turn_whatever_the_functions_role_is_called() -> None:
    answers = [{"role": "function", "parts": [response("read")]}, {"parts": [response("list")]}]
    assert found(ASKED, model(call("read")), model(call("list")), *answers) == []


def test_both_spellings_are_understood() -> None:
    called = {"role": "model", "parts": [{"function_call": {"name": "read"}}]}
    assert found(ASKED, called) == ["a call of `read` has no response in the next turn"]
    assert found(ASKED, called, user({"function_response": {"name": "read"}})) == []


@pytest.mark.parametrize("content", [{"role": "user", "parts": []}, {"role": "user"}])
def test_a_content_has_parts(content: Json) -> None:
    assert found(content) == ["a content has no parts"]


def test_no_history_begins_with_calls() -> None:
    assert found(model(call("read")), user(response("read"))) == ["the first turn is one of calls"]


def test_the_first_call_of_a_turn_keeps_its_signature() -> None:
    signed = model(call("read", "s"), call("list"))
    answered = user(response("read"), response("list"))
    original: list[Json] = [ASKED, signed, answered]
    assert found(*original, original=original) == []
    bare = model(call("read"), call("list"))
    told = ["the call of `read` has not the signature it had"]
    assert found(ASKED, bare, answered, original=original) == told
    assert found(ASKED, bare, answered, original=[ASKED, bare, answered]) == []


def test_a_call_that_was_not_the_first_may_not_become_it() -> None:
    original: list[Json] = [ASKED, model(call("read", "s"), call("list")), user(response("read"), response("list"))]
    halved = [ASKED, model(call("list")), user(response("list"))]
    assert found(*halved, original=original) == ["the call of `list` has not the signature it had"]


def test_the_same_call_may_have_been_signed_once_and_not_another_time() -> None:
    once: list[Json] = [ASKED, model(call("read", "s")), user(response("read"))]
    again: list[Json] = [model(call("read")), user(response("read"))]
    assert found(ASKED, *again, original=[*once, *again]) == []
