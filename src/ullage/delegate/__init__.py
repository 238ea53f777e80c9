"""Delegates tasks to other models: routing, retries, budgets and checked answers."""

from importlib import import_module
from typing import TYPE_CHECKING

from .delegation import DELEGATE, Ask, Delegate, cost_json, report, usage_json
from .model_call import (
    Attempt,
    Completion,
    Event,
    FailureKind,
    Observer,
    Outcome,
    Outgoing,
    Provider,
    ProviderFailed,
    RunRecord,
    TextDelta,
    ThinkingDelta,
    Timeouts,
    Wire,
)
from .policy import (
    Bucket,
    Case,
    Evaluation,
    LanguageRule,
    MeanResult,
    ModelEntry,
    Policy,
    PolicyWarning,
    RecordedOutcome,
    evaluate,
    lint,
)
from .providers import Anthropic, Gemini, OpenAIChat, OpenAIResponses
from .retry_fallback import Patience
from .router import Candidate, Parameters, Route, RouteRequest, TooLong, detect_language, load_detector, route
from .spend_limits import (
    NO_SPEND,
    Alert,
    Ceiling,
    Ceilings,
    LocalPurse,
    Purse,
    Scope,
    Spend,
    Ticket,
    Unlimited,
    alerts,
    check,
    since,
)

if TYPE_CHECKING:
    from .delegate_tools import TOOLS, Answers, Conversation, DelegateSource, Files, Held
    from .policy import Fault, read_policy
    from .shared_budget import StoredPurse
    from .telemetry import LEVELS, Level, Telemetry, UsageExport

__all__ = [
    "DELEGATE",
    "LEVELS",
    "NO_SPEND",
    "TOOLS",
    "Alert",
    "Answers",
    "Anthropic",
    "Ask",
    "Attempt",
    "Bucket",
    "Candidate",
    "Case",
    "Ceiling",
    "Ceilings",
    "Completion",
    "Conversation",
    "Delegate",
    "DelegateSource",
    "Evaluation",
    "Event",
    "FailureKind",
    "Fault",
    "Files",
    "Gemini",
    "Held",
    "LanguageRule",
    "Level",
    "LocalPurse",
    "MeanResult",
    "ModelEntry",
    "Observer",
    "OpenAIChat",
    "OpenAIResponses",
    "Outcome",
    "Outgoing",
    "Parameters",
    "Patience",
    "Policy",
    "PolicyWarning",
    "Provider",
    "ProviderFailed",
    "Purse",
    "RecordedOutcome",
    "Route",
    "RouteRequest",
    "RunRecord",
    "Scope",
    "Spend",
    "StoredPurse",
    "Telemetry",
    "TextDelta",
    "ThinkingDelta",
    "Ticket",
    "Timeouts",
    "TooLong",
    "Unlimited",
    "UsageExport",
    "Wire",
    "alerts",
    "check",
    "cost_json",
    "detect_language",
    "evaluate",
    "lint",
    "load_detector",
    "read_policy",
    "report",
    "route",
    "since",
    "usage_json",
]

_LATER = {
    "Answers": "delegate_tools",
    "Conversation": "delegate_tools",
    "DelegateSource": "delegate_tools",
    "Files": "delegate_tools",
    "Fault": "policy",
    "Held": "delegate_tools",
    "LEVELS": "telemetry",
    "Level": "telemetry",
    "StoredPurse": "shared_budget",
    "TOOLS": "delegate_tools",
    "Telemetry": "telemetry",
    "UsageExport": "telemetry",
    "read_policy": "policy",
}


def __getattr__(name: str) -> object:
    """Import names that need a database or the delegate tools on first use, so that a process that only delegates
    starts faster."""
    if name not in _LATER:
        raise AttributeError(f"module `ullage.delegate` has no attribute `{name}`")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)
