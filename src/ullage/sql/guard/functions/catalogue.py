"""Which functions may a statement of this engine call?

The built-in lists of one engine, and what is decided by them. How a call is found in a text is known elsewhere.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...engine import Dialect, Stability
from .duckdb import DENIED as DUCKDB_DENIED
from .duckdb import NAMES as DUCKDB_NAMES
from .duckdb import PREFIXES as DUCKDB_PREFIXES
from .duckdb import TABLES as DUCKDB_TABLES
from .mysql import DENIED as MYSQL_DENIED
from .mysql import NAMES as MYSQL_NAMES
from .mysql import PREFIXES as MYSQL_PREFIXES
from .oracle import DENIED as ORACLE_DENIED
from .oracle import METHODS as ORACLE_METHODS
from .oracle import NAMES as ORACLE_NAMES
from .oracle import PACKAGES as ORACLE_PACKAGES
from .postgres import DENIED as POSTGRES_DENIED
from .postgres import NAMES as POSTGRES_NAMES
from .postgres import PREFIXES as POSTGRES_PREFIXES
from .postgres import SAFE_VOLATILE as POSTGRES_SAFE_VOLATILE
from .postgres import SCHEMAS as POSTGRES_SCHEMAS
from .sqlite import DENIED as SQLITE_DENIED
from .sqlite import NAMES as SQLITE_NAMES
from .sqlite import TABLES as SQLITE_TABLES
from .standard import NAMES as STANDARD_NAMES
from .tsql import DENIED as TSQL_DENIED
from .tsql import METHODS as TSQL_METHODS
from .tsql import NAMES as TSQL_NAMES

__all__ = ["CATALOGUES"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    certain: frozenset[str]
    """Only read, however volatile the engine calls them."""
    names: frozenset[str] = frozenset()
    """Only read, unless the engine calls one of that name volatile: somebody may have made another."""
    prefixes: tuple[str, ...] = ()
    """The same for all names that begin so."""
    denied: re.Pattern[str]
    """Never by the engine's word."""
    tables: frozenset[str] | None = None
    """Those that may stand in FROM; None where every function may."""
    schemas: frozenset[str] | None = frozenset()
    """Those that may stand before a function; None for any, where it may as well be a value."""
    methods: frozenset[str] = frozenset()
    """What may be called of a value with a dot, whatever stands before it."""
    packages: frozenset[str] = frozenset()
    """With the package's name and a dot."""

    def knows(self, name: str, functions: Mapping[str, Stability]) -> bool:
        """Whether that function only reads, by these lists or the engine's own."""
        said = functions.get(name)
        if said == "made" or self.denied.fullmatch(name):
            return False
        if name in self.certain:
            return True
        listed = name in self.names or name in STANDARD_NAMES or name.startswith(self.prefixes)
        return said in ("immutable", "stable") or (listed and said is None)


CATALOGUES: Mapping[Dialect, Catalogue] = {
    "postgres": Catalogue(
        certain=POSTGRES_SAFE_VOLATILE,
        names=POSTGRES_NAMES,
        prefixes=POSTGRES_PREFIXES,
        denied=re.compile(POSTGRES_DENIED),
        schemas=POSTGRES_SCHEMAS,
    ),
    "mysql": Catalogue(certain=MYSQL_NAMES, prefixes=MYSQL_PREFIXES, denied=re.compile(MYSQL_DENIED)),
    "sqlite": Catalogue(certain=SQLITE_NAMES | SQLITE_TABLES, denied=re.compile(SQLITE_DENIED), tables=SQLITE_TABLES),
    "duckdb": Catalogue(
        certain=DUCKDB_NAMES | DUCKDB_TABLES,
        prefixes=DUCKDB_PREFIXES,
        denied=re.compile(DUCKDB_DENIED),
        tables=DUCKDB_TABLES,
        schemas=None,
    ),
    "tsql": Catalogue(certain=TSQL_NAMES, denied=re.compile(TSQL_DENIED), methods=TSQL_METHODS),
    "oracle": Catalogue(
        certain=ORACLE_NAMES, denied=re.compile(ORACLE_DENIED), methods=ORACLE_METHODS, packages=ORACLE_PACKAGES
    ),
}
