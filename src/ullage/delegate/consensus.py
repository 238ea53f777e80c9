"""What do several models say to the same question?

Asked side by side, each once and without fallbacks, since a substitute would count one model twice; all of it is one
call to whoever pays. Who fails is named and left out; a judge, where one is wanted, writes one answer of all.
"""

from dataclasses import dataclass, replace

import anyio

from ullage.errors import InvalidArguments, UllageError
from ullage.models import Cost

from .agreement import agreement
from .attempt import Hear
from .framing import asked, system
from .one_call import as_one_call
from .outcome import Outcome
from .policy import Policy
from .run import Ask, Delegate

__all__ = ["Consensus", "consensus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    answers: dict[str, Outcome]
    """By the name each was asked by, in that order."""
    failed: dict[str, str]
    """By the same names, and `judge`."""
    agreement: float | None
    """Of the words, 0 to 1; None where fewer than two answered."""
    judged: Outcome | None
    cost: Cost | None
    """Of every attempt, of those too who failed; None where one has no price."""


async def consensus(
    delegate: Delegate, ask: Ask, models: tuple[str, ...], judge: str | None, hear: Hear = lambda _: None
) -> Consensus:
    """Raises `InvalidArguments` for fewer than two models, and what the last one raised where nobody answered."""
    names = _different(models or tuple(delegate.policy.aliases), delegate.policy)
    if len(names) < 2:
        raise InvalidArguments(
            "a consensus needs two different models",
            suggestion="name two aliases of different models under `models`",
            options=tuple(delegate.policy.aliases),
        )
    delegate, call = as_one_call(delegate)
    if judge is not None:
        # A judge that is not there is found out before anyone is paid.
        await delegate.plan(replace(ask, force_model=judge))
    outcomes, errors = dict[str, Outcome](), dict[str, UllageError]()

    async def one(name: str) -> None:
        try:
            outcomes[name] = await delegate.run(replace(ask, force_model=name, alone=True), hear)
        except UllageError as error:
            errors[name] = error

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(one, name)
    if not outcomes:
        raise _nobody(errors)
    ordered = {name: outcomes[name] for name in names if name in outcomes}
    judged = None
    if judge is not None:
        try:
            judged = await _judge(delegate, ask, ordered, judge, hear)
        except UllageError as error:
            errors["judge"] = error
    return Consensus(
        answers=ordered,
        failed={name: error.message for name, error in errors.items()},
        agreement=agreement([outcome.completion.text for outcome in ordered.values()]),
        judged=judged,
        cost=call.cost,
    )


def _nobody(errors: dict[str, UllageError]) -> UllageError:
    """The last error, which then names every member and why it gave no answer."""
    last = list(errors.values())[-1]
    last.message = "\n  ".join(("no model answered:", *(f"{name}: {one.message}" for name, one in errors.items())))
    last.args = (last.message,)
    last.suggestion = "; ".join(dict.fromkeys(one.suggestion for one in errors.values() if one.suggestion))
    return last


def _different(names: tuple[str, ...], policy: Policy) -> tuple[str, ...]:
    """The first name of each model."""
    by_model = {policy.aliases.get(name, name): name for name in reversed(names)}
    return tuple(name for name in dict.fromkeys(names) if name in by_model.values())


async def _judge(delegate: Delegate, ask: Ask, answers: dict[str, Outcome], judge: str, hear: Hear) -> Outcome:
    said = "\n".join(f'<answer model="{name}">\n{one.completion.text}\n</answer>' for name, one in answers.items())
    question = [message for message in ask.messages if message.role not in ("system", "developer")]
    messages = (*system(delegate.policy.prompts, "judge"), *question, asked(said))
    return await delegate.run(replace(ask, force_model=judge, messages=messages, prompt_tokens=None), hear)
