"""Which tables may be read?

All, but for those that hold passwords or the host's own files, those that are files, and those that change by being
read. The role should see none of them either; this is the lock in front of it.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Set

from sqlglot import exp

from ..engine import Dialect
from .functions import CATALOGUES
from .functions.sqlite import TABLES
from .statement import Terms
from .wording import refusal
from .wordlist import words

__all__ = ["check_function_in_from", "check_table", "check_table_name", "is_automatic_index", "read_tables"]

_HIDDEN: Mapping[Dialect, str] = {
    "postgres": r"(?:.*\.)?pg_(?:authid|shadow|user_mappings?|subscription|hba_file_rules|ident_file_mappings"
    r"|file_settings|largeobject|statistic|statistic_ext_data|config)|(?:.*\.)?user_mapping_options"
    r"|(?:.*\.)?_pg_user_mappings|pg_toast\..*",
    "mysql": r"(?:.*\.)?mysql\.(?!help_|time_zone|innodb_(?:table|index)_stats)\w.*"
    r"|information_schema\.(?:user_variables|innodb_\w*reset)|performance_schema\.(?:replication_connection_configuration|user_variables_by_thread"
    r"|session_(?:account_)?connect_attrs|keyring_\w+|persisted_variables)|innodb_cmp\w*_reset|global_priv"
    r"|user_variables",
    "sqlite": r"(?:.*\.)?(?:sqlite_(?!master$|schema$|temp_master$|temp_schema$|sequence$|stat[134]$)\w+"
    r"|dbstat|fsdir|zipfile|bytecode|tables_used|fts3tokenize|csv|completion|carray|lines|files)",
    "duckdb": r"(?:.*\.)?(?:duckdb_secrets|duckdb_logs\w*|which_secret|duckdb_external_file_cache)",
    "tsql": r"(?:.*\.)?(?:sql_logins|syslogins|sysxlogins|credentials|database_scoped_credentials|linked_logins"
    r"|remote_logins|sysremotelogins|sysoledbusers|server_principal_credentials|sysobjvalues|sysowners"
    r"|key_encryptions|crypt_properties|dm_exec_sql_text|dm_exec_input_buffer|query_store_query_text|dm_server_registry|dm_server_services|dm_os_enumerate_\w+|fn_\w+)",
    "oracle": r"(?:.*\.)?(?:user\$|link\$|user_history\$|default_pwd\$|exu\w+|dba_users(?:_with_defpwd)?|dba_db_links"
    r"|dba_credentials|g?v_?\$(?:passwordfile_info|pwfile_users|sql|sqlarea\w*|sqltext\w*|sqlstats\w*|open_cursor)"
    r"|dba_hist_sqltext)",
}
_MATCHED = {dialect: re.compile(pattern) for dialect, pattern in _HIDDEN.items()}
_PATH = re.compile(r"[./\\:*?\[\]{}]")
_SUFFIXES = words("csv tsv txt parquet json jsonl ndjson gz zst xlsx db duckdb sqlite arrow feather avro orc")
_IN_FROM = (exp.GenerateSeries, exp.Unnest, exp.Repeat, exp.Explode, exp.JSONTable, exp.RegexpSplit)
"""What the parser has classes for and may stand in FROM."""
_AUTOMATIC = re.compile(r"sqlite_autoindex_.+", re.DOTALL)
"""Indexes that SQLite makes for its own constraints; none is a table."""
_PARTS = 3
"""Of a name in SQL Server; a fourth is another server's."""


def check_table(node: exp.Table, terms: Terms, written: Set[int]) -> None:
    """`written` are the places of the tokens that are strings."""
    if isinstance(node.this, exp.Func):
        check_function_in_from(node.this, terms)
        return
    if node.args.get("rows_from"):
        return
    if terms.dialect == "sqlite" and node.arg_key == "indexed" and _AUTOMATIC.fullmatch(_folded(node.name)):
        return
    parts = node.parts
    if any(part.meta.get("start") in written for part in parts):
        raise refusal(
            node.name, "is a text in the place of a table, which is read as a file", "Name a table of this database."
        )
    if terms.dialect == "tsql" and len(parts) > _PARTS:
        raise refusal(".".join(part.name for part in parts), "is of another server", "Ask that server itself.")
    check_table_name([part.name for part in parts], terms)
    _check_view([_folded(part.name) for part in parts], terms)


def _check_view(names: list[str], terms: Terms) -> None:
    """Of names without their database."""
    called = {".".join(names[-2:]), names[-1]} if len(names) > 1 else set(names)
    if f"shows:{'.'.join(names[-2:])}" in terms.functions and not called & terms.allowed:
        raise refusal(
            ".".join(names),
            "shows what other sessions run",
            "Read other tables; to allow this view, name it under `functions` in the settings of this database.",
        )


def check_table_name(parts: Iterable[str], terms: Terms) -> None:
    names = [_folded(part) for part in parts]
    full = ".".join(names)
    if _MATCHED[terms.dialect].fullmatch(full):
        raise refusal(full, "holds secrets or files of the server", "Read the catalogue's public views instead.")
    if terms.dialect == "sqlite" and names[-1].startswith("pragma_") and names[-1] not in TABLES:
        raise refusal(full, "is a pragma that may do more than tell", "Use one of these.", tuple(sorted(TABLES)))
    if terms.dialect == "duckdb" and (_PATH.search(names[-1]) or (len(names) > 1 and names[-1] in _SUFFIXES)):
        raise refusal(full, "is read as a file", "Name a table of this database.")


def is_automatic_index(name: str) -> bool:
    return _AUTOMATIC.fullmatch(_folded(name)) is not None


def check_function_in_from(node: exp.Expr, terms: Terms) -> None:
    tables = CATALOGUES[terms.dialect].tables
    if tables is None or isinstance(node, _IN_FROM):
        return
    name = node.name.lower() if isinstance(node, exp.Anonymous) else type(node).__name__
    if name not in tables | terms.allowed and f"from:{name}" not in terms.functions:
        raise refusal(f"{name}()", "is not known to only read when it stands in FROM", "Name a table of this database.")


def _folded(name: str) -> str:
    """As an engine may compare it: without case, accents or invisible characters."""
    apart = unicodedata.normalize("NFKD", name)
    return "".join(one for one in apart if unicodedata.category(one) not in ("Mn", "Cf")).casefold()


def read_tables(tree: exp.Expr) -> tuple[str, ...]:
    """The names it reads, without those of its own WITH clauses."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    nodes = (node for node in tree.find_all(exp.Table) if node.name and not isinstance(node.this, exp.Func))
    named = {".".join(part.name for part in node.parts).lower() for node in nodes}
    return tuple(sorted(named - own))
