"""What did the user decide about asking other models?

Providers, budgets and where a policy came from: values only, each already checked. Keys are named by their variables
and never among these. The policy itself is `delegate`'s, which is loaded only where there is one to read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ullage.delegate import Policy

__all__ = ["BUILT_IN", "Budget", "DelegateSettings", "LogLevel", "ProviderSettings", "Scope", "Timing", "WireKind"]

WireKind = Literal["openai", "openai-chat", "anthropic", "google", "compatible"]
Scope = Literal["call", "task", "session", "day", "month"]
LogLevel = Literal["debug", "info", "warn", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds that a provider is given; None for what holds for all."""

    connect: float | None = None
    first_byte: float | None = None
    idle: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    name: str
    kind: WireKind
    """How it is spoken to."""
    base_url: str = field(repr=False)
    key_env: str | None = None
    """The variable that holds its key; None for one that needs none."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timing: Timing = field(default_factory=Timing)
    host: str | None = None
    """Who bills, as price tables know them; None for whoever made the model."""
    variables: frozenset[str] = frozenset()
    """All that it takes from the environment, its key among it."""
    came_from: str = ""


BUILT_IN: Mapping[str, ProviderSettings] = {
    one.name: one
    for one in (
        ProviderSettings(name="openai", kind="openai", base_url="https://api.openai.com/v1", key_env="OPENAI_API_KEY"),
        ProviderSettings(
            name="anthropic", kind="anthropic", base_url="https://api.anthropic.com", key_env="ANTHROPIC_API_KEY"
        ),
        ProviderSettings(
            name="google",
            kind="google",
            base_url="https://generativelanguage.googleapis.com",
            key_env="GOOGLE_API_KEY",
        ),
    )
}
"""Those that are there without a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may be spent; None for no limit."""

    dollars: Decimal | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateSettings:
    is_wanted: bool = False
    """Whether any file speaks of delegating or of providers. A key alone is no wish to spend money."""
    policy: "Policy | None" = None
    """None where no file has one: a policy of our own then stands in for it."""
    warnings: tuple[str, ...] = ()
    """What in the policy cannot be meant, with file and line."""
    cut: bool = False
    """Whether a prompt that no window holds is cut rather than refused."""
    file_roots: tuple[str, ...] = ()
    """Absolute paths of folders whose files may be sent to a model."""
    budgets: Mapping[Scope, Budget] = field(default_factory=dict[Scope, Budget])
    alerts: tuple[Decimal, ...] | None = None
    """Parts of a budget at which the user is told; None for what holds without."""
    log_level: LogLevel | None = None
    """None where the environment does not say."""
    cost_alert: Decimal | None = None
    """Dollars of one call."""
    usage_export: str | None = None
    """The CSV file to which the use of models is added."""
