"""Notices that a user gets once after an upgrade.

A migration of the store leaves the name of a notice behind; the first process that has something to say takes it away
and says it. Several processes may start at once, and one of them wins. A store that cannot be written says nothing,
because it would say it again each time.
"""

import logging
from collections.abc import Iterable

from ullage.errors import StoreFailed
from ullage.gateway import Server
from ullage.store import Database
from ullage.wire import ChildEnvironment

__all__ = ["tell_of_withheld_variables"]

_log = logging.getLogger(__name__)

_MINE = {"name": "server_environment"}
_SHOWN = 8
"""Names in the notice."""


async def tell_of_withheld_variables(
    database: Database | None, environment: ChildEnvironment, servers: Iterable[Server]
) -> None:
    """Logs once, after an upgrade from a version whose servers inherited everything, which variables they now lack."""
    if database is None:
        return

    def is_pending() -> bool:
        query = "SELECT name FROM ullage_notices WHERE name = :name"
        return database.read(lambda connection: connection.scalar(query, _MINE)) is not None

    def claim() -> bool:
        statement = "DELETE FROM ullage_notices WHERE name = :name"
        return database.write(lambda connection: connection.execute(statement, _MINE).rowcount) == 1

    try:
        if not await database.aside(is_pending):
            return
        started = [server for server in servers if not server.disabled]
        withheld = [environment.withheld(server) for server in started]
        names = list(dict.fromkeys([name for one in withheld for name in one.fitting]))
        names += sorted({name for one in withheld for name in one.secret} - {*names})
        if not names or not await database.aside(claim):
            return
    except StoreFailed:
        return
    listed = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    _log.warning(
        "servers no longer get every variable of this environment; not given: %s%s. `ullage doctor` says for each "
        "server what to add where it needs one",
        listed,
        more,
    )
