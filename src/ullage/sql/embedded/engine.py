"""How is a SQLite or DuckDB file asked?

Each question by a worker process, under its engine's own locks and the system's limits. Two files of the same engine
share nothing. What a statement may say is judged before it comes here, and not relied on.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

from ..engine import Answer, Dialect, Limits, Probe, Question, Stability
from ..structure import Structure
from .described import read_structure
from .process import framed
from .workers import MEMORY, Frames, Workers

__all__ = ["EmbeddedEngine"]


class EmbeddedEngine:
    def __init__(
        self, path: Path, *, dialect: Literal["sqlite", "duckdb"], limits: Limits | None = None, memory: int = MEMORY
    ) -> None:
        """Nothing is opened or started until the first question; a missing file is never made."""
        self._dialect: Dialect = dialect
        self._limits = limits or Limits()
        self._name = path.name
        self._functions: Mapping[str, Stability] | None = None
        whole = path.absolute()
        hello = {"kind": dialect, "path": str(whole), "uri": whole.as_uri(), "packages": _packages(dialect)}
        self._workers = Workers(hello, name=path.name, limits=self._limits, memory=memory)

    def __repr__(self) -> str:
        return f"EmbeddedEngine({self._name!r})"

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Of the workers at rest."""
        return self._workers.process_ids

    async def ask(self, question: Question) -> Answer:
        limits = self._limits
        message = {
            "do": "ask",
            "sql": question.sql,
            "rows": min(question.rows, limits.rows),
            "cell": limits.cell,
            "bytes": limits.bytes,
        }
        received = await self._workers.ask(_frames(message), min(question.seconds, limits.seconds))
        return received.answer()

    async def structure(self) -> Structure:
        received = await self._workers.ask(_frames({"do": "structure"}), self._limits.seconds)
        return read_structure(received.value, name=self._name)

    async def functions(self) -> Mapping[str, Stability]:
        if self._functions is None:
            received = await self._workers.ask(_frames({"do": "functions"}), self._limits.seconds)
            self._functions = cast("dict[str, Stability]", received.value)
        return self._functions

    async def probe(self) -> Probe:
        """A file has no roles, and whoever may write to it, this process opens it for reading only."""
        return Probe(role=None)

    async def close(self) -> None:
        await self._workers.close()


def _packages(dialect: str) -> str | None:
    """Where the driver lies that this process would load: a worker looks at no path that an environment or a user's
    own folder adds."""
    found = importlib.util.find_spec("duckdb") if dialect == "duckdb" else None
    return None if found is None or found.origin is None else str(Path(found.origin).parent.parent)


def _frames(message: Mapping[str, object]) -> Frames:
    return lambda seconds: (framed({**message, "seconds": seconds}),)
