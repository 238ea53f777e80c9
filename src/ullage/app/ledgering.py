"""How does a model call get into the ledger?

An entry for each attempt, since each may be another model's: what it took and cost, never the prompt or the answer.
"""

from dataclasses import dataclass

from ullage.delegate import Attempt, Happening
from ullage.ledger import Entry, Recorder
from ullage.tokens import Method

__all__ = ["Ledgering"]


@dataclass(frozen=True, slots=True)
class Ledgering:
    recorder: Recorder

    def happened(self, happening: Happening) -> None:
        for attempt in happening.attempts:
            self.recorder.record(_entry(happening, attempt))


def _entry(happening: Happening, attempt: Attempt) -> Entry:
    caller, usage, cost = happening.caller, attempt.usage, attempt.cost
    total = None if cost is None else cost.total
    return Entry(
        time=happening.time,
        kind="model",
        principal=caller.principal,
        session=caller.session,
        session_inferred=caller.session_inferred,
        client=caller.client,
        server=attempt.provider,
        tool=None if (happening.tool or happening.task) is None else f"delegate.{happening.tool or happening.task}",
        model=attempt.model,
        tokens=(usage.input or 0) + (usage.output or 0),
        method=Method.ANCHORED if attempt.usage_reported else Method.ESTIMATED,
        milliseconds=attempt.milliseconds,
        is_error=not attempt.success,
        detail={
            "alias": attempt.alias,
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cached_input_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "reasoning_tokens": usage.reasoning,
            "currency": None if cost is None else cost.currency,
            "cost": None if total is None else f"{total:f}",
            "price_source": None if cost is None else cost.source,
            "kind": attempt.kind,
        },
    )
