"""What in a policy cannot be meant?

Rules that never come to bear, and models that cannot do what a rule wants of them: each a warning that names where it
stands. A policy with warnings still holds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import pairwise

from ullage.models import Match, ModelTable

from .policy import ModelEntry, Policy

__all__ = ["Warned", "lint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """One thing that is wrong with a policy."""

    key: str
    """Dotted, as in the file: `routing.tokenBuckets.0`."""
    message: str
    place: str | None
    """File and line, where they are known."""


_Finding = tuple[str, str]


def lint(policy: Policy, models: ModelTable, today: date) -> tuple[Warned, ...]:
    findings = (finding for check in _CHECKS for finding in check(policy, models, today))
    return tuple(Warned(key=key, message=message, place=_place(key, policy)) for key, message in findings)


def _place(key: str, policy: Policy) -> str | None:
    """Its own, or that of the nearest table around it."""
    while key and key not in policy.places:
        key = key.rpartition(".")[0]
    return policy.places.get(key)


def _entry(alias: str, policy: Policy) -> ModelEntry | None:
    return policy.models.get(policy.aliases.get(alias, alias))


def _names(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Aliases that lead nowhere."""
    for alias, identity in policy.aliases.items():
        if identity not in policy.models:
            yield f"aliases.{alias}", f"alias `{alias}` stands for `{identity}`, which is no model here"
    for key, alias in _mentions(policy):
        if _entry(alias, policy) is None and alias not in policy.aliases:
            yield key, f"no alias or model is called `{alias}`"


def _mentions(policy: Policy) -> Iterator[tuple[str, str]]:
    if policy.default_alias is not None:
        yield "routing.defaultAlias", policy.default_alias
    for language, rule in policy.languages.items():
        if rule.alias is not None:
            yield f"routing.languageHeuristics.{language}", rule.alias
    for number, bucket in enumerate(policy.buckets):
        yield f"routing.tokenBuckets.{number}", bucket.alias
    for alias, chain in policy.fallbacks.items():
        yield from ((f"routing.fallbacks.{alias}", name) for name in (alias, *chain))


