"""Where do the forms of a definition wait for the next start?

A cache of JSON by key in the database, for what is derived from definitions at some cost. All of it can be made again,
so a database that fails is an empty cache and no error. What a form is, is not known here.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta

from ullage.errors import StoreFailed
from ullage.store import Connection, Database, in_list, seconds, upsert
from ullage.tool import JsonObject

__all__ = ["StoredForms"]

_SAVE = upsert(
    "ullage_forms",
    ("key", "form", "created"),
    key='"key"',
    update={"form": "excluded.form", "created": "excluded.created"},
)

_AT_ONCE = 500
"""Keys in one statement: databases limit its parameters."""
_AGE = timedelta(days=90)
"""After which a form is let go: nothing says when one was last of use, and it is cheap to make."""


class StoredForms:
    """Blocking: to be used from a thread."""

    def __init__(
        self,
        database: Database | None,
        *,
        edition: str,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`edition` names the way forms are made; those made another way are not found."""
        self._database = database
        self._edition = edition
        self._clock = clock

    def load(self, hashes: Iterable[str]) -> dict[str, JsonObject]:
        """What is kept of these."""
        wanted = {f"{self._edition}:{one}": one for one in hashes}
        if self._database is None:
            return {}
        try:
            found = self._database.read(lambda connection: _load(connection, list(wanted)))
        except StoreFailed:
            return {}
        return {wanted[key]: form for key, form in found.items()}

    def save(self, forms: Mapping[str, JsonObject]) -> None:
        if self._database is None or not forms:
            return
        now = self._clock()
        # Sorted, so that two processes adding the same ones never wait for each other crosswise.
        rows = [
            {"key": f"{self._edition}:{one}", "form": json.dumps(form), "created": seconds(now)}
            for one, form in sorted(forms.items())
        ]
        try:
            self._database.write(lambda connection: _save(connection, rows, oldest=now - _AGE))
        except StoreFailed:
            return


def _load(connection: Connection, keys: list[str]) -> dict[str, JsonObject]:
    found: dict[str, JsonObject] = {}
    for start in range(0, len(keys), _AT_ONCE):
        listed, values = in_list("key", keys[start : start + _AT_ONCE])
        rows = connection.execute(f'SELECT "key", form FROM ullage_forms WHERE "key" IN {listed}', values)
        found.update((key, json.loads(form)) for key, form in rows)
    return found


def _save(connection: Connection, rows: list[dict[str, str | float]], *, oldest: datetime) -> None:
    connection.execute("DELETE FROM ullage_forms WHERE created < :oldest", {"oldest": seconds(oldest)})
    connection.execute(_SAVE, rows)
