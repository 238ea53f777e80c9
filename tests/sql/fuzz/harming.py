"""How can an attack be wrapped or re-spelt and do its harm all the same, where the engine takes it at all?"""

from collections.abc import Sequence
from random import Random

from .keeping import is_plain_select, quote
from .scanning import Mutator, Token, joined, scan

__all__ = ["HARMING"]


def nested_deep(text: str, dialect: str, random: Random) -> str | None:
    if not is_plain_select(text):
        return None
    return random.choice(_DEEP + _DEEP_OF.get(dialect, ())).replace("?", text)


_DEEP = (
    "(?)",
    "SELECT (?)",
    "SELECT 1 UNION ALL ?",
    "? UNION SELECT 1",
    "SELECT * FROM customers WHERE id IN (?)",
    "SELECT * FROM customers WHERE name = (?) OR 1 = 1",
    "SELECT name FROM customers ORDER BY (?)",
    "SELECT CASE WHEN 1 = 1 THEN (?) END",
    "SELECT COALESCE(NULL, (?))",
    "SELECT COUNT(*) FROM customers GROUP BY name HAVING (?) IS NOT NULL",
    "SELECT * FROM (SELECT * FROM (?) t1) t2",
    "SELECT * FROM customers c JOIN orders o ON (?) IS NOT NULL",
)
_DEEP_OF = {
    "postgres": (
        "VALUES ((?))",
        "SELECT * FROM customers c, LATERAL (?) l",
        "SELECT ARRAY(?)",
        "SELECT ROW((?))",
        "SELECT 1 WHERE 1 = ANY (?)",
        "EXPLAIN ANALYZE ?",
        "EXPLAIN (ANALYZE, FORMAT JSON) ?",
        "WITH w AS MATERIALIZED (?) TABLE w",
        "SELECT count(*) FILTER (WHERE EXISTS (?)) FROM customers",
        "SELECT 1 LIMIT (SELECT count(*) FROM (?) z)",
    ),
    "duckdb": (
        "VALUES ((?))",
        "FROM (?)",
        "SELECT ARRAY(?)",
        "EXPLAIN ANALYZE ?",
        "SUMMARIZE ?",
        "DESCRIBE ?",
        "SELECT {'a': (?)}",
        "SELECT [(?)]",
        "SELECT * FROM customers, LATERAL (?) l",
        "PIVOT (?) ON a",
    ),
    "mysql": ("VALUES ((?))", "ANALYZE ?", "ANALYZE FORMAT=JSON ?", "EXPLAIN ?", "SELECT IF(1, (?), 2)"),
    "sqlite": ("VALUES ((?))", "SELECT iif(1, (?), 2)", "SELECT max(1, (?))"),
    "tsql": ("SELECT * FROM customers CROSS APPLY (?) a", "SELECT IIF(1 = 1, (?), 2)"),
    "oracle": ("SELECT NVL((?), 1) FROM dual", "SELECT * FROM TABLE(?)"),
}


def quoted_calls(text: str, dialect: str, random: Random) -> str | None:
    """The names of functions, in a style of the dialect."""
    tokens = scan(text, dialect)
    for at, token in enumerate(tokens[:-1]):
        if _is_call(tokens, at) and random.random() < 0.7:
            name = token.text.upper() if dialect == "oracle" else token.text.lower()
            tokens[at] = Token("quoted", quote(name, dialect, random))
    return joined(tokens)


def qualified_calls(text: str, dialect: str, random: Random) -> str | None:
    schema = {"postgres": "pg_catalog", "duckdb": "main", "tsql": "sys", "oracle": "sys", "mysql": "mysql"}.get(dialect)
    if schema is None:
        return None
    tokens = scan(text, dialect)
    for at, token in enumerate(tokens[:-1]):
        if _is_call(tokens, at) and not _is_qualified(tokens[:at]):
            dot = random.choice((".", " . ", "/**/./**/"))
            tokens[at] = Token("word", f"{random.choice((schema, quote(schema, dialect, random)))}{dot}{token.text}")
    return joined(tokens)


def _is_call(tokens: Sequence[Token], at: int) -> bool:
    name = tokens[at].text
    known = tokens[at].kind == "word" and name.isascii() and name.lower() not in _NOT_FUNCTIONS
    return known and tokens[at + 1].text == "("


_GRAMMAR = (
    "in values exists as on and or not any all over filter select from where by using array row rows coalesce nullif",
    "case cast extract set table int varchar char into with within group lateral union then else when begin columns",
    "customers orders greatest least if analyze explain returns grouping sets cube rollup update delete insert",
)
_NOT_FUNCTIONS = frozenset(word for line in _GRAMMAR for word in line.split())


