"""Rules for the tables and settings that a query may read.

A query may read all tables except those that contain passwords or the host's files, those that are files, and those
that change when read. The role should not have access to them either; this is an additional lock.

The server's own tables also show details of its host and of other sessions. PostgreSQL's `pg_settings` and `SHOW ALL`
return `***` as the value of every setting that `check_setting` refuses, and its lists of sessions and statements return
`***` as the text of other sessions' statements. Each such table is replaced by a query of the same name put before the
statement, so that no part of the statement can read more. MySQL cannot hide statements in this way; there, columns with
their text may not be named. Its tables of settings are replaced like those of PostgreSQL.

A table that the user lists under `functions` in the settings of the database is shown as it is.

Settings that describe the host, its files, its keys or its passwords may not be read. No setting may be changed.

`check_words` judges the tokens, so that no misreading by the parser can hide a word. Quoted names are never keywords.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Set

from sqlglot import exp

from ..database import INNER, TABLES, TEXTS, Dialect
from .allowed_functions import CATALOGUES, LIKE_COLUMNS, RESERVED, SQLITE_TABLES, UNSAFE
from .lexer import Terms, refusal, words
from .parse_query import Passage

__all__ = [
    "ASKING",
    "HIDDEN_SETTINGS",
    "HIDDEN_VARIABLES",
    "SHOWN_SETTINGS",
    "SHOW_ALL",
    "check_function_in_from",
    "check_setting",
    "check_statement_texts",
    "check_table",
    "check_table_name",
    "check_variable",
    "check_words",
    "is_automatic_index",
    "is_hidden_variable",
    "names_variables",
    "read_tables",
    "shadow_tables",
]

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
"""Parser classes of functions that are allowed in FROM."""
_AUTOMATIC = re.compile(r"sqlite_autoindex_.+", re.DOTALL)
"""Indexes that SQLite creates for its own constraints; they are not tables."""
_PARTS = 3
"""Maximum parts of a name in SQL Server; a fourth part names another server."""


def check_table(node: exp.Table, terms: Terms, written: Set[int]) -> None:
    """Check a table in FROM; `written` are the offsets of tokens that are strings."""
    if isinstance(node.this, exp.Func):
        check_function_in_from(node.this, terms)
        return
    if node.args.get("rows_from"):
        return
    if terms.dialect == "sqlite" and node.arg_key == "indexed" and _AUTOMATIC.fullmatch(_fold_name(node.name)):
        return
    parts = node.parts
    if any(part.meta.get("start") in written for part in parts):
        raise refusal(
            node.name, "is a text in the place of a table, which is read as a file", "Name a table of this database."
        )
    if terms.dialect == "tsql" and len(parts) > _PARTS:
        raise refusal(".".join(part.name for part in parts), "is of another server", "Ask that server itself.")
    check_table_name([part.name for part in parts], terms)
    names = [_fold_name(part.name) for part in parts]
    called = {".".join(names[-2:]), names[-1]} if len(names) > 1 else set(names)
    if f"shows:{'.'.join(names[-2:])}" in terms.functions and not called & terms.allowed:
        raise refusal(
            ".".join(names),
            "shows what other sessions run",
            "Read other tables; to allow this view, name it under `functions` in the settings of this database.",
        )


def check_table_name(parts: Iterable[str], terms: Terms) -> None:
    """Refuse a table that may not be read, by the parts of its name."""
    names = [_fold_name(part) for part in parts]
    full = ".".join(names)
    if _MATCHED[terms.dialect].fullmatch(full):
        raise refusal(full, "contains secrets or files of the server", "Read the catalogue's public views instead.")
    if terms.dialect == "sqlite" and names[-1].startswith("pragma_") and names[-1] not in SQLITE_TABLES:
        raise refusal(full, "is a pragma that may do more than tell", "Use one of these.", tuple(sorted(SQLITE_TABLES)))
    if terms.dialect == "duckdb" and (_PATH.search(names[-1]) or (len(names) > 1 and names[-1] in _SUFFIXES)):
        raise refusal(full, "is read as a file", "Name a table of this database.")


def is_automatic_index(name: str) -> bool:
    """Return whether a name is that of an index that SQLite created."""
    return _AUTOMATIC.fullmatch(_fold_name(name)) is not None


def check_function_in_from(node: exp.Expr, terms: Terms) -> None:
    """Refuse a function in FROM that is not allowed there."""
    tables = CATALOGUES[terms.dialect].tables
    if tables is None or isinstance(node, _IN_FROM):
        return
    name = node.name.lower() if isinstance(node, exp.Anonymous) else type(node).__name__
    if name not in tables | terms.allowed and f"from:{name}" not in terms.functions:
        raise refusal(f"{name}()", "is not known to only read in FROM", "Name a table of this database.")


def _fold_name(name: str) -> str:
    """Return a name as an engine may compare it: without case, accents or invisible characters."""
    apart = unicodedata.normalize("NFKD", name)
    return "".join(one for one in apart if unicodedata.category(one) not in ("Mn", "Cf")).casefold()


def read_tables(tree: exp.Expr) -> tuple[str, ...]:
    """Return the names of the tables that a query reads, except those of its own WITH clauses."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    nodes = (node for node in tree.find_all(exp.Table) if node.name and not isinstance(node.this, exp.Func))
    named = {".".join(part.name for part in node.parts).lower() for node in nodes}
    return tuple(sorted(named - own))


