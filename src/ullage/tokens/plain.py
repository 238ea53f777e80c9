"""What does a plain rule of so many characters a token say?

For whoever must agree with a program that counts so: asked for by the rule's name in place of a model's, and never
otherwise. Such a number knows nothing of the text, and its band says so.
"""

from ullage.models import PLAIN_RULES, Match, ModelCard

from .count import ZERO, Count, Method

__all__ = ["PLAIN_RULES", "by_characters", "plain_match"]

_TOO_FEW = 3
"""Rows of a table have had so many times the tokens that a plain rule gives them; prose has had half."""


def plain_match(name: str) -> Match | None:
    """A card that stands for the rule of that name; None where it is no rule's."""
    if name not in PLAIN_RULES:
        return None
    card = ModelCard(id=name, provider="none", family="characters", tokenizer=name)
    return Match(asked=name, card=card, host=None, how="id")


def by_characters(text: str, each: int) -> Count:
    tokens = -(-len(text) // each)
    return Count(tokens=tokens, method=Method.ESTIMATED, low=tokens // 2, high=tokens * _TOO_FEW) if text else ZERO
