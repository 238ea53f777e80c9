"""The agent loop: a model that calls tools and stays within its context window."""

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
