"""How do I try my own source, engine or wrapper against what Ullage expects of it?"""

from .conformance import (
    check_closing,
    check_engine,
    check_index,
    check_prompts,
    check_resources,
    check_source,
    check_watched,
)
from .fakes import FakeEngine, FakeIndex, FakeSource

__all__ = [
    "FakeEngine",
    "FakeIndex",
    "FakeSource",
    "check_closing",
    "check_engine",
    "check_index",
    "check_prompts",
    "check_resources",
    "check_source",
    "check_watched",
]
