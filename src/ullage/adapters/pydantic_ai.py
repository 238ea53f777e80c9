"""Keeps the history of a Pydantic AI agent within its context window.

    agent = Agent("openai:gpt-5.6-sol", capabilities=[context_capability(lambda: Context(model="gpt-5.6-sol"))])

Before every call of the model the history is compacted if it is too long. Messages that are kept are the same objects.
Needs the extra `pydantic-ai`.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from ullage.context import Context, Summarizer, SummaryAnswer, SummaryRequest
from ullage.messages import Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.models import Usage
from ullage.tool import JsonObject

from .history_sync import Begin, Following, Mirrored, Shown, find_unchanged_origin, load

__all__ = ["ModelSummarizer", "context_capability", "history_processor"]

_EXTRA = "pydantic-ai"
_ERRORS = frozenset({"failed", "retried"})

Processor = Callable[[Any, list[Any]], Awaitable[list[Any]]]


def context_capability(begin: Begin, *, tell: Callable[[JsonObject], None] | None = None) -> Any:  # noqa: ANN401
    """Return the capability that keeps an agent's history within its context window.

    Args:
        begin: Makes the `Context` of a new conversation. If it has no summarizer, the agent's own model summarises.
        tell: Called with the `context_status` event before every call of the model.

    Returns:
        A `ProcessHistory`, for `Agent(capabilities=[...])`.

    Raises:
        BadConfiguration: Pydantic AI is not installed, or is older than its capabilities; `history_processor` works
            with those versions.
    """
    capabilities = load("pydantic_ai.capabilities", _EXTRA)
    return capabilities.ProcessHistory(history_processor(begin, tell=tell))


def history_processor(begin: Begin, *, tell: Callable[[JsonObject], None] | None = None) -> Processor:
    """Return the function behind `context_capability`, for `ProcessHistory` or Pydantic AI 1's `history_processors`.

    Args:
        begin: Makes the `Context` of a new conversation. If it has no summarizer, the agent's own model summarises.
        tell: Called with the `context_status` event before every call of the model.
    """
    following = Following(begin=begin, conversion=_Conversion())

    async def process(run: object, messages: list[Any]) -> list[Any]:
        def describe(context: Context) -> None:
            context.instruct(messages[-1].instructions if messages and messages[-1].kind == "request" else None)
            if context.summarizer is None:
                context.summarizer = cast("Summarizer", ModelSummarizer(cast("Any", run).model))

        given, prepared = await following.prepare(messages, describe)
        if tell is not None:
            tell(prepared.event)
        return given

    # Pydantic AI passes the run to a processor whose first parameter has this annotation.
    process.__annotations__["run"] = load("pydantic_ai", _EXTRA).RunContext
    return process


@dataclass(frozen=True, slots=True)
class ModelSummarizer:
    """Summarises with a Pydantic AI model, or the model of a given name."""

    model: Any
    window: int | None = None

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        direct, messages = load("pydantic_ai.direct", _EXTRA), load("pydantic_ai.messages", _EXTRA)
        asked = messages.ModelRequest(
            parts=[messages.SystemPromptPart(request.instructions), messages.UserPromptPart(request.text)]
        )
        answer = await direct.model_request(self.model, [asked], model_settings={"max_tokens": request.max_tokens})
        return SummaryAnswer(
            text=answer.text or "",
            complete=answer.finish_reason != "length",
            refused=answer.finish_reason == "content_filter",
        )


class _Conversion:
    def read(self, message: object) -> Shown:
        said = cast("Any", message)
        if said.kind == "response":
            reported = said.usage
            reasoning = min(reported.output_reasoning_tokens, reported.output_tokens)
            usage = Usage(input=reported.input_tokens, output=reported.output_tokens, reasoning=reasoning)
            return Shown(
                natives=_pieces(message, [("assistant", list(said.parts))]),
                usage=usage if reported.input_tokens else None,
            )
        # One request may contain a system prompt, results and several prompts, only some of which are dropped.
        runs = _runs(said.parts)
        pinned = frozenset(number for number, (role, _) in enumerate(runs) if role == "system")
        return Shown(natives=_pieces(message, runs), pinned=pinned)

    def write(self, natives: Sequence[object]) -> object:
        if (same := find_unchanged_origin(natives)) is not None:
            return same
        pieces = [one for one in natives if isinstance(one, Mirrored)]
        if pieces:
            now = [_write_part(part, parts) for one in pieces for parts in [iter(one.parts)] for part in one.own]
            return replace(cast("Any", pieces[0].origin), parts=now)
        message, messages = cast("Message", natives[0]), load("pydantic_ai.messages", _EXTRA)
        text = "\n".join(map(_text, message.parts))
        if message.role == "assistant":
            return messages.ModelResponse(parts=[messages.TextPart(text)])
        return messages.ModelRequest(parts=[messages.UserPromptPart(text)])


def _role(part: Any) -> Role:  # noqa: ANN401
    match part.part_kind:
        case "system-prompt":
            return "system"
        case "tool-return":
            return "tool"
        case "retry-prompt" if part.tool_name is not None:
            return "tool"
        case _:
            return "user"


def _runs(parts: Sequence[Any]) -> list[tuple[Role, list[Any]]]:
    """Group results together and everything else separately. At least one group, so that no message vanishes."""
    runs = list[tuple[Role, list[Any]]]()
    for part in parts:
        role = _role(part)
        if role == "tool" and runs and runs[-1][0] == "tool":
            runs[-1][1].append(part)
        else:
            runs.append((role, [part]))
    return runs or [("user", [])]


def _pieces(message: object, runs: Sequence[tuple[Role, list[Any]]]) -> tuple[Mirrored, ...]:
    def piece(role: Role, own: list[Any]) -> Mirrored:
        parts = tuple(part for one in own for part in _read(one))
        return Mirrored(role=role, parts=parts, origin=message, pieces=len(runs), own=tuple(own), whole=parts)

    return tuple(piece(role, own) for role, own in runs)


def _read(part: Any) -> Iterator[Part]:  # noqa: ANN401
    """Yield one neutral part for each element whose text may change, and one for everything else."""
    match part.part_kind:
        case "user-prompt" if not isinstance(part.content, str):
            yield from map(_content, part.content)
        case "system-prompt" | "user-prompt" | "text":
            yield Text(part.content)
        case "thinking":
            yield Thinking(text=part.content, signature=part.signature)
        case "tool-call":
            yield ToolCall(name=part.tool_name, arguments=part.args_as_json_str(), id=part.tool_call_id)
        case "tool-return":
            yield _result(part, part.model_response_str(wrap_if_error=False), is_error=part.outcome in _ERRORS)
        case "retry-prompt" if part.tool_name is not None:
            yield _result(part, str(part.content), is_error=True)
        case kind:
            yield Unknown({"kind": kind, "content": _text_of_value(part)})


def _result(part: Any, text: str, *, is_error: bool) -> ToolResult:  # noqa: ANN401
    media = (_content(one) for one in getattr(part, "files", ()))
    parts = (Text(text), *media)
    return ToolResult(parts=parts, call_id=part.tool_call_id, name=part.tool_name, is_error=is_error)


def _content(content: Any) -> Part:  # noqa: ANN401
    if isinstance(content, str):
        return Text(content)
    kind = getattr(content, "kind", "")
    if kind in ("text-content", "structured-content"):
        return Text(content.content)
    media_type = str(getattr(content, "media_type", None) or "")
    shape: Literal["image", "audio", "video", "document"] = "document"
    match media_type.partition("/")[0]:
        case "image" | "audio" | "video" as known:
            shape = known
        case _:
            pass
    if kind == "binary":
        return Media(kind=shape, media_type=media_type, data=content.base64)
    if kind.endswith("-url"):
        return Media(kind=shape, media_type=media_type, url=content.url)
    return Unknown({"kind": kind, "content": _text_of_value(content)})


def _text_of_value(value: object) -> str:
    """Return the value as text that can be weighed."""
    return json.dumps(getattr(value, "content", None) or repr(value), ensure_ascii=False, default=str)


def _write_part(part: Any, parts: Iterator[Part]) -> Any:  # noqa: ANN401
    """Return a part with the current state of the neutral parts that were made of it."""
    read = tuple(_read(part))
    now = tuple(next(parts) for _ in read)
    if now == read:
        return part
    if part.part_kind == "user-prompt" and not isinstance(part.content, str):
        pairs = zip(part.content, read, now, strict=True)
        return replace(part, content=[one if is_now == was else _text(is_now) for one, was, is_now in pairs])
    return replace(part, content=_text(now[0]))


def _text(part: Part) -> str:
    parts = part.parts if isinstance(part, ToolResult) else (part,)
    return "\n".join(one.text for one in parts if isinstance(one, Text))
