"""Where does what search by meaning knows of a definition wait for the next start?

In the row of its tool, by the server's name and the definition's hash: whatever of either changes has no vector here,
and the transaction that changes a definition empties its place. All of it can be made again, so a database that fails
keeps nothing and is no error. What the bytes mean is not known here.
"""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, bindparam, column, select, table, update

from ullage.errors import StoreFailed
from ullage.store import Database, storable

__all__ = ["StoredVectors"]

_servers = table("ullage_servers", *map(column, ("id", "name")))
_tools = table("ullage_tools", *map(column, ("server_id", "definition_hash", "embedding")))

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
                self._database.write(lambda connection, some=some: connection.execute(_SAVING, some))
        except StoreFailed:
            return


def _load(connection: Connection, hashes: list[str]) -> dict[_Key, bytes]:
    joined = _tools.join(_servers, _servers.c.id == _tools.c.server_id)
    found: dict[_Key, bytes] = {}
    for start in range(0, len(hashes), _AT_ONCE):
        some = _tools.c.definition_hash.in_(hashes[start : start + _AT_ONCE]) & _tools.c.embedding.is_not(None)
        query = select(_servers.c.name, _tools.c.definition_hash, _tools.c.embedding).select_from(joined).where(some)
        found.update(((server, hash_), bytes(vector)) for server, hash_, vector in connection.execute(query))
    return found


_SAVING = update(_tools).where(
    _tools.c.definition_hash == bindparam("hash"),
    _tools.c.server_id.in_(select(_servers.c.id).where(_servers.c.name == bindparam("server"))),
)
