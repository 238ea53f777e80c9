"""Which operators does this engine call its own?

Only PostgreSQL lets users make operators, whose function may do anything; there every operator must be a known one.
"""

from .dressing import STAND_INS
from .functions import CATALOGUES
from .passage import Passage
from .statement import Terms
from .wording import refusal
from .wordlist import words

__all__ = ["check_operators"]

_KNOWN = frozenset(STAND_INS) | words(
    """
+ - * / % ^ < > <= >= = <> != || | & # ~ << >> ! ~~ ~~* !~~ !~~* ~* !~ !~* @@ @> <@ && ?| ?& ? -> ->> #> #>> #- @?
<-> |/ ||/ &< &> -|- :: := => :
"""
)


def check_operators(passage: Passage, terms: Terms) -> None:
    for number, token in enumerate(passage.tokens):
        if token.kind == "operator":
            _check_operator(token.text, terms)
        elif token.is_word("operator") and passage.mark(number + 1) == "(":
            _check_qualified(passage, number)


def _check_operator(text: str, terms: Terms) -> None:
    if ":=" in text and terms.dialect == "mysql":
        raise refusal(":=", "sets a variable", "Compute the value in the query itself, with a window function or WITH.")
    if "@" in text and terms.dialect == "oracle":
        raise refusal("@", "reads over a link to another database", "Ask that database itself.")
    if terms.dialect == "postgres" and text not in _KNOWN:
        raise refusal(
            text, "is not an operator of PostgreSQL's own", "Put spaces between operators, or use built-in ones."
        )
    if terms.functions.get(text) == "made" and text not in terms.allowed:
        raise refusal(text, "is an operator of somebody's making here", "Use a function that PostgreSQL brings.")


def _check_qualified(passage: Passage, number: int) -> None:
    schema = passage.word(number + 2)
    if schema not in (CATALOGUES["postgres"].schemas or ()) or passage.mark(number + 3) != ".":
        raise refusal(
            "OPERATOR()", "may name an operator of somebody's making", "Write the operator itself, without a schema."
        )
