import asyncio
import gc
from collections.abc import AsyncGenerator, Callable

import anyio
import pytest

from ullage.agent.loop import running

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats")]


async def count_to_three(tell: Callable[[int], None]) -> str:
    for number in (1, 2, 3):
        tell(number)
        await anyio.sleep(0)
    return "done"


async def test_pieces_come_as_they_are_told_and_then_the_value():
    async with running(count_to_three) as work:
        assert [piece async for piece in work] == [1, 2, 3]
        assert await work.value() == "done"


async def test_what_the_work_raises_is_raised_where_its_value_is_asked_for():
    async def fails(tell: Callable[[int], None]) -> str:
        tell(1)
        raise ValueError("no")

    async with running(fails) as work:
        assert [piece async for piece in work] == [1]
        with pytest.raises(ValueError, match="no"):
            await work.value()


class Endless:
    def __init__(self) -> None:
        self.ended = False

    async def __call__(self, tell: Callable[[int], None]) -> None:
        try:
            tell(1)
            await anyio.sleep_forever()
        finally:
            self.ended = True

    async def pieces(self) -> AsyncGenerator[int]:
        async with running(self) as work:
            async for piece in work:
                yield piece


async def test_the_work_ends_when_its_generator_is_closed():
    endless = Endless()
    pieces = endless.pieces()
    assert await anext(pieces) == 1
    await pieces.aclose()
    assert endless.ended


async def test_the_work_ends_when_its_reader_is_cancelled():
    endless = Endless()
    with anyio.move_on_after(0.01):
        async for _ in endless.pieces():
            pass
    assert endless.ended


async def test_the_work_ends_when_its_generator_is_forgotten():
    endless = Endless()

    async def forgets() -> None:
        async for _ in endless.pieces():
            break

    await forgets()
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert endless.ended
