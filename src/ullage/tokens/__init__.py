"""How many tokens, and how sure?"""

from typing import TYPE_CHECKING

from ullage.deferred import import_on_use

from .unheard import unheard

if TYPE_CHECKING:
    from .anchor import Anchor
    from .bpe import CountWorker, default_engine
    from .count import ZERO, Count, Method, total
    from .engine import Engine
    from .memo import Memo
    from .meter import Meter
    from .plain import PLAIN_RULES
    from .source import CountSource, count_to_json
    from .steps import Steps, drain, patiently
    from .weight import Weight
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Anchor": "anchor",
            "Count": "count",
            "CountSource": "source",
            "CountWorker": "bpe",
            "Engine": "engine",
            "Memo": "memo",
            "Meter": "meter",
            "Method": "count",
            "PLAIN_RULES": "plain",
            "Steps": "steps",
            "Weight": "weight",
            "ZERO": "count",
            "count_to_json": "source",
            "default_engine": "bpe",
            "drain": "steps",
            "patiently": "steps",
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
