"""The masked columns of the settings, and refusals of statements that would reveal them.

Names are compared case-insensitively. In a case-sensitive database this masks too much, never too little. A table
missing from the structure may contain anything. A few tables of every database that only describe others are known to
contain no values.

A `Scope` contains the sources of a SELECT and of the queries around it. If a name is ambiguous, it refers to all its
meanings; if it matches nothing known, the caller refuses.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import NoReturn

from sqlglot import exp

from ullage.errors import Refused, UnknownName

from .database import Column, Structure, Table
from .describe import full_name, spell

__all__ = [
    "DESCRIBING_FUNCTIONS",
    "ROWID",
    "UNCOUNTED",
    "Columns",
    "Ctes",
    "Derive",
    "Masks",
    "Named",
    "Output",
    "Scope",
    "Source",
    "Tables",
    "fold",
    "not_understood",
    "refuse",
    "refuse_any",
    "rename_columns",
    "unknown_column",
    "unknown_table",
]

_DESCRIBING = frozenset(
    """
    information_schema.columns information_schema.tables information_schema.views information_schema.schemata
    information_schema.table_constraints information_schema.key_column_usage information_schema.statistics
    information_schema.referential_constraints information_schema.constraint_column_usage
    information_schema.routines information_schema.parameters information_schema.triggers
    information_schema.check_constraints information_schema.column_privileges information_schema.table_privileges
    information_schema.role_table_grants information_schema.schema_privileges information_schema.user_privileges
    information_schema.applicable_roles information_schema.enabled_roles information_schema.sequences
    information_schema.domains information_schema.element_types information_schema.view_table_usage
    information_schema.view_column_usage information_schema.constraint_table_usage information_schema.engines
    information_schema.plugins information_schema.character_sets information_schema.collations
    information_schema.keywords information_schema.partitions information_schema.events
    information_schema.global_status information_schema.session_status information_schema.attributes
    information_schema.column_domain_usage information_schema.column_options information_schema.column_udt_usage
    information_schema.data_type_privileges information_schema.domain_constraints
    information_schema.domain_udt_usage information_schema.foreign_data_wrappers information_schema.foreign_servers
    information_schema.foreign_tables information_schema.information_schema_catalog_name
    information_schema.role_column_grants information_schema.role_routine_grants information_schema.role_udt_grants
    information_schema.role_usage_grants information_schema.routine_column_usage
    information_schema.routine_privileges information_schema.routine_routine_usage
    information_schema.routine_sequence_usage information_schema.routine_table_usage
    information_schema.triggered_update_columns information_schema.udt_privileges
    information_schema.usage_privileges information_schema.user_defined_types information_schema.view_routine_usage
    information_schema.all_plugins information_schema.collation_character_set_applicability
    information_schema.key_caches information_schema.tablespaces information_schema.global_variables
    information_schema.session_variables information_schema.system_variables information_schema.processlist
    sqlite_master sqlite_schema sqlite_sequence sqlite_stat1
    pg_aggregate pg_am pg_amop pg_amproc pg_attrdef pg_attribute pg_auth_members pg_available_extension_versions
    pg_available_extensions pg_cast pg_class pg_collation pg_constraint pg_conversion pg_database pg_default_acl
    pg_depend pg_description pg_enum pg_event_trigger pg_extension pg_foreign_table pg_group pg_index pg_indexes
    pg_inherits pg_language pg_locks pg_matviews pg_namespace pg_opclass pg_operator pg_opfamily
    pg_partitioned_table pg_policies pg_proc pg_publication pg_publication_rel pg_publication_tables pg_range
    pg_rewrite pg_roles pg_rules pg_sequence pg_sequences pg_settings pg_shdescription pg_stat_activity
    pg_stat_all_indexes pg_stat_all_tables pg_stat_archiver pg_stat_bgwriter pg_stat_checkpointer pg_stat_database
    pg_stat_database_conflicts pg_stat_io pg_stat_progress_analyze pg_stat_progress_cluster
    pg_stat_progress_create_index pg_stat_progress_vacuum pg_stat_slru pg_stat_sys_indexes pg_stat_sys_tables
    pg_stat_user_functions pg_stat_user_indexes pg_stat_user_tables pg_stat_wal pg_stat_xact_all_tables
    pg_stat_xact_sys_tables pg_stat_xact_user_functions pg_stat_xact_user_tables pg_statio_all_indexes
    pg_statio_all_sequences pg_statio_all_tables pg_statio_sys_indexes pg_statio_sys_sequences pg_statio_sys_tables
    pg_statio_user_indexes pg_statio_user_sequences pg_statio_user_tables pg_statistic_ext pg_tables pg_tablespace
    pg_timezone_abbrevs pg_timezone_names pg_transform pg_trigger pg_ts_config pg_ts_config_map pg_ts_dict
    pg_ts_parser pg_ts_template pg_type pg_user pg_views
    """.split()  # noqa: SIM905
)
"""Tables that only describe others. Statistics, which contain sample values, and lists of running statements are
excluded, apart from the columns of `_VALUES`."""
DESCRIBING_FUNCTIONS = frozenset(
    """
    pragma_collation_list pragma_compile_options pragma_database_list pragma_foreign_key_list pragma_function_list
    pragma_index_info pragma_index_list pragma_index_xinfo pragma_module_list pragma_pragma_list pragma_table_info
    pragma_table_list pragma_table_xinfo pragma_version duckdb_columns duckdb_constraints duckdb_databases
    duckdb_dependencies duckdb_extensions duckdb_functions duckdb_indexes duckdb_keywords duckdb_memory
    duckdb_schemas duckdb_settings duckdb_tables duckdb_types duckdb_views
    """.split()  # noqa: SIM905
)
"""Functions in FROM that read only metadata; without parentheses each is a table."""
_VALUES = {
    "pg_attribute": ("attmissingval",),
    "pg_stat_activity": ("query",),
    "information_schema.processlist": ("info", "info_binary"),
}
"""Columns of these tables that contain values of other tables."""
_COUNTERS = {"pg_sequences": "last_value", "sqlite_sequence": "seq", "information_schema.tables": "auto_increment"}
"""Columns of tables that only describe others which contain the last value of a counter."""
_DEFAULTS = ("public", "main", "dbo")
"""Names of default schemas."""
_WORD = re.compile(r"[\w$]+")


@dataclass(frozen=True, slots=True)
class Output:
    """An output column of a query."""

    name: str
    """Case-folded; empty if only the database knows its name."""
    masks: frozenset[str] = frozenset()
    """The masked columns whose values it may contain, as `table.column`."""
    is_hidden: bool = False
    """Whether `*` leaves it out."""


Columns = tuple[Output, ...]
UNCOUNTED = Output("*")
"""Represents columns that are not listed, none of them masked."""


Masks = frozenset[str]
Ctes = Mapping[str, "Named"]
Derive = Callable[["Tables", Table], tuple[frozenset[str], ...] | None]
"""Returns the masked columns in each column of a view; None if they cannot be determined."""


@dataclass(slots=True)
class Tables:
    """The relations of a database, with the masked columns of each.

    A column is masked if a pattern matches it, or if its values come from a masked one: by the expression of a
    generated column, by inheritance in either direction, through a view, or through a virtual table. The result for
    each relation is computed on first use and cached.
    """

    structure: Structure
    patterns: tuple[str, ...]
    derive: Derive
    is_closed: bool = True
    """Whether an unknown table may contain masked values. False if only tables of the server itself are masked."""
    _named: dict[str, list[Table]] = field(default_factory=dict[str, list[Table]])
    _kept: dict[int, Columns] = field(default_factory=dict[int, Columns])
    _pending: set[int] = field(default_factory=set[int])
    """Views being read, to detect a view that reads itself."""

    def __post_init__(self) -> None:
        for table in self.structure.catalogue or self.structure.tables:
            self._named.setdefault(fold(table.name), []).append(table)

    def columns(self, name: str, schema: str, catalog: str = "") -> Columns | None:
        """Return the columns of a table.

        `UNCOUNTED` if it only describes others; None if it is unknown or the name is ambiguous.
        """
        if catalog and fold(catalog) != fold(self.structure.name or ""):
            return None
        table = self.find(name, schema)
        if table is not None:
            return self.of(table)
        if fold(name) not in self._named and _describes(name, schema):
            return (UNCOUNTED, *self._values_described(fold(name), fold(schema)))
        return None if self.is_closed else (UNCOUNTED,)

    def _values_described(self, name: str, schema: str) -> Columns:
        """Return the columns of a table that only describes others which contain values of masked columns."""
        full = name if schema == "pg_catalog" else ".".join(filter(None, (schema, name)))
        columns = _VALUES.get(full, ())
        if not columns and full in _COUNTERS and self.has_masked_counter:
            columns = (_COUNTERS[full],)
        return tuple(Output(column, frozenset({f"{full}.{column}"})) for column in columns if self.is_closed)

    @property
    def has_masked_counter(self) -> bool:
        """Return whether a masked column is filled by the engine, so that a counter shows one of its values."""
        for table in self.structure.tables:
            filled = {fold(column.name) for column in table.columns if column.generated and not column.computed}
            if filled and table.kind != "view":
                known = self.columns(table.name, table.schema or "")
                if known is None or any(one.masks and one.name in filled for one in known):
                    return True
        return False

    def find(self, name: str, schema: str) -> Table | None:
        """Return the one relation that a name refers to; None if there is none, or several."""
        called = self._named.get(fold(name), [])
        chosen = [table for table in called if fold(table.schema or "") == fold(schema)]
        if not chosen and (not schema or self._is_default(schema)):
            default = fold(self.structure.default_schema or "")
            chosen = [table for table in called if fold(table.schema or "") in ("", default)]
        return chosen[0] if len(chosen) == 1 else None

    def of(self, table: Table) -> Columns:
        """Return the columns of a relation. If a view is not understood, all of them are masked."""
        known = self._kept.get(id(table))
        if known is not None:
            return known
        masks = self._of_view(table) if table.kind == "view" else self._of_table(table)
        named = [self._by_pattern(table, column.name) for column in table.columns]
        columns = tuple(
            Output(fold(column.name), own | derived, column.hidden)
            for column, own, derived in zip(table.columns, named, masks, strict=True)
        )
        self._kept[id(table)] = columns
        return columns

    def key(self, name: str, schema: str) -> frozenset[str]:
        """Return the primary key of a table, case-folded; empty where rows may share it.

        They may if other tables inherit from this one, or in SQLite if a part of the key may be NULL.
        """
        table = self.find(name, schema)
        if table is None or table.kind == "view" or table.module is not None or len(self._family(table)) > 1:
            return frozenset()
        default = self.structure.default_schema
        described = [
            one
            for one in self.structure.tables
            if one.name == table.name and fold(one.schema or default or "") == fold(table.schema or default or "")
        ]
        if len(described) != 1:
            return frozenset()
        names = frozenset(map(fold, described[0].primary_key))
        kept = [column for column in described[0].columns if fold(column.name) in names]
        # SQLite's row id is never NULL, although its column may be.
        is_rowid = len(kept) == 1 and kept[0].type.upper() == "INTEGER"
        is_certain = is_rowid or not any(column.nullable for column in kept)
        return names if is_certain and len(kept) == len(names) else frozenset()

    def rowid(self, name: str, schema: str) -> frozenset[str] | None:
        """Return the masked columns that SQLite's row id may reveal: it may be the key, or anything in a virtual
        table."""
        table = self.find(name, schema)
        if table is None or table.kind == "view":
            return None
        keys = {fold(key) for key in table.primary_key}
        found = (one.masks for one in self.of(table) if table.module is not None or one.name in keys)
        return frozenset[str]().union(*found)

    def index(self, name: str, schema: str, index: str) -> frozenset[str]:
        """Return the masked columns by which an index orders the rows of a table; MySQL's `PRIMARY` is the key."""
        table = self.find(name, schema)
        if table is None:
            return frozenset()
        ordered = [one.columns for one in table.indexes if fold(one.name) == fold(index)]
        if fold(index) == "primary":
            ordered.append(table.primary_key)
        words = {
            word for columns in ordered for column in columns for word in (fold(column), *_WORD.findall(fold(column)))
        }
        return frozenset[str]().union(*(one.masks for one in self.of(table) if one.name in words))

    def _of_view(self, table: Table) -> list[frozenset[str]]:
        if id(table) in self._pending:
            derived = None
        else:
            self._pending.add(id(table))
            try:
                derived = self.derive(self, table)
            finally:
                self._pending.discard(id(table))
        if derived is None or len(derived) != len(table.columns):
            return [frozenset({f"{table.name}.{column.name}"}) for column in table.columns]
        return list(derived)

    def _of_table(self, table: Table) -> list[frozenset[str]]:
        """Apply the patterns to the table and all related by inheritance, then mask what is computed from those
        columns."""
        family = self._family(table)
        masks: dict[str, frozenset[str]] = {}
        changed = True
        while changed:
            before = dict(masks)
            for member in family:
                for column in member.columns:
                    name = fold(column.name)
                    found = self._by_pattern(member, column.name) | self._masks_of_generated_column(
                        member, column, masks
                    )
                    masks[name] = masks.get(name, frozenset()) | found
            changed = masks != before
        reached = self._by_module(table)
        return [masks[fold(column.name)] | reached for column in table.columns]

    def _family(self, table: Table) -> list[Table]:
        """Return the table, its ancestors and descendants by inheritance, and theirs."""
        every = [one for tables in self._named.values() for one in tables]
        if not any(one.parents for one in every):
            return [table]
        links: dict[str, set[str]] = {}
        for one in every:
            for parent in one.parents:
                links.setdefault(_full(one), set()).add(fold(parent))
                links.setdefault(fold(parent), set()).add(_full(one))
        found, waiting = {_full(table)}, [_full(table)]
        while waiting:
            new = links.get(waiting.pop(), set()) - found
            found |= new
            waiting.extend(new)
        return [one for one in every if _full(one) in found]

    def _masks_of_generated_column(
        self, table: Table, column: Column, masks: Mapping[str, frozenset[str]]
    ) -> frozenset[str]:
        """Return the masked columns that a generated column may reveal.

        Those its expression names, or all of the table if the expression is unknown.
        """
        if not column.computed:
            return frozenset()
        text = None if column.expression is None else fold(column.expression)
        words = set(_WORD.findall(text or ""))
        names = [fold(one.name) for one in table.columns]
        read = [
            name
            for name in names
            if text is None or name in words or (name in text and not _WORD.fullmatch(name)) or "\\" in text
        ]
        return frozenset[str]().union(*(masks.get(name, frozenset()) for name in read))

    def _by_module(self, table: Table) -> frozenset[str]:
        """Return the masked columns that a virtual table may show: all of the tables that its arguments name."""
        if table.module is None or id(table) in self._pending:
            return frozenset()
        self._pending.add(id(table))
        try:
            words = {fold(word) for word in _WORD.findall(table.module)} - {fold(table.name)}
            named = [one for word in words for one in self._named.get(word, ())]
            return frozenset[str]().union(*(column.masks for one in named for column in self.of(one)))
        finally:
            self._pending.discard(id(table))

    def _is_default(self, schema: str) -> bool:
        if self.structure.default_schema is not None:
            return fold(schema) == fold(self.structure.default_schema)
        return fold(schema) in (*_DEFAULTS, fold(self.structure.name or ""))

    def _by_pattern(self, table: Table, column: str) -> frozenset[str]:
        schema = None if table.schema is None or self._is_default(table.schema) else table.schema
        is_masked = any(_fits(fold(pattern), table, schema, column) for pattern in self.patterns)
        return frozenset({f"{table.name}.{column}"} if is_masked else ())


