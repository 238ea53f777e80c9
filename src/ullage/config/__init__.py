"""Reads `ullage.toml` and other programs' server files, and merges them into settings."""

from .delegating import BUILT_IN, Budget, DelegateSettings, ProviderSettings, Timing
from .effects import is_secret_name, masked_url
from .folders import Folders
from .issue import Issue, Severity
from .loading import Flags, Loaded, examine, load, read_tokens, review
from .places import Places
from .settings import ClientProfile, Gateway, Mode, Results, Search, Settings, Token
from .stamp import Stamp
from .trust import Approval, Approvals, PendingFile, approve_command, is_approved
from .ullage_toml import server_fault
from .watching import Reload, Reloading, watch

__all__ = [
    "BUILT_IN",
    "Approval",
    "Approvals",
    "Budget",
    "ClientProfile",
    "DelegateSettings",
    "Flags",
    "Folders",
    "Gateway",
    "Issue",
    "Loaded",
    "Mode",
    "PendingFile",
    "Places",
    "ProviderSettings",
    "Reload",
    "Reloading",
    "Results",
    "Search",
    "Settings",
    "Severity",
    "Stamp",
    "Timing",
    "Token",
    "approve_command",
    "examine",
    "is_approved",
    "is_secret_name",
    "load",
    "masked_url",
    "read_tokens",
    "review",
    "server_fault",
    "watch",
]
