"""Delegates tasks to other models: routing, retries, budgets and checked answers."""

from importlib import import_module
from typing import TYPE_CHECKING

from .ceilings import Alert, Ceiling, Ceilings, Scope, alerts, check, since
from .evaluate import Case, Evaluation, Recorded, Standing, evaluate
from .exchange import Completion, Event, Outgoing, TextDelta, ThinkingDelta, Wire
from .failure import FailureKind, ProviderFailed
from .happening import Happening, Observer
from .language import detect_language, load_detector
from .lint import Warned, lint
from .local_purse import LocalPurse
from .outcome import Attempt, Outcome
from .policy import Bucket, LanguageRule, ModelEntry, Policy
from .provider import Provider, Timeouts
from .providers import Anthropic, Gemini, OpenAIChat, OpenAIResponses
from .report import DELEGATE, cost_json, report, usage_json
from .retry import Patience
from .route import Candidate, Parameters, Route, RouteRequest, route
from .run import Ask, Delegate
from .shortening import TooLong
from .spending import NO_SPEND, Purse, Spend, Ticket, Unlimited

if TYPE_CHECKING:
    from .budget import StoredPurse
    from .export import UsageExport
    from .materials import Answers, Conversation, Files, Held
    from .reading import Fault, read_policy
    from .source import DelegateSource
    from .telemetry import LEVELS, Level, Telemetry
    from .tools import TOOLS

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
    "Happening",
    "Held",
    "LanguageRule",
    "Level",
    "LocalPurse",
    "ModelEntry",
    "Observer",
    "OpenAIChat",
    "OpenAIResponses",
    "Outcome",
    "Outgoing",
    "Parameters",
    "Patience",
    "Policy",
    "Provider",
    "ProviderFailed",
    "Purse",
    "Recorded",
    "Route",
    "RouteRequest",
    "Scope",
    "Spend",
    "Standing",
    "StoredPurse",
    "Telemetry",
    "TextDelta",
    "ThinkingDelta",
    "Ticket",
    "Timeouts",
    "TooLong",
    "Unlimited",
    "UsageExport",
    "Warned",
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
    "Answers": "materials",
    "Conversation": "materials",
    "DelegateSource": "source",
    "Files": "materials",
    "Fault": "reading",
    "Held": "materials",
    "LEVELS": "telemetry",
    "Level": "telemetry",
    "StoredPurse": "budget",
    "TOOLS": "tools",
    "Telemetry": "telemetry",
    "UsageExport": "export",
    "read_policy": "reading",
}


def __getattr__(name: str) -> object:
    """Loads what brings a database or all the tools with it when it is first asked for: a process that only delegates
    does not wait for them."""
    if name not in _LATER:
        raise AttributeError(f"module `ullage.delegate` has no attribute `{name}`")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)
