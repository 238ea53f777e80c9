"""Which models exist, with window, tokenizer and price?"""

from .card import Match, ModelCard, Source
from .price import Cost, Price, Usage, cost_of, price_of
from .table import DEFAULT_MODEL, DEFAULT_WINDOW, PLAIN_RULES, ModelTable, Window, shipped

__all__ = [
    "DEFAULT_MODEL",
    "DEFAULT_WINDOW",
    "PLAIN_RULES",
    "Cost",
    "Match",
    "ModelCard",
    "ModelTable",
    "Price",
    "Source",
    "Usage",
    "Window",
    "cost_of",
    "price_of",
    "shipped",
]
