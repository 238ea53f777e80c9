"""Which tokens are judged together, and what does the parser see of them?

A passage is one statement, or the part of one that is a query of its own. The parser is given the tokens with one space
where there was a space or a comment, so that it can trip over neither. What is run is always the text as written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ullage.errors import Refused

from ..engine import Dialect
from .dressing import dressed, frame
from .lexer import Token
from .wording import refusal

__all__ = ["Passage", "one_statement"]


@dataclass(frozen=True, slots=True)
class Passage:
    tokens: tuple[Token, ...]

    def plain(self, dialect: Dialect) -> tuple[str, Mapping[int, int]]:
        """The text for the parser, and where in it each token stands: the offset to the token's number."""
        opening, closing = frame(self.tokens, dialect)
        parts: list[str] = [opening]
        places: dict[int, int] = {}
        length = len(opening)
        for number, (token, text) in enumerate(zip(self.tokens, dressed(self.tokens, dialect), strict=True)):
            shown = f" {text}" if text and token.spaced and number else text
            length += len(shown)
            places[length - len(text)] = number
            parts.append(shown)
        return "".join([*parts, closing]), places

    def after(self, number: int) -> "Passage":
        return Passage(self.tokens[number:])

    def word(self, number: int) -> str:
        """The word at that place, in lower case; empty where there is none."""
        if not 0 <= number < len(self.tokens) or self.tokens[number].kind != "word":
            return ""
        return self.tokens[number].name

    def mark(self, number: int) -> str:
        """The text at that place, unless it is a string; empty where there is none."""
        if not 0 <= number < len(self.tokens) or self.tokens[number].kind == "string":
            return ""
        return self.tokens[number].text

    def dotted(self, number: int) -> list[str]:
        """The parts of the name that begins there; none where no name does."""
        parts: list[str] = []
        while any(token.is_name for token in self.tokens[number : number + 1]):
            parts.append(self.tokens[number].name)
            if self.mark(number + 1) != ".":
                break
            number += 2
        return parts


def one_statement(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Without the semicolons at its end."""
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
