"""When do two configurations show the same tools?

A fingerprint of all that decides which tools there are and whether they are shown directly: while it stays, so does
that decision.
"""

import hashlib
from dataclasses import astuple

from ullage.config import Gateway, Settings
from ullage.options import DatabaseSettings, Server

__all__ = ["fingerprint"]


def fingerprint(settings: Settings, chosen: Gateway) -> str:
    servers, databases = map(_server, settings.servers), map(_database, settings.databases)
    others = settings.delegate.is_wanted, tuple(one.name for one in settings.retrieves)
    parts = [*servers, *databases, others, astuple(settings.own), _shown(chosen)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _server(server: Server) -> tuple[object, ...]:
    return server.name, server.key, server.disabled, server.prefix, astuple(server.rules)


def _database(database: DatabaseSettings) -> tuple[object, ...]:
    return database.name, database.default, database.description


def _shown(chosen: Gateway) -> tuple[object, ...]:
    return chosen.mode, chosen.direct_below, chosen.model, chosen.window
