"""Would this policy have paid?

Over a table of what several models once answered, with score and cost: the policy's choice beside the best single
model, chance, and an oracle that knows every outcome. It says so when one model is both the best and the cheapest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Case", "Evaluation", "Recorded", "Standing", "evaluate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What one model's answer was worth."""

    score: float
    cost: float | None = None
    """None where it was not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    prompt: str = ""
    prompt_tokens: int | None = None
    """None where the prompt itself is to be counted."""
    language: str | None = None
    domain: str | None = None
    tier: str | None = None
    outcomes: Mapping[str, Recorded] = field(default_factory=dict[str, Recorded])
    """By model id or alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one way of choosing did."""

    name: str
    score: float
    """Mean over the cases."""
    cost: float | None
    """Mean; None where a cost is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    policy: Standing
    singles: tuple[Standing, ...]
    """Each model alone, the best score first."""
    chance: Standing
    oracle: Standing
    cases: int
    left_out: int
    """Cases without an outcome of the model that the policy chose, or of every model."""
    dominant: str | None
    """The model that no other beats in score or in cost; None where there is none, or costs are not known."""
    chosen: Mapping[str, int]
    """How often the policy took each model."""

    @property
    def best(self) -> Standing:
        return self.singles[0]

    @property
    def verdict(self) -> str:
        gained = self.policy.score - self.best.score
        if gained > 0:
            return f"{gained:.3f} above `{self.best.name}` alone{_saving(self.policy, self.best)}"
        if self.dominant is not None:
            best = f"`{self.dominant}` is the best and the cheapest"
            return f"{best}: routing gains nothing here, and an oracle {self.oracle.score - self.best.score:.3f}"
        if gained < 0 and not _cheaper(self.policy, self.best):
            return f"`{self.best.name}` alone is better and costs no more than this policy"
        if gained == 0:
            return f"as good as `{self.best.name}` alone{_saving(self.policy, self.best)}"
        return f"{-gained:.3f} below `{self.best.name}` alone{_saving(self.policy, self.best)}"


def evaluate(cases: Sequence[Case], choose: Callable[[Case], Sequence[str]]) -> Evaluation | None:
    """`choose` gives the names of the model that the policy takes. None where no case can be judged."""
    models = _everywhere(cases)
    judged = [(case, name) for case in cases if (name := _recorded(case, choose(case), models)) is not None]
    if not judged:
        return None
    kept = [case for case, _ in judged]
    singles = [_standing(model, [case.outcomes[model] for case in kept]) for model in models]
    return Evaluation(
        policy=_standing("policy", [case.outcomes[name] for case, name in judged]),
        singles=tuple(sorted(singles, key=lambda one: (-one.score, one.cost is None, one.cost or 0))),
        chance=_chance(singles),
        oracle=_standing("oracle", [_best(case, models) for case in kept]),
        cases=len(judged),
        left_out=len(cases) - len(judged),
        dominant=_dominant(singles),
        chosen={model: sum(name == model for _, name in judged) for model in models},
    )


def _everywhere(cases: Sequence[Case]) -> list[str]:
    """Models with an outcome in most cases; a case without one of them is left out."""
    counts = dict[str, int]()
    for case in cases:
        for model in case.outcomes:
            counts[model] = counts.get(model, 0) + 1
    return [model for model, count in counts.items() if 2 * count > len(cases)]


def _recorded(case: Case, names: Sequence[str], models: Sequence[str]) -> str | None:
    if any(model not in case.outcomes for model in models):
        return None
    return next((name for name in names if name in models), None)


def _standing(name: str, outcomes: Sequence[Recorded]) -> Standing:
    costs = [one.cost for one in outcomes if one.cost is not None]
    return Standing(
        name=name,
        score=sum(one.score for one in outcomes) / len(outcomes),
        cost=sum(costs) / len(costs) if len(costs) == len(outcomes) else None,
    )


def _chance(singles: Sequence[Standing]) -> Standing:
    return _standing("random", [Recorded(score=one.score, cost=one.cost) for one in singles])


def _best(case: Case, models: Sequence[str]) -> Recorded:
    """The highest score, and of those the cheapest."""
    outcomes = [case.outcomes[model] for model in models]
    return min(outcomes, key=lambda one: (-one.score, one.cost is None, one.cost or 0))


def _dominant(singles: Sequence[Standing]) -> str | None:
    if len(singles) < 2 or any(one.cost is None for one in singles):
        return None
    best = max(one.score for one in singles)
    least = min(one.cost or 0 for one in singles)
    return next((one.name for one in singles if one.score == best and one.cost == least), None)


def _cheaper(one: Standing, other: Standing) -> bool:
    return one.cost is not None and other.cost is not None and one.cost < other.cost


def _saving(one: Standing, other: Standing) -> str:
    if one.cost is None or not other.cost:
        return ""
    part = 1 - one.cost / other.cost
    if round(part, 2) == 0:
        return " at the same cost"
    return f", {part:.0%} cheaper" if part > 0 else f", {-part:.0%} dearer"