ASKING = frozenset({"current_setting"})
"""Functions whose argument names a setting."""
HIDDEN_SETTINGS = (
    "_file|_directory|directories|_path|_command|_library|_libraries|conninfo|passw|secret|token|"
    "_key|credential|certificate|listen_addresses|unix_socket|krb|^ssl_|primary_slot|data_dir|event_source|"
    "external_pid|cluster_name|home_dir|temp_dir|extension_repository"
)
"""Parts of the names of such settings, as a pattern that PostgreSQL and Python read alike."""
_SETTINGS_HIDDEN = re.compile(HIDDEN_SETTINGS)
_OF_A_NAME = "[a-z0-9_]"
HIDDEN_VARIABLES = (
    r"\w*(?:basedir|datadir|tmpdir)|\w+_(?:dir|directory|file|path|capath|basename|index|address|keytab|pwd|password)"
    r"|(?:\w+_)?(?:ssl_(?:ca|cert|crl|crlpath|key|cipher)|socket|private_key\w*|public_key\w*)|hostname|log_error"
    r"|secure_file_priv|init_(?:connect|slave|replica)|report_\w+|keyring_\w+|wsrep_(?:sst|provider|notify)_\w+"
).replace(r"\w", _OF_A_NAME)
"""Whole names of such settings in MySQL, in lower case, as a pattern that MySQL and Python read alike."""
_HIDDEN_IN_MYSQL = re.compile(HIDDEN_VARIABLES)
SHOWN_SETTINGS = frozenset({"search_path", "log_file_mode"})
"""Settings that reveal nothing of the host despite their names."""


def check_setting(name: str | None) -> None:
    """Refuse a setting that reveals details of the host; `name` is None if it is not written as a plain string."""
    if name is None:
        raise refusal(
            "current_setting", "asks for a setting that is not written out", "Write the name as a plain '…' string."
        )
    lowered = name.lower().strip()
    if lowered not in SHOWN_SETTINGS and _SETTINGS_HIDDEN.search(lowered):
        raise refusal(name, "is a setting that describes the host", "Ask for settings of queries, such as timezone.")


def is_hidden_variable(name: str) -> bool:
    """Return whether a MySQL variable reveals details of the host."""
    return _HIDDEN_IN_MYSQL.fullmatch(name.lower()) is not None


def check_variable(name: str) -> None:
    """Refuse a MySQL variable that reveals details of the host; `name` is what follows `@@` and the scope."""
    if is_hidden_variable(name):
        raise refusal(f"@@{name}", "is a setting that describes the host", "Ask for settings of queries, as sql_mode.")


