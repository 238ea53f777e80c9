"""Which servers stand behind the gateway?

Those of the settings that are not disabled and do not lead back here. One that is started as before is not disturbed
when others come and go. Nothing is started here: a server is when it is first needed.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ullage.config import Settings
from ullage.gateway import Catalogue, Kept, Member, Server
from ullage.wire import Host, Supervised

from .background import Work

__all__ = ["Behind", "Servers"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Behind:
    """A server's part of the gateway."""

    kept: Kept
    supervised: Supervised


@dataclass(slots=True, kw_only=True)
class Servers:
    """Those of the settings, by name."""

    host: Host
    catalogue: Catalogue
    spawn: Callable[[Work], None]
    is_own_address: Callable[[str], bool] = lambda _: False
    """Whether a URL leads to this very gateway, which would then ask itself for ever."""
    _behind: Mapping[str, Behind] = field(default_factory=dict[str, Behind])
    _left_out: frozenset[str] = frozenset()

    def kept(self, server: str) -> Kept:
        return self._behind[server].kept

    async def are_known(self) -> bool:
        """Whether the catalogue has the tools of every server; none is started."""
        for behind in tuple(self._behind.values()):
            if await behind.kept.load() is None:
                return False
        return True

    async def is_current(self) -> bool:
        """Whether the catalogue says of every server what is known of it here."""
        for behind in tuple(self._behind.values()):
            if not await behind.kept.is_current():
                return False
        return True

    def wanted(self, settings: Settings) -> dict[str, Server]:
        servers = [server for server in settings.servers if not server.disabled]
        circular = frozenset(
            server.name for server in servers if server.url is not None and self.is_own_address(server.url)
        )
        for name in sorted(circular - self._left_out):
            _log.warning("server `%s` is left out: its address is where this very gateway is served", name)
        self._left_out = circular
        return {server.name: server for server in servers if server.name not in circular}

    def arranged(self, wanted: Mapping[str, Server]) -> dict[str, Behind]:
        """These servers, those that stay as they are; nothing changes before they are taken."""
        return {name: self._refitted(server) for name, server in wanted.items()}

    def members(self, arranged: Mapping[str, Behind], wanted: Mapping[str, Server]) -> list[Member]:
        return [_member(server, arranged[name]) for name, server in wanted.items()]

    def take(self, arranged: Mapping[str, Behind], wanted: Mapping[str, Server]) -> list[Behind]:
        """Has just these from now on; returns those that stood here and no longer do."""
        before, self._behind = self._behind, arranged
        for name, server in wanted.items():
            arranged[name].kept.reconfigure(server)
        return [behind for name, behind in before.items() if arranged.get(name) is not behind]

    async def retire(self, behind: Behind, settings: Callable[[], Settings]) -> None:
        await self.host.retire(behind.supervised)
        await behind.kept.close()
        left = behind.kept.server
        if all(server.name != left.name for server in settings().servers):
            await self.catalogue.forget(left)

    def _refitted(self, server: Server) -> Behind:
        known = self._behind.get(server.name)
        supervised = self.host.source(server)
        if known is not None and _same(known.kept.server, server):
            return known
        return Behind(Kept(supervised, server, self.catalogue, spawn=self.spawn), supervised)


def _same(before: Server, now: Server) -> bool:
    """Whether it is the server it was, as far as starting it goes; its rules may differ."""
    return (before.key, before.shared) == (now.key, now.shared)


def _member(server: Server, behind: Behind) -> Member:
    return Member(
        name=server.name,
        source=behind.kept,
        prefix=server.spoken_prefix,
        rules=server.rules,
        description=server.description,
    )
