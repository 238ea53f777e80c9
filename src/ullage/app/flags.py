"""Poison flags of the servers behind a gateway, from the definitions as the servers sent them."""

from collections.abc import Mapping, Sequence

from ullage.gateway import DefinitionChange, tool_of
from ullage.gateway.poison import Flag, find_flags, flag_json, flag_line
from ullage.tool import JsonObject, Tool

from .gateway import Gateway

__all__ = ["Flag", "find_change_flags", "find_server_flags", "flag_json", "flag_line"]


def find_change_flags(change: DefinitionChange) -> tuple[Flag, ...]:
    """Flags on a changed definition as the server offers it now, before the user accepts it."""
    if change.kind == "tool":
        return find_flags(change.server, [tool_of(change.offered)])
    if change.kind == "prompt":
        return find_flags(change.server, (), prompts=[change.offered])
    return find_flags(change.server, (), instructions="\n".join(map(str, change.offered.values())))


def find_server_flags(
    gateway: Gateway, prompts: Mapping[str, Sequence[JsonObject]] | None = None
) -> dict[str, tuple[Flag, ...]]:
    """Flags by server, for every enabled server whose tools are known; starts none.

    Args:
        gateway: Its servers are compared with one another, since one may shadow another's tools.
        prompts: Definitions of prompts by server, where they were asked for.
    """
    known: dict[str, Sequence[Tool]] = {}
    for server in gateway.settings.servers:
        listing = None if server.disabled else gateway.kept(server.name).peek()
        if listing is not None:
            known[server.name] = listing.tools
    flags: dict[str, tuple[Flag, ...]] = {}
    for name, tools in known.items():
        said = gateway.kept(name).introduction()
        flags[name] = find_flags(
            name,
            tools,
            instructions=None if said is None else said.instructions,
            prompts=(prompts or {}).get(name, ()),
            others=known,
        )
    return flags
