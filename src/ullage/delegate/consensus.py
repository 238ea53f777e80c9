"""What do several models say to the same question?

Asked side by side, each without fallbacks, since a substitute would count one model twice. Who fails is named and left
out; a judge, where one is wanted, writes one answer of all.
"""

from dataclasses import dataclass, replace

import anyio

from ullage.errors import InvalidArguments, UllageError
from ullage.models import Cost

from .agreement import agreement
from .framing import asked, system
from .outcome import Outcome
from .run import Ask, Delegate
from .tally import together

__all__ = ["Consensus", "consensus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    answers: dict[str, Outcome]
    """By the name each was asked by, in that order."""
    failed: dict[str, str]
    agreement: float | None
    """Of the words, 0 to 1; None where fewer than two answered."""
    judged: Outcome | None = None

    @property
    def cost(self) -> Cost | None:
        everyone = [*self.answers.values(), *([self.judged] if self.judged else [])]
        return together([one.cost for one in everyone])


async def consensus(delegate: Delegate, ask: Ask, models: tuple[str, ...], judge: str | None) -> Consensus:
    """Raises `InvalidArguments` for fewer than two models, and what the last one raised where nobody answered."""
    names = tuple(dict.fromkeys(models)) or tuple(delegate.policy.aliases)
    if len(names) < 2:
        raise InvalidArguments("a consensus needs two models", options=tuple(delegate.policy.aliases))
    outcomes, errors = dict[str, Outcome](), dict[str, UllageError]()

    async def one(name: str) -> None:
        try:
            outcomes[name] = await delegate.run(replace(ask, force_model=name, alone=True))
        except UllageError as error:
            errors[name] = error

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(one, name)
    if not outcomes:
        raise list(errors.values())[-1]
    ordered = {name: outcomes[name] for name in names if name in outcomes}
    texts = [outcome.completion.text for outcome in ordered.values()]
    return Consensus(
        answers=ordered,
        failed={name: error.message for name, error in errors.items()},
        agreement=agreement(texts),
        judged=None if judge is None else await _judge(delegate, ask, ordered, judge),
    )


async def _judge(delegate: Delegate, ask: Ask, answers: dict[str, Outcome], judge: str) -> Outcome:
    said = "\n".join(f'<answer model="{name}">\n{one.completion.text}\n</answer>' for name, one in answers.items())
    question = [message for message in ask.messages if message.role not in ("system", "developer")]
    messages = (*system(delegate.policy.prompts, "judge"), *question, asked(said))
    return await delegate.run(replace(ask, force_model=judge, messages=messages))
