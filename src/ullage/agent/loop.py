"""The agent loop: prepare the context, ask the model, run its tool calls, repeat.

Before every call of the model the context is compacted if necessary. The answer is streamed, its calls are run, and
their results are sent back. Everything is in the session before the next call, so that an interrupted run can be
continued. `delegate` chooses the model, `context` decides what to compact.

The work runs in a plain task that ends with the `async with` block. A task group cannot be used: a generator may be
closed by another task than the one that opened it, and a task group must be closed by the task that opened it.
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
from ullage.tool import ANONYMOUS, Caller, JsonObject

from .function_tools import (
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
    ToolsGiven,
    Used,
    as_sources,
    cut_off,
    find_unanswered_calls,
    make_sendable,
    with_own_ids,
)

__all__ = ["Running", "run_agent", "running"]

Piece = TypeVar("Piece")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Running(Generic[Piece, Value]):
    """Work in a task of its own that emits pieces."""

    _task: asyncio.Task[Value]
    _pieces: asyncio.Queue[Piece | None]

    async def __aiter__(self) -> AsyncIterator[Piece]:
        """Yield the pieces until the work has ended."""
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def value(self) -> Value:
        """Return the result of the work, or raise its exception."""
        return await self._task


@asynccontextmanager
async def running(
    work: Callable[[Callable[[Piece], None]], Coroutine[Any, Any, Value]],
) -> AsyncGenerator[Running[Piece, Value]]:
    """Run `work` in a task. `work` is called with a function that emits its pieces."""
    pieces = asyncio.Queue[Piece | None]()
    task = asyncio.get_running_loop().create_task(work(pieces.put_nowait))
    task.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        yield Running(task, pieces)
    finally:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task})


def run_agent(  # noqa: PLR0913 - an agent has many parts, and most have defaults
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
    """Run an agent: call a model and the tools that it asks for, until it asks for none.

    Args:
        prompt: The user's message. None continues with what the context already contains.
        delegate: Chooses and calls the models.
        context: The history, in the format `Format.ULLAGE`.
        tools: A `ToolSource`, a Python function, or a list of sources and functions.
        model: The policy's alias or the id of the model that the context counts tokens for.
        caller: The account that usage and budgets are booked to.
        max_steps: Most calls of the model.
        max_output_tokens: Most tokens of one answer. None uses what the context reserves for the answer.
        deadline: Time at which the run ends, on the event loop's clock (`anyio.current_time`).

    Returns:
        A generator of events; the last one is an `End`.

    Raises:
        InvalidArguments: A tool is neither a source nor a function that a model can call.
        ProviderFailed: No model answered. The context keeps what arrived before, and a run with it, or with its session
            opened again, continues from there.
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
    """Arguments that every call of the model shares."""
    max_steps: int
    new_id: Callable[[], str] = lambda: f"call_{uuid.uuid4().hex[:24]}"
    _outcome: Outcome | None = None
    """Result of the last call of the model."""

    async def events(self, prompt: str | Message | None) -> AsyncGenerator[Event, None]:
        # Calls that an interrupted run left without results get a result that says so.
        left = find_unanswered_calls(cast("tuple[Message, ...]", self.context.messages))
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
            completion = self._answered.completion
            if not completion.tool_calls:
                yield self._end(completion.finish if completion.finish in ("length", "refusal") else "stop", step)
                return
        yield self._end("steps", self.max_steps)

    async def _step(self, step: int) -> AsyncGenerator[Event, None]:
        """Make one call of the model and run the tools that it asks for."""
        offering = await self.offered.now()
        self.context.offer(offering.natives)
        async with aclosing(self._ask_model(offering)) as events:
            async for event in events:
                yield event
        outcome = self._answered
        message, is_usual = outcome.completion.message, self._is_usual(outcome)
        if not is_usual:
            # Another model's thinking is encrypted for that model, and others refuse it.
            parts = tuple(part for part in message.parts if not isinstance(part, Thinking))
            message = replace(message, parts=parts)
        message = with_own_ids(message, self.new_id)
        answer = [make_sendable(message)] if message.parts else []
        usage = outcome.usage if outcome.usage_reported and is_usual else None
        self.context.observe(usage=usage, answer=answer, is_recorded=True)
        work = Calls(
            calls=tuple(part for part in message.parts if isinstance(part, ToolCall)),
            offering=offering,
            caller=self.ask.caller,
            deadline=self.ask.deadline,
        )
        try:
            yield Used(
                step=step,
                model=outcome.candidate.entry.model,
                usage=outcome.usage,
                reported=outcome.usage_reported,
                cost=outcome.cost,
                warnings=outcome.warnings,
            )
            for call in work.calls:
                yield Called(id=call.id or "", tool=offering.name_of(call.name), arguments=call.arguments)
            async with running(work.run) as returning:
                async for returned in returning:
                    yield returned
                await returning.value()
        finally:
            # However the step ends, every call gets a result.
            if work.calls:
                self.context.add(work.message)

    async def _ask_model(self, offering: Offering) -> AsyncGenerator[Event, None]:
        """Call the model. If the request is too long for its real window, learn that window and call once more."""
        for is_last in (False, True):
            prepared = await self.context.prepare()
            yield ContextStatus(cast("JsonObject", prepared.event["context"]))
            try:
                async with aclosing(self._stream_answer(prepared, offering)) as events:
                    async for event in events:
                        yield event
            except (ProviderFailed, TooLong) as failed:
                if is_last or not (isinstance(failed, TooLong) or failed.kind == "context_length"):
                    raise
                self.context.overflowed(failed.message)
            else:
                return

    async def _stream_answer(self, prepared: Prepared, offering: Offering) -> AsyncGenerator[Event, None]:
        """Stream the answer."""
        status, system, told = prepared.status, prepared.system, list[str]()
        before = system if isinstance(system, Message) else Message(role="system", parts=(Text(str(system)),))
        ask = replace(
            self.ask,
            messages=(*((before,) if system else ()), *cast("tuple[Message, ...]", prepared.messages)),
            tools=offering.definitions,
            prompt_tokens=status.used,
            max_output_tokens=self.ask.max_output_tokens or max(1, min(status.reserve, status.free)),
        )
        async with running(partial(self.delegate.run, ask)) as work:
            async for heard in work:
                told += [heard.text] if isinstance(heard, TextDelta) else []
                yield Said(heard.text) if isinstance(heard, TextDelta) else Thought(heard.text)
            self._outcome = await work.value()
        text = self._answered.completion.text
        if "".join(told) != text:
            yield Corrected(text)

    @property
    def _answered(self) -> Outcome:
        assert self._outcome is not None
        return self._outcome

    @property
    def _is_late(self) -> bool:
        return self.ask.deadline is not None and anyio.current_time() >= self.ask.deadline

    def _is_usual(self, outcome: Outcome) -> bool:
        """Return whether the model that the context counts tokens for gave the answer, not a fallback."""
        asked, answered = (
            self.delegate.models.get(name) for name in (self.context.model, outcome.candidate.entry.model)
        )
        if asked is None or answered is None:
            return self.context.model == outcome.candidate.entry.model
        return asked.card.id == answered.card.id

    def _end(self, reason: Ending, steps: int) -> End:
        text = self._outcome.completion.text if self._outcome else ""
        return End(reason=reason, text=text, steps=steps)
