"""What comes of the calls that a model asks for?

All calls of one answer run side by side, and each has a result, whatever happens: a tool that fails, arguments that are
no JSON, a deadline, a run that is given up. Nothing is retried here, since a call may have been carried out.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

import anyio

from ullage.errors import DeadlinePassed, InvalidArguments, UllageError
from ullage.messages import Media, Message, Part, Text, ToolCall, ToolResult
from ullage.tool import Call, Caller, Json, JsonObject, Reply

from .events import Returned
from .offered import Offering
from .replies import parts_of, text_in

__all__ = ["Calls", "carried", "cut_off", "unanswered", "with_own_ids"]

_CUT = "It was cut off before it answered and may have been carried out: check before you call it again."


@dataclass(slots=True, kw_only=True)
class Calls:
    """The calls of one answer, and what has come of them so far."""

    calls: Sequence[ToolCall]
    offering: Offering
    caller: Caller
    deadline: float | None
    _results: dict[int, ToolResult] = field(default_factory=dict[int, ToolResult])

    async def run(self, tell: Callable[[Returned], None]) -> None:
        async with anyio.create_task_group() as group:
            for number, call in enumerate(self.calls):
                group.start_soon(partial(self._one, number, call, tell))

    @property
    def message(self) -> Message:
        """The results in the order of their calls; those that did not come say so."""
        found = (self._results.get(number) or cut_off(call) for number, call in enumerate(self.calls))
        return Message(role="tool", parts=tuple(found))

    async def _one(self, number: int, call: ToolCall, tell: Callable[[Returned], None]) -> None:
        try:
            reply = await self._reply(call)
        except UllageError as error:
            reply = Reply.text(json.dumps(error.wire(), ensure_ascii=False), is_error=True)
        except Exception as error:  # noqa: BLE001 - a source of anyone's making; the model is told, and goes on
            reply = Reply.text(f"The tool failed: {type(error).__name__}: {error}", is_error=True)
        result = _result(call, parts_of(reply), is_error=reply.is_error or reply.needs is not None)
        self._results[number] = result
        tell(_returned(call, self.offering.name_of(call.name), result, reply.meta))

    async def _reply(self, call: ToolCall) -> Reply:
        asked = Call(tool=call.name, arguments=_arguments(call), caller=self.caller, deadline=self.deadline)
        if self.deadline is None:
            return await self.offering.call(asked)
        with anyio.move_on_at(self.deadline):
            return await self.offering.call(asked)
        raise DeadlinePassed(f"`{call.name}` had not answered when the deadline came", suggestion=_CUT)


def _arguments(call: ToolCall) -> JsonObject:
    try:
        read = cast("Json", json.loads(call.arguments or "{}"))
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"the arguments are no JSON: {error}", suggestion="write them again, whole") from error
    if not isinstance(read, dict):
        raise InvalidArguments("the arguments are no JSON object", suggestion="give each argument by its name")
    return read


def _result(call: ToolCall, parts: tuple[Part, ...], *, is_error: bool) -> ToolResult:
    return ToolResult(parts=parts, call_id=call.id, name=call.name, is_error=is_error)


def _returned(call: ToolCall, tool: str, result: ToolResult, meta: JsonObject) -> Returned:
    return Returned(
        id=call.id or "",
        tool=tool,
        text=text_in(result.parts),
        media=sum(isinstance(part, Media) for part in result.parts),
        is_error=result.is_error,
        meta=meta,
    )


def cut_off(call: ToolCall) -> ToolResult:
    return _result(call, (Text(_CUT),), is_error=True)


def unanswered(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls that a history ends with."""
    last = messages[-1].parts if messages and messages[-1].role == "assistant" else ()
    return tuple(part for part in last if isinstance(part, ToolCall))


def with_own_ids(message: Message, new_id: Callable[[], str]) -> Message:
    """An answer each of whose calls has an id, and no two the same, which not every server sees to."""
    seen = set[str]()
    return replace(message, parts=tuple(_with_own_id(part, seen, new_id) for part in message.parts))


def _with_own_id(part: Part, seen: set[str], new_id: Callable[[], str]) -> Part:
    if not isinstance(part, ToolCall):
        return part
    identity = part.id if part.id and part.id not in seen else new_id()
    seen.add(identity)
    return part if identity == part.id else replace(part, id=identity)


def carried(message: Message) -> Message:
    """An answer as it can be sent back: arguments that are no JSON object, which would have every later request
    refused, are kept in one as the text that they are."""
    return replace(message, parts=tuple(_carried(part) for part in message.parts))


def _carried(part: Part) -> Part:
    if not isinstance(part, ToolCall):
        return part
    try:
        _arguments(part)
    except InvalidArguments:
        return replace(part, arguments=json.dumps({"malformed": part.arguments}, ensure_ascii=False))
    return part
