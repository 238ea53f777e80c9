"""The `Engine` protocol and what all engines share: dialects, quoting, structure and roles.

An engine runs one statement that someone else has judged, read-only by its own means all the same, within limits of
time, rows and bytes. It knows nothing of tokens, of tools or of what a statement may say.

Values only: an engine reads them, others write them down for a model.

What the user is told of the role that a database is asked with, and the grants of one that can only read.

The locks hold whatever the role may do; one that can only read is a lock of its own. Nothing is asked of the database
here.

Told by its URL's scheme, or for a path by what the file is and what it is called. Nothing is opened but a file's first
bytes.

Error messages of databases without the values that they quote.

A conversion that fails quotes the value, and so would hand out a column that is masked. What the question itself says
may be repeated.

Data only, for the guard, which judges statements, and for the engine, which looks for views that show as much.
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
    "quoted",
    "role_sentences",
    "served_dialect",
    "showing_views",
    "with_column_grants",
    "without_data",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    type: str
    """As the engine writes it: `varchar(20)`, `numeric(10,2)`."""
    nullable: bool = True
    default: str | None = None
    generated: bool = False
    """Whether the engine fills it: identity, auto-increment, computed."""
    computed: bool = False
    """Whether it is computed from other columns."""
    expression: str | None = None
    """What it is computed by; None where that is not known."""
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    columns: tuple[str, ...]
    table: str
    """The table it points at, with its schema where that is not the default one."""
    to: tuple[str, ...]
    name: str | None = None
    on_update: str | None = None
    on_delete: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    name: str
    columns: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    name: str
    timing: str | None = None
    """BEFORE, AFTER or INSTEAD OF."""
    event: str | None = None
    """INSERT, UPDATE, DELETE, or several."""
    statement: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    name: str
    schema: str | None = None
    """None for the default one."""
    kind: Literal["table", "view"] = "table"
    columns: tuple[Column, ...] = ()
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    indexes: tuple[Index, ...] = ()
    checks: tuple[str, ...] = ()
    """Other constraints, each as the engine writes it."""
    triggers: tuple[Trigger, ...] = ()
    rows: int | None = None
    """An estimate by the engine's statistics; None where it has none."""
    definition: str | None = None
    """A view's query."""
    comment: str | None = None
    parents: tuple[str, ...] = ()
    """Tables whose columns it inherits, as `schema.name`: it is a partition of one, or made by INHERITS."""
    module: str | None = None
    """Of a virtual table, the CREATE statement, whose arguments may name other tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    name: str
    kind: Literal["function", "procedure"]
    schema: str | None = None
    arguments: str | None = None
    returns: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A database, its tables in the order of their names."""

    tables: tuple[Table, ...] = ()
    routines: tuple[Routine, ...] = ()
    name: str | None = None
    default_schema: str | None = None
    """What the schema is called whose tables have None for one; None where it is not known."""
    catalogue: tuple[Table, ...] = ()
    """Every relation with every column, also those that the role may not read itself but views may read for it, each
    with its schema's name. For whoever follows where values come from; empty where `tables` are all there is."""


def in_order(tables: Iterable[Table]) -> tuple[Table, ...]:
    """As a `Structure` has them: by name, and by schema where one name is in several."""
    return tuple(sorted(tables, key=lambda table: (table.name, table.schema or "")))


_QUOTED = {'"': re.compile(r'"(.*)"', re.DOTALL), "'": re.compile(r"'(.*)'", re.DOTALL)}
_PIECES = {'"': re.compile(r'"([^"]*)"'), "'": re.compile(r"'([^']*)'")}


def without_data(message: str, sql: str, quote: str) -> str:
    """A value may itself hold quotes, so that all from the first quote to the last goes where any piece is unknown."""
    pieces = [found[1] for found in _PIECES[quote].finditer(message)]
    asked = sql.casefold()
    if message.count(quote) % 2 == 0 and all(piece.casefold() in asked for piece in pieces):
        return message
    return _QUOTED[quote].sub(f"{quote}…{quote}", message)


INNER = frozenset({"information_schema", "performance_schema", "sys"})
"""Databases of the server's own."""
TABLES = re.compile(
    r"processlist|threads|events_statements_\w+|prepared_statements_instances|session|x\$session|x\$processlist"
    r"|(?:x\$)?statement\w*|innodb_trx|(?:x\$)?innodb_lock_waits|(?:x\$)?schema_table_lock_waits"
)
"""Tables of these databases that hold what others run."""
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
    """Of views by name and definition, as the server writes it and in lower case: those that show such a text, and
    those that read one of them."""
    named = {
        name: (set(_STATEMENT_TEXTS_QUOTED.findall(text)), _READ.search(text) is not None) for name, text in definitions
    }
    shown = {name for name, (words, is_inner) in named.items() if is_inner and words & TEXTS}
    while more := {name for name, (words, _) in named.items() if words & shown} - shown:
        shown |= more
    return shown


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


