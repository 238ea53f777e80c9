"""Stores what the search index derives from definitions and calls: tool forms, use counts, shapes and vectors.

Forms and vectors can be computed again, so a failing database counts as an empty cache, not as an error.

`StoredForms` is a cache of JSON by the hash of a definition.

`StoredUses` has a row for each need and tool of a principal: the terms of the need, how often, and when last. It is
bounded in number and age. `ullage.search` decides which needs are similar and what may be stored of a query; the caller
handles a failing database.

`StoredShapes` has a row for each tool of a principal: what it returns, with the hash of its definition. It is bounded
in number and age.

`StoredVectors` stores vectors in the rows of their tools, by the server's name and the definition's hash. A tool has
no vector after either changes, because the transaction that changes a definition clears it.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ullage.errors import StoreFailed
from ullage.options import MOST_USES
from ullage.store import Connection, Database, in_list, seconds, storable, upsert
from ullage.tool import Json, JsonObject

if TYPE_CHECKING:
    from ullage.search import Use, Used

__all__ = ["StoredForms", "StoredShapes", "StoredUses", "StoredVectors"]

_SAVE = upsert(
    "ullage_forms",
    ("key", "form", "created"),
    key='"key"',
    update={"form": "excluded.form", "created": "excluded.created"},
)

_AT_ONCE = 500
"""Most keys in one statement; databases limit its parameters."""
_AGE = timedelta(days=90)
"""Age at which a form is deleted. Its last use is not recorded, and it is cheap to compute again."""


class StoredForms:
    """Store of tool forms. Blocking: to be used from a thread."""

    def __init__(
        self,
        database: Database | None,
        *,
        edition: str,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Open the cache. `edition` identifies how forms are computed; those of another edition are not found."""
        self._database = database
        self._edition = edition
        self._clock = clock

    def load(self, hashes: Iterable[str]) -> dict[str, JsonObject]:
        """Return the stored forms of these definitions."""
        wanted = {f"{self._edition}:{one}": one for one in hashes}
        if self._database is None:
            return {}
        try:
            found = self._database.read(lambda connection: _load(connection, list(wanted)))
        except StoreFailed:
            return {}
        return {wanted[key]: form for key, form in found.items()}

    def save(self, forms: Mapping[str, JsonObject]) -> None:
        """Store forms."""
        if self._database is None or not forms:
            return
        now = self._clock()
        # Sorted, so that two processes adding the same ones never wait for each other crosswise.
        rows = [
            {"key": f"{self._edition}:{one}", "form": json.dumps(form), "created": seconds(now)}
            for one, form in sorted(forms.items())
        ]

        def write(connection: Connection) -> None:
            connection.execute("DELETE FROM ullage_forms WHERE created < :oldest", {"oldest": seconds(now - _AGE)})
            connection.execute(_SAVE, rows)

        try:
            self._database.write(write)
        except StoreFailed:
            return


def _load(connection: Connection, keys: list[str]) -> dict[str, JsonObject]:
    found: dict[str, JsonObject] = {}
    for start in range(0, len(keys), _AT_ONCE):
        listed, values = in_list("key", keys[start : start + _AT_ONCE])
        rows = connection.execute(f'SELECT "key", form FROM ullage_forms WHERE "key" IN {listed}', values)
        found.update((key, json.loads(form)) for key, form in rows)
    return found


_COLUMNS = ("id", "principal", "server", "tool", "terms", "count", "last")
_ADD = upsert("ullage_uses", _COLUMNS, key="id", update={"count": "ullage_uses.count + 1", "last": "excluded.last"})

_USES_AGE = 180 * 86_400.0
"""Seconds after which a use is deleted; it has almost no weight by then."""
"""Most rows deleted by one statement; databases limit its parameters."""


@dataclass(frozen=True, slots=True)
class StoredUses:
    """Store of uses. Blocking: to be used from a thread.

    Raises:
        StoreFailed: From any method, if the database fails.
    """

    database: Database
    most: int = MOST_USES
    """Most uses kept of one principal."""

    def load(self, principal: str, now: float) -> "tuple[Use, ...]":
        query = (
            "SELECT server, tool, terms, count, last FROM ullage_uses WHERE principal = :principal AND last >= :oldest "
            "ORDER BY last DESC LIMIT :most"
        )
        values = {"principal": json.dumps(principal), "oldest": now - _USES_AGE, "most": self.most}
        rows = self.database.read(lambda connection: connection.execute(query, values).mappings())
        return tuple(map(_use, rows))

    def add(self, principal: str, terms: Iterable[str], tool: "Used", now: float) -> None:
        """Add one use of the tool for these terms."""
        # Names are written as JSON, so that no two become equal.
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
            connection.execute("DELETE FROM ullage_uses WHERE last < :oldest", {"oldest": now - _USES_AGE})
            doomed = connection.execute(
                "SELECT id FROM ullage_uses WHERE principal = :principal "
                "ORDER BY last DESC, id LIMIT :some OFFSET :most",
                {"principal": said["principal"], "some": _AT_ONCE, "most": self.most},
            ).all()
            if doomed:
                listed, values = in_list("id", [row[0] for row in doomed])
                connection.execute(f"DELETE FROM ullage_uses WHERE id IN {listed}", values)

        self.database.write(work)

    def forget(self, principals: Iterable[str]) -> int:
        """Delete the uses of these principals and return how many there were."""
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


