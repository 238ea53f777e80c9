"""Settings of one database that agents may ask."""

from dataclasses import dataclass, field

__all__ = ["SAMPLE", "DatabaseSettings", "Limits"]

SAMPLE = "sample"
"""In place of a URL: the sample shop, made on first use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What no question may go beyond, whatever it asks for."""

    rows: int = 1_000
    seconds: float = 30.0
    """From the question to its last row; held within half a second."""
    cell: int = 20_000
    """Characters of one value; the rest is cut and counted."""
    bytes: int = 16_000_000
    """Of all values of an answer."""
    concurrency: int = 4
    """Questions at one time; others wait, and their waiting is within their seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    name: str
    url: str = field(repr=False)
    """As SQLAlchemy writes it, a path of a SQLite or DuckDB file among them; may hold a password."""
    default: bool = False
    """Whether `query` without a prefix means this one, where there are several."""
    description: str | None = None
    """One line for the model about what is to be found here."""
    limits: Limits = field(default_factory=Limits)
    max_tokens: int | None = None
    """Of one answer's text; None for no other limit than that of every result."""
    masked: tuple[str, ...] = ()
    """Columns whose values nobody sees: `table.column`, with patterns such as `*.password`."""
    functions: tuple[str, ...] = ()
    """Of the database's own making, allowed though the guard does not know them."""
    cache: float = 0.0
    """Seconds in which an identical question is answered from memory; 0 for never."""
    schema_cache: float = 300.0
    """The same for descriptions of tables."""
    came_from: str | None = None
    """The file and table it was read from, for people."""
