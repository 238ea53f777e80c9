"""What does one file say of delegating?"""

from dataclasses import dataclass, field
from typing import Any

from .delegating import Budget, ProviderSettings, Scope
from .policies import Documents

__all__ = ["Delegation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    is_mentioned: bool = False
    conf: str | None = None
    """The absolute path of the folder with a policy's two files."""
    policy: Documents | None = None
    budgets: dict[Scope, Budget] = field(default_factory=dict[Scope, Budget])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    """By dotted key."""
    providers: dict[str, ProviderSettings | None] = field(default_factory=dict[str, "ProviderSettings | None"])
    """None for one that is left out: its name is taken, it does not fall back to a lower place."""
