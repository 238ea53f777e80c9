"""How do many sources look like one small one?"""

from ullage.options import Access, DefinitionChanges, Rules, Server, Transport

from .access import Guarded
from .baseline import Baseline, Baselines, DefinitionChange, Places, changed_parts, difference_lines, trust_command
from .cached import Cached
from .catalog import Catalogue, Kept, StoredForms, StoredUses, StoredVectors
from .definition import definition, definition_hash, definition_text, tool_of
from .failed import failed
from .find import (
    EDITION,
    NAMES,
    Decision,
    Embedders,
    Explained,
    Find,
    FindSettings,
    IndexKind,
    Learning,
    Surroundings,
)
from .introduction import Introduced, Introduction
from .merge import Entry, Member, Merge, Missing, View
from .metered import META, Metered
from .open_calls import OpenCalls, shutting_down
from .reference import ASSUMED, Reference, References
from .results import Budgeted, ResultReader, ResultRules, ServerResults, Vault
from .slim import one_line, signature, slim
from .underscored import Underscored

__all__ = [
    "ASSUMED",
    "EDITION",
    "META",
    "NAMES",
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
    "slim",
    "tool_of",
    "trust_command",
]
