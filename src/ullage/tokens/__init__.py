"""How many tokens, and how sure?"""

from .anchor import Anchor
from .bpe import default_engine
from .count import ZERO, Count, Method, total
from .engine import Engine
from .memo import Memo
from .meter import Meter
from .plain import PLAIN_RULES
from .source import CountSource, count_to_json
from .steps import Steps, drain, patiently
from .unheard import unheard
from .weight import Weight

__all__ = [
    "PLAIN_RULES",
    "ZERO",
    "Anchor",
    "Count",
    "CountSource",
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
