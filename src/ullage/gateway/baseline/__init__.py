"""Accepted tool definitions, and the handling of definitions that changed."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

from .fingerprint import fingerprint

if TYPE_CHECKING:
    from .accepted_definitions import (
        Baseline,
        Baselines,
        DefinitionChange,
        Era,
        Kind,
        Offered,
        Verdict,
        changed_parts,
        difference_lines,
        tool_changed,
        trust_command,
    )
    from .fingerprint import Places, exact_hash
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Baseline": "accepted_definitions",
            "Baselines": "accepted_definitions",
            "DefinitionChange": "accepted_definitions",
            "Era": "accepted_definitions",
            "Kind": "accepted_definitions",
            "Offered": "accepted_definitions",
            "Places": "fingerprint",
            "Verdict": "accepted_definitions",
            "changed_parts": "accepted_definitions",
            "difference_lines": "accepted_definitions",
            "exact_hash": "fingerprint",
            "tool_changed": "accepted_definitions",
            "trust_command": "accepted_definitions",
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
