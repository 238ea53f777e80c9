"""Many processes that ask models out of one budget, and the provider that keeps its own book of what it billed.

Run with a `Race` as JSON; says how each process ended. All are forks of one that has imported everything, or fifty
would be busy with that alone. The provider answers without a network; what it bills it writes down before the answer
has ended, and nobody can talk it away.
"""

import json
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import anyio
import httpx2

from ullage.delegate import (
    NO_SPEND,
    Ask,
    Ceiling,
    Ceilings,
    Delegate,
    ModelEntry,
    OpenAIChat,
    Patience,
    Policy,
    Provider,
    Purse,
    Spend,
    StoredPurse,
    Ticket,
)
from ullage.errors import OverBudget
from ullage.messages import Message, Text
from ullage.models import Price, shipped
from ullage.store import Database
from ullage.tokens import Meter
from ullage.tool import Caller

__all__ = ["OUTPUT", "Race"]

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
INPUT, OUTPUT = 5, 90
"""Tokens of a prompt, fewer than anybody would estimate, and the most of an answer."""
PRICE = Price(input=Decimal("0.000003"), output=Decimal("0.000009"), source="a test", date=NOW.date())
MODEL = "gpt-4o-mini"
METER = Meter(shipped())
METER.count("Its vocabulary is read before there are fifty of us.", MODEL)
WAITING = 300
"""Seconds; fifty processes on two processors take their time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    place: str
    """Where the store is."""
    book: str
    """Where the provider's own book is."""
    processes: int
    ceiling: int
    """Tokens of the day."""
    times_billed: int
    """How many times the most of an answer a provider may bill."""


@dataclass(frozen=True, slots=True)
class Biller:
    """Answers at random length; every fifth answer breaks off when it has been billed."""

    book: Path
    chance: random.Random
    times: int

    async def __call__(self, _: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=self._answer())

    async def _answer(self) -> AsyncIterator[bytes]:
        # Others come between.
        await anyio.sleep(self.chance.random() / 50)
        if self.chance.random() < 0.2:
            self._bill(INPUT + 1)
            yield _event({"choices": [{"delta": {"content": "word word"}}]})
            raise httpx2.ReadError("broken")
        output = self.chance.randint(1, OUTPUT * self.times)
        self._bill(INPUT + output)
        yield _event({"choices": [{"delta": {"content": "word"}, "finish_reason": "stop"}]})
        yield _event({"choices": [], "usage": {"prompt_tokens": INPUT, "completion_tokens": output}})

    def _bill(self, tokens: int) -> None:
        handle = os.open(self.book, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{tokens}\n".encode())
        os.close(handle)


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Mortal:
    """Dies where the answer is there and paid for, and nothing written down of it."""

    purse: Purse

    async def reserve(self, estimate: Spend, caller: Caller, task: str | None, *, already: Spend = NO_SPEND) -> Ticket:
        return await self.purse.reserve(estimate, caller, task, already=already)

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def end(self, caller: Caller, task: str | None = None) -> None:
        await self.purse.end(caller, task)


def run(race: Race) -> list[int | None]:
    """How each ended, all of them having begun at one moment."""
    context = multiprocessing.get_context("fork")
    start = context.Barrier(race.processes)
    processes = [context.Process(target=spend, args=(race, number, start)) for number in range(race.processes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def spend(race: Race, number: int, start: Barrier) -> None:
    """Asks until there is nothing left."""
    database = Database.open(race.place, patience=WAITING)
    start.wait(WAITING)
    try:
        anyio.run(_spend, race, number, database)
    finally:
        database.close()


async def _spend(race: Race, number: int, database: Database) -> None:
    ceilings = Ceilings(by_scope={"day": Ceiling(tokens=race.ceiling)})
    purse = StoredPurse(database=database, ceilings=lambda: ceilings, now=lambda: NOW)
    biller = Biller(Path(race.book), random.Random(number), race.times_billed)
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(biller)) as client:
        one = _delegate(client, Mortal(purse) if number % 5 == 0 else purse)
        try:
            while True:
                await one.run(Ask(messages=(Message(role="user", parts=(Text("Say one word."),)),)))
        except OverBudget:
            pass


def _delegate(client: httpx2.AsyncClient, purse: Purse) -> Delegate:
    entry = ModelEntry(id="one", provider="one", model=MODEL, max_output_tokens=OUTPUT, price=PRICE)
    return Delegate(
        policy=Policy(aliases={"one": "one"}, models={"one": entry}, default_alias="one"),
        models=shipped(),
        meter=METER,
        providers={"one": Provider(name="one", wire=OpenAIChat(), base_url="http://one.test")},
        client=client,
        purse=purse,
        patience=Patience(retries=20, first_pause=0.001, longest_pause=0.01),
        longest=WAITING,
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(Race(**json.loads(sys.argv[1])))))
