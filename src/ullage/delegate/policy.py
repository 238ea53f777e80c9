"""The routing policy: reading, linting and evaluating it.

A policy as values: which models there are, what they are called, and by what rules one is chosen. It is read from
files elsewhere, checked by `lint`, and gone by in `route`.

Two documents in, a policy out, or every fault in them together. The same tables may stand in other files, so documents
come already parsed, and whoever parsed them tells where a key stands. What is wrong with a policy that can be read,
`lint` says.

Rules that never come to bear, and models that cannot do what a rule wants of them: each a warning that names where it
stands. A policy with warnings still holds.

Over a table of what several models once answered, with score and cost: the policy's choice beside the best single
model, chance, and an oracle that knows every outcome. It says so when one model is both the best and the cheapest.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import TypeVar, cast

from ullage.models import Match, ModelTable, Price
from ullage.tool import JsonObject

__all__ = [
    "Bucket",
    "Case",
    "Evaluation",
    "Fault",
    "LanguageRule",
    "ModelEntry",
    "Place",
    "Policy",
    "Recorded",
    "Standing",
    "Warned",
    "evaluate",
    "lint",
    "read_policy",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model that may be asked."""

    id: str
    """As the policy names it: `openai:gpt-4o`."""
    provider: str
    """Which of the configured providers is asked."""
    model: str
    """What the provider calls it."""
    max_output_tokens: int | None = None
    temperature: float | None = None
    cap_default: int | None = None
    """Output tokens where neither tier nor request asks for more."""
    cap_hard: int | None = None
    """Output tokens that nothing goes beyond."""
    price: Price | None = None
    """The user's own, which wins over every other."""
    window: int | None = None
    """The user's own, instead of the model table's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRule:
    alias: str | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Prompts of so many tokens go to this alias."""

    alias: str
    at_least: int = 0
    at_most: int | None = None
    """None for no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Alias to the id of a model."""
    models: Mapping[str, ModelEntry] = field(default_factory=dict[str, ModelEntry])
    default_alias: str | None = None
    languages: Mapping[str, LanguageRule] = field(default_factory=dict[str, LanguageRule])
    """By two-letter code."""
    buckets: tuple[Bucket, ...] = ()
    """In order; the first that takes a prompt's size is meant."""
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By alias, those asked after it, in order."""
    cap_default: int | None = None
    tiers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Output tokens by tier."""
    temperatures: Mapping[str, float] = field(default_factory=dict[str, float])
    """By domain; `default` among them."""
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    """System prompts by task: `run`, `diff`, `tests`, `judge`."""
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """Dotted key (`routing.tokenBuckets.0`) to file and line, for whoever mends it."""


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


Place = Callable[[Sequence[str]], str | None]
"""File and line of the key at a path, where that is known."""
Value = TypeVar("Value")

_MODEL_KEYS = ("provider", "model", "max_output_tokens", "temperature", "cap", "pricing", "window")
_ROUTING_KEYS = ("defaultAlias", "languageHeuristics", "tokenBuckets", "fallbacks")
_BUCKET_KEYS = ("min", "maxPromptTokens", "alias")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that cannot be read."""

    key: str
    message: str
    place: str | None


@dataclass(slots=True)
class _Reading:
    place: Place
    faults: list[Fault] = field(default_factory=list[Fault])
    places: dict[str, str] = field(default_factory=dict[str, str])

    def fault(self, path: Sequence[str], message: str) -> None:
        key = ".".join(path)
        self.faults.append(Fault(key=key, message=f"`{key}` {message}", place=self.place(path)))

    def note(self, path: Sequence[str]) -> None:
        where = self.place(path)
        if where is not None:
            self.places[".".join(path)] = where


def read_policy(
    models: JsonObject, policies: JsonObject, place: Place = lambda _: None
) -> tuple[Policy, tuple[Fault, ...]]:
    """The policy, less what could not be read, and the faults."""
    reading = _Reading(place)
    routing = _table(policies, ("routing",), reading)
    caps = _table(policies, ("caps",), reading)
    _unknown(models, (), ("aliases", "models"), reading)
    _unknown(policies, (), ("routing", "caps", "temperatures", "prompts"), reading)
    _unknown(routing, ("routing",), _ROUTING_KEYS, reading)
    _unknown(caps, ("caps",), ("default", "tiers"), reading)
    policy = Policy(
        aliases=_all(models, ("aliases",), _text, reading),
        models=dict(_models(models, reading)),
        default_alias=_one(routing, ("routing", "defaultAlias"), _text, reading),
        languages=dict(_languages(routing, reading)),
        buckets=tuple(_buckets(routing, reading)),
        fallbacks=_all(routing, ("routing", "fallbacks"), _texts, reading),
        cap_default=_one(caps, ("caps", "default"), _whole, reading),
        tiers=_all(caps, ("caps", "tiers"), _whole, reading),
        temperatures=_all(policies, ("temperatures",), _number, reading),
        prompts=_all(policies, ("prompts",), _text, reading),
        places=reading.places,
    )
    return policy, tuple(reading.faults)


def _models(document: JsonObject, reading: _Reading) -> Iterator[tuple[str, ModelEntry]]:
    for identity in (table := _table(document, ("models",), reading)):
        path = ("models", identity)
        reading.note(path)
        said = _table(table, path, reading)
        _unknown(said, path, _MODEL_KEYS, reading)
        provider, model = (_one(said, (*path, key), _text, reading) for key in ("provider", "model"))
        if provider is None or model is None:
            reading.fault(path, "must have `provider` and `model`")
            continue
        cap = _table(said, (*path, "cap"), reading)
        yield (
            identity,
            ModelEntry(
                id=identity,
                provider=provider,
                model=model,
                max_output_tokens=_one(said, (*path, "max_output_tokens"), _whole, reading),
                temperature=_one(said, (*path, "temperature"), _number, reading),
                cap_default=_one(cap, (*path, "cap", "default"), _whole, reading),
                cap_hard=_one(cap, (*path, "cap", "hard"), _whole, reading),
                price=_price(said, (*path, "pricing"), reading),
                window=_one(said, (*path, "window"), _whole, reading),
            ),
        )


def _price(said: JsonObject, path: tuple[str, ...], reading: _Reading) -> Price | None:
    """The user's own price of one token."""
    if "pricing" not in said:
        return None
    table = _table(said, path, reading)
    read = {key: _one(table, (*path, key), _money, reading) for key in ("input", "output", "cache_read", "cache_write")}
    return Price(
        input=read["input"],
        output=read["output"],
        cache_read=read["cache_read"],
        cache_write=read["cache_write"],
        currency=_one(table, (*path, "currency"), _text, reading) or "USD",
        source="the user's own",
        date=None,
    )


