"""What is this query, as a tree?

The parser's own tokens must agree with ours on where every text and quoted name begins and ends, else one of the two
reads what the other does not. Whatever it cannot read is refused; what may stand in the tree is judged elsewhere.
"""

import logging
import re
from collections.abc import Mapping, Sequence

from sqlglot import Dialect as Grammar
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import Token as TheirToken

from ..engine import Dialect
from .passage import Passage
from .wording import refusal

__all__ = ["parse"]

# It would log a statement that it does not know, with the values in it, before we refuse it.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_QUOTE = re.compile(r"['\"`\[$]")
_PLAIN = "Write it as a plain SELECT, with ordinary strings and names."
_STUMBLES = (SqlglotError, ValueError, TypeError, AttributeError, KeyError, IndexError, AssertionError)
"""What sqlglot raises on texts that it does not know, its own slips among them."""


def parse(passage: Passage, dialect: Dialect) -> tuple[exp.Expr, Mapping[int, int]]:
    """The tree, and where each token stands in the text that it was made of."""
    text, places = passage.plain(dialect)
    grammar = Grammar.get_or_raise(dialect)
    try:
        tokens = grammar.tokenize(text)
        _agree(passage, places, text, tokens)
        trees = grammar.parser(error_level=ErrorLevel.RAISE).parse(tokens, text)
    except _STUMBLES as failure:
        raise refusal(_where(failure, text), "cannot be read as part of a query", _PLAIN) from failure
    if len(trees) != 1 or trees[0] is None:
        raise refusal(text, "is not one query", "Send one SELECT.")
    return trees[0], places


def _where(failure: Exception, text: str) -> str:
    """What the parser stumbled over, or the beginning of it all."""
    found: Sequence[Mapping[str, object]] = getattr(failure, "errors", None) or ()
    return str(next((one.get("highlight") for one in found), None) or text)


def _agree(passage: Passage, places: Mapping[int, int], text: str, theirs: Sequence[TheirToken]) -> None:
    ours = {
        _span(text, start, start + len(passage.tokens[number].text))
        for start, number in places.items()
        if passage.tokens[number].kind in ("string", "quoted")
    }
    read = {_span(text, one.start, one.end + 1) for one in theirs if _is_text(one)} - {None}
    for span in sorted((ours ^ read) - {None}, key=str):
        raise refusal(text[slice(*(span or ()))], "can be read in two ways", _PLAIN)


def _is_text(token: TheirToken) -> bool:
    return token.token_type.name == "IDENTIFIER" or token.token_type.name.endswith("STRING")


def _span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """From the quote on, since a prefix may be a word of its own."""
    quote = _QUOTE.search(text, start, end)
    return (quote.start(), end) if quote else None
