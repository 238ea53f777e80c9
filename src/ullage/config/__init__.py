"""What did the user decide, and where?"""

from .delegating import BUILT_IN, Budget, DelegateSettings, ProviderSettings, Timing
from .folders import Folders
from .issue import Issue, Severity
from .loading import Flags, Loaded, examine, load, read_tokens
from .places import Places
from .settings import ClientProfile, Gateway, Mode, Results, Search, Settings, Token
from .watching import Reload, Reloading, watch

__all__ = [
    "BUILT_IN",
    "Budget",
    "ClientProfile",
    "DelegateSettings",
    "Flags",
    "Folders",
    "Gateway",
    "Issue",
    "Loaded",
    "Mode",
    "Places",
    "ProviderSettings",
    "Reload",
    "Reloading",
    "Results",
    "Search",
    "Settings",
    "Severity",
    "Timing",
    "Token",
    "examine",
    "load",
    "read_tokens",
    "watch",
]
