"""What is asked of a database, whichever it is?

An engine runs one statement that someone else has judged, read-only by its own means all the same, within limits of
time, rows and bytes. It knows nothing of tokens, of tools or of what a statement may say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from ullage.options import Limits
from ullage.table import Row

from .structure import Structure

__all__ = ["Answer", "Dialect", "Engine", "Limits", "Probe", "Question", "Stability"]

Dialect = Literal["sqlite", "duckdb", "postgres", "mysql", "tsql", "oracle"]
"""As sqlglot spells them; MariaDB is `mysql`. A database of another kind is judged as `postgres` is, and warned of."""

Stability = Literal["immutable", "stable", "volatile", "made"]
"""What PostgreSQL calls volatility: whether a function may change anything, or answer differently each time. `made` is
one of a user's making, which may say of itself what it likes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    sql: str
    rows: int
    """To come back at most; one more is asked for, to know whether there is one."""
    seconds: float
    """At most `Limits.seconds`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    more: bool
    """True exactly when there were more rows than came back."""
    cut_cells: int = 0
    """Values that were longer than `Limits.cell`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What the role could do if every other lock were open."""

    role: str | None
    """None where the engine has no roles."""
    can_write: tuple[str, ...] = ()
    """In words: `is a superuser`, `may INSERT into public.orders`; empty for a role that can only read."""
    setup_sql: str = ""
    """For a role that can only read; empty where the engine has no roles."""


class Engine(Protocol):
    """One database. Raises `QueryFailed` where the database refuses, `DeadlinePassed`, or `SourceFailed` where it
    cannot be reached; after any of these the next question is answered as if nothing had been."""

    @property
    def dialect(self) -> Dialect: ...

    async def ask(self, question: Question) -> Answer: ...

    async def structure(self) -> Structure:
        """Everything that is known of its tables, read anew."""
        ...

    async def functions(self) -> Mapping[str, Stability]:
        """Functions by lower-case name, the least stable of those of one name; empty where it cannot tell. Operators
        that users made are among them, and so are, with a dot before the name, functions that a row takes for one of
        its columns, with two colons types that a cast runs nothing for, with `pg_catalog.` the server's own function
        of a name under which somebody made another, with `from:` tables that may be called in FROM, and with `shows:`
        views that show what other sessions run. Read once and kept."""
        ...

    async def probe(self) -> Probe: ...

    async def close(self) -> None: ...
