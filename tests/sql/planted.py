"""Random views, generated columns and copies over a table with planted secrets, in the SQL that every engine reads."""

import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ullage.errors import UllageError
from ullage.options import DatabaseSettings
from ullage.sql import SqlSource, open_engine
from ullage.tool import Call

SECRET = "zq7secret"
"""Part of every planted value; letters and digits only, so that no change of case or quoting hides it."""
PLAIN = "openvalue"

TABLES = (
    "CREATE TABLE people (id VARCHAR(9), name VARCHAR(60), secret VARCHAR(60))",
    f"INSERT INTO people VALUES ('1', '{PLAIN}1', '{SECRET}1'), ('2', '{PLAIN}2', '{SECRET}2')",
    "CREATE TABLE notes (id VARCHAR(9), body VARCHAR(60))",
    f"INSERT INTO notes VALUES ('1', '{PLAIN}3'), ('2', '{PLAIN}4')",
)

_CALLS = ("upper({})", "lower({})", "coalesce({}, 'none')", "replace({}, 'none', '')", "({})")
_AGGREGATES = ("max({})", "min({})")


@dataclass(slots=True)
class Planting:
    """One random set of views."""

    seed: int
    columns: dict[str, list[str]] = field(
        default_factory=lambda: {"people": ["id", "name", "secret"], "notes": ["id", "body"]}
    )

    def views(self, count: int) -> Iterator[str]:
        """`CREATE VIEW` statements, each of which may read the ones before it."""
        random_ = random.Random(self.seed)
        for number in range(count):
            name = f"view_{number}"
            names, query = self._query(random_)
            listed = ", ".join(names)
            self.columns[name] = names
            yield f"CREATE VIEW {name} ({listed}) AS {query}"

    def _query(self, random_: random.Random) -> tuple[list[str], str]:
        match random_.randrange(6):
            case 0:
                return self._union(random_)
            case 1:
                names, inner = self._select(random_)
                renamed = [f"r{place}" for place in range(len(names))]
                pairs = ", ".join(f"{old} AS {new}" for old, new in zip(names, renamed, strict=True))
                return renamed, f"WITH x AS ({inner}) SELECT {pairs} FROM x"
            case 2:
                names, inner = self._select(random_)
                return names, f"SELECT * FROM ({inner}) d"
            case 3:
                source = random_.choice(sorted(self.columns))
                column = random_.choice(self.columns[source])
                return ["best"], f"SELECT {random_.choice(_AGGREGATES).format(column)} AS best FROM {source}"
            case _:
                return self._select(random_)

    def _select(self, random_: random.Random) -> tuple[list[str], str]:
        source = random_.choice(sorted(self.columns))
        chosen = random_.sample(self.columns[source], random_.randint(1, len(self.columns[source])))
        names = [f"c{place}" for place in range(len(chosen))]
        shown = [
            f"{self._expression(random_, f's.{column}')} AS {name}" for column, name in zip(chosen, names, strict=True)
        ]
        if random_.random() < 0.3:
            column = random_.choice(self.columns["people"][1:])
            names.append("picked")
            shown.append(f"(SELECT max(p.{column}) FROM people p) AS picked")
        where = f" WHERE s.{chosen[0]} IS NOT NULL" if random_.random() < 0.3 else ""
        return names, f"SELECT {', '.join(shown)} FROM {source} s{where}"

    def _union(self, random_: random.Random) -> tuple[list[str], str]:
        sides = []
        for _ in range(2):
            source = random_.choice(sorted(self.columns))
            column = random_.choice(self.columns[source])
            sides.append(f"SELECT lower({column}) AS both_ FROM {source}")
        return ["both_"], random_.choice((" UNION ", " UNION ALL ")).join(sides)

    def _expression(self, random_: random.Random, column: str) -> str:
        if random_.random() < 0.5:
            return column
        return random_.choice(_CALLS).format(column)

    def questions(self, count: int) -> Iterator[str]:
        """Statements about the views, those that may be asked and those that may not."""
        random_ = random.Random(self.seed + 1)
        for name in self.columns:
            yield f"SELECT * FROM {name}"
        for _ in range(count):
            name = random_.choice(sorted(self.columns))
            column = random_.choice(self.columns[name])
            yield random_.choice(
                (
                    f"SELECT {column} FROM {name}",
                    f"SELECT upper({column}) FROM {name}",
                    f"SELECT x.* FROM {name} x JOIN people p ON p.id = '1'",
                    f"SELECT max({column}) FROM {name}",
                    f"SELECT p.name, x.{column} FROM people p, {name} x",
                    f"WITH w AS (SELECT * FROM {name}) SELECT {column} AS other FROM w",
                    f"SELECT {column} FROM {name} UNION ALL SELECT {column} FROM {name}",
                    f"SELECT (SELECT max({column}) FROM {name}) AS z",
                    f"SELECT DISTINCT {column} FROM {name}",
                    f"SELECT {column}, count(*) FROM {name} GROUP BY {column}",
                    f"SELECT * FROM {name} a JOIN {name} b USING ({column})",
                    f"SELECT * FROM people JOIN (SELECT {column} AS id FROM {name}) x USING (id)",
                    f"SELECT * FROM (SELECT {column} AS secret, '1' AS id FROM {name}) x LEFT JOIN people USING (id)",
                )
            )


@asynccontextmanager
async def opened(url: str, *masked: str) -> AsyncGenerator[SqlSource]:
    """A source over a planted database."""
    settings = DatabaseSettings(name="planted", url=url, masked=masked)
    source = SqlSource(settings=settings, engine=open_engine(settings, sample=Path()), weigh=lambda _: len)
    try:
        yield source
    finally:
        await source.close()


async def said(source: SqlSource, tool: str, **arguments: Any) -> str:  # noqa: ANN401
    """All that a tool says to its caller, be it an answer or a refusal."""
    try:
        reply = await source.call(Call(tool=tool, arguments=arguments))
    except UllageError as error:
        return f"{error.message} {error.suggestion} {error.options}"
    return str(reply.content[0]["text"])
