"""How is a model asked again when its answer is not what was wanted?

With what it wrote and why that will not do, a few times at most, and all of it one call to whoever pays. What is wanted
is a function that reads the answer or says what is wrong with it; an answer that was cut is not read at all.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from ullage.errors import SourceFailed
from ullage.messages import Message, Text

from .attempt import Hear
from .one_call import as_one_call
from .outcome import Outcome
from .run import Ask, Delegate

__all__ = ["Checked", "Unfit", "ask_until_fit"]

Value = TypeVar("Value")

_TIMES = 3


class Unfit(Exception):
    """Why an answer will not do, in words that its writer can mend it by."""


@dataclass(frozen=True, slots=True)
class Checked(Generic[Value]):
    value: Value
    outcome: Outcome
    """Of the last answer."""
    outcomes: tuple[Outcome, ...]
    """Of every answer, the last among them: each was paid for."""


async def ask_until_fit(
    delegate: Delegate, ask: Ask, fits: Callable[[str], Value], hear: Hear = lambda _: None
) -> Checked[Value]:
    """`fits` returns what the answer holds or raises `Unfit`. Raises `SourceFailed` where no answer would do."""
    outcomes, faults = list[Outcome](), list[str]()
    asked, _ = as_one_call(delegate)
    for _ in range(_TIMES):
        outcome = await asked.run(ask, hear)
        outcomes.append(outcome)
        try:
            return Checked(fits(_whole(outcome)), outcome, tuple(outcomes))
        except Unfit as fault:
            faults.append(str(fault))
            messages = (*ask.messages, outcome.completion.message, _again(str(fault)))
            ask = replace(ask, messages=messages, prompt_tokens=None)
    raise SourceFailed(
        f"none of {_TIMES} answers would do; the last: {faults[-1]}",
        suggestion="ask for less at once, or name a stronger model with `forceModel`",
    )


def _whole(outcome: Outcome) -> str:
    """The answer, where its end is one: half of it may look like all."""
    if outcome.completion.finish == "length":
        raise Unfit("it was cut off before its end: be shorter")
    return outcome.completion.text


def _again(fault: str) -> Message:
    return Message(role="user", parts=(Text(f"That cannot be used: {fault}. Write all of it again, corrected."),))
