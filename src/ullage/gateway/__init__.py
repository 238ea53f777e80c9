"""How do many sources look like one small one?"""

from .access import Guarded
from .catalog import Catalogue
from .definition import definition_hash, definition_text
from .failed import failed
from .find import Find
from .find_settings import FindSettings, Surroundings
from .find_tools import NAMES
from .forms import EDITION
from .introduction import Introduced, Introduction
from .kept import Kept
from .merge import Merge
from .metered import META, Metered
from .reference import Reference, References
from .server import Access, Rules, Server, Transport
from .signature import one_line, signature
from .slim import slim
from .stored_forms import StoredForms
from .surface import Decision
from .underscored import Underscored
from .view import Entry, Member, Missing, View

__all__ = [
    "EDITION",
    "META",
    "NAMES",
    "Access",
    "Catalogue",
    "Decision",
    "Entry",
    "Find",
    "FindSettings",
    "Guarded",
    "Introduced",
    "Introduction",
    "Kept",
    "Member",
    "Merge",
    "Metered",
    "Missing",
    "Reference",
    "References",
    "Rules",
    "Server",
    "StoredForms",
    "Surroundings",
    "Transport",
    "Underscored",
    "View",
    "definition_hash",
    "definition_text",
    "failed",
    "one_line",
    "signature",
    "slim",
]
