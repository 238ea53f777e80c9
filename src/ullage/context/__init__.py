"""Measures what fills a context window, and compacts a history to fit it."""

from .compaction import Compaction, Teller, compact
from .context import Context, Plan, Prepared, history_entry
from .context_options import DEFAULTS, CachePrices, Limits, Options, OptionsGiven, Threshold, limits_of, read_options
from .draw_usage import draw_grid, render, render_grid, render_line
from .draw_usage import percent as shown_percent
from .draw_usage import tokens as shown_tokens
from .history import Keeping
from .session import RecallSource, Session, SessionChanged
from .summary import Breaker, Summarizer, SummaryAnswer, SummaryFunction, SummaryRequest, as_summarizer
from .token_weights import Anchored, Category, Entry, Fixed, Kind, Scale, ToolWeight, observe
from .tool_pairs import pair
from .truncate_messages import Change, Dropped, Fate, Shed, Tier, mask
from .window_usage import Breakdown, ContextUsage, ToolShare, learnt_window, usage_of

__all__ = [
    "DEFAULTS",
    "Anchored",
    "Breakdown",
    "Breaker",
    "CachePrices",
    "Category",
    "Change",
    "Compaction",
    "Context",
    "ContextUsage",
    "Dropped",
    "Entry",
    "Fate",
    "Fixed",
    "Keeping",
    "Kind",
    "Limits",
    "Options",
    "OptionsGiven",
    "Plan",
    "Prepared",
    "RecallSource",
    "Scale",
    "Session",
    "SessionChanged",
    "Shed",
    "Summarizer",
    "SummaryAnswer",
    "SummaryFunction",
    "SummaryRequest",
    "Teller",
    "Threshold",
    "Tier",
    "ToolShare",
    "ToolWeight",
    "as_summarizer",
    "compact",
    "draw_grid",
    "history_entry",
    "learnt_window",
    "limits_of",
    "mask",
    "observe",
    "pair",
    "read_options",
    "render",
    "render_grid",
    "render_line",
    "shown_percent",
    "shown_tokens",
    "usage_of",
]