_QUOTES = {"mysql": ("`", "`"), "tsql": ("[", "]")}


def first_rows(dialect: Dialect, table: Table, rows: int, *, by_name: bool = False) -> str:
    """A statement for some rows of a table, as each dialect has it; its columns by name where not all may be read."""
    parts = (table.name,) if table.schema is None else (table.schema, table.name)
    name = ".".join(quoted(dialect, part) for part in parts)
    columns = ", ".join(quoted(dialect, column.name) for column in table.columns if by_name) or "*"
    if dialect == "tsql":
        return f"SELECT TOP {rows} {columns} FROM {name}"
    return f"SELECT {columns} FROM {name} " + (
        f"FETCH FIRST {rows} ROWS ONLY" if dialect == "oracle" else f"LIMIT {rows}"
    )


def quoted(dialect: Dialect, name: str) -> str:
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
    if settings.url == SAMPLE:
        return "sqlite"
    file = file_of(settings)
    if file is not None:
        return file[1]
    url = _URL.fullmatch(settings.url)
    return "postgres" if url is None else served_dialect(url["scheme"])


def served_dialect(scheme: str) -> Dialect:
    """Of a server, by its URL's scheme; one of a kind that is not known is judged as PostgreSQL is."""
    return _SERVED.get(scheme.lower(), "postgres")


def file_of(settings: DatabaseSettings) -> DatabaseFile | None:
    """The file and its kind, None where it is a server's database; raises for what is neither."""
    url = _URL.fullmatch(settings.url)
    if url is None:
        path = _named(settings, settings.url)
        return path, _kind(settings, path)
    match url["scheme"].lower():
        case "sqlite" | "duckdb" as kind:
            return _named(settings, (url["path"] or "")[1:]), kind
        case _:
            return None


def _named(settings: DatabaseSettings, path: str) -> Path:
    if path in ("", ":memory:"):
        raise BadConfiguration(
            f"database `{settings.name}` names no file", suggestion="give the path of a database that exists"
        )
    return Path(path).expanduser()


def _kind(settings: DatabaseSettings, path: Path) -> Literal["sqlite", "duckdb"]:
    """A file's first bytes tell, whatever it is called: many a `.db` is DuckDB's."""
    first = _first_bytes(path)
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


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(16)
    except OSError:
        return b""


_NAMED = 3
"""Abilities that are named; the rest are counted."""
_READERS = {"postgres": "ullage_reader", "mysql": "'ullage_reader'@'%'"}
"""As the SQL for a reading role calls it."""
_OF_ALL = {"postgres": ("ALTER DEFAULT PRIVILEGES ",), "mysql": ("GRANT SELECT, SHOW VIEW ON ",)}
"""Lines that grant what is masked along with the rest: of tables to come, or of a whole database, from which MySQL can
take nothing away again."""
_NEW_TABLES = "-- Columns are masked, so that a new table or view must be granted by its name, column by column."


def role_sentences(name: str, probe: Probe) -> tuple[str, ...]:
    """One sentence where the role can write, none where it cannot."""
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
    """The SQL for a reading role that may not read masked columns, whichever statement comes before the database.

    Args:
        setup_sql: The SQL for a role that may read all.
        dialect: Of PostgreSQL or MySQL; that of any other comes back as it is.
        structure: Of the database, for the name of its default schema.
        readable: Every relation, with the columns that are not masked.
    """
    if dialect not in _READERS:
        return setup_sql
    reader = _READERS[dialect]
    lines = [line for line in setup_sql.splitlines() if not line.startswith(_OF_ALL[dialect])]
    lines.append(_NEW_TABLES)
    for table, columns in readable:
        schema = table.schema or structure.default_schema
        name = ".".join(quoted(dialect, part) for part in (schema, table.name) if part is not None)
        is_whole = len(columns) == len(table.columns)
        listed = ", ".join(quoted(dialect, column) for column in columns)
        if dialect == "mysql" and is_whole:
            lines.append(f"GRANT SELECT, SHOW VIEW ON {name} TO {reader};")
        if is_whole:
            continue
        if dialect == "postgres":
            lines.append(f"REVOKE SELECT ON {name} FROM {reader};")
        if columns:
            lines.append(f"GRANT SELECT ({listed}) ON {name} TO {reader};")
    return "\n".join(lines) + "\n"
