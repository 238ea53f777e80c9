"""Query a database in SQL, with the same protection as for an agent: read-only, limited in rows and time.

Without a statement, list the tables of the database; without a name, list the databases. The name `sample` or `shop`
opens a sample shop, created on first use, unless your settings define a database of that name.
"""

import argparse
import csv
import json
import sys
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import anyio

from ullage.config import Loaded
from ullage.errors import BadConfiguration, InvalidArguments, UnknownResource
from ullage.processes import user_name
from ullage.sql import (
    DIALECTS,
    SAMPLE,
    Answer,
    DatabaseSettings,
    Dialect,
    Engine,
    QueryRunner,
    Table,
    dialect_of,
    open_engine,
)
from ullage.table import Cell, clean, clean_row, dump_value, records_json
from ullage.tool import Asked, Caller, Json

from .input_files import read_piped
from .load_settings import add_flags, log_to_stderr, read, say
from .output import columns, dim, emit, emit_json, emit_json_text, emit_wrapped, fitted_columns, how_many, width_of

__all__ = ["arguments", "run"]

Result = TypeVar("Result")

_SAMPLES = ("sample", "shop")
_WIDEST = 60
"""Maximum characters of a value in the table; `--json` and `--csv` have all of it."""
_NO_DATABASES = """\
No database is configured yet. Add one to an ullage.toml:
  [sources.shop]
  database = "postgresql://user@host/name"
or try the sample: ullage sql sample"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="database of the settings; `sample` always exists")
    parser.add_argument(
        "statement", nargs="?", metavar="SQL", help="SELECT statement, or - to read it from standard input"
    )
    parser.add_argument(
        "--max-rows", metavar="N", type=int, help="maximum number of rows, up to the limit of the settings"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print rows as CSV")
    form.add_argument(
        "--role-sql", action="store_true", help="print SQL that creates a read-only role for this database"
    )
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    loaded = read(arguments)
    if arguments.max_rows is not None and arguments.max_rows < 1:
        raise InvalidArguments("`--max-rows` must be at least 1", suggestion="give --max-rows 1 or more")
    if arguments.name is None:
        return _databases(loaded, as_json=arguments.json)
    name = arguments.name
    databases = loaded.settings.databases
    found = next((database for database in databases if database.name == name), None)
    if found is not None:
        database = found
    elif name in _SAMPLES:
        database = DatabaseSettings(name=name, url=SAMPLE)
    else:
        raise UnknownResource(
            f"no database is called `{name}`",
            suggestion="run `ullage sql` to list them",
            options=(*(database.name for database in databases), *([] if databases else _SAMPLES[:1])),
        )
    if arguments.role_sql:
        caller = Asked(caller=Caller(principal=user_name(), session="cli"))
        probe, setup = _with_engine(loaded, database, lambda engine: QueryRunner.of(database, engine).role_sql(caller))
        for one in probe.can_write:
            say(f"ullage: role `{probe.role}` {one}")
        if not setup:
            say(f"`{database.name}` has no roles: the file is opened read-only")
            return 0
        emit(setup.rstrip("\n"))
        return 0
    if arguments.statement is None:
        return _tables(loaded, database, as_json=arguments.json)
    sql = read_piped() if arguments.statement == "-" else arguments.statement
    return _ask(loaded, database, sql, arguments)


def _databases(loaded: Loaded, *, as_json: bool) -> int:
    databases, default = loaded.settings.databases, loaded.settings.default_database
    if as_json:
        # Without the URL, which may contain a password.
        emit_json(
            [
                {
                    "name": one.name,
                    "dialect": _dialect(one),
                    "default": one is default,
                    "description": one.description,
                    "from": one.came_from,
                }
                for one in databases
            ]
        )
        return 0
    rows: list[tuple[str, ...]] = []
    for one in databases:
        dialect = _dialect(one)
        kind = "sample shop" if one.url == SAMPLE else "unknown" if dialect is None else DIALECTS[dialect]
        rows.append((one.name, kind, "default" if one is default else "", dim(one.description or "")))
    for line in fitted_columns(rows) or columns(rows):
        emit(line)
    if not databases:
        say(_NO_DATABASES)
    return 0


def _dialect(database: DatabaseSettings) -> Dialect | None:
    """Return the dialect; None for an invalid URL, about which a query reports the reason."""
    try:
        return dialect_of(database)
    except BadConfiguration:
        return None


def _tables(loaded: Loaded, database: DatabaseSettings, *, as_json: bool) -> int:
    structure = _with_engine(loaded, database, lambda engine: engine.structure())
    if as_json:
        tables: list[Json] = []
        for table in structure.tables:
            described: list[Json] = [
                {"name": one.name, "type": one.type, "nullable": one.nullable} for one in table.columns
            ]
            tables.append(
                {
                    "name": table.name,
                    "schema": table.schema,
                    "kind": table.kind,
                    "rows": table.rows,
                    "primary_key": [*table.primary_key],
                    "columns": described,
                }
            )
        emit_json(tables)
        return 0
    header = ("table", "kind", "rows", "columns")
    rows = [header, *map(_table_row, structure.tables)]
    titles, *lines = fitted_columns(rows, right=frozenset({2})) or columns(rows, right=frozenset({2}))
    emit(dim(titles))
    for line in lines:
        emit(line)
    routines = f", {how_many(len(structure.routines), 'routine')}" if structure.routines else ""
    say(f"{how_many(len(structure.tables), 'table')}{routines}")
    return 0


def _table_row(table: Table) -> tuple[str, ...]:
    name = table.name if table.schema is None else f"{table.schema}.{table.name}"
    rows = "" if table.rows is None else f"~{table.rows:,}"
    return _on_one_line(name), table.kind, rows, _on_one_line(", ".join(column.name for column in table.columns))


def _ask(loaded: Loaded, database: DatabaseSettings, sql: str, arguments: argparse.Namespace) -> int:
    limit = database.limits.rows
    rows = min(arguments.max_rows or limit, limit)
    request = Asked(caller=Caller(principal=user_name(), session="command line", client=arguments.client))

    async def ask(engine: Engine) -> Answer:
        return (await QueryRunner.of(database, engine).ask(sql, rows, request)).answer

    answer = _with_engine(loaded, database, ask)
    if arguments.json:
        head = {"rowCount": len(answer.rows), "truncated": answer.more, "columnNames": list(answer.columns)}
        # No text in it contains a raw line break.
        data = records_json(answer.columns, answer.rows, 2).replace("\n", "\n  ")
        emit_json_text(f'{json.dumps(head, ensure_ascii=False, indent=2)[:-2]},\n  "data": {data}\n}}')
    elif arguments.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        # Another program receives every character; a terminal would interpret some of them.
        written = (clean_row(row)[0] for row in answer.rows) if sys.stdout.isatty() else answer.rows
        writer.writerows([_plain(cell) for cell in row] for row in written)
    else:
        shown = [[_format_cell(cell) for cell in clean_row(row)[0]] for row in answer.rows]
        numeric = frozenset(index for index in range(len(answer.columns)) if _has_numbers(answer, index))
        header = [_on_one_line(clean(name).text) for name in answer.columns]
        table = fitted_columns([header, *shown], right=numeric)
        if table is None:
            # Rows are wider than the terminal: print one line for each value.
            width = max(map(width_of, header))
            for number, row in enumerate(shown, start=1):
                emit(dim(f"row {number}"))
                for name, value in zip(header, row, strict=True):
                    emit_wrapped(f"  {name}{' ' * (width - width_of(name))}  {value}")
        else:
            titles, *lines = table
            emit(dim(titles))
            for line in lines:
                emit(line)
    more = "; there are more: narrow with WHERE or LIMIT, or aggregate" if answer.more else ""
    cut = f"; {how_many(answer.cut_cells, 'value')} cut" if answer.cut_cells else ""
    say(f"{how_many(len(answer.rows), 'row')}{more}{cut}")
    return 0


def _plain(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else dump_value(cell)


def _has_numbers(answer: Answer, index: int) -> bool:
    """Return whether a column has only numbers."""
    cells = [row[index] for row in answer.rows if row[index] is not None]
    return bool(cells) and all(isinstance(cell, int | float | Decimal) and not isinstance(cell, bool) for cell in cells)


def _format_cell(cell: Cell) -> str:
    text = "NULL" if cell is None else _on_one_line(_plain(cell))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _on_one_line(text: str) -> str:
    """Return the text on one line; characters that a terminal would interpret are already removed."""
    return clean(text).text.replace("\n", "\\n").replace("\t", " ")


def _with_engine(loaded: Loaded, database: DatabaseSettings, work: Callable[[Engine], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        engine = open_engine(database, sample=Path(loaded.settings.sample))
        try:
            return await work(engine)
        finally:
            with anyio.CancelScope(shield=True):
                await engine.close()

    log_to_stderr()
    return anyio.run(run)