def _dead_buckets(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Buckets that no prompt reaches, and gaps between them."""
    reached = 0
    for number, bucket in enumerate(policy.buckets):
        key = f"routing.tokenBuckets.{number}"
        end = float("inf") if bucket.at_most is None else bucket.at_most
        if end < max(reached, bucket.at_least):
            yield key, f"bucket `{bucket.alias}` is dead: those before it take every prompt of its size"
            continue
        if bucket.at_least > reached:
            yield key, f"no bucket takes prompts of {reached:,.0f} to {bucket.at_least - 1:,} tokens"
        reached = end + 1
    if policy.buckets and reached != float("inf"):
        yield "routing.tokenBuckets", f"no bucket takes prompts of more than {reached - 1:,.0f} tokens"


def _dead_first_bucket(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """The first bucket yields to the language's alias."""
    first = policy.buckets[0].alias if policy.buckets else None
    for language, rule in policy.languages.items():
        if rule.alias is not None and first is not None and rule.alias != first:
            said = (
                f"for `{language}` the first bucket's `{first}` is dead: the language's `{rule.alias}` comes before it"
            )
            yield "routing.tokenBuckets.0", said


def _dead_default(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    if policy.default_alias is not None and policy.buckets:
        takes_all = policy.buckets[-1].at_most is None and policy.buckets[0].at_least == 0
        if takes_all and all(bucket.alias != policy.default_alias for bucket in policy.buckets):
            yield "routing.defaultAlias", f"default `{policy.default_alias}` is dead: a bucket takes every prompt"


def _small_models(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Buckets whose model has not the window for the prompts they take."""
    for number, bucket in enumerate(policy.buckets):
        entry = _entry(bucket.alias, policy)
        window = None if entry is None else _window(entry, models)
        if window is None:
            continue
        key = f"routing.tokenBuckets.{number}"
        if max(bucket.at_most or 0, bucket.at_least) >= window:
            yield key, f"`{bucket.alias}` has a window of {window:,}, less than the prompts of its bucket"
        elif bucket.at_most is None and (larger := _larger_than(window, policy, models)) is not None:
            yield key, f"`{bucket.alias}` takes prompts of any size with a window of {window:,}; `{larger}` has more"


def _larger_than(window: int, policy: Policy, models: ModelTable) -> str | None:
    windows = {identity: _window(entry, models) or 0 for identity, entry in policy.models.items()}
    best = max(windows, key=windows.__getitem__, default=None)
    return best if best is not None and windows[best] > window else None


def _tiers(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Tiers that no model reaches, and tiers that come to the same."""
    most = max((limit for entry in policy.models.values() if (limit := _hard(entry, models)) is not None), default=None)
    for tier, cap in policy.tiers.items():
        if most is not None and cap > most:
            yield f"caps.tiers.{tier}", f"tier `{tier}` allows {cap:,}, and no model gives more than {most:,}"
    for (one, low), (other, high) in pairwise(sorted(policy.tiers.items(), key=lambda item: item[1])):
        if most is not None and low >= most and high > low:
            yield (
                f"caps.tiers.{other}",
                f"tier `{other}` comes to the same as `{one}`: no model gives more than {most:,}",
            )


def _caps(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    for identity, entry in policy.models.items():
        hard, default = entry.cap_hard, entry.cap_default
        if hard is not None and default is not None and default > hard:
            yield (
                f"models.{identity}.cap",
                f"`{identity}` has a default cap of {default:,} above its hard cap of {hard:,}",
            )
        match = models.get(entry.model)
        most = None if match is None else match.card.max_output
        if most is not None and hard is not None and hard > most:
            yield f"models.{identity}.cap", f"`{identity}` gives {most:,} tokens at most, and its hard cap is {hard:,}"
        elif most is not None and entry.max_output_tokens is not None and entry.max_output_tokens > most:
            said = f"`{identity}` gives {most:,} tokens at most, not {entry.max_output_tokens:,}"
            yield f"models.{identity}", said


def _cycles(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Fallbacks that lead back: harmless, since no model is asked twice, but they hide how short a chain is."""
    for alias, chain in policy.fallbacks.items():
        back = [name for name in chain if alias in policy.fallbacks.get(name, ())]
        if alias in chain:
            yield f"routing.fallbacks.{alias}", f"`{alias}` falls back on itself"
        for name in back:
            if name != alias and alias < name:
                yield f"routing.fallbacks.{alias}", f"`{alias}` and `{name}` fall back on one another"
    for ring in map(partial(_ring, policy=policy), policy.fallbacks):
        if len(ring) > 2 and ring[0] == min(ring):
            circle = " -> ".join(f"`{name}`" for name in (*ring, ring[0]))
            yield f"routing.fallbacks.{ring[0]}", f"fallbacks in a circle: {circle}"
    for alias, chain in policy.fallbacks.items():
        same = [name for name in chain if name != alias and _same_model(alias, name, policy)]
        yield from (
            (f"routing.fallbacks.{alias}", f"`{alias}` falls back on `{name}`, which is the same model")
            for name in same
        )


def _ring(alias: str, policy: Policy) -> tuple[str, ...]:
    """The shortest way by which fallbacks lead back to an alias, itself first; nothing where there is none."""
    ways, seen = [(alias,)], {alias}
    for way in ways:
        chain = policy.fallbacks.get(way[-1], ())
        if alias in chain:
            return way
        ways += [(*way, name) for name in dict.fromkeys(chain) if name not in seen]
        seen |= set(chain)
    return ()


def _same_model(one: str, other: str, policy: Policy) -> bool:
    return policy.aliases.get(one, one) == policy.aliases.get(other, other)


def _temperatures(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    for identity, entry in policy.models.items():
        match = models.get(entry.model)
        if entry.temperature is not None and match is not None and match.card.accepts.get("temperature") is False:
            yield f"models.{identity}", f"`{identity}` refuses a temperature; {entry.temperature:g} is left out"
    out_of_bounds = ((name, value) for name, value in policy.temperatures.items() if not 0 <= value <= 2)
    for name, value in out_of_bounds:
        yield f"temperatures.{name}", f"temperature `{name}` is {value:g}; it is held to 0 to 2"


def _retired(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    for identity, entry in policy.models.items():
        match = models.get(entry.model)
        if match is None:
            yield f"models.{identity}", f"`{entry.model}` is not in the model table: its window and price are not known"
        elif (said := _retirement(match, today)) is not None:
            yield f"models.{identity}", said


def _retirement(match: Match, today: date) -> str | None:
    card = match.card
    if card.retired is None:
        return None
    instead = f"; use `{card.replaced_by}`" if card.replaced_by else ""
    when = "was retired" if card.retired <= today else "will be retired"
    return f"`{card.id}` {when} on {card.retired.isoformat()}{instead}"


def _window(entry: ModelEntry, models: ModelTable) -> int | None:
    match = models.get(entry.model)
    return entry.window or (None if match is None else match.card.window)


def _hard(entry: ModelEntry, models: ModelTable) -> int | None:
    match = models.get(entry.model)
    limits = (entry.cap_hard, entry.max_output_tokens, None if match is None else match.card.max_output)
    return min((limit for limit in limits if limit is not None), default=None)


_CHECKS: tuple[Callable[[Policy, ModelTable, date], Iterator[_Finding]], ...] = (
    _names,
    _dead_buckets,
    _dead_first_bucket,
    _dead_default,
    _small_models,
    _tiers,
    _caps,
    _cycles,
    _temperatures,
    _retired,
)
