"""Parses a statement with sqlglot and checks that parser and lexer agree.

The parser's tokens must agree with the lexer's on where every string and quoted name begins and ends; otherwise one of
them misreads text that the other does not. A statement that the parser cannot read is refused. The rules for the tree
are in `query_rules` and `table_rules`.

The text given to the parser differs from the statement only where that cannot affect the judgement: an operator
specific to the engine is replaced by another in the same place, a modifier of SELECT is removed, an outer join's mark
is written without blanks, a name that the parser takes for a keyword is replaced, and a query is put around a PIVOT
that is sorted. The text that runs is not changed by this.

A `Passage` is one statement, or a part of one that is a query of its own. The parser gets its tokens with one space for
each space or comment, so that neither can mislead it.

Only PostgreSQL lets users define operators, whose functions may do anything; there every operator must be a known one.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Dialect as Grammar
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from ullage.errors import Refused

from ..database import Dialect
from .allowed_functions import CATALOGUES
from .lexer import Terms, Token, refusal, words

__all__ = ["PIVOTS", "STAND_INS", "Passage", "check_operators", "frame", "one_statement", "parse", "prepare_tokens"]

_BINARY = words(
    """
<<= >>= <<| |>> &<| |&> ~= ~<~ ~<=~ ~>=~ ~>~ *= *<> *< *> *<= *>= ?# ?-| ?|| <^ >^ <% %> <<% %>> <<-> <->> <=> <#>
<+> <~> <%> ^@ @@@ ## <<<-> <->>> ?@ ?<@ ?@> &&& <<#>> <<->> ~== @>> <<@ ^<@ ^@> ~>
"""
)
_UNARY = words("@ @-@ !! ?- %% %#")
STAND_INS: Mapping[str, str] = {**dict.fromkeys(_BINARY, "="), **dict.fromkeys(_UNARY, "-")}
"""Operators of PostgreSQL and its common extensions that sqlglot cannot read, with one that it can.

Every operator listed here may be used.
"""

PIVOTS = frozenset({"pivot", "unpivot", "pivot_wider", "pivot_longer"})
"""First words of DuckDB's pivot statements."""

_MODIFIERS = words(
    """
high_priority sql_small_result sql_big_result sql_buffer_result sql_cache sql_no_cache sql_calc_found_rows
"""
)
_LIMITED = frozenset({"group_concat", "json_arrayagg"})
"""Aggregates of MariaDB that may have a LIMIT."""
_OF_WHOLE_NUMBERS = words("% & | # ^ << >>")
_BEFORE_MODIFIERS = _MODIFIERS | {"select", "all", "distinct", "distinctrow", "straight_join"}


def prepare_tokens(tokens: Sequence[Token], dialect: Dialect) -> list[str]:
    """Return the text for the parser, one string for each token."""
    around = zip((None, *tokens), tokens, (*tokens[1:], None), strict=False)
    shown = [_prepare_token(before, token, after, dialect) for before, token, after in around]
    # After LIMIT the parser takes every `%` for a percentage, although it is the remainder if a value follows, and it
    # does not know bitwise operators. All of them are shown to it as `/`.
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
    if dialect == "duckdb":
        _wrap_pivot(tokens, shown)
    if dialect == "mysql":
        _adapt_mariadb(tokens, shown)
    if dialect == "oracle":
        for place in range(len(shown) - 2):
            if shown[place : place + 3] == ["(", "+", ")"]:
                shown[place : place + 3] = ["(+)", "", ""]
    return shown


def _adapt_mariadb(tokens: Sequence[Token], shown: list[str]) -> None:
    """Replace two types of MariaDB in CAST, and remove two limits, which the parser does not know.

    The limits are that of an aggregate, and `ROWS EXAMINED`.
    """
    called = [""]
    """The word before each open parenthesis."""
    for place, (before, token) in enumerate(pairwise((None, *tokens))):
        assert token is not None
        if token.is_mark("("):
            called.append(before.name if before is not None and before.kind == "word" else "")
        elif token.is_mark(")") and len(called) > 1:
            called.pop()
        elif token.is_word("limit") and called[-1] in _LIMITED:
            shown[place] = ""
            for at in range(place + 1, len(tokens)):
                if tokens[at].kind != "number" and tokens[at].text != "," and not tokens[at].is_word("offset"):
                    break
                shown[at] = ""
        elif called[-1] == "cast" and token.is_word("inet4", "inet6") and before is not None and before.is_word("as"):
            shown[place] = "char"
        elif token.kind == "number" and place > 1 and before is not None and before.is_word("examined"):
            if not tokens[place - 2].is_word("rows"):
                continue
            first = place - 3 if place > 2 and tokens[place - 3].is_word("limit") else place - 2
            shown[first : place + 1] = [""] * (place + 1 - first)


