"""Where does what was called after which search wait for the next one?

In a table of the database, a row for each need and tool of a principal: the terms of the need, how often, and when
last. Bounded in number and age. What is alike to what, and what may be kept of a query at all, `ullage.search` knows;
what a database that fails means, whoever asks.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ullage.errors import StoreFailed
from ullage.options import MOST_USES
from ullage.store import Connection, Database, in_list, upsert

if TYPE_CHECKING:
    from ullage.search import Use, Used

__all__ = ["StoredUses"]

_COLUMNS = ("id", "principal", "server", "tool", "terms", "count", "last")
_ADD = upsert("ullage_uses", _COLUMNS, key="id", update={"count": "ullage_uses.count + 1", "last": "excluded.last"})

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

    def load(self, principal: str, now: float) -> "tuple[Use, ...]":
        query = (
            "SELECT server, tool, terms, count, last FROM ullage_uses WHERE principal = :principal AND last >= :oldest "
            "ORDER BY last DESC LIMIT :most"
        )
        values = {"principal": json.dumps(principal), "oldest": now - _AGE, "most": self.most}
        rows = self.database.read(lambda connection: connection.execute(query, values).mappings())
        return tuple(map(_use, rows))

    def add(self, principal: str, terms: Iterable[str], tool: "Used", now: float) -> None:
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
            connection.execute(_ADD, row)
            _thin_out(connection, said["principal"], most=self.most, oldest=now - _AGE)

        self.database.write(work)

    def forget(self, principals: Iterable[str]) -> int:
        """How many there were of these principals, and now are no more."""
        listed, values = in_list("principal", map(json.dumps, principals))
        statement = f"DELETE FROM ullage_uses WHERE principal IN {listed}"
        return self.database.write(lambda connection: connection.execute(statement, values).rowcount) if values else 0


def _use(row: Mapping[Any, Any]) -> "Use":
    from ullage.search import Use

    try:
        tool = json.loads(row["server"]), json.loads(row["tool"])
    except ValueError as error:
        raise StoreFailed("a use in the database cannot be read") from error
    return Use(terms=frozenset(row["terms"].split()), tool=tool, count=max(1, row["count"]), last=row["last"])


def _thin_out(connection: Connection, principal: str, *, most: int, oldest: float) -> None:
    connection.execute("DELETE FROM ullage_uses WHERE last < :oldest", {"oldest": oldest})
    doomed = connection.execute(
        "SELECT id FROM ullage_uses WHERE principal = :principal ORDER BY last DESC, id LIMIT :some OFFSET :most",
        {"principal": principal, "some": _AT_ONCE, "most": most},
    ).all()
    if doomed:
        listed, values = in_list("id", [row[0] for row in doomed])
        connection.execute(f"DELETE FROM ullage_uses WHERE id IN {listed}", values)
