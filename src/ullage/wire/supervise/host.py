"""Who owns the servers that Ullage starts?

One `Host` a process: every connection lives among its tasks, starts on first use, and ends with it, whatever state it
is in. A server that is dead, slow or mad harms no other. It decides nothing about tools.
"""

import os
import random as chance
import time
from collections.abc import Callable, Mapping, Set
from functools import partial
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from ullage.gateway import Server
from ullage.tool import Era

from ..upstream import ChildEnvironment, open_upstream
from .bounds import Bounds
from .connection import Opener
from .health import Health
from .pool import Surroundings, Work
from .source import Supervised

__all__ = ["Host", "Supervised"]


class Host:
    def __init__(  # noqa: PLR0913 - each is a door to the world, and all have a usual way
        self,
        *,
        environment: Mapping[str, str] | None = None,
        withheld: Set[str] = frozenset(),
        open: Opener | None = None,  # noqa: A002 - it is what a connection is opened with
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = chance.random,
        bounds: Bounds | None = None,
    ) -> None:
        """`withheld` names variables of the environment that no server is given, beside Ullage's own."""
        self._is_leaving = False
        self._surroundings = Surroundings(
            opener=open or partial(open_upstream, in_haste=lambda: self._is_leaving),
            environment=ChildEnvironment(os.environ if environment is None else environment, withheld),
            start=self._start,
            clock=clock,
            random=random,
            bounds=bounds or Bounds(),
            client_era=lambda: self.client_era,
        )
        self.client_era: Era | None = None
        """The era of the protocol that the last client spoke; None before the first."""
        self._sources: dict[tuple[str, str, bool], Supervised] = {}
        self._retiring: set[Supervised] = set()
        self._tasks: TaskGroup | None = None

    @property
    def environment(self) -> ChildEnvironment:
        """What servers inherit of this process."""
        return self._surroundings.environment

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_leaving = True
        tasks, self._tasks = self._tasks, None
        for source in (*self._sources.values(), *self._retiring):
            source.stop()
        if tasks is not None:
            tasks.cancel_scope.deadline = anyio.current_time() + self._surroundings.bounds.leaving
            # Without the error: the group would wrap it in another, and cut off what can still end in good order.
            await tasks.__aexit__(None, None, None)

    def _start(self, work: Work) -> None:
        if self._tasks is None:
            raise RuntimeError("a Host starts servers only between its entering and its leaving")
        self._tasks.start_soon(work)

    def source(self, server: Server) -> Supervised:
        """The server's source; the same one again for a server of that name that is started alike."""
        identity = (server.name, server.key, server.shared)
        known = self._sources.get(identity)
        if known is None or known.is_closed:
            known = self._sources[identity] = Supervised(server, self._surroundings)
        known.reconfigure(server)
        return known

    async def retire(self, source: Supervised) -> None:
        """Forgets a server that left the configuration; its connections end when its open calls have, within bounds."""
        self._sources = {identity: one for identity, one in self._sources.items() if one is not source}
        self._retiring.add(source)
        try:
            await source.retire()
        finally:
            source.stop()
            self._retiring.discard(source)

    def release(self, principal: str, session: str) -> None:
        """The session is over; its connections end in the background, each when its open calls have."""
        for source in self._sources.values():
            source.release(principal, session)

    def health(self) -> tuple[Health, ...]:
        return tuple(source.health() for source in self._sources.values())
