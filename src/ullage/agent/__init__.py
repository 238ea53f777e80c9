"""How does a model work at something with tools, within its window?"""

from .events import (
    Called,
    ContextStatus,
    Corrected,
    End,
    Ending,
    Event,
    Returned,
    Said,
    Thought,
    Used,
)
from .loop import run_agent

__all__ = [
    "Called",
    "ContextStatus",
    "Corrected",
    "End",
    "Ending",
    "Event",
    "Returned",
    "Said",
    "Thought",
    "Used",
    "run_agent",
]
