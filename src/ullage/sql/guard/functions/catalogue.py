"""Which functions may a statement of this engine call?

The built-in lists of one engine, and what is decided by them. How a call is found in a text is known elsewhere.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...engine import Dialect, Stability
from . import duckdb, mysql, oracle, postgres, sqlite, standard, tsql

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
        listed = name in self.names or name in standard.NAMES or name.startswith(self.prefixes)
        return said in ("immutable", "stable") or (listed and said is None)


CATALOGUES: Mapping[Dialect, Catalogue] = {
    "postgres": Catalogue(
        certain=postgres.SAFE_VOLATILE,
        names=postgres.NAMES,
        prefixes=postgres.PREFIXES,
        denied=re.compile(postgres.DENIED),
        schemas=postgres.SCHEMAS,
    ),
    "mysql": Catalogue(certain=mysql.NAMES, prefixes=mysql.PREFIXES, denied=re.compile(mysql.DENIED)),
    "sqlite": Catalogue(certain=sqlite.NAMES | sqlite.TABLES, denied=re.compile(sqlite.DENIED), tables=sqlite.TABLES),
    "duckdb": Catalogue(
        certain=duckdb.NAMES | duckdb.TABLES,
        prefixes=duckdb.PREFIXES,
        denied=re.compile(duckdb.DENIED),
        tables=duckdb.TABLES,
        schemas=None,
    ),
    "tsql": Catalogue(certain=tsql.NAMES, denied=re.compile(tsql.DENIED), methods=tsql.METHODS),
    "oracle": Catalogue(
        certain=oracle.NAMES, denied=re.compile(oracle.DENIED), methods=oracle.METHODS, packages=oracle.PACKAGES
    ),
}
