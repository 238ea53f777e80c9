"""Who answers this, at what price?"""

from .budget import StoredPurse
from .ceilings import Alert, Ceiling, Ceilings, Scope, alerts, check, since
from .evaluate import Case, Evaluation, Recorded, Standing, evaluate
from .exchange import Completion, Event, Outgoing, TextDelta, ThinkingDelta, Wire
from .export import UsageExport
from .failure import FailureKind, ProviderFailed
from .happening import Happening, Observer
from .language import detect_language
from .lint import Warned, lint
from .outcome import Attempt, Outcome
from .policy import Bucket, LanguageRule, ModelEntry, Policy
from .provider import Provider, Timeouts
from .providers import Anthropic, Gemini, OpenAIChat, OpenAIResponses
from .reading import Fault, read_policy
from .report import DELEGATE, cost_json, report, usage_json
from .retry import Patience
from .route import Candidate, Parameters, Route, RouteRequest, route
from .run import Ask, Delegate
from .source import DelegateSource, Held
from .spending import Purse, Spend, Ticket, Unlimited
from .telemetry import LEVELS, Level, Telemetry
from .tools import TOOLS

__all__ = [
    "DELEGATE",
    "LEVELS",
    "TOOLS",
    "Alert",
    "Anthropic",
    "Ask",
    "Attempt",
    "Bucket",
    "Candidate",
    "Case",
    "Ceiling",
    "Ceilings",
    "Completion",
    "Delegate",
    "DelegateSource",
    "Evaluation",
    "Event",
    "FailureKind",
    "Fault",
    "Gemini",
    "Happening",
    "Held",
    "LanguageRule",
    "Level",
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
    "read_policy",
    "report",
    "route",
    "since",
    "usage_json",
]
