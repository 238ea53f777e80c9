"""Measures what fills a context window, and compacts a history to fit it."""

from .account import Teller
from .anchored import Anchored, observe
from .breakdown import Breakdown, ToolShare
from .breaker import Breaker
from .compact import Compaction, compact
from .context import Context
from .cost import CachePrices
from .entry import Category, Entry, Kind
from .fixed import Fixed, ToolWeight
from .grid import draw_grid, render_grid
from .keeping import Keeping
from .limits import Limits, limits_of
from .mask import mask
from .options import DEFAULTS, Options, OptionsGiven, Threshold, read_options
from .overflow import learnt_window
from .pairing import pair
from .prepared import Plan, Prepared
from .render import percent as shown_percent
from .render import render, render_line
from .render import tokens as shown_tokens
from .session import RecallSource, Session, SessionChanged
from .shed import Change, Dropped, Fate, Shed, Tier
from .summarizer import Summarizer, SummaryAnswer, SummaryRequest
from .summarizers import SummaryFunction, as_summarizer
from .usage import ContextUsage, usage_of
from .weighing import Scale

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
