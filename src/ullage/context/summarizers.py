"""Summarizers made of what a user has at hand: a plain function, or the client of a provider's SDK.

Nobody has to write a class to have a history summarised. A model's name is made into one where providers and their keys
are known, outside of this package.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from anyio.to_thread import run_sync

from ullage.errors import InvalidArguments
from ullage.messages import Format, Text, plain, read_answer, read_message, tables_at, text_at

from .summarizer import Summarizer, SummaryAnswer, SummaryRequest

__all__ = ["ClientSummarizer", "FunctionSummarizer", "SummaryFunction", "as_summarizer"]

SummaryFunction = Callable[..., object]
"""Takes the prompt, or the instructions and the text, and returns the summary; it may be async."""


def as_summarizer(given: object, *, model: str, window: int | None = None) -> Summarizer | None:
    """A summarizer made of what a user has at hand.

    Args:
        given: A `Summarizer`, which is returned as it is; a function; a client of the OpenAI, Anthropic or Google SDK,
            sync or async; or None.
        model: The model that a client is asked for.
        window: Tokens that request and answer may have together, where that is known.

    Raises:
        InvalidArguments: It is none of these.
    """
    if given is None or callable(getattr(given, "summarize", None)):
        return cast("Summarizer | None", given)
    create = _create_of(given)
    if create is not None:
        return ClientSummarizer(create=create[1], format=create[0], model=model, window=window)
    if callable(given) and not isinstance(given, type):
        return FunctionSummarizer(given, window)
    raise InvalidArguments(
        f"`{type(given).__name__}` cannot summarise",
        suggestion="give a model's name, a client of OpenAI's, Anthropic's or Google's SDK, or a function "
        "that takes a prompt and returns a text",
    )


@dataclass(frozen=True, slots=True)
class FunctionSummarizer:
    """A plain function, sync or async.

    With one parameter it gets the whole prompt, with two the instructions and the text, and a parameter that is
    annotated as `SummaryRequest` gets that. It returns the summary's text or a `SummaryAnswer`. A sync function runs in
    a thread.
    """

    function: SummaryFunction
    window: int | None = None

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        given = await _called(partial(self.function, *_arguments(self.function, request)))
        if isinstance(given, SummaryAnswer):
            return given
        if not isinstance(given, str):
            raise TypeError(f"the function that summarises returned {type(given).__name__}, not a text")
        return SummaryAnswer(text=given)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSummarizer:
    """The client of a provider's SDK, sync or async."""

    create: Callable[..., object]
    """Its method that makes an answer."""
    format: Format
    model: str
    window: int | None = None

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        answered = plain(await _called(partial(self.create, **_BODIES[self.format](self.model, request))))
        said = [read_message(one, self.format) for one in read_answer(answered, self.format).natives]
        choice = next(iter((*tables_at(answered, "choices"), *tables_at(answered, "candidates"))), answered)
        reasons = (text_at(choice, key) for key in ("finish_reason", "finishReason", "stop_reason"))
        ended = next(filter(None, reasons), "").lower()
        return SummaryAnswer(
            text="".join(part.text for message in said for part in message.parts if isinstance(part, Text)),
            complete=ended not in ("length", "max_tokens"),
            refused=ended in ("content_filter", "refusal", "safety", "prohibited_content"),
        )


async def _called(call: Callable[[], object]) -> object:
    """What a function gives: sync ones in a thread, which nobody waits for any longer when time is up."""
    is_async = inspect.iscoroutinefunction(cast("partial[object]", call).func)
    given = call() if is_async else await run_sync(call, abandon_on_cancel=True)
    return await cast("Awaitable[object]", given) if inspect.isawaitable(given) else given


def _arguments(function: SummaryFunction, request: SummaryRequest) -> tuple[object, ...]:
    try:
        wanted = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        wanted = []
    places = [one for one in wanted if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in places if one.default is one.empty]
    if required and required[0].annotation in (SummaryRequest, SummaryRequest.__name__):
        return (request,)
    if len(required) > 1:
        return request.instructions, request.text
    return (f"{request.instructions}\n\n{request.text}",)


def _create_of(client: Any) -> tuple[Format, Callable[..., object]] | None:  # noqa: ANN401
    """The method of a client that makes an answer, and the format it speaks; None where it is no client."""
    for format, path in _METHODS:  # noqa: A001
        found = client
        for name in path:
            found = getattr(found, name, None)
        if callable(found):
            return format, found
    return None


_METHODS: tuple[tuple[Format, tuple[str, ...]], ...] = (
    (Format.OPENAI_CHAT, ("chat", "completions", "create")),
    (Format.ANTHROPIC, ("messages", "create")),
    (Format.GEMINI, ("models", "generate_content")),
)


def _chat_body(model: str, request: SummaryRequest) -> dict[str, object]:
    """Without a limit of tokens: models disagree on its name, and the instructions say how long the answer may be."""
    said = [{"role": "system", "content": request.instructions}, {"role": "user", "content": request.text}]
    return {"model": model, "messages": said}


def _anthropic_body(model: str, request: SummaryRequest) -> dict[str, object]:
    said = [{"role": "user", "content": request.text}]
    return {"model": model, "system": request.instructions, "messages": said, "max_tokens": request.max_tokens}


def _gemini_body(model: str, request: SummaryRequest) -> dict[str, object]:
    return {"model": model, "contents": request.text, "config": {"system_instruction": request.instructions}}


_BODIES: dict[Format, Callable[[str, SummaryRequest], dict[str, object]]] = {
    Format.OPENAI_CHAT: _chat_body,
    Format.ANTHROPIC: _anthropic_body,
    Format.GEMINI: _gemini_body,
}