def fold(name: str) -> str:
    """Return a name for case-insensitive comparison."""
    return name.casefold()


def _describes(name: str, schema: str) -> bool:
    if fold(name) in DESCRIBING_FUNCTIONS and fold(schema) in ("", "main"):
        return True
    if fold(schema) == "pg_catalog":
        return fold(name).startswith("pg_") and fold(name) in _DESCRIBING
    return ".".join(filter(None, (fold(schema), fold(name)))) in _DESCRIBING


def _full(table: Table) -> str:
    return fold(f"{table.schema}.{table.name}")


def _fits(pattern: str, table: Table, schema: str | None, column: str) -> bool:
    """Return whether a pattern matches: `column`, `table.column` or `schema.table.column`.

    The default schema matches any schema name.
    """
    short = f"{fold(table.name)}.{fold(column)}"
    if fnmatchcase(short, pattern) or ("." not in pattern and fnmatchcase(fold(column), pattern)):
        return True
    if schema is None and fnmatchcase(short, pattern.partition(".")[2]):
        return True
    return table.schema is not None and fnmatchcase(f"{fold(table.schema)}.{short}", pattern)


@dataclass(frozen=True, slots=True)
class Named:
    """A query named in WITH."""

    name: exp.Identifier
    columns: Columns | None
    """None until it is read."""

    def is_meant_by(self, name: exp.Identifier, *, folds: bool) -> bool:
        """Return whether a name certainly refers to this query, and not to a table or query that differs in letter
        case."""
        if bool(name.quoted) != bool(self.name.quoted):
            return False
        return name.name == self.name.name or (folds and not name.quoted and fold(name.name) == fold(self.name.name))


