"""Definitions that were accepted, and what becomes of one that changed."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

from .fingerprint import fingerprint

if TYPE_CHECKING:
    from .baselines import Baseline, Baselines, Era, Offered, Verdict
    from .difference import DefinitionChange, Kind, changed_parts, difference_lines, tool_changed, trust_command
    from .fingerprint import Places, exact_hash
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Baseline": "baselines",
            "Baselines": "baselines",
            "DefinitionChange": "difference",
            "Era": "baselines",
            "Kind": "difference",
            "Offered": "baselines",
            "Places": "fingerprint",
            "Verdict": "baselines",
            "changed_parts": "difference",
            "difference_lines": "difference",
            "exact_hash": "fingerprint",
            "tool_changed": "difference",
            "trust_command": "difference",
        },
    )

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
