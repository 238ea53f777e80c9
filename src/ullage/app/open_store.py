"""Opens the store that the settings name, and reports what was accepted, changed or forgotten in it.

Whoever works without a database still works; it forgets, and says so once.

In the store that the settings name, of whoever they let in: the user of this machine, and the tokens that they name. A
gateway that runs notices within a minute. What was learnt is not known here.

Notices that a user gets once after an upgrade.

A migration of the store leaves the name of a notice behind; the first process that has something to say takes it away
and says it. Several processes may start at once, and one of them wins. A store that cannot be written says nothing,
because it would say it again each time.

Definitions of a server that wait for the user, and their acceptance, without starting the server.
"""

import logging
import os
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ullage.config import Settings
from ullage.errors import StoreFailed
from ullage.gateway import Baseline, Baselines, DefinitionChange, Places, Server, StoredUses
from ullage.start_cache import renew_catalogue
from ullage.store import Database
from ullage.wire import ChildEnvironment, user_name

__all__ = [
    "DefinitionReport",
    "ServerDefinitions",
    "forget_uses",
    "open_definitions",
    "open_store",
    "places_of",
    "report_all",
    "report_definitions",
    "tell_of_withheld_variables",
]

_log = logging.getLogger(__name__)


def open_store(url: str, loss: str) -> tuple[Database | None, StoreFailed | None]:
    """The database, or None and why; `loss` says what that means. Blocks."""
    try:
        return Database.open(url), None
    except StoreFailed as error:
        _log.warning("%s: %s (%s)", loss, error.message, error.suggestion)
        return None, error


def forget_uses(settings: Settings) -> int:
    """How many uses there were. Blocks; raises `StoreFailed` where nothing could be forgotten."""
    database = Database.open(settings.store)
    try:
        return StoredUses(database).forget([user_name(), *(token.name for token in settings.tokens)])
    finally:
        database.close()


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


def places_of(environment: Mapping[str, str]) -> Places:
    """The folders of this machine and process that servers write into their definitions."""
    try:
        folder = os.getcwd()  # noqa: PTH109 - as text, which is what servers print
    except OSError:
        folder = None
    return Places(folder=folder, home=environment.get("HOME"), temporary=tempfile.gettempdir())


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionReport:
    """What of a server's definitions the user should know."""

    withheld: tuple[DefinitionChange, ...] = ()
    new: tuple[Baseline, ...] = ()
    """Names that joined after the server's first listing, and that the user has not looked at yet."""
    accepted_by_setting: tuple[Baseline, ...] = ()
    """Changed, and accepted by `definition_changes = "accept"`."""

    @property
    def keeps_changing(self) -> bool:
        """Whether something that is withheld changed more than once, as it does for a server that writes its
        definitions anew at each start."""
        return any(change.changes > 1 for change in self.withheld)


def report_definitions(baselines: Baselines, server: Server) -> DefinitionReport:
    """The report of one server, from what is recorded. Blocks."""
    if server.definition_changes == "ignore":
        return DefinitionReport()
    return DefinitionReport(
        withheld=baselines.withheld(server),
        new=baselines.new(server),
        accepted_by_setting=tuple(one for one in baselines.records(server) if one.origin == "setting"),
    )


def report_all(settings: Settings) -> dict[str, DefinitionReport]:
    """The report of every server that has something to report, from the store alone. Blocks.

    Raises:
        StoreFailed: the store cannot be opened or read.
    """
    database = Database.open(settings.store)
    try:
        baselines = Baselines(database)
        found = {server.name: report_definitions(baselines, server) for server in settings.servers}
    finally:
        database.close()
    return {name: report for name, report in found.items() if report != DefinitionReport()}


@dataclass(frozen=True, slots=True)
class ServerDefinitions:
    """What is recorded of one server's definitions. Blocking."""

    server: Server
    store: str = field(repr=False)
    """The URL of the store."""
    _baselines: Baselines

    def withheld(self, tool: str | None = None) -> tuple[DefinitionChange, ...]:
        """What waits for the user: all of the server, or the tool or prompt of that name."""
        found = self._baselines.withheld(self.server)
        return tuple(change for change in found if tool is None or change.name == tool)

    def new(self) -> tuple[Baseline, ...]:
        """Names that joined after the server's first listing, and that the user has not looked at yet."""
        return self._baselines.new(self.server)

    def names(self) -> tuple[str, ...]:
        """Every tool and prompt that was ever recorded."""
        return tuple(dict.fromkeys(one.name for one in self._baselines.records(self.server) if one.name))

    def accept(self, shown: Iterable[DefinitionChange]) -> tuple[DefinitionChange, ...]:
        """Accepts what was shown; returns what of it was still offered. A running gateway notices within seconds."""
        accepted = self._baselines.accept(self.server, shown)
        if accepted:
            renew_catalogue(os.environ, self.store)
        return accepted

    def acknowledge(self) -> None:
        """Marks the server's new names as seen."""
        self._baselines.acknowledge(self.server)


@contextmanager
def open_definitions(settings: Settings, server: Server) -> Generator[ServerDefinitions]:
    """The records of a server in the store that the settings name; raises `StoreFailed` where there is none."""
    database = Database.open(settings.store)
    try:
        yield ServerDefinitions(server, settings.store, Baselines(database))
    finally:
        database.close()
