"""A history is summarised by whatever the user has at hand."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from context.sessions import METER, talk
from ullage.context import Context, Options, SummaryAnswer, SummaryRequest, as_summarizer
from ullage.errors import InvalidArguments

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:compact:how")]

SAID = "Decisions: round half up. Next steps: look at April, module 7."
REQUEST = SummaryRequest(instructions="Be brief.", text="The history.", max_tokens=300)


def takes_a_prompt(prompt: str) -> str:
    assert "<record" in prompt
    assert "You keep the memory of an agent" in prompt
    return SAID


async def takes_both(instructions: str, text: str, *, temperature: float = 0.0) -> str:
    await anyio.sleep(0)
    assert "<record" in text
    assert "You keep the memory" in instructions
    return SAID


def takes_the_request(request: SummaryRequest) -> SummaryAnswer:
    assert request.max_tokens > 0
    return SummaryAnswer(text=SAID)


class Calls:
    def __call__(self, prompt: str) -> str:
        return SAID if prompt else ""


def answering(kind: str, *, is_async: bool = False) -> tuple[Any, list[dict[str, Any]]]:
    """A client as each SDK has it; what it was asked is noted."""
    asked = list[dict[str, Any]]()
    answers: dict[str, Any] = {
        "openai": {"choices": [{"message": {"role": "assistant", "content": SAID}, "finish_reason": "stop"}]},
        "anthropic": {"content": [{"type": "text", "text": SAID}], "stop_reason": "end_turn"},
        "google": {"candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}, "finishReason": "STOP"}]},
    }

    def create(**body: Any) -> Any:  # noqa: ANN401
        asked.append(body)
        return answers[kind]

    async def create_later(**body: Any) -> Any:  # noqa: ANN401
        await anyio.sleep(0)
        return create(**body)

    made = create_later if is_async else create
    clients = {
        "openai": SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=made)), models=object()),
        "anthropic": SimpleNamespace(messages=SimpleNamespace(create=made), models=object()),
        "google": SimpleNamespace(models=SimpleNamespace(generate_content=made)),
    }
    return clients[kind], asked


async def summary_by(summarizer: object) -> str:
    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=4_000), summarizer=summarizer)
    made.add(*talk(30))
    prepared = await made.prepare()
    assert [shed.tier for shed in prepared.sheds] == ["summarise"], prepared.warning
    return str(prepared.messages[0])


@pytest.mark.requirement("S2:compact:how")
@pytest.mark.parametrize("function", [takes_a_prompt, takes_both, takes_the_request, Calls(), lambda prompt: SAID])
async def test_a_plain_function_summarises(function: Callable[..., object]):
    assert SAID in await summary_by(function)


@pytest.mark.requirement("S2:compact:how")
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", ["openai", "anthropic", "google"])
async def test_a_client_summarises_with_the_contexts_model(kind: str, is_async: bool):  # noqa: FBT001
    client, asked = answering(kind, is_async=is_async)
    assert SAID in await summary_by(client)
    (body,) = asked
    assert body["model"] == "gpt-4o"
    assert "<record" in str(body)


async def test_an_answer_that_ended_for_want_of_room_is_incomplete():
    client = SimpleNamespace(
        messages=SimpleNamespace(
            create=lambda **_: {"content": [{"type": "text", "text": "Half"}], "stop_reason": "max_tokens"}
        )
    )
    made = as_summarizer(client, model="claude-sonnet-4-5", window=200_000)
    assert made is not None
    assert made.window == 200_000
    answer = await made.summarize(REQUEST)
    assert (answer.text, answer.complete) == ("Half", False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "the function that summarises returned NoneType, not a text"),
        (7, "the function that summarises returned int, not a text"),
        ({"summary": SAID}, "the function that summarises returned dict, not a text"),
        (" \n", "the answer was empty"),
    ],
)
async def test_a_function_that_gives_no_text_is_named_and_a_digest_is_made(given: object, told: str):
    asked = list[str]()

    def summarise(prompt: str) -> object:
        asked.append(prompt)
        return given

    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=4_000), summarizer=summarise)
    made.add(*talk(30))
    before = made.status().used
    prepared = await made.prepare()
    assert asked
    assert told in str(prepared.warning)
    assert [shed.tier for shed in prepared.sheds] == ["digest"]
    assert prepared.status.used < before / 2
    made.add({"role": "user", "content": "Go on."})
    assert (await made.prepare()).messages[-1] == {"role": "user", "content": "Go on."}


@pytest.mark.parametrize("wrong", [42, "", "gpt-4o", object(), str, SimpleNamespace(messages=None)])
def test_what_cannot_summarise_is_refused_at_once(wrong: object):
    with pytest.raises(InvalidArguments):
        Context(model="gpt-4o", meter=METER, summarizer=wrong)


def test_a_summarizer_is_taken_as_it_is():
    class Own:
        window = None

        async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
            return SummaryAnswer(text=request.text)

    own = Own()
    assert as_summarizer(own, model="m") is own
    assert as_summarizer(None, model="m") is None
