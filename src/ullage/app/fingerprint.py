"""When do two configurations come to the same?

A fingerprint of all that decides which tools there are and whether they are shown directly: while it stays, so does
that decision. And what of a change a gateway that runs cannot take over.
"""

import hashlib
from dataclasses import astuple

from ullage.config import Gateway, Settings
from ullage.gateway import Server

__all__ = ["fingerprint", "until_restart"]


def fingerprint(settings: Settings, chosen: Gateway) -> str:
    parts = [*(_server(server) for server in settings.servers), astuple(settings.own), _shown(chosen)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _server(server: Server) -> tuple[object, ...]:
    return server.name, server.key, server.disabled, server.prefix, astuple(server.rules)


def _shown(chosen: Gateway) -> tuple[object, ...]:
    return chosen.mode, chosen.direct_below, chosen.model, chosen.window


def until_restart(before: Settings, after: Settings) -> tuple[str, ...]:
    """Keys that differ and that were settled when somebody connected or something was opened."""
    changed = ["store.url"] if before.store != after.store else []
    changed += ["http.tokens"] if before.tokens != after.tokens else []
    if _settled(before.gateway) != _settled(after.gateway):
        changed.append("gateway.model, gateway.window or gateway.underscore_names")
    for name in before.clients.keys() & after.clients.keys():
        old, new = before.clients[name], after.clients[name]
        if (old.model, old.window, old.underscore_names) != (new.model, new.window, new.underscore_names):
            changed.append(f"clients.{name}")
    return tuple(changed)


def _settled(chosen: Gateway) -> tuple[object, ...]:
    return chosen.model, chosen.window, chosen.underscore_names
