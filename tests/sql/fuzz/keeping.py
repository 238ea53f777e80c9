"""How can a statement be written otherwise and mean the same, be it a question or an attack?"""

import re
from itertools import pairwise
from random import Random

from .scanning import NESTING, Mutator, Token, joined, rewritten, scan

__all__ = ["KEEPING", "is_plain_select", "quote"]

TABLES = frozenset({"customers", "orders", "products", "order_items", "employees", "events", "keywords"})
NAMES = TABLES | {"name", "country", "email", "total", "status", "order_date", "customer_id", "salary", "department"}
"""Of the shop that the cases play in: what may be quoted without changing what it means."""


def letter_case(text: str, dialect: str, random: Random) -> str:
    ways = (str.upper, str.lower, str.swapcase, str.title, lambda word: "".join(_either(each, random) for each in word))
    way = random.choice(ways)
    return rewritten(text, dialect, "word", lambda word: way(word) if word.isascii() else word)


def _either(letter: str, random: Random) -> str:
    return letter.upper() if random.random() < 0.5 else letter.lower()


def white_space(text: str, dialect: str, random: Random) -> str:
    spaces = (" ", "  ", "\t", "\n", "\r\n", " \n\t ")
    if "--" in text or "#" in text:
        return f"{text}\n"  # the end of a line ends a comment
    return rewritten(text, dialect, "space", lambda _: random.choice(spaces))


def comments(text: str, dialect: str, random: Random) -> str:
    """At a third of the places where two tokens meet, and instead of blanks."""
    tokens = scan(text, dialect)
    pieces = [tokens[0].text]
    for before, after in pairwise(tokens):
        if random.random() < 0.33 and _apart(before, after, dialect):
            pieces.append(_remark(dialect, random, bare=_bare(before) and _bare(after)))
        pieces.append(after.text)
    return "".join(pieces)


def blanks(text: str, dialect: str, random: Random) -> str:
    """Around dots, commas and parentheses."""
    tokens = scan(text, dialect)
    pieces = [tokens[0].text]
    for before, after in pairwise(tokens):
        if {before.text, after.text} & {".", ",", "(", ")"} and _apart(before, after, dialect):
            pieces.append(random.choice(("", " ", "\n", "\t")))
        pieces.append(after.text)
    return "".join(pieces)


def _apart(before: Token, after: Token, dialect: str) -> bool:
    """Whether something may stand between: MySQL's functions want their parenthesis at once and two dashes their
    number, a client's command its line to itself."""
    if "rest" in (before.kind, after.kind) or (before.kind == "comment" and before.text[:1] in "-#"):
        return False
    glued = dialect == "mysql" and (before.text == "-" or (before.kind == "word" and after.text == "("))
    return not glued and not (before.kind == after.kind == "mark" and before.text not in "(),;" and after.text in "=>%")


def _bare(token: Token) -> bool:
    return token.kind != "mark" or token.text in "(),;."


def _remark(dialect: str, random: Random, *, bare: bool) -> str:
    remarks = ["/**/", "/* x */", "/* ' */", "/*;*/", "/*\n*/", "-- x\n", "--\n", "-- it's; \" ` [\n"]
    if dialect == "mysql":
        remarks = [each for each in remarks if each != "--\n"] + ["# x\n", "#;'\n", "-- \n"]
    if dialect in NESTING:
        remarks += ["/* a /* b */ c */", "/*/**/*/"]
    remark = random.choice(remarks)
    return remark if bare else f" {remark} "


def quoted_names(text: str, dialect: str, random: Random) -> str | None:
    """Names of the shop's tables and columns, in a style of the dialect."""
    if re.search(r"\bSHOW\b|XMLELEMENT|UNPIVOT|\bUNION\b.*\bBY\b", text, re.IGNORECASE | re.DOTALL) or (
        dialect == "mysql" and '"' in text
    ):
        return None  # there, `status` and `name` are keywords

    def in_quotes(word: str) -> str:
        known = word.lower() in NAMES and random.random() < 0.5
        return quote(word.upper() if dialect == "oracle" else word.lower(), dialect, random) if known else word

    return rewritten(text, dialect, "word", in_quotes)