def _wrap_pivot(tokens: Sequence[Token], shown: list[str]) -> None:
    """Put a query around a PIVOT with ORDER BY or LIMIT, which the parser cannot read after a PIVOT itself."""
    if not tokens or not tokens[0].is_word(*PIVOTS):
        return
    depth = 0
    for place, token in enumerate(tokens):
        depth += token.is_mark("(") - token.is_mark(")")
        if depth == 0 and token.is_word("order", "limit"):
            shown[0], shown[place] = f"SELECT * FROM ({shown[0]}", f") AS shown {shown[place]}"
            return


def _prepare_token(before: Token | None, token: Token, after: Token | None, dialect: Dialect) -> str:
    if token.kind == "number":
        is_based = dialect in ("postgres", "duckdb") and token.text[:2].lower() in ("0x", "0b", "0o")
        return str(int(token.text, 0)) if is_based else token.text.replace("_", "")
    if dialect == "postgres" and token.kind == "operator":
        return STAND_INS.get(token.text, token.text)
    if dialect == "postgres" and token.kind == "string" and token.text[:2] in ("U&", "u&"):
        return f"  {token.text[2:]}"
    if dialect == "postgres" and token.is_word("uescape") and before is not None and before.text[:2] in ("U&", "u&"):
        # The parser does not know this clause, which only says how to read the string before it.
        return "||     "
    if dialect == "postgres" and token.is_word("varying") and before is not None and before.is_word("bit"):
        return ""
    if dialect == "mysql" and token.kind == "word":
        if token.name in _MODIFIERS and before is not None and before.is_word(*_BEFORE_MODIFIERS):
            return ""
        if token.name == "charset" and after is not None and after.kind == "operator":
            return "charset_of"
    return token.text


def frame(tokens: Sequence[Token], dialect: Dialect) -> tuple[str, str]:
    """Return text to put around the statement: in MySQL the parser reads VALUES only in FROM."""
    if dialect == "mysql" and tokens and tokens[0].is_word("values"):
        return "SELECT * FROM (", ") AS shown"
    return "", ""


@dataclass(frozen=True, slots=True)
class Passage:
    """The tokens of one statement, or of a query within it."""

    tokens: tuple[Token, ...]

    def plain(self, dialect: Dialect) -> tuple[str, Mapping[int, int]]:
        """Return the text for the parser, and the index of the token at each offset in it."""
        opening, closing = frame(self.tokens, dialect)
        parts: list[str] = [opening]
        places: dict[int, int] = {}
        length = len(opening)
        for number, (token, text) in enumerate(zip(self.tokens, prepare_tokens(self.tokens, dialect), strict=True)):
            shown = f" {text}" if text and token.spaced and number else text
            length += len(shown)
            places[length - len(text)] = number
            parts.append(shown)
        return "".join([*parts, closing]), places

    def after(self, number: int) -> "Passage":
        """Return the part of the passage from a token on."""
        return Passage(self.tokens[number:])

    def word(self, number: int) -> str:
        """Return the word at an index, in lower case; empty if there is none."""
        if not 0 <= number < len(self.tokens) or self.tokens[number].kind != "word":
            return ""
        return self.tokens[number].name

    def mark(self, number: int) -> str:
        """Return the text at an index, unless it is a string; empty if there is none."""
        if not 0 <= number < len(self.tokens) or self.tokens[number].kind == "string":
            return ""
        return self.tokens[number].text

    def dotted(self, number: int) -> list[str]:
        """Return the parts of the name that begins at an index; empty if there is no name."""
        parts: list[str] = []
        while any(token.is_name for token in self.tokens[number : number + 1]):
            parts.append(self.tokens[number].name)
            if self.mark(number + 1) != ".":
                break
            number += 2
        return parts


