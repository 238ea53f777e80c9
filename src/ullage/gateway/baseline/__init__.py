"""Definitions that were accepted, and what becomes of one that changed."""

from .baselines import Baseline, Baselines, Era, Offered, Verdict
from .difference import DefinitionChange, Kind, changed_parts, difference_lines, tool_changed, trust_command
from .fingerprint import Places, exact_hash, fingerprint

__all__ = [
    "Baseline",
    "Baselines",
    "DefinitionChange",
    "Era",
    "Kind",
    "Offered",
    "Places",
    "Verdict",
    "changed_parts",
    "difference_lines",
    "exact_hash",
    "fingerprint",
    "tool_changed",
    "trust_command",
]