def _languages(routing: JsonObject, reading: _Reading) -> Iterator[tuple[str, LanguageRule]]:
    path = ("routing", "languageHeuristics")
    for language in (table := _table(routing, path, reading)):
        here = (*path, language)
        reading.note(here)
        said = _table(table, here, reading)
        _unknown(said, here, ("alias", "temperature"), reading)
        yield (
            language,
            LanguageRule(
                alias=_one(said, (*here, "alias"), _text, reading),
                temperature=_one(said, (*here, "temperature"), _number, reading),
            ),
        )


def _buckets(routing: JsonObject, reading: _Reading) -> Iterator[Bucket]:
    path = ("routing", "tokenBuckets")
    listed = routing.get("tokenBuckets", [])
    if not isinstance(listed, list):
        reading.fault(path, "must be a list")
        return
    reading.note(path)
    for number, said in enumerate(listed):
        here = (*path, str(number))
        reading.note(here)
        table = said if isinstance(said, dict) else {}
        _unknown(table, here, _BUCKET_KEYS, reading)
        alias = _one(table, (*here, "alias"), _text, reading)
        if alias is None:
            reading.fault(here, "must be a table with an `alias`")
            continue
        yield Bucket(
            alias=alias,
            at_least=_one(table, (*here, "min"), _whole, reading) or 0,
            at_most=_one(table, (*here, "maxPromptTokens"), _whole, reading),
        )


def _table(holder: JsonObject, path: tuple[str, ...], reading: _Reading) -> JsonObject:
    value = holder.get(path[-1], {})
    if isinstance(value, Mapping):
        return cast("JsonObject", value)
    reading.fault(path, "must be a table")
    return {}


def _unknown(table: JsonObject, path: tuple[str, ...], known: tuple[str, ...], reading: _Reading) -> None:
    for key in table:
        if key not in known:
            reading.fault((*path, key), f"is not known here; known are {', '.join(known)}")


def _one(
    table: JsonObject, path: tuple[str, ...], read: Callable[[object], Value | None], reading: _Reading
) -> Value | None:
    if table.get(path[-1]) is None:
        return None
    value = read(table[path[-1]])
    if value is None:
        reading.fault(path, f"cannot be `{table[path[-1]]}`")
    return value


def _all(
    holder: JsonObject, path: tuple[str, ...], read: Callable[[object], Value | None], reading: _Reading
) -> dict[str, Value]:
    found = dict[str, Value]()
    for name in (table := _table(holder, path, reading)):
        reading.note((*path, name))
        value = _one(table, (*path, name), read, reading)
        if value is not None:
            found[name] = value
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(value: object) -> tuple[str, ...] | None:
    listed = cast("list[object]", value) if isinstance(value, list) else [value]
    texts = tuple(one for one in listed if isinstance(one, str) and one)
    return texts if len(texts) == len(listed) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _number(value: object) -> float | None:
    """One that can be reckoned with: TOML and Python's JSON know others."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None


def _money(value: object) -> Decimal | None:
    """By its shortest writing: JSON's 0.000003 is meant as it stands, not as the nearest binary fraction."""
    number = _number(value)
    return Decimal(repr(value)) if number is not None and number >= 0 else None


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
