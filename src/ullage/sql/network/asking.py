"""Who asks a server?

An `Engine` over a pool of sessions, whichever server it is: it holds every question to the limits, and keeps what does
not change.
"""

from collections.abc import Mapping
from dataclasses import replace

from ..engine import Answer, Dialect, Limits, Probe, Question, Stability
from ..structure import Structure
from .pool import Pool

__all__ = ["NetworkEngine"]


class NetworkEngine:
    def __init__(self, pool: Pool, *, dialect: Dialect, limits: Limits) -> None:
        self._pool = pool
        self._dialect: Dialect = dialect
        self._limits = limits
        self._functions: Mapping[str, Stability] | None = None

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    async def ask(self, question: Question) -> Answer:
        limits = self._limits
        held = replace(question, rows=min(question.rows, limits.rows), seconds=min(question.seconds, limits.seconds))
        return await self._pool.use(lambda session: session.ask(held, limits), seconds=held.seconds, rows=held.rows)

    async def structure(self) -> Structure:
        return await self._pool.use(lambda session: session.structure(), seconds=self._limits.seconds, rows=None)

    async def functions(self) -> Mapping[str, Stability]:
        if self._functions is None:
            self._functions = await self._pool.use(
                lambda session: session.functions(), seconds=self._limits.seconds, rows=None
            )
        return self._functions

    async def probe(self) -> Probe:
        limits = self._limits
        return await self._pool.use(lambda session: session.probe(limits), seconds=limits.seconds, rows=None)

    async def close(self) -> None:
        await self._pool.close()
