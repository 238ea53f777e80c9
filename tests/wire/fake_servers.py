"""Made-up servers for the tests of supervision: how they start, answer and die is for the test to say."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc
import anyio.lowlevel

from ullage.errors import ProtocolError, SourceFailed
from ullage.gateway import Server
from ullage.testing import FakeSource
from ullage.tool import Call, Caller, ClientDeclaration, Complete, Era, Introduction, JsonObject, Listing, Reply, Tool
from ullage.wire.supervise.health import Bounds, Patience
from ullage.wire.supervise.host import Host
from ullage.wire.upstream import ServerConnection
from ullage.wire.upstream.rpc_peer import Unsent

ECHO = Tool(name="echo", input_schema={"type": "object"})
VERSIONS: dict[Era, str] = {"handshake": "2025-11-25", "stateless": "2026-07-28"}
QUICK = Patience(first_delay=0.02, factor=2, failures_allowed=3, cool_down=0.3, longest_wait=0.1, healthy_after=10)


@dataclass(slots=True, kw_only=True)
class FakeUpstream(FakeSource, ServerConnection):
    """An open connection that dies when it is told to."""

    number: int
    introduced: Introduction
    capabilities: JsonObject = field(default_factory=lambda: {"tools": {}})  # pyright: ignore[reportIncompatibleMethodOverride]
    protocol_version: str = "2026-07-28"  # pyright: ignore[reportIncompatibleMethodOverride]
    process_id: int | None = None  # pyright: ignore[reportIncompatibleMethodOverride]
    notes: tuple[str, ...] = ()  # pyright: ignore[reportIncompatibleMethodOverride]
    subscribed: list[str] = field(default_factory=list[str])
    log_level: str | None = None
    refuses_subscriptions: bool = False
    death: anyio.Event = field(default_factory=anyio.Event)
    roots_changes: int = 0
    is_dead: bool = False
    """Dead, and nobody has noticed."""

    async def tools(self) -> Listing:
        if self.is_dead:
            raise Unsent("the connection was dead")
        return Listing(self.offered, revision="1")

    def introduction(self) -> Introduction:
        return self.introduced

    def stderr_tail(self) -> str:
        return f"connection {self.number} says goodbye"

    async def ended(self) -> str:
        await self.death.wait()
        return "exited with code 9"

    async def set_log_level(self, level: str) -> None:
        self.log_level = level

    def tell_roots_changed(self) -> None:
        self.roots_changes += 1

    async def subscribe(self, uri: str) -> None:
        if self.refuses_subscriptions:
            raise ProtocolError("no subscriptions here", number=-32601)
        self.subscribed.append(uri)

    async def unsubscribe(self, uri: str) -> None:
        self.subscribed.remove(uri)

    async def complete(self, request: Complete) -> JsonObject:
        return {"values": [f"{request.argument['value']}…"]}


@dataclass(slots=True, kw_only=True)
class FakeServers:
    """Opens connections; what happens on the way is decided for each server by name."""

    on_start: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    on_end: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    answer: Callable[[Call], Awaitable[Reply]] | None = None
    refuses_subscriptions: bool = False
    started: list[str] = field(default_factory=list[str])
    open: list[FakeUpstream] = field(default_factory=list[FakeUpstream])
    ended: list[int] = field(default_factory=list[int])
    environments: list[Mapping[str, str]] = field(default_factory=list)
    eras: list[Era | None] = field(default_factory=list)
    clients: list[ClientDeclaration | None] = field(default_factory=list)
    speaks: tuple[Era, ...] = ("stateless", "handshake")

    @asynccontextmanager
    async def __call__(
        self,
        server: Server,
        *,
        environment: Mapping[str, str],
        era: Era | None = None,
        client: ClientDeclaration | None = None,
    ) -> AsyncGenerator[FakeUpstream]:
        self.eras.append(era)
        self.clients.append(client)
        self.started.append(server.name)
        self.environments.append(environment)
        number = len(self.started)
        await self.on_start.get(server.name, nothing)()
        upstream = FakeUpstream(
            offered=(ECHO,),
            number=number,
            introduced=Introduction(name=f"the {server.name}"),
            process_id=1000 + number,
            protocol_version=VERSIONS[era if era in self.speaks and era is not None else self.speaks[-1]],
            refuses_subscriptions=self.refuses_subscriptions,
        )
        if self.answer is not None:
            upstream.answer = self.answer
        self.open.append(upstream)
        try:
            yield upstream
            await self.on_end.get(server.name, nothing)()
        finally:
            self.open.remove(upstream)
            self.ended.append(number)

    async def kill(self, upstream: FakeUpstream | None = None) -> None:
        """One connection or all of them die, and everybody who should hear of it has."""
        for one in [upstream] if upstream else tuple(self.open):
            one.death.set()
        await settle()


async def nothing() -> None:
    await anyio.lowlevel.checkpoint()


async def forever() -> None:
    await anyio.sleep_forever()


async def refuse() -> None:
    raise SourceFailed("`bad` exited with code 3: no such table", suggestion="run it by hand")


async def settle() -> None:
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not true():
            await anyio.sleep(0.01)


def server(name: str = "one", **settings: object) -> Server:
    return Server(**{"name": name, "transport": "stdio", "command": name} | settings)  # pyright: ignore[reportArgumentType]


def call(session: str = "s", deadline: float | None = None, principal: str = "p", era: Era | None = None) -> Call:
    return Call(tool="echo", caller=Caller(principal=principal, session=session), deadline=deadline, era=era)


def host(servers: FakeServers, **settings: object) -> Host:
    return Host(**{"environment": {"PATH": "/bin"}, "open": servers, "bounds": Bounds(patience=QUICK)} | settings)  # pyright: ignore[reportArgumentType]
