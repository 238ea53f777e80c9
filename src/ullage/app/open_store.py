"""Opens the store that the settings name, and reports accepted and changed definitions and deleted uses.

Without a database everything still works; nothing is stored, and a warning says so once.

`forget_learnt` deletes learned uses and shapes of the principals in the settings: the user of this machine, and the
named tokens. A running gateway notices within a minute.

After an upgrade a user may get a notice, once. A migration of the store leaves the notice's name behind; the first
process that has something to report removes the name and logs the notice. Several processes may start at once, and one
of them wins. With a read-only store no notice is logged, because it would be repeated each time.

Definitions of a server that wait for the user can be listed and accepted without starting the server.
"""

import logging
import os
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ullage.config import Settings
from ullage.errors import StoreFailed
from ullage.gateway import (
    Baseline,
    Baselines,
    DefinitionChange,
    Places,
    Server,
    StoredShapes,
    StoredUses,
    changed_parts,
    trust_command,
)
from ullage.ledger import AuditEvent, AuditKind, store_audit
from ullage.processes import user_name
from ullage.start_cache import renew_catalogue
from ullage.store import Database
from ullage.tool import Json
from ullage.wire import ChildEnvironment

__all__ = [
    "DefinitionReport",
    "ServerDefinitions",
    "audit_file",
    "forget_learnt",
    "open_definitions",
    "open_store",
    "places_of",
    "report_all",
    "report_definitions",
    "tell_of_withheld_variables",
]

_log = logging.getLogger(__name__)


def open_store(url: str, loss: str) -> tuple[Database | None, StoreFailed | None]:
    """Return the database, or None and why; `loss` describes the consequence. Blocks."""
    try:
        return Database.open(url), None
    except StoreFailed as error:
        _log.warning("%s: %s (%s)", loss, error.message, error.suggestion)
        return None, error


def forget_learnt(settings: Settings) -> tuple[int, int]:
    """Delete learned uses, and what replies taught of what tools return; return how many there were of each.

    Blocks. Raises `StoreFailed` if nothing could be deleted.
    """
    database = Database.open(settings.store)
    try:
        principals = [user_name(), *(token.name for token in settings.tokens)]
        return StoredUses(database).forget(principals), StoredShapes(database).forget(principals)
    finally:
        database.close()


_MINE = {"name": "server_environment"}
_SHOWN = 8
"""Maximum names in the notice."""


async def tell_of_withheld_variables(
    database: Database | None, environment: ChildEnvironment, servers: Iterable[Server]
) -> None:
    """Log once, after an upgrade from a version whose servers inherited everything, which variables they now lack."""
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


def audit_file(store: str, kind: AuditKind, path: str) -> None:
    """Write to the audit that the user approved a project's file, or took that back. Blocks; never fails."""
    reason = "the user approved its content" if kind == "approval" else "the user revoked its approval"
    event = AuditEvent(time=datetime.now(UTC), kind=kind, principal=user_name(), subject=path, reason=reason)
    database, _ = open_store(store, "the audit lacks this")
    if database is None:
        return
    try:
        store_audit(database, event)
    finally:
        database.close()


def places_of(environment: Mapping[str, str]) -> Places:
    """Return the folders of this machine and process that servers may include in their definitions."""
    try:
        folder = os.getcwd()  # noqa: PTH109 - as text, which is what servers print
    except OSError:
        folder = None
    return Places(folder=folder, home=environment.get("HOME"), temporary=tempfile.gettempdir())


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionReport:
    """The definitions of a server that the user should know about."""

    withheld: tuple[DefinitionChange, ...] = ()
    new: tuple[Baseline, ...] = ()
    """Names added after the server's first listing that the user has not yet seen."""
    accepted_by_setting: tuple[Baseline, ...] = ()
    """Changed definitions that were accepted by `definition_changes = "accept"`."""

    @property
    def keeps_changing(self) -> bool:
        """Whether something withheld changed more than once, as for a server that generates its definitions at each
        start."""
        return any(change.changes > 1 for change in self.withheld)

    def to_json(self) -> dict[str, Json]:
        return {
            "withheld": [
                {
                    "kind": change.kind,
                    "name": change.name,
                    "changed": list[Json](changed_parts(change)),
                    "accepted_hash": change.accepted_hash,
                    "offered_hash": change.offered_hash,
                    "since": change.since.isoformat(),
                    "command": trust_command(change.server, change.name or None),
                }
                for change in self.withheld
            ],
            "new": [
                {"kind": record.kind, "name": record.name, "since": record.created.isoformat()} for record in self.new
            ],
            "keeps_changing": self.keeps_changing,
        }


def report_definitions(baselines: Baselines, server: Server) -> DefinitionReport:
    """Return the report of one server from the store. Blocks."""
    if server.definition_changes == "ignore":
        return DefinitionReport()
    return DefinitionReport(
        withheld=baselines.withheld(server),
        new=baselines.new(server),
        accepted_by_setting=tuple(one for one in baselines.records(server) if one.origin == "setting"),
    )


def report_all(settings: Settings) -> dict[str, DefinitionReport]:
    """Return the report of every server that has something to report, from the store alone. Blocks.

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
    """The stored records of one server's definitions. All methods block."""

    server: Server
    store: str = field(repr=False)
    """The URL of the store."""
    _database: Database
    _baselines: Baselines

    def withheld(self, tool: str | None = None) -> tuple[DefinitionChange, ...]:
        """Return the changes that wait for the user: all of the server's, or those of the tool or prompt of that
        name."""
        found = self._baselines.withheld(self.server)
        return tuple(change for change in found if tool is None or change.name == tool)

    def new(self) -> tuple[Baseline, ...]:
        """Return names added after the server's first listing that the user has not yet seen."""
        return self._baselines.new(self.server)

    def names(self) -> tuple[str, ...]:
        """Return every tool and prompt that was ever recorded."""
        return tuple(dict.fromkeys(one.name for one in self._baselines.records(self.server) if one.name))

    def accept(self, shown: Iterable[DefinitionChange]) -> tuple[DefinitionChange, ...]:
        """Accept the changes that were shown; return those that were still offered.

        A running gateway notices within seconds.
        """
        accepted = self._baselines.accept(self.server, shown)
        if accepted:
            store_audit(self._database, *(self._approval(change) for change in accepted))
            renew_catalogue(os.environ, self.store)
        return accepted

    def _approval(self, change: DefinitionChange) -> AuditEvent:
        return AuditEvent(
            time=datetime.now(UTC),
            kind="approval",
            principal=user_name(),
            server=change.server,
            subject=f"{change.kind} {change.name}".strip(),
            reason="the user accepted the changed definition",
        )

    def acknowledge(self) -> None:
        """Mark the server's new names as seen."""
        self._baselines.acknowledge(self.server)


@contextmanager
def open_definitions(settings: Settings, server: Server) -> Generator[ServerDefinitions]:
    """Open the records of a server in the store of the settings; raises `StoreFailed` where there is none."""
    database = Database.open(settings.store)
    try:
        yield ServerDefinitions(server, settings.store, database, Baselines(database))
    finally:
        database.close()
