import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import anyio
import httpx2
import pytest

from delegate.delegates import Both, delegate
from delegate.streams import ANSWERS, Scripted
from ullage.delegate import Ask, Ceiling, Ceilings, Delegate, Outcome, RunRecord, StoredPurse
from ullage.delegate.checked_answers import as_one_call
from ullage.delegate.spend_limits import run_to_completion
from ullage.messages import Message, Text
from ullage.store import Database

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S4:budgets")]

Result = TypeVar("Result")
ASK = Ask(messages=(Message(role="user", parts=(Text("Please write the word hello"),)),), prompt_tokens=10)


class InTurns(Database):
    """Writes as a thread does, which goes on when nobody waits for it any more, but in so many turns of the event loop:
    what happens when is then the same each time."""

    async def aside(self, work: Callable[[], Result]) -> Result:
        await _turns(2)
        return await asyncio.shield(asyncio.ensure_future(_done(work)))


async def _done(work: Callable[[], Result]) -> Result:
    await _turns(2)
    result = work()
    await _turns(2)
    return result


async def _turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@dataclass
class Told:
    tokens: int = 0
    """Of every attempt, as the ledger has them."""

    def record_run(self, run_record: RunRecord) -> None:
        self.tokens += sum((one.usage.input or 0) + (one.usage.output or 0) for one in run_record.attempts)


@dataclass
class Bench:
    """Delegates whose first model breaks off after it has begun, so that one run sets money aside several times."""

    client: httpx2.AsyncClient
    database: Database
    told: Told = field(default_factory=Told)

    def delegate(self) -> Delegate:
        purse = StoredPurse(
            database=self.database, ceilings=lambda: Ceilings(by_scope={"day": Ceiling(tokens=1_000_000_000)})
        )
        found = delegate(self.client, purse)
        found.observers, found.chance = (self.told,), lambda: 0.0
        return found

    def booked(self) -> tuple[int, int]:
        """How many estimates stand, and the tokens of all that is written down."""
        sums = "SELECT count(*) - coalesce(sum(settled), 0), coalesce(sum(tokens), 0) FROM ullage_spends"
        standing, tokens = self.database.read(lambda it: it.execute(sums).one())
        return standing, tokens


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    database = InTurns.open(tmp_path / "store.db")
    both = Both(Scripted([ANSWERS["chat"]], cut_after=2))
    async with both.client() as client:
        yield Bench(client, database)
    database.close()


def one_run(asking: Delegate) -> Delegate:
    return asking


def one_call(asking: Delegate) -> Delegate:
    return as_one_call(asking)[0]


async def once(task: asyncio.Task[object]) -> None:
    task.cancel()


async def again_and_again(task: asyncio.Task[object]) -> None:
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)


def _moments() -> Iterator[int]:
    """Every turn of the loop from the first on; more than there are is a fault."""
    yield from range(400)
    pytest.fail("it never came to its end")


@pytest.mark.requirement("S4:budgets")
@pytest.mark.parametrize("by", [one_run, one_call])
@pytest.mark.parametrize("cancel", [once, again_and_again])
async def test_whenever_a_run_is_cancelled_what_was_spent_is_booked_and_no_estimate_stands(
    bench: Bench, cancel: Callable[[asyncio.Task[object]], Awaitable[None]], by: Callable[[Delegate], Delegate]
):
    moments = list[int]()
    for moment in _moments():
        task = asyncio.get_running_loop().create_task(by(bench.delegate()).run(ASK))
        await _turns(moment)
        finished = task.done()
        await cancel(task)
        await asyncio.wait({task})
        # What a thread had still to do by itself.
        await _turns(10)
        assert bench.booked() == (0, bench.told.tokens), f"cancelled after {moment} turns"
        if finished:
            break
        moments.append(moment)
    assert len(moments) > 100
    assert bench.told.tokens > 0


@pytest.mark.requirement("S4:budgets")
async def test_a_scope_that_is_cancelled_leaves_no_estimate_either(bench: Bench):
    outcomes = list[Outcome]()

    async def run() -> None:
        outcomes.append(await bench.delegate().run(ASK))

    for moment in _moments():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await _turns(moment)
            if outcomes:
                break
            tasks.cancel_scope.cancel()
        await _turns(10)
        assert bench.booked() == (0, bench.told.tokens), f"cancelled after {moment} turns"
        # With nothing to wait for after its last booking, a run may end although it was cancelled.
        outcomes.clear()


async def test_work_comes_to_its_end_and_the_cancelling_is_not_lost():
    done = list[str]()

    async def work() -> str:
        await _turns(3)
        done.append("done")
        return "value"

    assert await run_to_completion(work()) == "value"
    task = asyncio.get_running_loop().create_task(run_to_completion(work()))
    await _turns(1)
    await again_and_again(task)
    assert task.cancelled()
    assert done == ["done", "done"]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await run_to_completion(work())
    assert len(done) == 3


async def test_what_the_work_raises_is_raised_unless_whoever_waits_is_cancelled():
    async def work() -> None:
        await _turns(3)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await run_to_completion(work())
    task = asyncio.get_running_loop().create_task(run_to_completion(work()))
    await _turns(1)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
