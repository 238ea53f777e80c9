"""How do I try my own source, engine or wrapper against what Ullage expects of it?"""

from .conformance import (
    check_closing,
    check_engine,
    check_prompts,
    check_resources,
    check_source,
    check_watched,
)
from .fakes import FakeEngine, FakeSource

__all__ = [
    "FakeEngine",
    "FakeSource",
    "check_closing",
    "check_engine",
    "check_prompts",
    "check_resources",
    "check_source",
    "check_watched",
]
