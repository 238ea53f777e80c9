"""How full is the window, and what do we let go?"""

from .entry import Category, Entry, Kind
from .options import DEFAULTS, Options, Threshold, read_options
from .shed import Change, Shed, Tier
from .summarizer import Summarizer, SummaryAnswer, SummaryRequest

__all__ = [
    "DEFAULTS",
    "Category",
    "Change",
    "Entry",
    "Kind",
    "Options",
    "Shed",
    "Summarizer",
    "SummaryAnswer",
    "SummaryRequest",
    "Threshold",
    "Tier",
    "read_options",
]
