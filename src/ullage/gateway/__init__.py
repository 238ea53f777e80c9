"""The gateway: many MCP servers behind one small set of tools."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use
from ullage.options import Access, DefinitionChanges, Rules, Server, Transport

from .definition import definition
from .failed import failed

if TYPE_CHECKING:
    from .access import Guarded
    from .baseline import Baseline, Baselines, DefinitionChange, Places, changed_parts, difference_lines, trust_command
    from .cached import Cached
    from .catalog import Catalogue, Kept, StoredForms, StoredUses, StoredVectors
    from .definition import definition_hash, definition_text, tool_of
    from .find import (
        EDITION,
        NAMES,
        Decision,
        Embedders,
        Explained,
        Find,
        FindSettings,
        FindToolResponse,
        IndexKind,
        Learning,
        Surroundings,
        TokenMetrics,
    )
    from .introduction import Introduced, Introduction
    from .merge import Entry, Member, Merge, Missing, View
    from .metered import META, Metered
    from .open_calls import OpenCalls, shutting_down
    from .reference import ASSUMED, Reference, References
    from .results import READ, Budgeted, ResultReader, ResultRules, ServerResults, Vault
    from .slim import one_line, signature
    from .underscored import Underscored
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "ASSUMED": "reference",
            "Baseline": "baseline",
            "Baselines": "baseline",
            "Budgeted": "results",
            "Cached": "cached",
            "Catalogue": "catalog",
            "Decision": "find",
            "DefinitionChange": "baseline",
            "EDITION": "find",
            "Embedders": "find",
            "Entry": "merge",
            "Explained": "find",
            "Find": "find",
            "FindSettings": "find",
            "FindToolResponse": "find",
            "Guarded": "access",
            "IndexKind": "find",
            "Introduced": "introduction",
            "Introduction": "introduction",
            "Kept": "catalog",
            "Learning": "find",
            "META": "metered",
            "Member": "merge",
            "Merge": "merge",
            "Metered": "metered",
            "Missing": "merge",
            "NAMES": "find",
            "OpenCalls": "open_calls",
            "Places": "baseline",
            "READ": "results",
            "Reference": "reference",
            "References": "reference",
            "ResultReader": "results",
            "ResultRules": "results",
            "ServerResults": "results",
            "StoredForms": "catalog",
            "StoredUses": "catalog",
            "StoredVectors": "catalog",
            "Surroundings": "find",
            "TokenMetrics": "find",
            "Underscored": "underscored",
            "Vault": "results",
            "View": "merge",
            "changed_parts": "baseline",
            "definition_hash": "definition",
            "definition_text": "definition",
            "difference_lines": "baseline",
            "one_line": "slim",
            "shutting_down": "open_calls",
            "signature": "slim",
            "tool_of": "definition",
            "trust_command": "baseline",
        },
    )

__all__ = [
    "ASSUMED",
    "EDITION",
    "META",
    "NAMES",
    "READ",
    "Access",
    "Baseline",
    "Baselines",
    "Budgeted",
    "Cached",
    "Catalogue",
    "Decision",
    "DefinitionChange",
    "DefinitionChanges",
    "Embedders",
    "Entry",
    "Explained",
    "Find",
    "FindSettings",
    "FindToolResponse",
    "Guarded",
    "IndexKind",
    "Introduced",
    "Introduction",
    "Kept",
    "Learning",
    "Member",
    "Merge",
    "Metered",
    "Missing",
    "OpenCalls",
    "Places",
    "Reference",
    "References",
    "ResultReader",
    "ResultRules",
    "Rules",
    "Server",
    "ServerResults",
    "StoredForms",
    "StoredUses",
    "StoredVectors",
    "Surroundings",
    "TokenMetrics",
    "Transport",
    "Underscored",
    "Vault",
    "View",
    "changed_parts",
    "definition",
    "definition_hash",
    "definition_text",
    "difference_lines",
    "failed",
    "one_line",
    "shutting_down",
    "signature",
    "tool_of",
    "trust_command",
]
