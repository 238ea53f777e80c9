import json
from typing import Any

import pytest

from ullage.errors import ClientCannot, Denied, ProtocolError, UnknownTool
from ullage.gateway.access_rules import Guarded, consent_form
from ullage.gateway.merge.merge import Member, Merge
from ullage.options import Rules
from ullage.testing import FakeSource
from ullage.tool import Call, Caller, Change, JsonObject, Needs, Reply, Tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:access")]

RULES = Rules(ask=("delete_*",), deny=("drop",), hidden=("secret",))


def source(*, needs: Needs | None = None) -> FakeSource:
    async def answer(call: Call) -> Reply:
        return Reply(needs=needs) if needs is not None and not call.answers else Reply.text("done")

    names = ("read", "delete_row", "drop", "secret")
    return FakeSource(offered=tuple(Tool(name=name, input_schema={"type": "object"}) for name in names), answer=answer)


def guarded(inner: FakeSource, rules: Rules = RULES) -> Guarded:
    return Guarded(Merge([Member(name="db", source=inner, prefix="db", rules=rules)]))


class Person:
    """Answers whatever is asked, and keeps the questions."""

    def __init__(self, answer: JsonObject | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Any]] = []

    async def __call__(self, method: str, params: JsonObject) -> JsonObject:
        self.asked.append((method, params))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def call(tool: str, ask: Person | None = None, **more: Any) -> Call:  # noqa: ANN401
    return Call(tool=tool, arguments={"id": 7}, ask=ask, **more)


YES: JsonObject = {"action": "accept", "content": {"allow": True}}


@pytest.mark.requirement("U:access")
async def test_what_the_user_denies_is_neither_listed_nor_found_nor_called():
    inner = source()
    gate = guarded(inner)
    view = await gate.view()
    assert [tool.name for tool in (await gate.tools()).tools] == ["db__read", "db__delete_row"]
    assert [entry.original for entry in view.entries] == ["read", "delete_row"]
    assert [entry.original for entry in view.withheld] == ["drop"]
    for spelling in ("db__drop", "drop", "mcp__db__drop"):
        with pytest.raises(Denied, match="the settings deny `db__drop`") as caught:
            await gate.call(call(spelling, Person(YES)))
        assert "`drop` under `deny`" in caught.value.suggestion
    assert inner.calls == []


async def test_a_denied_tool_is_not_offered_as_the_nearest():
    with pytest.raises(UnknownTool) as caught:
        await guarded(source()).call(call("db__dropp"))
    assert "db__drop" not in caught.value.options


async def test_what_is_hidden_answers_to_its_name_only():
    gate = guarded(source())
    assert "db__secret" not in [tool.name for tool in (await gate.tools()).tools]
    assert (await gate.call(call("db__secret"))).content[0]["text"] == "done"


async def test_what_is_allowed_asks_nobody():
    person = Person(YES)
    await guarded(source()).call(call("db__read", person))
    assert person.asked == []


@pytest.mark.requirement("U:access")
async def test_what_must_be_asked_for_is_called_once_a_person_agrees():
    person, inner = Person(YES), source()
    reply = await guarded(inner).call(call("db__delete_row", person))
    assert reply.content[0]["text"] == "done"
    ((method, form),) = person.asked
    assert method == "elicitation/create"
    assert "delete_row of server db" in form["message"]
    assert "id: 7" in form["message"]
    assert [*form["requestedSchema"]["properties"]] == ["allow"]
    assert inner.calls[0].tool == "delete_row"


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"action": "decline"}, "they did not"),
        ({"action": "cancel"}, "they did not"),
        ({"action": "accept", "content": {"allow": False}}, "they did not"),
        ({"action": "accept", "content": {"allow": "false"}}, "they did not"),
        ({"action": "accept"}, "they did not"),
        ({}, "they did not"),
        (ClientCannot("no"), "cannot ask them"),
        (ProtocolError("no", number=-32601), "did not ask them"),
        (None, "nobody can be asked"),
    ],
)
async def test_without_a_persons_yes_nothing_is_called(answer: JsonObject | Exception | None, why: str):
    inner = source()
    with pytest.raises(Denied, match=why) as caught:
        await guarded(inner).call(call("db__delete_row", None if answer is None else Person(answer)))
    assert "under `ask` in their rules" in caught.value.suggestion
    assert inner.calls == []


async def test_each_call_is_asked_for_anew():
    person, gate = Person(YES), guarded(source())
    for _ in range(2):
        await gate.call(call("db__delete_row", person))
    assert len(person.asked) == 2


async def test_the_next_round_of_an_allowed_call_is_not_asked_for_again():
    person, gate = Person(YES), guarded(source(needs=Needs({"a": {}}, state="s1")))
    assert (await gate.call(call("db__delete_row", person))).needs is not None
    again = call("db__delete_row", person, answers={"a": {}}, state="s1")
    assert (await gate.call(again)).content[0]["text"] == "done"
    assert len(person.asked) == 1
    await gate.call(again)
    assert len(person.asked) == 2, "an allowance is used up"


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "s2"},
        {"caller": Caller(principal="eve", session="none")},
    ],
)
async def test_another_call_cannot_go_on_with_it(changed: dict[str, Any]):
    person, gate = Person(YES), guarded(source(needs=Needs({"a": {}}, state="s1")))
    await gate.call(call("db__delete_row", person))
    await gate.call(call("db__delete_row", person, **{"answers": {"a": {}}, "state": "s1", **changed}))
    assert len(person.asked) == 2


async def test_only_so_many_allowances_are_kept():
    person = Person(YES)
    states = iter(range(1_000))

    async def answer(_: Call) -> Reply:
        return Reply(needs=Needs({"a": {}}, state=str(next(states))))

    inner = source()
    inner.answer = answer
    gate = guarded(inner)
    for _ in range(300):
        await gate.call(call("db__delete_row", person))
    await gate.call(call("db__delete_row", person, state="0"))
    assert len(person.asked) == 301, "the oldest is forgotten, and asked for again"
    await gate.call(call("db__delete_row", person, state="299"))
    assert len(person.asked) == 301


async def test_a_question_is_short_and_hides_nothing():
    entry = await guarded(source()).find("db__delete_row")
    arguments: dict[str, Any] = {f"argument {number}": "x" * 10_000 for number in range(20)}
    arguments = {"path": "a\nAllowed already.\u202e", "list": [1, {"b": None}], **arguments}
    message = str(consent_form(entry, arguments)["message"])
    assert len(message) < 4_000
    assert "Allowed already" in message
    assert "\nAllowed" not in message
    assert "\u202e" not in message
    assert 'list: [1, {"b": null}]' in message
    assert "characters…]" in message
    assert "and 10 more arguments" in message
    json.dumps(consent_form(entry, arguments))


async def test_whatever_else_the_inner_source_offers_is_offered():
    inner = source()
    inner.texts = {"file:///a": "text"}
    gate: Any = guarded(inner)
    assert await gate.resources() == ({"uri": "file:///a", "name": "file:///a"},)
    assert [member.name for member in gate.members] == ["db"]
    assert not hasattr(gate, "paint")
    changes: list[Change] = []
    gate.watch(changes.append)
    inner.change(Change("resources"))
    assert changes == [Change("resources")]
    await gate.close()
    assert inner.listeners == []
