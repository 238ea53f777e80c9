"""Where does what search by meaning knows of a definition wait for the next start?

In the row of its tool, by the server's name and the definition's hash: whatever of either changes has no vector here,
and the transaction that changes a definition empties its place. All of it can be made again, so a database that fails
keeps nothing and is no error. What the bytes mean is not known here.
"""

from collections.abc import Iterable, Mapping

from ullage.errors import StoreFailed
from ullage.store import Connection, Database, in_list, storable

__all__ = ["StoredVectors"]

_SAVE = (
    "UPDATE ullage_tools SET embedding = :embedding WHERE definition_hash = :hash "
    "AND server_id IN (SELECT id FROM ullage_servers WHERE name = :server)"
)
_AT_ONCE = 500
"""Hashes in one statement, since databases limit its parameters, and rows in one transaction, since others wait."""

_Key = tuple[str, str]
"""The server's name and the hash of a definition."""


class StoredVectors:
    """Blocking: to be used from a thread."""

    def __init__(self, database: Database | None) -> None:
        self._database = database

    def load(self, keys: Iterable[_Key]) -> dict[_Key, bytes]:
        """What is kept of these."""
        wanted = {(storable(server), hash_): (server, hash_) for server, hash_ in keys}
        if self._database is None or not wanted:
            return {}
        hashes = sorted({hash_ for _, hash_ in wanted})
        try:
            found = self._database.read(lambda connection: _load(connection, hashes))
        except StoreFailed:
            return {}
        return {wanted[key]: vector for key, vector in found.items() if key in wanted}

    def save(self, vectors: Mapping[_Key, bytes]) -> None:
        """Keeps these where a server of that name still has that definition."""
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
                self._database.write(lambda connection, some=some: connection.execute(_SAVE, some))
        except StoreFailed:
            return


def _load(connection: Connection, hashes: list[str]) -> dict[_Key, bytes]:
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
