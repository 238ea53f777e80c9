"""The metadata of a delegation: decision, parameters, rationale, usage, cost and attempts.

JSON under one key of the reply's `_meta`, of a reply that failed too: for the client, never for the model. No body of a
provider is among it.
"""

from collections.abc import Sequence
from decimal import Decimal

from ullage.models import Cost, Usage
from ullage.tool import Json

from .happening import Happening
from .outcome import Attempt, Outcome
from .tally import together

__all__ = ["DELEGATE", "cost_json", "report", "report_failure", "usage_json"]

DELEGATE = "dev.ullage/delegate"


def report(outcome: Outcome) -> dict[str, Json]:
    candidate = outcome.candidate
    said: dict[str, Json] = {
        "decision": {
            "provider": candidate.entry.provider,
            "model": candidate.entry.model,
            "alias": candidate.alias,
        },
        "parameters": {
            "max_output_tokens": candidate.parameters.max_output_tokens,
            "temperature": candidate.parameters.temperature,
        },
        "rationale": list(outcome.route.rationale),
        "usage": {
            "estimated_input_tokens": outcome.estimated_input,
            **usage_json(outcome.usage),
            "reported": outcome.usage_reported,
        },
        "cost": cost_json(outcome.cost),
        "meta": {"fallback_used": outcome.fallback_used, "attempts": [_attempt(one) for one in outcome.attempts]},
        "finish": outcome.completion.finish,
    }
    if outcome.warnings:
        said["warnings"] = list(outcome.warnings)
    return said


def report_failure(happened: Sequence[Happening]) -> dict[str, Json]:
    """The same for a call that came to nothing: what was tried, and what that cost.

    Args:
        happened: the runs of the call, each of which may have answered; empty where nobody was asked.
    """
    attempts = [attempt for one in happened for attempt in one.attempts]
    return {
        "decision": None,
        "rationale": [reason for one in happened for reason in one.route.rationale],
        "usage": {"estimated_input_tokens": sum(one.estimated_input for one in happened)},
        "cost": cost_json(together([one.cost for one in attempts]) if attempts else None),
        "meta": {
            "fallback_used": any(one.route.preferred for one in happened)
            or len({(one.provider, one.model) for one in attempts}) > 1,
            "attempts": [_attempt(one) for one in attempts],
        },
    }


def usage_json(usage: Usage) -> dict[str, Json]:
    total = None if usage.input is None or usage.output is None else usage.input + usage.output
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": total,
        "cached_input_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }


def cost_json(cost: Cost | None) -> Json:
    """Null where nobody knows the price."""
    if cost is None:
        return None
    return {
        "currency": cost.currency,
        "input": _money(cost.input),
        "output": _money(cost.output),
        "total": _money(cost.total),
        "price_source": cost.source,
        "as_of": None if cost.date is None else cost.date.isoformat(),
    }


def _money(amount: Decimal | None) -> float | None:
    """As the number that the original had; no price has so many digits that this would round it."""
    return None if amount is None else float(amount)


def _attempt(one: Attempt) -> dict[str, Json]:
    said: dict[str, Json] = {
        "alias": one.alias,
        "provider": one.provider,
        "model": one.model,
        "success": one.success,
        "latency_ms": one.milliseconds,
    }
    if one.waited:
        said["waited_ms"] = one.waited
    if not one.success:
        said |= {"kind": one.kind, "status": one.status, "error": one.error}
        if one.usage.input or one.usage.output:
            said |= {"usage": usage_json(one.usage), "cost": cost_json(one.cost)}
    return said
