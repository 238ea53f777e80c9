"""The agent loop: a model that calls tools and stays within its context window."""

from .function_tools import (
    Called,
    ContextStatus,
    Corrected,
    End,
    Ending,
    Event,
    FunctionTools,
    Returned,
    Said,
    Thought,
    ToolsGiven,
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
    "FunctionTools",
    "Returned",
    "Said",
    "Thought",
    "ToolsGiven",
    "Used",
    "run_agent",
]