def escaped_names(text: str, dialect: str, random: Random) -> str | None:
    """PostgreSQL's Unicode escapes in names."""
    if dialect != "postgres":
        return None
    tokens = scan(text, dialect)
    for at, token in enumerate(tokens[:-1]):
        if _is_call(tokens, at):
            place = random.randrange(len(token.text))
            name = token.text.lower()
            escape = f"{name[:place]}\\{ord(name[place]):04x}{name[place + 1 :]}"
            tokens[at] = Token("quoted", f'{random.choice("uU")}&"{escape}"')
    return joined(tokens)


def functional_notation(text: str, dialect: str, random: Random) -> str | None:
    """PostgreSQL reads `(x).f` as `f(x)`."""
    tokens = scan(text, dialect)
    ends = [(at, _closing(tokens, at + 1)) for at in range(len(tokens) - 1) if _is_call(tokens, at)]
    alone = [
        (at, end)
        for at, end in ends
        if end and _is_one_argument(tokens[at + 2 : end]) and not _is_qualified(tokens[:at])
    ]
    if dialect != "postgres" or not alone:
        return None
    at, end = random.choice(alone)
    called = f"({joined(tokens[at + 1 : end + 1])}).{tokens[at].text}"
    return joined(tokens[:at]) + called + joined(tokens[end + 1 :])


def _is_qualified(before: Sequence[Token]) -> bool:
    return _meaning(before)[-1:] == ["."]


def _is_one_argument(tokens: Sequence[Token]) -> bool:
    meaning = _meaning(tokens)
    return meaning not in ([], ["NULL"]) and "," not in meaning


def _meaning(tokens: Sequence[Token]) -> list[str]:
    return [token.text.upper() for token in tokens if token.kind not in ("space", "comment")]


def executable_comments(text: str, dialect: str, random: Random) -> str | None:
    """Comments that MySQL and MariaDB run."""
    if dialect != "mysql" or "*/" in text:
        return None
    opening = random.choice(("/*!", "/*! ", "/*!50000 ", "/*M!", "/*M!100000 ", "/*!00000"))
    first, blank, rest = text.partition(" ")
    return random.choice((f"{opening}{text}*/", f"{opening}{first} */{blank}{rest}", f"{first} {opening} {rest} */"))


def stacked(text: str, dialect: str, random: Random) -> str:
    first = random.choice(("SELECT 1", "SELECT ';'", "SELECT 1 -- x\n", "SELECT 1 /* ; */", ""))
    return random.choice((f"{first};{text}", f"{first} ;\n{text}", f"{text}\n; SELECT 1", f";{text}"))


def more_columns(text: str, dialect: str, random: Random) -> str | None:
    """Harmless expressions beside the harmful one."""
    if not is_plain_select(text):
        return None
    extra = random.choice(
        ("1 AS a,", "'x' AS b, NULL,", "(SELECT 2),", "COUNT(*) OVER (),", "CASE WHEN 1=1 THEN 2 END,")
    )
    return f"{text[:6]} {extra} {text[7:]}"


def parentheses(text: str, dialect: str, random: Random) -> str | None:
    """Around calls: `f(x)` becomes `(f(x))`."""
    tokens = scan(text, dialect)
    calls = [at for at in range(len(tokens) - 1) if _is_call(tokens, at)]
    ends = [(at, end) for at in calls if (end := _closing(tokens, at + 1)) and _is_value(tokens[:at])]
    if not ends:
        return None
    start, end = random.choice(ends)
    around = random.choice(("({})", "(({}))", "COALESCE({}, NULL)", "CASE WHEN 1=1 THEN {} END", "(SELECT {})"))
    middle = around.format("\x00").split("\x00")
    return joined(tokens[:start]) + middle[0] + joined(tokens[start : end + 1]) + middle[1] + joined(tokens[end + 1 :])


def _is_value(before: Sequence[Token]) -> bool:
    """Whether a call stands for a value, not for a table."""
    meaning = _meaning(before)
    return (
        bool(meaning) and meaning[-1] not in (".", "FROM", "JOIN", "LATERAL", "CALL", "TABLE") and "FROM" not in meaning
    )


def _closing(tokens: Sequence[Token], opening: int) -> int | None:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[at].text, 0)
        if not depth:
            return at
    return None


HARMING: tuple[Mutator, ...] = (
    nested_deep,
    quoted_calls,
    qualified_calls,
    escaped_names,
    functional_notation,
    executable_comments,
    stacked,
    more_columns,
    parentheses,
)