def rename_columns(node: exp.Expr, columns: Columns) -> Columns:
    """Return a source's columns under the names of its alias: `AS t(a, b)`."""
    alias = node.args.get("alias")
    names = list(alias.args.get("columns") or ()) if isinstance(alias, exp.TableAlias) else []
    if not names:
        return columns
    if UNCOUNTED in columns:
        return columns if not any(column.masks for column in columns) else not_understood(node)
    if len(names) > len(columns):
        not_understood(node)
    first = tuple(replace(column, name=fold(name.name)) for column, name in zip(columns, names, strict=False))
    return first + columns[len(names) :]


ROWID = frozenset({"rowid", "oid", "_rowid_"})
"""SQLite's names for the row id, unless a column has that name."""
_BARE = frozenset(
    """
    ctid tableoid xmin xmax cmin cmax rownum level sysdate systimestamp row_start row_end
    """.split()  # noqa: SIM905
)
"""Names that exist for every row or for none, and are not columns of a table."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table, subquery or function in FROM."""

    name: str
    columns: Columns
    rowid: Masks | None = None
    """Masked columns that the row id may reveal; None if it has no row id."""
    hidden: Masks | None = None
    """Masked columns that a column excluded from `*` may reveal, such as `rank` of a full-text table; None if there
    is none."""
    key: frozenset[str] = frozenset()
    """Names of the columns that identify a row, case-folded; empty if none are known."""

    @property
    def is_open(self) -> bool:
        """Whether it has further columns, none of them masked."""
        return UNCOUNTED in self.columns

    @property
    def masks(self) -> Masks:
        """The masked columns of all its columns together."""
        return frozenset[str]().union(*(column.masks for column in self.columns))

    def column(self, name: str) -> Masks | None:
        """Return the masked columns in a column; None if no column has that name."""
        found = [column.masks for column in self.columns if column.name in (fold(name), "")]
        if found or self.is_open:
            return frozenset[str]().union(*found)
        if self.rowid is not None and fold(name) in ROWID:
            return self.rowid
        if self.hidden is not None:
            return self.hidden
        return frozenset() if fold(name) in _BARE else None


