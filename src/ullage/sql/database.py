"""The `Engine` protocol and what all engines share: dialects, quoting, structure and roles.

An engine runs one statement that the guard has already accepted, nevertheless read-only by its own means, within limits
of time, rows and bytes. It knows nothing of tokens, tools or the guard's rules. It reads the database's structure as
values, which `describe` formats for a model.

`role_sentences` and `with_column_grants` explain to the user what the database role may do, and write the grants of a
role that can only read. Such a role is an additional lock; the other locks work with any role. They do not query the
database.

`dialect_of` and `file_of` decide the dialect by the URL's scheme, or for a path by the file's first bytes and its name.
Only those bytes are read.

`without_data` removes quoted values from error messages. A failed conversion quotes the value, which would reveal a
masked column; words of the query itself may be repeated.

`INNER`, `TABLES`, `TEXTS` and `showing_views` describe server tables with other sessions' statements, for the guard,
which judges statements, and for the engines, which look for views that show such text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ullage.errors import BadConfiguration
from ullage.options import SAMPLE, DatabaseSettings, Limits
from ullage.table import Row

__all__ = [
    "INNER",
    "TABLES",
    "TEXTS",
    "Answer",
    "Column",
    "Dialect",
    "Engine",
    "ForeignKey",
    "Index",
    "Limits",
    "Probe",
    "Question",
    "Routine",
    "Stability",
    "Structure",
    "Table",
    "Trigger",
    "dialect_of",
    "file_of",
    "first_rows",
    "in_order",
    "quote_name",
    "role_sentences",
    "served_dialect",
    "showing_views",
    "with_column_grants",
    "without_data",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    name: str
    type: str
    """In the engine's notation: `varchar(20)`, `numeric(10,2)`."""
    nullable: bool = True
    default: str | None = None
    generated: bool = False
    """Whether the engine fills it: identity, auto-increment or computed."""
    computed: bool = False
    """Whether it is computed from other columns."""
    expression: str | None = None
    """The expression of a computed column; None if unknown."""
    hidden: bool = False
    """Whether `*` leaves it out."""
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A foreign key."""

    columns: tuple[str, ...]
    table: str
    """The referenced table, with its schema unless that is the default one."""
    to: tuple[str, ...]
    name: str | None = None
    on_update: str | None = None
    on_delete: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index of a table."""

    name: str
    columns: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A trigger of a table."""

    name: str
    timing: str | None = None
    """BEFORE, AFTER or INSTEAD OF."""
    event: str | None = None
    """INSERT, UPDATE or DELETE, or several."""
    statement: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, view or other relation."""

    name: str
    schema: str | None = None
    """None for the default schema."""
    kind: Literal["table", "view"] = "table"
    columns: tuple[Column, ...] = ()
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    indexes: tuple[Index, ...] = ()
    checks: tuple[str, ...] = ()
    """Other constraints, in the engine's notation."""
    triggers: tuple[Trigger, ...] = ()
    rows: int | None = None
    """Estimate from the engine's statistics; None if it has none."""
    definition: str | None = None
    """The query of a view."""
    comment: str | None = None
    parents: tuple[str, ...] = ()
    """Tables whose columns it inherits, as `schema.name`, because it is a partition or was created with INHERITS."""
    module: str | None = None
    """The CREATE statement of a virtual table, whose arguments may name other tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    """A function or procedure."""

    name: str
    kind: Literal["function", "procedure"]
    schema: str | None = None
    arguments: str | None = None
    returns: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """The structure of a database, with its tables in order of their names."""

    tables: tuple[Table, ...] = ()
    routines: tuple[Routine, ...] = ()
    name: str | None = None
    default_schema: str | None = None
    """Name of the schema of tables whose `schema` is None; None if unknown."""
    catalogue: tuple[Table, ...] = ()
    """Every relation with every column, each with its schema, including those that the role may not read itself but
    views may read for it. Used to trace where values come from; empty if `tables` is already complete."""


def in_order(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Return tables in the order of a `Structure`: by name, and by schema if several have the same name."""
    return tuple(sorted(tables, key=lambda table: (table.name, table.schema or "")))


