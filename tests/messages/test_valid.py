"""Does a history that a provider would refuse show, and one that it takes never?"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.messages import Format, Message, Text, Thinking, ToolCall, ToolResult
from ullage.messages.validate_history import faults
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:compact:valid")

USER, CALLS, RESULTS, SAID = "user", "calls", "results", "said"
Step = tuple[str, tuple[str, ...]]
"""Who does what: the user speaks, the assistant says something or calls, the tools answer; with the ids of calls."""


def written(step: Step, form: Format) -> list[object]:
    """One step in each provider's words."""
    kind, ids = step
    return {
        Format.OPENAI_CHAT: _chat,
        Format.OPENAI_RESPONSES: _responses,
        Format.ANTHROPIC: _anthropic,
        Format.GEMINI: _gemini,
        Format.ULLAGE: _neutral,
    }[form](kind, ids)


def _chat(kind: str, ids: tuple[str, ...]) -> list[object]:
    if kind == RESULTS:
        return [{"role": "tool", "tool_call_id": call, "content": "done"} for call in ids]
    calls = [{"id": call, "type": "function", "function": {"name": "look", "arguments": "{}"}} for call in ids]
    if kind == CALLS:
        return [{"role": "assistant", "content": None, "tool_calls": calls}]
    return [{"role": "user" if kind == USER else "assistant", "content": "words"}]


def _responses(kind: str, ids: tuple[str, ...]) -> list[object]:
    if kind == RESULTS:
        return [{"type": "function_call_output", "call_id": call, "output": "done"} for call in ids]
    if kind == CALLS:
        return [{"type": "function_call", "call_id": call, "name": "look", "arguments": "{}"} for call in ids]
    return [{"role": "user" if kind == USER else "assistant", "content": "words"}]


def _anthropic(kind: str, ids: tuple[str, ...]) -> list[object]:
    if kind == RESULTS:
        blocks = [{"type": "tool_result", "tool_use_id": call, "content": "done"} for call in ids]
        return [{"role": "user", "content": blocks}]
    calls = [{"type": "tool_use", "id": call, "name": "look", "input": {}} for call in ids]
    text = {"type": "text", "text": "words"}
    return [{"role": "user" if kind == USER else "assistant", "content": [text, *calls]}]


def _gemini(kind: str, ids: tuple[str, ...]) -> list[object]:
    if kind == RESULTS:
        return [{"role": "user", "parts": [{"functionResponse": {"name": call, "response": {}}} for call in ids]}]
    calls = [{"functionCall": {"name": call, "args": {}}} for call in ids]
    return [{"role": "user" if kind == USER else "model", "parts": [{"text": "words"}, *calls]}]


def _neutral(kind: str, ids: tuple[str, ...]) -> list[object]:
    if kind == RESULTS:
        return [Message(role="tool", parts=(ToolResult(parts=(Text("done"),), call_id=call),)) for call in ids]
    calls = tuple(ToolCall(name="look", arguments="{}", id=call) for call in ids)
    return [Message(role="user" if kind == USER else "assistant", parts=(Text("words"), *calls))]


def history(steps: list[Step], form: Format) -> list[object]:
    return [native for step in steps for native in written(step, form)]


@st.composite
def valid_steps(draw: st.DrawFn) -> list[Step]:
    """Turns of the user, each worked on with some rounds of calls and an answer; the last may still be at work."""
    numbers, steps = count(), list[Step]()
    for _ in range(draw(st.integers(1, 4))):
        steps.append((USER, ()))
        for size in draw(st.lists(st.integers(1, 3), max_size=3)):
            ids = tuple(f"c{next(numbers)}" for _ in range(size))
            steps += [(CALLS, ids), (RESULTS, ids)]
        steps.append((SAID, ()))
    return steps[:-1] if draw(st.booleans()) else steps


every_format = pytest.mark.parametrize("form", list(Format))


@every_format
@given(steps=valid_steps())
def test_a_history_that_providers_take_has_no_fault(form: Format, steps: list[Step]) -> None:
    whole = history(steps, form)
    assert faults(whole, form) == ()
    assert faults(whole, form, original=()) == ()
    assert faults(whole, form, original=whole) == ()


@every_format
@given(data=st.data(), steps=valid_steps().filter(lambda steps: any(ids for _, ids in steps)))
def test_calls_without_results_and_results_without_calls_are_faults(
    form: Format, data: st.DataObject, steps: list[Step]
) -> None:
    at = data.draw(st.sampled_from([place for place, (_, ids) in enumerate(steps) if ids]))
    broken = history(steps[:at] + steps[at + 1 :], form)
    assert faults(broken, form)
    assert faults(broken, form, original=history(steps, form))


@every_format
@given(data=st.data(), steps=valid_steps().filter(lambda steps: any(len(ids) > 1 for _, ids in steps)))
def test_one_result_of_several_that_is_missing_is_a_fault(form: Format, data: st.DataObject, steps: list[Step]) -> None:
    at = data.draw(st.sampled_from([n for n, (kind, ids) in enumerate(steps) if kind == RESULTS and len(ids) > 1]))
    broken = [*steps[:at], (RESULTS, steps[at][1][1:]), *steps[at + 1 :]]
    assert faults(history(broken, form), form)


@every_format
@given(data=st.data(), steps=valid_steps().filter(lambda steps: any(ids for _, ids in steps)))
def test_a_cut_between_a_call_and_its_result_is_a_fault(form: Format, data: st.DataObject, steps: list[Step]) -> None:
    at = data.draw(st.sampled_from([place for place, (kind, _) in enumerate(steps) if kind == RESULTS]))
    tail = history([(USER, ()), *steps[at:]], form)
    assert faults(tail, form, original=history(steps, form))