def quote(name: str, dialect: str, random: Random) -> str:
    styles = {"mysql": ("`{}`",), "sqlite": ('"{}"', "`{}`", "[{}]"), "tsql": ('"{}"', "[{}]")}
    return random.choice(styles.get(dialect, ('"{}"',))).format(name)


def qualified_tables(text: str, dialect: str, random: Random) -> str | None:
    schema = {"postgres": "public", "duckdb": "main", "sqlite": "main", "tsql": "dbo"}.get(dialect)
    if schema is None:
        return None
    tokens = scan(text, dialect)
    meaning = [at for at, token in enumerate(tokens) if token.kind not in ("space", "comment")]
    for earlier, at, later in zip(meaning, meaning[1:], [*meaning[2:], -1], strict=False):
        follows = tokens[later].text if later >= 0 else ""
        if tokens[earlier].text.upper() in ("FROM", "JOIN") and tokens[at].text.lower() in TABLES and follows != ".":
            written = random.choice((schema, quote(schema, dialect, random)))
            tokens[at] = Token("word", f"{written}.{tokens[at].text}")
    return joined(tokens)


def literals(text: str, dialect: str, random: Random) -> str | None:
    """Strings after a parenthesis, a comma or an equals sign, in another spelling of the dialect."""
    tokens = scan(text, dialect)
    for at, token in enumerate(tokens):
        before = tokens[at - 1].text if at else ""
        if token.kind == "string" and before in ("(", ",", "=") and random.random() < 0.5:
            tokens[at] = Token("string", _respelt(token.text, dialect, random))
    return joined(tokens)


def _respelt(literal: str, dialect: str, random: Random) -> str:
    inner = literal[1:-1]
    if literal[0] != "'" or "'" in inner or "\\" in inner or "$" in inner or not inner:
        return literal
    spellings = {
        "postgres": (f"E{literal}", f"$${inner}$$", f"$q${inner}$q$"),
        "duckdb": (f"e{literal}", f"$${inner}$$"),
        "tsql": (f"N{literal}",),
        "oracle": (f"q'[{inner}]'", f"N{literal}") if "]" not in inner else (literal,),
    }
    return random.choice(spellings.get(dialect, (literal,)))


def before_and_after(text: str, dialect: str, random: Random) -> str:
    before = random.choice(("", " ", "\n", "/* x */ ", "-- x\n", "\t\n"))
    after = random.choice(("", " ", "\n", ";", " ;\n", "; -- done\n", "\n-- done", " /* done */"))
    return before + text + ("\n" if "--" in text or "#" in text else "") + ("" if ";" in text else after)


def nested(text: str, dialect: str, random: Random) -> str | None:
    """A question inside another."""
    if not is_plain_select(text):
        return None
    return random.choice(_NESTS).replace("?", text)


_NESTS = (
    "SELECT * FROM (?) t",
    "WITH w AS (?) SELECT * FROM w",
    "SELECT 1 FROM customers WHERE EXISTS (?)",
    "SELECT * FROM customers LEFT JOIN (?) t ON 1 = 1",
    "WITH a AS (SELECT 1 AS x), w AS (?) SELECT x FROM a, w",
    "SELECT CASE WHEN EXISTS (?) THEN 1 ELSE 2 END FROM customers",
)


def is_plain_select(text: str) -> bool:
    """One SELECT that may be put into parentheses."""
    words = text.split(None, 1)
    return len(words) == 2 and words[0].upper() == "SELECT" and not any(each in text for each in (";", "--", "#", "?"))


KEEPING: tuple[Mutator, ...] = (
    letter_case,
    white_space,
    comments,
    blanks,
    quoted_names,
    qualified_tables,
    literals,
    before_and_after,
    nested,
)