_QUOTED = {'"': re.compile(r'"(.*)"', re.DOTALL), "'": re.compile(r"'(.*)'", re.DOTALL)}
_PIECES = {'"': re.compile(r'"([^"]*)"'), "'": re.compile(r"'([^']*)'")}


def without_data(message: str, sql: str, quote: str) -> str:
    """Remove quoted values from a message, unless the statement contains them.

    A value may itself contain quotes, so if any quoted piece is unknown, everything from the first quote to the last is
    removed.
    """
    pieces = [found[1] for found in _PIECES[quote].finditer(message)]
    asked = sql.casefold()
    if message.count(quote) % 2 == 0 and all(piece.casefold() in asked for piece in pieces):
        return message
    return _QUOTED[quote].sub(f"{quote}…{quote}", message)


RAISED = "raised in the database: "
"""Precedes the message of an error that a function or trigger of the database raised by itself."""
_NUMBER = re.compile(r"(?<![\w.])\d[\d.]*")
_POSITION = re.compile(r"\A[0-9A-Z]{4,5}: |\(at character \d+\)|\b(?:line|position|byte) \d+")


def without_numbers(message: str, sql: str) -> str:
    """Remove numbers from a message, unless the statement contains them. A code and a place in the text are kept."""
    asked = set(_NUMBER.findall(sql))
    kept = [found.span() for found in _POSITION.finditer(message)]

    def replaced(found: re.Match[str]) -> str:
        is_kept = found[0].rstrip(".") in asked or any(start <= found.start() < end for start, end in kept)
        return found[0] if is_kept else "…"

    return _NUMBER.sub(replaced, message)


INNER = frozenset({"information_schema", "performance_schema", "sys"})
"""The server's own databases."""
TABLES = re.compile(
    r"processlist|threads|events_statements_\w+|prepared_statements_instances|session|x\$session|x\$processlist"
    r"|(?:x\$)?statement\w*|innodb_trx|(?:x\$)?innodb_lock_waits|(?:x\$)?schema_table_lock_waits"
)
"""Tables of these databases that show what other sessions run."""
TEXTS = frozenset(
    """
    info info_binary processlist_info sql_text digest_text query_sample_text query current_statement last_statement
    trx_query waiting_query blocking_query
    """.split()  # noqa: SIM905
)
"""Columns of these tables with the text of statements."""
_READ = re.compile(rf"`(?:{'|'.join(sorted(INNER))})`\.`(?:{TABLES.pattern})`")
_STATEMENT_TEXTS_QUOTED = re.compile(r"`([^`]+)`")


def showing_views(definitions: Iterable[tuple[str, str]]) -> set[str]:
    """Return the views that show such a text, directly or through another view.

    Args:
        definitions: names and definitions of views, as the server writes them and in lower case.
    """
    named = {
        name: (set(_STATEMENT_TEXTS_QUOTED.findall(text)), _READ.search(text) is not None) for name, text in definitions
    }
    shown = {name for name, (words, is_inner) in named.items() if is_inner and words & TEXTS}
    while more := {name for name, (words, _) in named.items() if words & shown} - shown:
        shown |= more
    return shown


Dialect = Literal["sqlite", "duckdb", "postgres", "mysql", "tsql", "oracle"]
"""Names as in sqlglot; MariaDB is `mysql`. Any other database is judged as `postgres`, with a warning."""

