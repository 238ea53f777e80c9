"""A model on the chat wire that answers as it is told, and agents that work with it, without a network."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2

from delegate.streams import events
from ullage.agent import ContextStatus, Event
from ullage.context import Context, Options, Session, Summarizer
from ullage.delegate import Delegate, ModelEntry, OpenAIChat, Patience, Policy, Provider
from ullage.messages import Format, read_request
from ullage.models import shipped
from ullage.testing import FakeSource
from ullage.tokens import Meter
from ullage.tool import Call, Reply, Tool

__all__ = ["METER", "MODEL", "ScriptedModel", "calls", "context", "delegate", "says", "statuses", "tools"]

METER = Meter(shipped())
MODEL = "gpt-4o"

Answer = list[Any] | httpx2.Response
"""Events of a stream, or a refusal."""


@dataclass
class ScriptedModel:
    """Answers what a function makes of the number of the call and the body of the request. Counts as OpenAI does, and
    refuses what its window does not hold."""

    answer: Callable[[int, Any], Answer]
    window: int | None = None
    bodies: list[Any] = field(default_factory=list[Any])
    reported: list[int] = field(default_factory=list[int])
    """The tokens of each prompt that was answered."""

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        tokens = METER.weigh(read_request(body, Format.OPENAI_CHAT), MODEL).total.tokens
        if self.window is not None and tokens > self.window:
            said = f"This model's maximum context length is {self.window} tokens, and the prompt has {tokens}."
            return httpx2.Response(400, json={"error": {"message": said, "code": "context_length_exceeded"}})
        answer = self.answer(len(self.bodies), body)
        if isinstance(answer, httpx2.Response):
            return answer
        self.reported.append(tokens)
        usage = {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 20}}
        return httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, content=_stream([*answer, usage, "[DONE]"])
        )


async def _stream(said: list[Any]) -> AsyncIterator[bytes]:
    for piece in events(said):
        if b"BREAK" in piece:
            raise httpx2.ReadError("broken")
        yield piece


def says(*pieces: str, finish: str = "stop") -> list[Any]:
    return [*({"choices": [{"delta": {"content": piece}}]} for piece in pieces), _finish(finish)]


def calls(*asked: tuple[str, str], text: str = "", finish: str = "tool_calls", first: int = 1) -> list[Any]:
    """Names and arguments; ids are numbers from `first` on."""
    made = [
        {"index": place, "id": f"c{first + place}", "function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(asked)
    ]
    return [{"choices": [{"delta": {"content": text or None, "tool_calls": made}}]}, _finish(finish)]


def _finish(reason: str) -> dict[str, Any]:
    return {"choices": [{"delta": {}, "finish_reason": reason}]}


def delegate(model: ScriptedModel, *others: ScriptedModel, window: int | None = None, other: str = MODEL) -> Delegate:
    """With fallbacks where more than one is given; a model is named by its number."""
    models = {f"m{number}": one for number, one in enumerate((model, *others))}

    async def send(request: httpx2.Request) -> httpx2.Response:
        return await models[request.url.host](request)

    return Delegate(
        policy=Policy(
            aliases={name: name for name in models},
            models={
                name: ModelEntry(id=name, provider=name, model=MODEL if name == "m0" else other, window=window)
                for name in models
            },
            default_alias="m0",
            fallbacks={"m0": tuple(models)[1:]},
        ),
        models=METER.models,
        meter=METER,
        providers={name: Provider(name=name, wire=OpenAIChat(), base_url=f"http://{name}") for name in models},
        client=httpx2.AsyncClient(transport=httpx2.MockTransport(send)),
        patience=Patience(retries=0),
    )


def context(
    window: int | None = None,
    *,
    session: Session | None = None,
    summarizer: Summarizer | None = None,
    system: str | None = "You are a clerk.",
) -> Context:
    return Context(
        model=MODEL,
        meter=METER,
        format=Format.ULLAGE,
        system=system,
        options=Options(context_window=window),
        session=session,
        summarizer=summarizer,
    )


def tools(*names: str, answer: Callable[[Call], Awaitable[Reply]] | None = None) -> FakeSource:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    source = FakeSource(offered=tuple(Tool(name=name, input_schema=schema) for name in names))
    return source if answer is None else replace(source, answer=answer)


def statuses(found: list[Event]) -> list[Any]:
    return [event.context for event in found if isinstance(event, ContextStatus)]