_OWN = "pg_catalog"
_ALWAYS_SHOWN = "', '".join(sorted(SHOWN_SETTINGS))
_IS_HIDDEN = (
    f"(pg_catalog.lower(s.name) OPERATOR(pg_catalog.~) '{HIDDEN_SETTINGS}' AND s.name OPERATOR(pg_catalog.<>) "
    f"ALL (ARRAY['{_ALWAYS_SHOWN}']))"
)
_SETTINGS = (
    "SELECT r.* FROM pg_catalog.pg_settings AS s, LATERAL pg_catalog.jsonb_populate_record(s, CASE WHEN "
    f"{_IS_HIDDEN} THEN pg_catalog.jsonb_build_object('setting', '***', 'boot_val', '***', 'reset_val', '***', "
    "'sourcefile', null) ELSE pg_catalog.jsonb_build_object('sourcefile', null) END) AS r"
)
_ACTIVITY = (
    "SELECT r.* FROM pg_catalog.pg_stat_activity AS s, LATERAL pg_catalog.jsonb_populate_record(s, "
    "pg_catalog.jsonb_build_object('query', '***')) AS r"
)
_STATEMENTS = (
    "SELECT r.* FROM pg_stat_statements AS s, LATERAL pg_catalog.jsonb_populate_record(s, "
    "pg_catalog.jsonb_build_object('query', '***')) AS r"
)
_SHADOWS: Mapping[str, str] = {
    "pg_settings": _SETTINGS,
    "pg_stat_activity": _ACTIVITY,
    "pg_stat_statements": _STATEMENTS,
}
SHOW_ALL = (
    f"WITH pg_settings AS ({_SETTINGS}) SELECT name, CASE setting WHEN '***' THEN setting "
    "ELSE pg_catalog.current_setting(name, true) END AS setting, short_desc AS description FROM pg_settings "
    "ORDER BY pg_catalog.lower(name)"
)
"""Query with the columns of SHOW ALL."""

_IS_HIDDEN_VARIABLE = f"lower(VARIABLE_NAME) REGEXP '^({HIDDEN_VARIABLES})$'"
_VALUE = f"CASE WHEN {_IS_HIDDEN_VARIABLE} THEN '***' ELSE VARIABLE_VALUE END AS VARIABLE_VALUE"
_VARIABLES: Mapping[str, str] = {
    "global_variables": f"SELECT VARIABLE_NAME, {_VALUE} FROM {{schema}}.global_variables",
    "session_variables": f"SELECT VARIABLE_NAME, {_VALUE} FROM {{schema}}.session_variables",
    "variables_by_thread": f"SELECT THREAD_ID, VARIABLE_NAME, {_VALUE} FROM {{schema}}.variables_by_thread",
    # This table has a column for each possible source of a value.
    "system_variables": f"SELECT * FROM {{schema}}.system_variables WHERE NOT {_IS_HIDDEN_VARIABLE}",
}
"""MySQL's tables of settings, without the values that `check_variable` refuses."""

_UNIQUE = re.compile(r"processlist|events_statements_\w+|innodb_trx")
"""MySQL's tables of statements whose names are recognised without their database, since users do not use such names."""


def shadow_tables(passage: Passage, terms: Terms) -> None:
    """Put a query before the statement for each table of the server in it that shows too much."""
    if terms.dialect == "mysql":
        shadows: dict[str, str] = {}
        for number, token in enumerate(passage.tokens):
            if token.name in terms.allowed or not _variables_at(passage, number):
                continue
            schema = passage.tokens[number - 2]
            shadows.setdefault(token.name, _VARIABLES[token.name].format(schema=schema.name))
            terms.cuts.append((schema.start, token.start))
    else:
        named = [name for name in _SHADOWS if name not in terms.allowed and _take_schema(passage, name, terms)]
        shadows = {name: _SHADOWS[name] for name in named}
    if not shadows:
        return
    first, second = passage.word(0), passage.word(1)
    if first == "with" and second == "recursive" and "pg_stat_statements" in shadows:
        raise refusal("pg_stat_statements", "cannot be read in a recursive query", "Read it in a query of its own.")
    queries = ", ".join(f"{name} AS ({query})" for name, query in shadows.items())
    if first != "with":
        terms.edits.append((passage.tokens[0].start, f"WITH {queries} "))
        return
    behind = passage.tokens[1 if second == "recursive" else 0]
    terms.edits.append((behind.end, f" {queries},"))