Stability = Literal["immutable", "stable", "volatile", "made"]
"""Whether a function may change anything or return different results each time; PostgreSQL calls this volatility.
`made` is a user-defined function, whose own declaration is not trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One statement to run, with its limits."""

    sql: str
    rows: int
    """Maximum rows of the answer; one more is requested, to know whether there are more."""
    seconds: float
    """At most `Limits.seconds`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The rows of a statement."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    more: bool
    """True exactly if there were more rows than were returned."""
    cut_cells: int = 0
    """Number of values longer than `Limits.cell`, which were cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What the role could do without the other locks."""

    role: str | None
    """None if the engine has no roles."""
    can_write: tuple[str, ...] = ()
    """In words: `is a superuser`, `may INSERT into public.orders`; empty for a read-only role."""
    setup_sql: str = ""
    """SQL that creates a read-only role; empty if the engine has no roles."""


class Engine(Protocol):
    """One database. After any error the next statement runs as usual.

    Raises:
        QueryFailed: the database refuses the statement.
        DeadlinePassed: the statement took too long.
        SourceFailed: the database cannot be reached.
    """

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the database."""
        ...

    async def ask(self, question: Question) -> Answer:
        """Run one statement, read-only and within the limits, and return its rows."""
        ...

    async def structure(self) -> Structure:
        """Return the structure of the database, read anew."""
        ...

    async def functions(self) -> Mapping[str, Stability]:
        """Return the stability of functions by lower-case name, the least stable for several of one name.

        Empty if the engine cannot tell. User-defined operators are included. Some names have a prefix or suffix:

        - a dot before the name: a function that can be called like a column of a row;
        - two colons: a type to which a cast calls no function;
        - `pg_catalog.`: the server's own function, if a user made another of that name;
        - `from:`: a table that may be called in FROM;
        - `shows:`: a view that shows what other sessions run.

        Read once and cached.
        """
        ...

    async def probe(self) -> Probe:
        """Return what the role may do."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


_QUOTES = {"mysql": ("`", "`"), "tsql": ("[", "]")}


def first_rows(dialect: Dialect, table: Table, rows: int, *, by_name: bool = False) -> str:
    """Return a statement that selects some rows of a table.

    Args:
        dialect: the SQL dialect.
        table: the table.
        rows: how many rows.
        by_name: list the columns by name, because not all may be read.
    """
    parts = (table.name,) if table.schema is None else (table.schema, table.name)
    name = ".".join(quote_name(dialect, part) for part in parts)
    columns = ", ".join(quote_name(dialect, column.name) for column in table.columns if by_name) or "*"
    if dialect == "tsql":
        return f"SELECT TOP {rows} {columns} FROM {name}"
    return f"SELECT {columns} FROM {name} " + (
        f"FETCH FIRST {rows} ROWS ONLY" if dialect == "oracle" else f"LIMIT {rows}"
    )


def quote_name(dialect: Dialect, name: str) -> str:
    """Return a name quoted for a dialect."""
    opening, closing = _QUOTES.get(dialect, ('"', '"'))
    return f"{opening}{name.replace(closing, closing * 2)}{closing}"


_URL = re.compile(r"(?P<scheme>\w+)(?:\+\w+)?://(?P<path>/[^?]*)?.*", re.DOTALL)
_SERVED: dict[str, Dialect] = {"mysql": "mysql", "mariadb": "mysql", "mssql": "tsql", "oracle": "oracle"}
_SUFFIXES: dict[str, Literal["sqlite", "duckdb"]] = {
    ".db": "sqlite",
    ".db3": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
}
_SQLITE, _DUCKDB = b"SQLite format 3\x00", b"DUCK"

DatabaseFile = tuple[Path, Literal["sqlite", "duckdb"]]


def dialect_of(settings: DatabaseSettings) -> Dialect:
    """Return the dialect of a configured database."""
    if settings.url == SAMPLE:
        return "sqlite"
    file = file_of(settings)
    if file is not None:
        return file[1]
    url = _URL.fullmatch(settings.url)
    return "postgres" if url is None else served_dialect(url["scheme"])


def served_dialect(scheme: str) -> Dialect:
    """Return the dialect of a server by its URL's scheme; an unknown kind is treated as PostgreSQL."""
    return _SERVED.get(scheme.lower(), "postgres")


