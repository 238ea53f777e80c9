"""Middleware for LangChain agents.

    agent = create_agent(model, tools, middleware=[context_middleware(lambda: Context(model="gpt-5.6-sol"))])

Before every call of the model the history is compacted if it is too long, and the dropped messages are removed from the
agent's state. Messages that are kept are the same objects. Needs the extra `langchain`.
"""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio.to_thread

from ullage.context import Context, Summarizer, SummaryAnswer, SummaryRequest
from ullage.messages import Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from .history_sync import Begin, Following, Mirrored, Shown, find_unchanged_origin, load

__all__ = ["ChatSummarizer", "context_middleware"]

_EXTRA = "langchain"
_ROLES: Mapping[str, Role] = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_CUT_SHORT = frozenset({"length", "max_tokens", "MAX_TOKENS"})
_WITHHELD = frozenset({"content_filter", "refusal", "SAFETY"})

Tell = Callable[[JsonObject], None]


def context_middleware(begin: Begin, *, tell: Tell | None = None) -> Any:  # noqa: ANN401 - an AgentMiddleware
    """Return a middleware for `create_agent` that keeps the agent's history within its context window.

    Args:
        begin: Makes the `Context` of a new conversation. If it has no summarizer, the agent's own model summarises,
            from its first call on.
        tell: Called with the `context_status` event before every call of the model. The event also goes to the agent's
            custom stream.

    Returns:
        An `AgentMiddleware`.

    Raises:
        BadConfiguration: LangChain is not installed.
    """
    parent = load("langchain.agents.middleware", _EXTRA).AgentMiddleware
    work = _Work(following=Following(begin=begin, conversion=_Conversion()), tell=tell)

    class ContextMiddleware(parent):
        async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ANN401
            return await work.fitted(state["messages"], runtime.stream_writer)

        def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ANN401
            return _waited_for(work.fitted(state["messages"], runtime.stream_writer))

        async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401
            work.note(request)
            return await handler(request)

        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:  # noqa: ANN401
            work.note(request)
            return handler(request)

    return ContextMiddleware()


@dataclass(frozen=True, slots=True)
class ChatSummarizer:
    """Summarises with a LangChain chat model."""

    model: Any
    window: int | None = None

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        messages = load("langchain_core.messages", _EXTRA)
        asked = [messages.SystemMessage(request.instructions), messages.HumanMessage(request.text)]
        # Runs in a thread, since the client that a model keeps for async calls is bound to the event loop that created
        # it.
        # Without the tag, the summary would appear among the agent's own words.
        ask = partial(self.model.invoke, asked, config={"tags": ["nostream"]})
        answer = await anyio.to_thread.run_sync(ask)
        said = answer.response_metadata
        finish = said.get("finish_reason") or said.get("stop_reason")
        return SummaryAnswer(
            text=str(answer.text),
            complete=finish not in _CUT_SHORT,
            refused=finish in _WITHHELD or bool(answer.tool_calls),
        )


@dataclass(slots=True, kw_only=True)
class _Work:
    following: Following
    tell: Tell | None
    _request: Any = None
    """The last request to the model. Its system prompt, tools and model are the agent's."""

    def note(self, request: object) -> None:
        self._request = request

    async def fitted(self, history: list[object], stream: Tell) -> dict[str, Any] | None:
        """Return the change of the agent's state if the history was compacted; otherwise None."""
        given, prepared = await self.following.prepare(history, self._describe_request)
        for hear in (stream, self.tell):
            if hear is not None:
                hear(prepared.event)
        if not prepared.compacted:
            return None
        messages = load("langchain_core.messages", _EXTRA)
        everything = load("langgraph.graph.message", _EXTRA).REMOVE_ALL_MESSAGES
        return {"messages": [messages.RemoveMessage(id=everything), *given]}

    def _describe_request(self, context: Context) -> None:
        if self._request is None:
            return
        context.instruct(None if self._request.system_message is None else str(self._request.system_message.text))
        convert = load("langchain_core.utils.function_calling", _EXTRA).convert_to_openai_tool
        written = [convert(tool) for tool in self._request.tools]
        functions = [tool.get("function", tool) for tool in written]
        context.offer(
            [
                {
                    "name": function.get("name", ""),
                    "description": function.get("description"),
                    "schema": function.get("parameters", {}),
                }
                for function in functions
            ]
        )
        if context.summarizer is None:
            context.summarizer = cast("Summarizer", ChatSummarizer(self._request.model))


def _waited_for(work: Coroutine[Any, Any, dict[str, Any] | None]) -> dict[str, Any] | None:
    """Run a coroutine from synchronous code, in another thread if this one already runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


class _Conversion:
    def read(self, message: object) -> Shown:
        said = cast("Any", message)
        role = _ROLES.get(said.type, "user")
        parts = tuple(map(_part, said.content_blocks))
        if role == "tool":
            failed = said.status == "error"
            parts = (ToolResult(parts=parts, call_id=said.tool_call_id, name=said.name, is_error=failed),)
        mirrored = Mirrored(role=role, parts=parts, origin=message, whole=parts)
        pinned = frozenset({0} if role == "system" else ())
        usage, reported = None, getattr(said, "usage_metadata", None)
        if reported:
            output = reported["output_tokens"]
            reasoning = min(reported.get("output_token_details", {}).get("reasoning", 0), output)
            usage = Usage(input=reported["input_tokens"], output=output, reasoning=reasoning)
        return Shown(natives=(mirrored,), usage=usage, pinned=pinned)

    def write(self, natives: Sequence[object]) -> object:
        if (same := find_unchanged_origin(natives)) is not None:
            return same
        message = cast("Message", natives[0])
        if not isinstance(message, Mirrored):
            messages = load("langchain_core.messages", _EXTRA)
            kind = messages.AIMessage if message.role == "assistant" else messages.HumanMessage
            return kind(content=_text(message), id=str(uuid.uuid4()))
        origin = cast("Any", message.origin)
        if message.role == "tool":
            return origin.model_copy(update={"content": _text(message)})
        texts = (part.text for part in message.parts if isinstance(part, Text))
        return origin.model_copy(update={"content": _with_new_texts(origin.content, texts)})


def _part(block: Mapping[str, Any]) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "reasoning"}:
            sealed = block.get("extras", {}).get("signature")
            return Thinking(text=block.get("reasoning", ""), signature=sealed)
        case {"type": "tool_call", "name": str(name)}:
            return ToolCall(name=name, arguments=_json(block.get("args")), id=block.get("id"))
        case {"type": "image" | "audio" | "video" as kind}:
            url = block.get("url") or block.get("file_id")
            return Media(kind=kind, media_type=block.get("mime_type"), data=block.get("base64"), url=url)
        case _:
            return Unknown(cast("Json", json.loads(_json(dict(block)))))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _text(message: Message) -> str:
    inner = (part.parts if isinstance(part, ToolResult) else (part,) for part in message.parts)
    return "\n".join(part.text for parts in inner for part in parts if isinstance(part, Text))


def _with_new_texts(content: Any, texts: Iterator[str]) -> Any:  # noqa: ANN401
    """Return the content of a message with other texts, one for each of its texts."""
    if isinstance(content, str):
        return next(texts, content)
    made = list[Any]()
    for block in content:
        if isinstance(block, str):
            made.append(next(texts, block))
        else:
            is_text = block.get("type") == "text"
            made.append({**block, "text": next(texts, block["text"])} if is_text else block)
    return made