@every_format
@given(data=st.data(), steps=valid_steps().filter(lambda steps: any(ids for _, ids in steps)))
def test_a_word_of_the_user_before_the_results_is_a_fault_unless_nobody_minds(
    form: Format, data: st.DataObject, steps: list[Step]
) -> None:
    at = data.draw(st.sampled_from([place for place, (kind, _) in enumerate(steps) if kind == RESULTS]))
    parted = history([*steps[:at], (USER, ()), *steps[at:]], form)
    minds = form not in (Format.OPENAI_RESPONSES, Format.GEMINI)
    assert bool(faults(parted, form)) is minds


@every_format
def test_turns_side_by_side_are_told_only_of_what_was_made_of_an_original(form: Format) -> None:
    side_by_side = history([(USER, ()), (USER, ()), (SAID, ())], form)
    assert faults(side_by_side, form) == ()
    alternating = history([(USER, ()), (SAID, ())], form)
    assert faults(side_by_side, form, original=alternating) == ("two turns of the user's are adjacent",)
    assert faults(side_by_side, form, original=side_by_side) == ()


@every_format
def test_a_history_that_the_assistant_begins_is_told_only_of_what_was_made_of_an_original(form: Format) -> None:
    begun = history([(SAID, ()), (USER, ())], form)
    assert faults(begun, form) == ()
    assert faults(begun, form, original=history([(USER, ())], form)) == ("the first turn is not the user's",)


@every_format
def test_what_was_wrong_before_is_not_told_again(form: Format) -> None:
    still_running = history([(USER, ()), (CALLS, ("a",))], form)
    assert faults(still_running, form)
    assert faults(still_running, form, original=still_running) == ()
    worse = history([(USER, ()), (CALLS, ("b",)), (USER, ()), (CALLS, ("a",))], form)
    assert [fault for fault in faults(worse, form, original=still_running) if "`b`" in fault]


@every_format
def test_an_id_may_come_back_for_a_later_call(form: Format) -> None:
    again: list[Step] = [(USER, ()), (CALLS, ("a",)), (RESULTS, ("a",)), (CALLS, ("a",)), (RESULTS, ("a",))]
    assert faults(history(again, form), form) == ()


@every_format
def test_no_history_has_no_fault(form: Format) -> None:
    assert faults([], form) == ()
    assert faults([], form, original=[]) == ()


@dataclass(frozen=True)
class SdkMessage:
    role: str
    content: str | None = None


def test_an_sdks_object_is_held_to_the_same_rules() -> None:
    assert faults([SdkMessage("user", "hello")], Format.OPENAI_CHAT) == ()
    assert faults([SdkMessage("user")], Format.OPENAI_CHAT) == ("a message of the role `user` has no content",)


@pytest.mark.parametrize("form", [Format.OPENAI_RESPONSES, Format.GEMINI])
def test_a_bare_text_is_the_users(form: Format) -> None:
    assert faults(["hello"], form, original=()) == ()
    assert faults(["hello", "again"], form, original=()) == ("two turns of the user's are adjacent",)


def test_neutral_messages_may_come_as_json() -> None:
    call: Mapping[str, Json] = {"type": "tool_call", "name": "look", "arguments": "{}", "id": "a"}
    assert faults([{"role": "user", "parts": []}, {"role": "assistant", "parts": [call]}], Format.ULLAGE) == (
        "the call `a` has no result",
    )


def test_neutral_calls_without_ids_are_counted() -> None:
    call = Message(role="assistant", parts=(ToolCall(name="look", arguments="{}"),))
    result = Message(role="user", parts=(ToolResult(parts=(), name="look"),))
    assert faults([call, result], Format.ULLAGE) == ()
    assert faults([call, result, result], Format.ULLAGE) == (
        "the result of a call without an id has no call before it",
    )


def test_neutral_thinking_stays_as_it_was() -> None:
    def thought(text: str) -> list[Message]:
        return [
            Message(role="user", parts=(Text("hello"),)),
            Message(role="assistant", parts=(Thinking(text=text, signature="s"), Text("hello"))),
        ]

    assert faults(thought("a"), Format.ULLAGE, original=thought("a")) == ()
    assert faults(thought("b"), Format.ULLAGE, original=thought("a")) == ("a stretch of thinking is not what it was",)


def test_what_the_system_says_among_the_messages_parts_no_turn() -> None:
    said = Message(role="system", parts=(Text("be brief"),))
    calls, results = _neutral(CALLS, ("a",)), _neutral(RESULTS, ("a",))
    assert faults([*_neutral(USER, ()), *calls, said, *results], Format.ULLAGE, original=()) == ()


def test_what_a_provider_ran_is_answered_in_the_message_that_calls_it() -> None:
    ran = (ToolCall(name="search", arguments="{}", id="s"), ToolResult(parts=(), call_id="s"), Text("so"))
    said = Message(role="assistant", parts=ran)
    assert faults([*_neutral(USER, ()), said, *_neutral(USER, ())], Format.ULLAGE, original=()) == ()
    backwards = Message(role="assistant", parts=(ran[1], ran[0]))
    assert faults([backwards, *_neutral(USER, ())], Format.ULLAGE) == (
        "the result of the call `s` has no call before it",
        "the call `s` has no result before the user speaks",
    )
