"""Which models exist, with window, tokenizer and price?"""

from .card import Match, ModelCard, Source

__all__ = ["Match", "ModelCard", "Source"]
