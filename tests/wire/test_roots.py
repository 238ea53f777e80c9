import asyncio
from collections.abc import Callable

import anyio
import pytest

from ullage.errors import ClientCannot
from ullage.tool import Asked, JsonObject
from ullage.wire.upstream.rpc_peer import Roots

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:call")]

HERE: JsonObject = {"roots": [{"uri": "file:///here"}]}


async def here(method: str, params: JsonObject) -> JsonObject:
    await anyio.sleep(0.02)
    return HERE


async def never(method: str, params: JsonObject) -> JsonObject:
    await anyio.sleep_forever()
    raise AssertionError


def asked(ask: Callable[..., object]) -> Asked:
    return Asked(ask=ask, capabilities={"roots": {}})  # pyright: ignore[reportArgumentType]


def held(roots: Roots, *, blocking: bool = False) -> asyncio.Task[JsonObject]:
    return asyncio.ensure_future(roots.hold({}, lambda: blocking))


async def test_a_question_waits_for_the_next_client_however_long():
    roots = Roots(blocking=0.01)
    question = held(roots)
    await anyio.sleep(0.05)
    assert roots.is_open()
    await roots.settle(asked(here))
    assert await question == HERE
    assert not roots.is_open()


async def test_a_server_that_waits_for_the_answer_before_it_gives_its_own_is_refused_it():
    with pytest.raises(ClientCannot, match="no client has called"):
        await held(Roots(blocking=0.01), blocking=True)


async def test_a_client_that_does_not_answer_holds_up_no_request_for_long():
    roots = Roots(patience=0.02)
    question = held(roots)
    await anyio.sleep(0)
    with anyio.fail_after(20):
        await roots.settle(asked(never))
    with pytest.raises(ClientCannot, match="no answer within"):
        await question


async def test_a_question_taken_back_while_the_client_is_asked_is_asked_for_again_later():
    reminded: list[str] = []
    roots = Roots(remind=lambda: reminded.append("again"))
    begun, over = anyio.Event(), anyio.Event()

    async def slowly(method: str, params: JsonObject) -> JsonObject:
        begun.set()
        await over.wait()
        return HERE

    question = held(roots)
    await anyio.sleep(0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(roots.settle, asked(slowly))
        with anyio.fail_after(20):
            await begun.wait()
        question.cancel()
        await anyio.sleep(0)
        over.set()
    assert roots.is_open()
    await roots.settle(Asked(ask=here))
    assert reminded == [], "that client has no folders to tell of"
    await roots.settle(asked(here))
    assert reminded == ["again"]
    assert not roots.is_open()
