"""Definitions of a server that wait for the user, and their acceptance, without starting the server."""

import os
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ullage.config import Settings
from ullage.gateway import Baseline, Baselines, DefinitionChange, Places, Server
from ullage.start_cache import renew_catalogue
from ullage.store import Database

__all__ = ["DefinitionReport", "ServerDefinitions", "open_definitions", "places_of", "report_all", "report_definitions"]


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