def one_statement(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Return the tokens of a single statement, without the semicolons at its end."""
    end = len(tokens)
    while end and tokens[end - 1].is_mark(";"):
        end -= 1
    if not end:
        raise Refused("the statement is empty", suggestion="Write one SELECT.")
    if any(token.is_mark(";") for token in tokens[:end]):
        raise refusal(
            ";", "parts several statements, and one is run at a time", "Send each statement in a call of its own."
        )
    return tuple(tokens[:end])


# sqlglot would log a statement that it does not know, with the values in it, before the guard refuses it.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_QUOTE = re.compile(r"['\"`\[$]")
_PLAIN = "Write it as a plain SELECT, with ordinary strings and names."
_STUMBLES = (SqlglotError, ValueError, TypeError, AttributeError, KeyError, IndexError, AssertionError)
"""Errors that sqlglot raises on text that it cannot read, including its own bugs."""


def parse(passage: Passage, dialect: Dialect) -> tuple[exp.Expr, Mapping[int, int]]:
    """Return the tree, and the index of the token at each offset of the parsed text."""
    text, places = passage.plain(dialect)
    grammar = Grammar.get_or_raise(dialect)
    try:
        tokens = grammar.tokenize(text)
        ours = {
            _span(text, start, start + len(passage.tokens[number].text))
            for start, number in places.items()
            if passage.tokens[number].kind in ("string", "quoted")
        }
        read = {
            _span(text, one.start, one.end + 1)
            for one in tokens
            if (one.token_type.name == "IDENTIFIER" or one.token_type.name.endswith("STRING"))
        } - {None}
        for span in sorted((ours ^ read) - {None}, key=str):
            raise refusal(text[slice(*(span or ()))], "can be read in two ways", _PLAIN)
        trees = grammar.parser(error_level=ErrorLevel.RAISE).parse(tokens, text)
    except _STUMBLES as failure:
        found: Sequence[Mapping[str, object]] = getattr(failure, "errors", None) or ()
        raise refusal(
            str(next((one.get("highlight") for one in found), None) or text),
            "cannot be read as part of a query",
            _PLAIN,
        ) from failure
    if len(trees) != 1 or trees[0] is None:
        raise refusal(text, "is not one query", "Send one SELECT.")
    return trees[0], places


def _span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span of a string from its quote on, since a prefix may be a word of its own."""
    quote = _QUOTE.search(text, start, end)
    return (quote.start(), end) if quote else None


_KNOWN = frozenset(STAND_INS) | words(
    """
+ - * / % ^ < > <= >= = <> != || | & # ~ << >> ! ~~ ~~* !~~ !~~* ~* !~ !~* @@ @> <@ && ?| ?& ? -> ->> #> #>> #- @?
<-> |/ ||/ &< &> -|- :: := => :
"""
)


def check_operators(passage: Passage, terms: Terms) -> None:
    """Refuse operators that are not known to only read."""
    for number, token in enumerate(passage.tokens):
        if token.kind == "operator":
            text = token.text
            if ":=" in text and terms.dialect == "mysql":
                raise refusal(
                    ":=", "sets a variable", "Compute the value in the query itself, with a window function or WITH."
                )
            if "@" in text and terms.dialect == "oracle":
                raise refusal("@", "reads over a link to another database", "Ask that database itself.")
            if terms.dialect == "postgres" and text not in _KNOWN:
                raise refusal(
                    text,
                    "is not an operator of PostgreSQL's own",
                    "Put spaces between operators, or use built-in ones.",
                )
            if terms.functions.get(text) == "made" and text not in terms.allowed:
                raise refusal(text, "is a user-defined operator here", "Use a function that PostgreSQL brings.")
        elif token.is_word("operator") and passage.mark(number + 1) == "(":
            schema = passage.word(number + 2)
            if schema not in (CATALOGUES["postgres"].schemas or ()) or passage.mark(number + 3) != ".":
                raise refusal(
                    "OPERATOR()",
                    "may name a user-defined operator",
                    "Write the operator itself, without a schema.",
                )