@dataclass(slots=True)
class Scope:
    """The names visible in a SELECT: its sources, its aliases, and the scope around it."""

    outer: "Scope | None" = None
    sources: list[Source] = field(default_factory=list[Source])
    aliases: dict[str, Masks] = field(default_factory=dict[str, Masks])
    """Aliases of the SELECT's own columns, and a lambda's parameters."""
    star: list[Output] = field(default_factory=list[Output])
    """The columns of `*`."""
    is_merged: bool = False
    """Whether the order of `*` is not known."""

    def add(self, source: Source) -> None:
        """Add a source in FROM, whose columns follow the others in `*`."""
        self.sources.append(source)
        self.star += (column for column in source.columns if not column.is_hidden)

    def add_alias(self, alias: str, masks: Masks) -> None:
        """Record an alias of the SELECT; several columns may share it."""
        self.aliases[fold(alias)] = self.aliases.get(fold(alias), frozenset()) | masks

    @property
    def names(self) -> set[str]:
        """Return the names of all columns visible here."""
        around = set[str]() if self.outer is None else self.outer.names
        return around | {
            column.name for source in self.sources for column in source.columns if column.name not in ("", "*")
        }

    def row(self, name: str) -> list[Source]:
        """Return every source of that name, here and in outer scopes, since letter case may decide between them."""
        around = [] if self.outer is None else self.outer.row(name)
        return [source for source in self.sources if source.name == fold(name)] + around

    def column(self, name: str) -> Masks | None:
        """Return the masked columns behind an unqualified name; None if the name is unknown."""
        found = [source.column(name) for source in self.sources]
        found += [self.aliases.get(fold(name)), None if self.outer is None else self.outer.column(name)]
        return _together(found)

    def column_of(self, table: str, name: str) -> Masks | None:
        """Return the masked columns behind a name with its table; None if the name is unknown."""
        return _together([source.column(name) for source in self.row(table)])


