"""Reads `ullage.toml` and other programs' server files, and merges them into settings."""

from .config_file import Issue, Places, Severity, Stamp
from .loader import Flags, Loaded, Reload, Reloading, examine, load, read_tokens, review, watch
from .project_trust import Approval, Approvals, PendingFile, approve_command, is_approved, is_secret_name, masked_url
from .settings import (
    BUILT_IN,
    Budget,
    ClientProfile,
    DelegateSettings,
    Folders,
    Gateway,
    Mode,
    ProviderSettings,
    Results,
    Search,
    Settings,
    Timing,
    Token,
)
from .ullage_toml import server_fault

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
