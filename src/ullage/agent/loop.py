"""The agent loop: prepare the context, ask the model, run its tool calls, repeat.

Before every call of the model the context makes room; the answer is streamed, its calls are run, and their results
go back. Everything is in the session before the next call, so that whatever ends a run, it can be taken up again.
Who answers is `delegate`'s matter, what is let go `context`'s.

The work goes on in a task of its own and ends with the block, whichever way that is left. A generator may be closed
from another task than the one that opened it, where a task group would be refused its end; hence a plain task.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar, cast

import anyio

from ullage.context import Context, Prepared
from ullage.delegate import Ask, Delegate, Outcome, ProviderFailed, TextDelta, TooLong
from ullage.messages import Message, Text, Thinking, ToolCall
from ullage.models import Usage
from ullage.tool import ANONYMOUS, Caller, JsonObject

from .function_tools import ToolsGiven, as_sources
from .tool_calls import (
    Called,
    Calls,
    ContextStatus,
    Corrected,
    End,
    Ending,
    Event,
    Offered,
    Offering,
    Said,
    Thought,
    Used,
    carried,
    cut_off,
    unanswered,
    with_own_ids,
)

__all__ = ["Running", "run_agent", "running"]

Piece = TypeVar("Piece")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Running(Generic[Piece, Value]):
    _task: asyncio.Task[Value]
    _pieces: asyncio.Queue[Piece | None]

    async def __aiter__(self) -> AsyncIterator[Piece]:
        """What it tells, until it has ended."""
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def value(self) -> Value:
        """What came of it; raises what it raised."""
        return await self._task


@asynccontextmanager
async def running(
    work: Callable[[Callable[[Piece], None]], Coroutine[Any, Any, Value]],
) -> AsyncGenerator[Running[Piece, Value]]:
    """`work` is given the function to tell its pieces by."""
    pieces = asyncio.Queue[Piece | None]()
    task = asyncio.get_running_loop().create_task(work(pieces.put_nowait))
    task.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        yield Running(task, pieces)
    finally:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task})


def run_agent(  # noqa: PLR0913 - whoever assembles an agent gives its parts, and the rest has a usual way
    prompt: str | Message | None,
    *,
    delegate: Delegate,
    context: Context,
    tools: ToolsGiven,
    model: str | None = None,
    caller: Caller = ANONYMOUS,
    max_steps: int = 50,
    max_output_tokens: int | None = None,
    deadline: float | None = None,
) -> AsyncGenerator[Event, None]:
    """Call a model and the tools that it asks for until it asks for no more.

    Args:
        prompt: The user's message. None continues with what the context already contains.
        delegate: Chooses and asks the models.
        context: The history, in the format `Format.ULLAGE`.
        tools: A `ToolSource`, a Python function, or a list of sources and functions.
        model: The policy's alias or id of the model that the context counts for.
        caller: Whom usage and budgets are booked to.
        max_steps: Calls of the model at most.
        max_output_tokens: Of one answer; what the context reserves for it if None.
        deadline: On the event loop's clock (`anyio.current_time`).

    Raises:
        InvalidArguments: A tool is neither a source nor a function that a model can call.
        ProviderFailed: No model answered. The context keeps what had come by then, and a run with it, or with its
            session opened again, continues from there.
    """
    run = _Run(
        delegate=delegate,
        context=context,
        offered=Offered((*as_sources(tools), *context.tools_of_its_own)),
        ask=Ask(messages=(), force_model=model, caller=caller, max_output_tokens=max_output_tokens, deadline=deadline),
        max_steps=max_steps,
    )
    return run.events(prompt)


@dataclass(slots=True, kw_only=True)
class _Run:
    delegate: Delegate
    context: Context
    offered: Offered
    ask: Ask
    """What every call of the model has in common."""
    max_steps: int
    new_id: Callable[[], str] = lambda: f"call_{uuid.uuid4().hex[:24]}"
    _outcome: Outcome | None = None
    """Of the last call of the model."""

    async def events(self, prompt: str | Message | None) -> AsyncGenerator[Event, None]:
        # Gives the calls that an earlier run left without results such as say so.
        left = unanswered(cast("tuple[Message, ...]", self.context.messages))
        if left:
            self.context.add(Message(role="tool", parts=tuple(map(cut_off, left))))
        if prompt is not None:
            self.context.add(Message(role="user", parts=(Text(prompt),)) if isinstance(prompt, str) else prompt)
        for step in range(1, self.max_steps + 1):
            if self._is_late:
                yield self._end("deadline", step - 1)
                return
            try:
                async with aclosing(self._step(step)) as events:
                    async for event in events:
                        yield event
            except ProviderFailed as failed:
                if failed.kind != "deadline" or not self._is_late:
                    raise
                yield self._end("deadline", step - 1)
                return
            if (why := self._why_over()) is not None:
                yield self._end(why, step)
                return
        yield self._end("steps", self.max_steps)

    async def _step(self, step: int) -> AsyncGenerator[Event, None]:
        """One call of the model, and of the tools that it asks for."""
        offering = await self.offered.now()
        self.context.offer(offering.natives)
        async with aclosing(self._asked(offering)) as events:
            async for event in events:
                yield event
        outcome = self._answered
        message = with_own_ids(self._carried_back(outcome), self.new_id)
        self.context.observe(usage=self._usage(outcome), answer=[carried(message)] if message.parts else [])
        work = Calls(
            calls=tuple(part for part in message.parts if isinstance(part, ToolCall)),
            offering=offering,
            caller=self.ask.caller,
            deadline=self.ask.deadline,
        )
        try:
            used = Used(
                step=step,
                model=outcome.candidate.entry.model,
                usage=outcome.usage,
                reported=outcome.usage_reported,
                cost=outcome.cost,
                warnings=outcome.warnings,
            )
            yield used
            async with aclosing(_returned(work)) as events:
                async for event in events:
                    yield event
        finally:
            # Whichever way this ends, no call is left without a result.
            if work.calls:
                self.context.add(work.message)

    async def _asked(self, offering: Offering) -> AsyncGenerator[Event, None]:
        """Until there is an answer; once more where the window was smaller than we knew."""
        for is_last in (False, True):
            prepared = await self.context.prepare()
            yield ContextStatus(cast("JsonObject", prepared.event["context"]))
            try:
                async with aclosing(self._told(prepared, offering)) as events:
                    async for event in events:
                        yield event
            except (ProviderFailed, TooLong) as failed:
                if is_last or not (isinstance(failed, TooLong) or failed.kind == "context_length"):
                    raise
                self.context.overflowed(failed.message)
            else:
                return

    async def _told(self, prepared: Prepared, offering: Offering) -> AsyncGenerator[Event, None]:
        """The answer as it comes."""
        ask, told = self._put(prepared, offering), list[str]()
        async with running(partial(self.delegate.run, ask)) as work:
            async for heard in work:
                told += [heard.text] if isinstance(heard, TextDelta) else []
                yield Said(heard.text) if isinstance(heard, TextDelta) else Thought(heard.text)
            self._outcome = await work.value()
        text = self._answered.completion.text
        if "".join(told) != text:
            yield Corrected(text)

    def _put(self, prepared: Prepared, offering: Offering) -> Ask:
        status, system = prepared.status, prepared.system
        before = system if isinstance(system, Message) else Message(role="system", parts=(Text(str(system)),))
        return replace(
            self.ask,
            messages=(*((before,) if system else ()), *cast("tuple[Message, ...]", prepared.messages)),
            tools=offering.definitions,
            prompt_tokens=status.used,
            max_output_tokens=self.ask.max_output_tokens or max(1, min(status.reserve, status.free)),
        )

    @property
    def _answered(self) -> Outcome:
        assert self._outcome is not None
        return self._outcome

    @property
    def _is_late(self) -> bool:
        return self.ask.deadline is not None and anyio.current_time() >= self.ask.deadline

    def _is_usual(self, outcome: Outcome) -> bool:
        """Whether the model that the context counts for has answered, and no other in its place."""
        asked, answered = (
            self.delegate.models.get(name) for name in (self.context.model, outcome.candidate.entry.model)
        )
        if asked is None or answered is None:
            return self.context.model == outcome.candidate.entry.model
        return asked.card.id == answered.card.id

    def _carried_back(self, outcome: Outcome) -> Message:
        """What another model thought is sealed for that one, and refused by the rest."""
        message = outcome.completion.message
        if self._is_usual(outcome):
            return message
        return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Thinking)))

    def _usage(self, outcome: Outcome) -> Usage | None:
        """What the context may go by."""
        return outcome.usage if outcome.usage_reported and self._is_usual(outcome) else None

    def _why_over(self) -> Ending | None:
        completion = self._answered.completion
        if completion.tool_calls:
            return None
        return completion.finish if completion.finish in ("length", "refusal") else "stop"

    def _end(self, reason: Ending, steps: int) -> End:
        text = self._outcome.completion.text if self._outcome else ""
        return End(reason=reason, text=text, steps=steps)


async def _returned(work: Calls) -> AsyncGenerator[Event, None]:
    for call in work.calls:
        yield Called(id=call.id or "", tool=work.offering.name_of(call.name), arguments=call.arguments)
    async with running(work.run) as returning:
        async for returned in returning:
            yield returned
        await returning.value()
