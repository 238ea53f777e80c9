"""What becomes of a source's `needs`?

A client of 2026-07-28 or later is handed them as they are, where it can meet them. For an earlier one each is put as a
request over its session, and the source is run again with the answers, a bounded number of times. How a single question
reaches a client is the affair of the line.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import anyio

from ullage.errors import Unavailable
from ullage.tool import Ask, Asked, Call, Contents, Json, Needs, PromptMessages, PromptRequest, Read, Reply

from .ability import requests_in, require_all
from .held import marked

__all__ = ["answers_to", "settled"]

_ROUNDS = 8
_PAUSE = 0.05
"""Seconds before a source that only handed out a state is asked again; doubled each round, as it wants to be polled."""

RequestT = TypeVar("RequestT", Call, Read, PromptRequest)
ResultT = TypeVar("ResultT", Reply, Contents, PromptMessages)


async def settled(request: RequestT, run: Callable[[RequestT], Awaitable[ResultT]], *, modern: bool) -> ResultT:
    """The result of `run`, with needs only where the client is to meet them itself."""
    result = await run(request)
    if result.needs is None:
        return result
    if modern:
        require_all(request.capabilities, result.needs)
        return replace(result, needs=Needs(result.needs.requests, marked(result.needs.state)))
    return await _asked_over(request, run, result)


async def _asked_over(request: RequestT, run: Callable[[RequestT], Awaitable[ResultT]], result: ResultT) -> ResultT:
    for pause in range(_ROUNDS):
        if result.needs is None:
            return result
        answers = await answers_to(result.needs, request)
        if not answers:
            await anyio.sleep(_PAUSE * 2**pause)
        result = await run(replace(request, answers=answers, state=result.needs.state))
    if result.needs is None:
        return result
    raise Unavailable(f"the server asked for more input {_ROUNDS} times and never answered")


async def answers_to(needs: Needs, request: Asked) -> dict[str, Json]:
    """What the client says to each need, asked side by side; one that it cannot meet or refuses raises."""
    require_all(request.capabilities, needs)
    ask = request.ask
    assert ask is not None, "every request that comes over the wire can ask"
    answers: dict[str, Json] = {}
    failures: list[Exception] = []

    async def put(ask: Ask, key: str, method: str, params: dict[str, Json]) -> None:
        try:
            answers[key] = dict(await ask(method, params))
        except Exception as error:  # noqa: BLE001 - raised below, alone instead of in a group
            failures.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for key, method, params in requests_in(needs):
            tasks.start_soon(put, ask, key, method, dict(params))
    if failures:
        raise failures[0]
    return answers
