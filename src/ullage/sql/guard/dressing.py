"""What is the parser shown in place of what it does not know?

Only what cannot matter to the judgement is changed: an operator of the engine's own for another in the same place, a
modifier of SELECT for nothing, an outer join's mark for one without blanks, a name that it takes for a keyword for
another, a query around a PIVOT that is put in order. The text that runs is never touched.
"""

from collections.abc import Mapping, Sequence

from ..engine import Dialect
from .lexer import Token
from .wordlist import words

__all__ = ["PIVOTS", "STAND_INS", "dressed", "frame"]

_BINARY = words(
    """
<<= >>= <<| |>> &<| |&> ~= ~<~ ~<=~ ~>=~ ~>~ *= *<> *< *> *<= *>= ?# ?-| ?|| <^ >^ <% %> <<% %>> <<-> <->> <=> <#>
<+> <~> <%> ^@ @@@ ## <<<-> <->>> ?@ ?<@ ?@> &&& <<#>> <<->> ~== @>> <<@ ^<@ ^@> ~>
"""
)
_UNARY = words("@ @-@ !! ?- %% %#")
STAND_INS: Mapping[str, str] = {**dict.fromkeys(_BINARY, "="), **dict.fromkeys(_UNARY, "-")}
"""Operators of PostgreSQL and its common extensions that sqlglot does not read, to one that it does.

What is named here may be used."""

PIVOTS = frozenset({"pivot", "unpivot", "pivot_wider", "pivot_longer"})
"""What such a statement of DuckDB begins with."""

_MODIFIERS = words(
    """
high_priority sql_small_result sql_big_result sql_buffer_result sql_cache sql_no_cache sql_calc_found_rows
"""
)
_OF_WHOLE_NUMBERS = words("% & | # ^ << >>")
_BEFORE_MODIFIERS = _MODIFIERS | {"select", "all", "distinct", "distinctrow", "straight_join"}


def dressed(tokens: Sequence[Token], dialect: Dialect) -> list[str]:
    """One text for each token."""
    around = zip((None, *tokens), tokens, (*tokens[1:], None), strict=False)
    shown = [_dressed(before, token, after, dialect) for before, token, after in around]
    _part_remainders(tokens, shown)
    if dialect == "duckdb":
        _wrap_pivot(tokens, shown)
    if dialect == "oracle":
        for place in range(len(shown) - 2):
            if shown[place : place + 3] == ["(", "+", ")"]:
                shown[place : place + 3] = ["(+)", "", ""]
    return shown


def _part_remainders(tokens: Sequence[Token], shown: list[str]) -> None:
    """After LIMIT the parser takes every `%` for a percentage; with a value behind it, it is the remainder. There it
    does not know operators on bits."""
    is_limit, depth = False, 0
    for place, token in enumerate(tokens[:-1]):
        if token.is_word("limit", "offset"):
            is_limit, depth = True, 0
        depth += token.is_mark("(") - token.is_mark(")")
        if depth < 0 or (token.kind == "word" and token.name in ("select", "union", "from", "where")):
            is_limit = False
        after = tokens[place + 1]
        has_value = (
            after.kind in ("number", "string", "quoted")
            or after.text in ("(", "-", "~")
            or (after.kind == "word" and after.name not in ("offset", "limit", "for", "union", "except", "intersect"))
        )
        if is_limit and token.kind == "operator" and token.text in _OF_WHOLE_NUMBERS and has_value:
            shown[place] = "/"


def _wrap_pivot(tokens: Sequence[Token], shown: list[str]) -> None:
    """The parser reads no ORDER BY or LIMIT after a PIVOT, but does so around one."""
    if not tokens or not tokens[0].is_word(*PIVOTS):
        return
    depth = 0
    for place, token in enumerate(tokens):
        depth += token.is_mark("(") - token.is_mark(")")
        if depth == 0 and token.is_word("order", "limit"):
            shown[0], shown[place] = f"SELECT * FROM ({shown[0]}", f") AS shown {shown[place]}"
            return


def _dressed(before: Token | None, token: Token, after: Token | None, dialect: Dialect) -> str:
    if token.kind == "number":
        return token.text.replace("_", "")
    if dialect == "postgres" and token.kind == "operator":
        return STAND_INS.get(token.text, token.text)
    if dialect == "postgres" and token.kind == "string" and token.text[:2] in ("U&", "u&"):
        return f"  {token.text[2:]}"
    if dialect == "postgres" and token.is_word("uescape") and before is not None and before.text[:2] in ("U&", "u&"):
        # The parser does not know the clause, which only says how to read the text before it.
        return "||     "
    if dialect == "mysql" and token.kind == "word":
        if token.name in _MODIFIERS and before is not None and before.is_word(*_BEFORE_MODIFIERS):
            return ""
        if token.name == "charset" and after is not None and after.kind == "operator":
            return "charset_of"
    return token.text


def frame(tokens: Sequence[Token], dialect: Dialect) -> tuple[str, str]:
    """What stands around them: in MySQL the parser reads VALUES only within FROM."""
    if dialect == "mysql" and tokens and tokens[0].is_word("values"):
        return "SELECT * FROM (", ") AS shown"
    return "", ""
