"""Token counts, each with its method and the range it lies in."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

from .count import unheard

if TYPE_CHECKING:
    from .bpe import CountWorker, default_engine
    from .count import PLAIN_RULES, ZERO, Count, Engine, Method, Steps, Weight, drain, patiently, total
    from .count_tool import CountSource, count_to_json
    from .meter import Anchor, Memo, Meter
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Anchor": "meter",
            "Count": "count",
            "CountSource": "count_tool",
            "CountWorker": "bpe",
            "Engine": "count",
            "Memo": "meter",
            "Meter": "meter",
            "Method": "count",
            "PLAIN_RULES": "count",
            "Steps": "count",
            "Weight": "count",
            "ZERO": "count",
            "count_to_json": "count_tool",
            "default_engine": "bpe",
            "drain": "count",
            "patiently": "count",
            "total": "count",
        },
    )

__all__ = [
    "PLAIN_RULES",
    "ZERO",
    "Anchor",
    "Count",
    "CountSource",
    "CountWorker",
    "Engine",
    "Memo",
    "Meter",
    "Method",
    "Steps",
    "Weight",
    "count_to_json",
    "default_engine",
    "drain",
    "patiently",
    "total",
    "unheard",
]
