"""What a model thought before it called a tool, on OpenAI's Responses wire: nobody keeps it there for us, so it goes
back and forth sealed."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from agent.agents import METER, tools
from delegate.streams import events
from ullage.agent import End, Event, Used, run_agent
from ullage.context import Context
from ullage.delegate import Delegate, ModelEntry, OpenAIResponses, Patience, Policy, Provider
from ullage.delegate.delegation import Ask, outgoing
from ullage.delegate.router import Candidate, Parameters
from ullage.messages import Format, Message, Text, Thinking

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats")]

SEALED = ["reasoning.encrypted_content"]
VERIFIED = "The encrypted content could not be verified."


@dataclass
class Thinker:
    """Calls a tool so often, then says that it is done. Seals what it thought where it is asked to, and takes back only
    what it sealed itself, as OpenAI does; one that does not think refuses to be asked."""

    name: str
    calls: int = 2
    thinks: bool = True
    down: frozenset[int] = frozenset()
    """Requests by their number that it does not answer."""
    stubborn: bool = False
    """Whether it speaks of seals whatever it is sent."""
    bodies: list[Any] = field(default_factory=list[Any])

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        thoughts = [item for item in body["input"] if item["type"] == "reasoning"]
        if len(self.bodies) in self.down:
            return httpx2.Response(500)
        if self.stubborn or (not self.thinks and (thoughts or body.get("include"))):
            return self._refused("Encrypted content is not supported with this model.", None)
        if any(not item["encrypted_content"].startswith(f"{self.name} ") for item in thoughts):
            return self._refused(VERIFIED, "invalid_encrypted_content")
        return self._answered(body)

    def _refused(self, message: str, code: str | None) -> httpx2.Response:
        error = {"message": message, "type": "invalid_request_error", "param": "include", "code": code}
        return httpx2.Response(400, json={"error": error})

    def _answered(self, body: Any) -> httpx2.Response:  # noqa: ANN401 - a request's
        step = sum(item["type"] == "function_call_output" for item in body["input"]) + 1
        seal = {"encrypted_content": f"{self.name} {step}"} if body.get("include") == SEALED else {}
        thought = [{"type": "reasoning", "id": f"rs_{step}", "summary": [], **seal}] if self.thinks else []
        call = {"type": "function_call", "call_id": f"c{step}", "name": "read", "arguments": "{}"}
        said = {"type": "message", "content": [{"type": "output_text", "text": "Done."}]}
        output = [*thought, call if step <= self.calls else said]
        usage = {"input_tokens": 30, "output_tokens": 5}
        done = {"type": "response.completed", "response": {"status": "completed", "output": output, "usage": usage}}
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=b"".join(events([done])))

    def sent(self, number: int) -> list[str]:
        """What stood in a request, by kind, and what was sealed in it."""
        items = self.bodies[number - 1]["input"]
        return [str(item.get("encrypted_content") or item.get("role") or item["type"]) for item in items]


def asking(model: str, *thinkers: Thinker) -> Delegate:
    """The first is asked, the others are fallbacks; each is a provider of its own."""
    named = {one.name: one for one in thinkers}
    models = (model, *("gpt-5-mini" if one.thinks else "gpt-4o" for one in thinkers[1:]))

    async def send(request: httpx2.Request) -> httpx2.Response:
        return await named[request.url.host](request)

    return Delegate(
        policy=Policy(
            aliases={name: name for name in named},
            models={
                name: ModelEntry(id=name, provider=name, model=model) for name, model in zip(named, models, strict=True)
            },
            default_alias=thinkers[0].name,
            fallbacks={thinkers[0].name: tuple(named)[1:]},
        ),
        models=METER.models,
        meter=METER,
        providers={name: Provider(name=name, wire=OpenAIResponses(), base_url=f"http://{name}") for name in named},
        client=httpx2.AsyncClient(transport=httpx2.MockTransport(send)),
        patience=Patience(retries=0, bench=0.0),
    )


async def worked(model: str, *thinkers: Thinker) -> list[Event]:
    kept = Context(model=model, meter=METER, format=Format.ULLAGE)
    agent = run_agent("Go.", delegate=asking(model, *thinkers), context=kept, tools=tools("read"))
    return [event async for event in agent]


async def test_what_a_model_thought_goes_back_sealed_before_the_call_it_led_to():
    one = Thinker("one")
    found = await worked("gpt-5", one)
    assert found[-1] == End(reason="stop", text="Done.", steps=3)
    assert [body["include"] for body in one.bodies] == [SEALED] * 3
    assert one.sent(3) == [
        *("user", "one 1", "function_call", "function_call_output"),
        *("one 2", "function_call", "function_call_output"),
    ]
    assert all("id" not in item for item in one.bodies[2]["input"]), "nobody keeps anything under one"


@pytest.mark.parametrize("model", ["gpt-4o", "a-model-of-ours"])
async def test_who_is_not_known_to_think_is_not_asked_for_it(model: str):
    one = Thinker("one", thinks=False)
    assert (await worked(model, one))[-1] == End(reason="stop", text="Done.", steps=3)


async def test_who_turns_out_not_to_think_is_asked_again_without():
    one = Thinker("one", thinks=False)
    assert (await worked("gpt-5", one))[-1] == End(reason="stop", text="Done.", steps=3)
    assert ["include" in body for body in one.bodies] == [True, False] * 3


async def test_a_fallback_that_does_not_think_gets_no_thoughts_and_the_next_step_has_them_again():
    one, other = Thinker("one", down=frozenset({2})), Thinker("other", thinks=False)
    found = await worked("gpt-5", one, other)
    assert [event.model for event in found if isinstance(event, Used)] == ["gpt-5", "gpt-4o", "gpt-5"]
    assert other.sent(1) == ["user", "function_call", "function_call_output"]
    assert one.sent(3)[:2] == ["user", "one 1"]


@pytest.mark.parametrize("down", [frozenset({2}), frozenset({2, 3})])
async def test_thoughts_that_another_sealed_are_left_out_where_they_are_refused(down: frozenset[int]):
    one, other = Thinker("one", down=down), Thinker("other")
    found = await worked("gpt-5", one, other)
    assert found[-1] == End(reason="stop", text="Done.", steps=3)
    assert other.sent(1) == ["user", "one 1", "function_call", "function_call_output"]
    assert other.sent(2) == ["user", "function_call", "function_call_output"]


async def test_who_speaks_of_seals_even_without_any_is_asked_no_third_time():
    one, other = Thinker("one", stubborn=True), Thinker("other", calls=0)
    assert (await worked("gpt-5", one, other))[-1] == End(reason="stop", text="Done.", steps=1)
    assert ["include" in body for body in one.bodies] == [True, False]


def test_a_message_that_was_nothing_but_a_sealed_thought_is_not_sent_empty():
    sealed = Message(role="assistant", parts=(Thinking(text="", signature="gAAA", sealed_as="encrypted"),))
    asked = Message(role="user", parts=(Text("Go."),))
    entry = ModelEntry(id="one", provider="one", model="gpt-4o")
    candidate = Candidate(
        alias="one", entry=entry, parameters=Parameters(max_output_tokens=None, temperature=None), window=None
    )
    ask = Ask(messages=(asked, sealed))
    assert outgoing(candidate, ask, is_open=True).messages == (asked,)
    assert outgoing(candidate, ask).messages == (asked, sealed)