_SHAPE_COLUMNS = ("id", "principal", "server", "tool", "definition", "shape", "last")
_SAVE_SHAPE = upsert(
    "ullage_shapes",
    _SHAPE_COLUMNS,
    key="id",
    update={name: f"excluded.{name}" for name in ("definition", "shape", "last")},
)
_MOST_SHAPES = 2_000
"""Most shapes kept of one principal."""


@dataclass(frozen=True, slots=True)
class StoredShapes:
    """Store of what tools return. Blocking: to be used from a thread.

    Raises:
        StoreFailed: From any method, if the database fails.
    """

    database: Database
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    most: int = _MOST_SHAPES

    def load(self, principal: str) -> dict[tuple[str, str], tuple[str, Json]]:
        """Return a principal's shapes by server and tool, with the hash of the definition."""
        query = "SELECT server, tool, definition, shape FROM ullage_shapes WHERE principal = :principal"
        values = {"principal": json.dumps(principal)}
        rows = self.database.read(lambda connection: connection.execute(query, values).all())
        try:
            return {(json.loads(row[0]), json.loads(row[1])): (row[2], json.loads(row[3])) for row in rows}
        except ValueError as error:
            raise StoreFailed("a shape in the database cannot be read") from error

    def save(self, principal: str, tool: tuple[str, str], definition: str, shape: Json) -> None:
        """Store the shape of a tool, in place of any other of this principal and tool."""
        now = seconds(self.clock())
        row = {**_shape_key(principal, tool), "definition": definition, "shape": json.dumps(shape), "last": now}

        def work(connection: Connection) -> None:
            connection.execute(_SAVE_SHAPE, row)
            connection.execute("DELETE FROM ullage_shapes WHERE last < :oldest", {"oldest": now - _USES_AGE})
            doomed = connection.execute(
                "SELECT id FROM ullage_shapes WHERE principal = :principal ORDER BY last DESC, id "
                "LIMIT :some OFFSET :most",
                {"principal": row["principal"], "some": _AT_ONCE, "most": self.most},
            ).all()
            if doomed:
                listed, values = in_list("id", [one[0] for one in doomed])
                connection.execute(f"DELETE FROM ullage_shapes WHERE id IN {listed}", values)

        self.database.write(work)

    def delete(self, principal: str, tool: tuple[str, str]) -> None:
        """Delete the shape of a tool."""
        values = {"id": _shape_key(principal, tool)["id"]}
        self.database.write(lambda connection: connection.execute("DELETE FROM ullage_shapes WHERE id = :id", values))

    def forget(self, principals: Iterable[str]) -> int:
        """Delete the shapes of these principals and return how many there were."""
        listed, values = in_list("principal", map(json.dumps, principals))
        statement = f"DELETE FROM ullage_shapes WHERE principal IN {listed}"
        return self.database.write(lambda connection: connection.execute(statement, values).rowcount) if values else 0


def _shape_key(principal: str, tool: tuple[str, str]) -> dict[str, str]:
    said = {"principal": json.dumps(principal), "server": json.dumps(tool[0]), "tool": json.dumps(tool[1])}
    return {"id": hashlib.sha256("\n".join(said.values()).encode()).hexdigest(), **said}


_VECTORS_SAVE = (
    "UPDATE ullage_tools SET embedding = :embedding WHERE definition_hash = :hash "
    "AND server_id IN (SELECT id FROM ullage_servers WHERE name = :server)"
)
"""Most hashes in one statement, since databases limit its parameters, and rows in one transaction, since others
wait."""

_Key = tuple[str, str]
"""The server's name and a definition's hash."""


class StoredVectors:
    """Store of vectors. Blocking: to be used from a thread."""

    def __init__(self, database: Database | None) -> None:
        self._database = database

    def load(self, keys: Iterable[_Key]) -> dict[_Key, bytes]:
        """Return the stored vectors of these definitions."""
        wanted = {(storable(server), hash_): (server, hash_) for server, hash_ in keys}
        if self._database is None or not wanted:
            return {}
        hashes = sorted({hash_ for _, hash_ in wanted})
        try:
            found = self._database.read(lambda connection: _vectors_load(connection, hashes))
        except StoreFailed:
            return {}
        return {wanted[key]: vector for key, vector in found.items() if key in wanted}

    def save(self, vectors: Mapping[_Key, bytes]) -> None:
        """Store the vectors of definitions that a server of that name still has."""
        if self._database is None:
            return
        # Sorted, so that two processes adding the same ones never wait for each other crosswise.
        rows = [
            {"server": storable(server), "hash": hash_, "embedding": vector}
            for (server, hash_), vector in sorted(vectors.items())
        ]
        try:
            for start in range(0, len(rows), _AT_ONCE):
                some = rows[start : start + _AT_ONCE]
                self._database.write(lambda connection, some=some: connection.execute(_VECTORS_SAVE, some))
        except StoreFailed:
            return


def _vectors_load(connection: Connection, hashes: list[str]) -> dict[_Key, bytes]:
    found: dict[_Key, bytes] = {}
    for start in range(0, len(hashes), _AT_ONCE):
        listed, values = in_list("hash", hashes[start : start + _AT_ONCE])
        rows = connection.execute(
            "SELECT s.name, t.definition_hash, t.embedding FROM ullage_tools t JOIN ullage_servers s "
            f"ON s.id = t.server_id WHERE t.definition_hash IN {listed} AND t.embedding IS NOT NULL",
            values,
        )
        found.update(((server, hash_), bytes(vector)) for server, hash_, vector in rows)
    return found