def _take_schema(passage: Passage, table: str, terms: Terms) -> bool:
    """Return whether a statement names the table, and cut a schema before it, since a WITH query has none."""
    found = False
    for number, token in enumerate(passage.tokens):
        if not token.is_name or token.name != table:
            continue
        if passage.mark(number - 1) != ".":
            found = True
            continue
        schema = passage.tokens[number - 2]
        if not schema.is_name or (schema.name != _OWN and table != "pg_stat_statements"):
            continue
        if passage.mark(number - 3) == ".":
            raise refusal(table, "is named with its database", "Leave the database's name out.")
        found = True
        terms.cuts.append((schema.start, token.start))
    return found


def names_variables(passage: Passage) -> bool:
    """Return whether a statement reads MySQL's tables of settings."""
    return any(_variables_at(passage, number) for number in range(len(passage.tokens)))


def _variables_at(passage: Passage, number: int) -> bool:
    token = passage.tokens[number]
    if not token.is_name or token.name not in _VARIABLES or number < 2 or passage.mark(number - 1) != ".":
        return False
    schema = passage.tokens[number - 2]
    return schema.is_name and schema.name in INNER


def check_statement_texts(passage: Passage, terms: Terms) -> None:
    """Refuse MySQL columns with the text of other sessions' statements, and `*`, if such a table is read."""
    if terms.dialect != "mysql":
        return
    for number, token in enumerate(passage.tokens):
        before = passage.tokens[number - 2] if number >= 2 and passage.mark(number - 1) == "." else None
        is_inner = (before is not None and before.is_name and before.name in INNER) or (
            before is None and _UNIQUE.fullmatch(token.name) is not None
        )
        if not is_inner or not token.is_name or not TABLES.fullmatch(token.name) or token.name in terms.allowed:
            continue
        for at, shown in enumerate(passage.tokens):
            is_star = shown.text == "*" and (
                passage.word(at - 1) in ("select", "distinct", "all") or passage.mark(at - 1) in (",", ".")
            )
            if is_star or shown.is_word("table") or (shown.is_name and shown.name in TEXTS):
                raise refusal(
                    f"{shown.text} of {token.name}",
                    "may show what other sessions run",
                    "Name the columns that you need.",
                )


_WRITES = ("insert", "update", "delete", "merge")
_BEFORE_TABLES = frozenset({"join", "table", "summarize", "describe", "pivot", "unpivot", "show"})
_SEQUENCES = frozenset({"nextval", "currval"})
_PACKAGE = re.compile(r"(?:dbms|utl|owa|ctx|sdo|apex)_\w+|htp|htf")


def check_words(passage: Passage, terms: Terms) -> None:
    """Refuse words that make a statement do more than read."""
    for number, token in enumerate(passage.tokens):
        # INTO belongs to DuckDB's UNPIVOT, where it names columns; DuckDB has no SELECT INTO.
        if token.is_word("into") and not (terms.dialect == "duckdb" and passage.word(number + 1) == "name"):
            raise refusal("INTO", "writes what is selected", "Select the rows without INTO.")
        if token.is_word(*_WRITES):
            following = passage.tokens[number + 1 : number + 2]
            if passage.mark(number - 1) == "(" and any(token.is_name for token in following):
                raise refusal(token.text.upper(), "writes", "Only reading is possible here.")
        if _locks_rows(passage, number):
            raise refusal("FOR UPDATE", "locks rows", "Select without locking: nothing here can be changed.")
        if token.is_word("next") and passage.word(number + 1) == "value" and passage.word(number + 2) == "for":
            raise refusal("NEXT VALUE FOR", "moves a sequence", "Read the sequence's last value from the catalogue.")
        _CHECKS_OF_WORDS[terms.dialect](passage, number, terms)


def _locks_rows(passage: Passage, number: int) -> bool:
    following = passage.word(number + 1)
    if passage.word(number) == "lock":
        return following == "in" and passage.word(number + 2) == "share"
    after = passage.word(number + 2)
    strengths = {"update": after != "in", "share": after != "in", "no": after == "key", "key": after == "share"}
    return passage.word(number) == "for" and strengths.get(following, False)


def _check_duckdb(passage: Passage, number: int, _: Terms) -> None:
    token = passage.tokens[number]
    if token.kind == "string" and passage.word(number - 1) in _BEFORE_TABLES:
        raise refusal(token.text, "is a text in the place of a table, which is read as a file", "Name a table.")


