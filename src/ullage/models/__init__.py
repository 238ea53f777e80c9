"""Model cards, look-up by name, context windows, tokenizers and prices."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

from .model_cards import (
    CURRENT_MODEL,
    DEFAULT_MODEL,
    DEFAULT_WINDOW,
    PLAIN_RULES,
    Match,
    ModelCard,
    ModelTable,
    Source,
    Window,
    shipped,
)

if TYPE_CHECKING:
    from .price import Cost, Price, Usage, cost_of, price_of
else:
    # Imported on first use, because counting needs no prices.
    __getattr__ = import_on_use(
        __name__,
        {
            "Cost": "price",
            "Price": "price",
            "Usage": "price",
            "cost_of": "price",
            "price_of": "price",
        },
    )

__all__ = [
    "CURRENT_MODEL",
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
