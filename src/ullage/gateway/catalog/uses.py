"""Where does what was called after which search wait for the next one?

In a table of the database, a row for each need and tool of a principal: the terms of the need, how often, and when
last. Bounded in number and age. What is alike to what, and what may be kept of a query at all, `ullage.search` knows;
what a database that fails means, whoever asks.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, column, delete, select, table

from ullage.errors import StoreFailed
from ullage.search import MOST_USES, Use, Used
from ullage.store import Database, insert_into

__all__ = ["StoredUses"]

_uses = table("ullage_uses", *map(column, ("id", "principal", "server", "tool", "terms", "count", "last")))

_AGE = 180 * 86_400.0
"""Seconds after which a use is forgotten; it counts next to nothing by then."""
_AT_ONCE = 500
"""Rows deleted by one statement: databases limit its parameters."""


@dataclass(frozen=True, slots=True)
class StoredUses:
    """Blocking: to be used from a thread. Raises `StoreFailed`."""

    database: Database
    most: int = MOST_USES
    """Of one principal."""

    def load(self, principal: str, now: float) -> tuple[Use, ...]:
        its = (_uses.c.principal == json.dumps(principal)) & (_uses.c.last >= now - _AGE)
        query = select(_uses).where(its).order_by(_uses.c.last.desc()).limit(self.most)
        rows = self.database.read(lambda connection: connection.execute(query).mappings().all())
        return tuple(map(_use, rows))

    def add(self, principal: str, terms: Iterable[str], tool: Used, now: float) -> None:
        """One more use of the tool for what these terms say."""
        # Names as JSON, so that no two become one.
        said = {
            "principal": json.dumps(principal),
            "server": json.dumps(tool[0]),
            "tool": json.dumps(tool[1]),
            "terms": " ".join(sorted(terms)),
        }
        digest = hashlib.sha256("\n".join(said.values()).encode()).hexdigest()
        row = {"id": digest, **said, "count": 1, "last": now}

        def work(connection: Connection) -> None:
            added = insert_into(connection, _uses)
            again = {"count": _uses.c.count + 1, "last": added.excluded.last}
            connection.execute(added.on_conflict_do_update(index_elements=["id"], set_=again), row)
            _thin_out(connection, said["principal"], most=self.most, oldest=now - _AGE)

        self.database.write(work)

    def forget(self, principals: Iterable[str]) -> int:
        """How many there were of these principals, and now are no more."""
        its = _uses.c.principal.in_([json.dumps(principal) for principal in principals])
        return self.database.write(lambda connection: connection.execute(delete(_uses).where(its)).rowcount)


def _use(row: Mapping[Any, Any]) -> Use:
    try:
        tool = json.loads(row["server"]), json.loads(row["tool"])
    except ValueError as error:
        raise StoreFailed("a use in the database cannot be read") from error
    return Use(terms=frozenset(row["terms"].split()), tool=tool, count=max(1, row["count"]), last=row["last"])


def _thin_out(connection: Connection, principal: str, *, most: int, oldest: float) -> None:
    connection.execute(delete(_uses).where(_uses.c.last < oldest))
    newest = select(_uses.c.id).where(_uses.c.principal == principal).order_by(_uses.c.last.desc(), _uses.c.id)
    doomed = connection.scalars(newest.offset(most).limit(_AT_ONCE)).all()
    if doomed:
        connection.execute(delete(_uses).where(_uses.c.id.in_(doomed)))