def _check_mysql(passage: Passage, number: int, terms: Terms) -> None:
    token = passage.tokens[number]
    if token.kind == "operator" and token.text.endswith("@@"):
        for name in passage.dotted(number + 1)[-1:]:
            check_variable(name)
    _check_dotted(passage, number, terms)


def _check_transact(passage: Passage, number: int, _: Terms) -> None:
    token = passage.tokens[number]
    if token.kind != "word":
        return
    if token.name.startswith("@") and not token.name.startswith("@@"):
        raise refusal(token.text, "is a variable, and none is set here", "Write the value itself.")
    if token.name in RESERVED:
        word = passage.word(number)
        after = passage.mark(number + 1)
        is_hint = (word == "merge" and passage.word(number + 1) == "join") or (word == "index" and after in ("(", "="))
        if not is_hint:
            raise refusal(
                token.text.upper(), "begins a statement of its own", "Send one SELECT; put such names in [brackets]."
            )
    if token.name == "fetch" and passage.word(number - 1) not in ("row", "rows"):
        raise refusal("FETCH", "reads a cursor", "Use OFFSET … ROWS FETCH NEXT … ROWS ONLY.")


def _check_sqlite(passage: Passage, number: int, terms: Terms) -> None:
    """Check what follows IN, where SQLite takes a name for a table and a string for a name."""
    following = passage.tokens[number + 1 : number + 2]
    if not passage.tokens[number].is_word("in") or not following:
        return
    if following[0].kind == "string":
        raise refusal(following[0].text, "is a text in the place of a table", "Put the values in parentheses.")
    if parts := passage.dotted(number + 1):
        check_table_name(parts, terms)


def _check_attribute(passage: Passage, number: int, terms: Terms) -> None:
    """Refuse an attribute that may be a call: PostgreSQL reads `(value).name` as one if there is no such column.

    The same is true of `table.name`, but there a column is likelier than a call of a user's function of that name.
    """
    if not passage.tokens[number].is_name or passage.mark(number - 1) != ".":
        return
    name, of_a_value = passage.tokens[number].name, passage.mark(number - 2) == ")"
    if name == "pg_stat_statements" and not of_a_value and passage.mark(number + 1) != "(":
        # The view of that name, which `shadow_tables` hides; its function does not take a row.
        return
    if name in ASKING and passage.mark(number + 1) != "(":
        raise refusal(f".{name}", "asks for a setting that is not written out", f"Write {name}('…').")
    catalogue = CATALOGUES["postgres"]
    said = terms.functions.get(name)
    unsafe = name in UNSAFE or catalogue.denied.fullmatch(name) is not None
    if terms.functions:
        unsafe = (unsafe and said is not None) or terms.functions.get(f".{name}") == "made"
    elif LIKE_COLUMNS.fullmatch(name):
        unsafe = False
    if of_a_value and (name.startswith("pg_") or said in ("volatile", "made")):
        unsafe = not catalogue.knows(name, terms.functions)
    if unsafe and name not in terms.allowed:
        raise refusal(f".{name}", "is a function that may do more than read", "Name a column after the dot.")


def _check_dotted(passage: Passage, number: int, terms: Terms) -> None:
    """Check names with a dot, since Oracle calls functions without parentheses."""
    token = passage.tokens[number]
    if not token.is_name:
        return
    if token.name in _SEQUENCES and passage.mark(number - 1) == ".":
        raise refusal(f".{token.text}", "moves a sequence", "Read the sequence's last value from the catalogue.")
    if terms.dialect == "oracle" and passage.mark(number + 1) == "." and _PACKAGE.fullmatch(token.name):
        member = passage.tokens[number + 2].name if number + 2 < len(passage.tokens) else ""
        full = f"{token.name}.{member}"
        if full not in CATALOGUES["oracle"].packages and full not in terms.allowed:
            raise refusal(full, "is of a package that may do more than read", "Use a built-in function of SQL.")


_CHECKS_OF_WORDS: Mapping[Dialect, Callable[[Passage, int, Terms], None]] = {
    "postgres": _check_attribute,
    "duckdb": _check_duckdb,
    "mysql": _check_mysql,
    "sqlite": _check_sqlite,
    "tsql": _check_transact,
    "oracle": _check_dotted,
}