def file_of(settings: DatabaseSettings) -> DatabaseFile | None:
    """Return the file and its kind; None for a server's database.

    Raises:
        BadConfiguration: the setting is neither a URL nor a database file.
    """
    url = _URL.fullmatch(settings.url)
    if url is None:
        path = _require_path(settings, settings.url)
        return path, _kind(settings, path)
    match url["scheme"].lower():
        case "sqlite" | "duckdb" as kind:
            return _require_path(settings, (url["path"] or "")[1:]), kind
        case _:
            return None


def _require_path(settings: DatabaseSettings, path: str) -> Path:
    if path in ("", ":memory:"):
        raise BadConfiguration(
            f"database `{settings.name}` names no file", suggestion="give the path of a database that exists"
        )
    return Path(path).expanduser()


def _kind(settings: DatabaseSettings, path: Path) -> Literal["sqlite", "duckdb"]:
    """Return the kind by the file's first bytes, because many `.db` files are DuckDB's; by its suffix if they are
    unknown."""
    try:
        with path.open("rb") as file:
            first = file.read(16)
    except OSError:
        first = b""
    if first.startswith(_SQLITE):
        return "sqlite"
    if first[8:12] == _DUCKDB:
        return "duckdb"
    kind = _SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise BadConfiguration(
            f"database `{settings.name}` is neither a URL nor a file of SQLite or DuckDB",
            suggestion="write a URL such as postgresql://user@host/name, or the path of a database file",
            options=tuple(_SUFFIXES),
        )
    return kind


_NAMED = 3
"""Privileges that are named; the rest are counted."""
_READERS = {"postgres": "ullage_reader", "mysql": "'ullage_reader'@'%'"}
"""The reading role, as the setup SQL names it."""
_OF_ALL = {"postgres": ("ALTER DEFAULT PRIVILEGES ",), "mysql": ("GRANT SELECT, SHOW VIEW ON ",)}
"""Beginnings of lines that would also grant masked columns: of future tables, or of a whole database, from which
MySQL cannot revoke parts."""
_NEW_TABLES = "-- Columns are masked, so that a new table or view must be granted by its name, column by column."


def role_sentences(name: str, probe: Probe) -> tuple[str, ...]:
    """Return one sentence if the role can write, none if it cannot."""
    if not probe.can_write:
        return ()
    who = "it" if probe.role is None else f"its role `{probe.role}`"
    shown = ", ".join(probe.can_write[:_NAMED])
    rest = len(probe.can_write) - _NAMED
    more = f", and {rest} more" if rest > 0 else ""
    advice = f"; for a role that can only read: ullage sql {name} --role-sql" if probe.setup_sql else ""
    return (f"database `{name}`: {who} {shown}{more}{advice}",)


def with_column_grants(
    setup_sql: str, dialect: Dialect, structure: Structure, readable: Iterable[tuple[Table, Sequence[str]]]
) -> str:
    """Return the SQL for a reading role without rights on masked columns, so that no statement can read them.

    Args:
        setup_sql: SQL for a role that may read everything.
        dialect: PostgreSQL or MySQL; the SQL of any other is returned unchanged.
        structure: the database, for the name of its default schema.
        readable: every relation, with the columns that are not masked.
    """
    if dialect not in _READERS:
        return setup_sql
    reader = _READERS[dialect]
    lines = [line for line in setup_sql.splitlines() if not line.startswith(_OF_ALL[dialect])]
    lines.append(_NEW_TABLES)
    for table, columns in readable:
        schema = table.schema or structure.default_schema
        name = ".".join(quote_name(dialect, part) for part in (schema, table.name) if part is not None)
        is_whole = len(columns) == len(table.columns)
        listed = ", ".join(quote_name(dialect, column) for column in columns)
        if dialect == "mysql" and is_whole:
            lines.append(f"GRANT SELECT, SHOW VIEW ON {name} TO {reader};")
        if is_whole:
            continue
        if dialect == "postgres":
            lines.append(f"REVOKE SELECT ON {name} FROM {reader};")
        if columns:
            lines.append(f"GRANT SELECT ({listed}) ON {name} TO {reader};")
    return "\n".join(lines) + "\n"
