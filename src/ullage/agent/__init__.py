"""The agent loop: a model that calls tools and stays within its context window."""

from .function_tools import FunctionTools, ToolsGiven
from .loop import run_agent
from .tool_calls import Called, ContextStatus, Corrected, End, Ending, Event, Returned, Said, Thought, Used

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