def _together(found: Sequence[Masks | None]) -> Masks | None:
    known = [masks for masks in found if masks is not None]
    return frozenset[str]().union(*known) if known else None


_LONG = 60
_SHOWN = 30
"""Columns listed if no name is similar."""
_HOW = "select it as it is, which shows `***`, or leave it out; name columns instead of whole rows"


def refuse(masks: frozenset[str], node: exp.Expr, what: str = "") -> None:
    """Raise `Refused` if there is anything to hide."""
    for name in sorted(masks):
        raise Refused(f"`{name}` is masked and may not be used in {what or f'`{_excerpt(node)}`'}", suggestion=_HOW)


def refuse_any(columns: Iterable[Output], node: exp.Expr, what: str) -> None:
    """Raise `Refused` if any of the columns is masked."""
    for column in columns:
        refuse(column.masks, node, what)


def not_understood(node: exp.Expr) -> NoReturn:
    """Raise `Refused` for a part of a statement that is not understood."""
    raise Refused(
        f"columns of this database are masked, and `{_excerpt(node)}` might show them",
        suggestion="name known tables and their columns plainly, in the same letters everywhere",
    )


def unknown_table(node: exp.Table, structure: Structure) -> NoReturn:
    """Raise for a table that is misspelt, or whose content is unknown."""
    name = ".".join(part.name for part in node.parts)
    near = spell(node.name, map(full_name, structure.tables))
    raise UnknownName(
        f"columns of this database are masked, and no table `{_short(name)}` is known that might show them",
        suggestion="use a table that exists, or list them with schema",
        options=near,
    )


def unknown_column(node: exp.Column, known: Collection[str]) -> NoReturn:
    """Raise for a column that is not known."""
    raise UnknownName(
        f"columns of this database are masked, and no column `{_short(node.sql())}` is known that might show them",
        suggestion="use a column that exists, by its table's name or alias; table lists them all",
        options=spell(node.name, known) or tuple(sorted(known))[:_SHOWN],
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _excerpt(node: exp.Expr) -> str:
    return _short(node.sql())
