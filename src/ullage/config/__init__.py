"""What did the user decide, and where?"""

from .issue import Issue, Severity
from .loading import Flags, Loaded, examine, load, read_tokens
from .places import Places
from .settings import ClientProfile, Gateway, Mode, Results, Settings, Token
from .watching import Reload, Reloading, watch

__all__ = [
    "ClientProfile",
    "Flags",
    "Gateway",
    "Issue",
    "Loaded",
    "Mode",
    "Places",
    "Reload",
    "Reloading",
    "Results",
    "Settings",
    "Severity",
    "Token",
    "examine",
    "load",
    "read_tokens",
    "watch",
]
