"""A database that is none, and a short way to ask it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from ullage.sql import (
    Answer,
    Column,
    DatabaseSettings,
    Dialect,
    ForeignKey,
    Probe,
    Question,
    SqlSource,
    Stability,
    Structure,
    Table,
    Trigger,
)
from ullage.table import Row
from ullage.tool import Call, Caller, Json, Reply

ORDERS = Table(
    name="orders",
    columns=(Column(name="id", type="INTEGER"), Column(name="name", type="TEXT")),
    primary_key=("id",),
    foreign_keys=(ForeignKey(columns=("id",), table="people", to=("id",)),),
    triggers=(Trigger(name="touch", timing="AFTER", event="INSERT", statement="SELECT 1"),),
    rows=12,
)
PEOPLE = Table(name="people", columns=(Column(name="id", type="INTEGER"),), primary_key=("id",))


@dataclass(slots=True, kw_only=True)
class FakeDatabase:
    """An engine that answers every question with the same rows, as far as they are asked for."""

    columns: tuple[str, ...] = ("id", "name")
    rows: tuple[Row, ...] = ()
    dialect: Dialect = "sqlite"
    tables: tuple[Table, ...] = (ORDERS, PEOPLE)
    failure: Exception | None = None
    """Raised instead of an answer."""
    unread: Exception | None = None
    """Raised instead of the structure."""
    pause: float = 0.0
    """Before anything else than `ask` answers."""
    asked: list[Question] = field(default_factory=list[Question])
    described: int = 0
    """How often the structure was read."""
    closed: int = 0

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        if self.failure is not None:
            raise self.failure
        return Answer(columns=self.columns, rows=self.rows[: question.rows], more=len(self.rows) > question.rows)

    async def structure(self) -> Structure:
        await anyio.sleep(self.pause)
        if self.unread is not None:
            raise self.unread
        self.described += 1
        return Structure(tables=self.tables, name="fake")

    async def functions(self) -> Mapping[str, Stability]:
        await anyio.sleep(self.pause)
        return {}

    async def probe(self) -> Probe:
        return Probe(role="app", can_write=("is a superuser",), setup_sql="CREATE ROLE reader;")

    async def close(self) -> None:
        self.closed += 1


@dataclass(slots=True)
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def weigh(caller: Caller) -> Callable[[str], int]:
    """Words; to a model called `dear` each is two tokens."""
    factor = 2 if caller.model == "dear" else 1
    return lambda text: factor * len(text.split())


@dataclass(slots=True)
class Asker:
    """A source over a fake database."""

    database: FakeDatabase
    source: SqlSource
    clock: Clock

    async def __call__(self, tool: str, *, who: str = "ada", deadline: float | None = None, **given: Json) -> Reply:
        caller = Caller(principal=who, session="s", model="dear" if who == "dear" else None)
        return await self.source.call(Call(tool=tool, arguments=given, caller=caller, deadline=deadline))

    async def text(self, tool: str, **given: Json) -> str:
        return text_of(await self(tool, who="ada", deadline=None, **given))


def asker(database: FakeDatabase | None = None, **settings: Any) -> Asker:  # noqa: ANN401
    clock, engine = Clock(), database or FakeDatabase(rows=((1, "Ada"), (2, "Bo"), (3, "Cy")))
    chosen = DatabaseSettings(**{"name": "fake", "url": "sqlite:///none.db", **settings})
    return Asker(engine, SqlSource(settings=chosen, engine=engine, weigh=weigh, clock=clock), clock)


def text_of(reply: Reply) -> str:
    return str(reply.content[0]["text"])


def data_of(reply: Reply) -> dict[str, Json]:
    return cast("Any", reply.meta["dev.ullage/meta"])["data"]


def was_cached(reply: Reply) -> bool:
    return cast("Any", reply.meta["dev.ullage/meta"])["performance"]["cachedResult"]
