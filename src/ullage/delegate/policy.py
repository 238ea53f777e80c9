"""The routing policy: reading, linting and evaluating it.

A `Policy` is a set of values: the available models, their aliases, and the rules by which `router` chooses one.

`read_policy` makes a policy from two parsed documents, and returns all faults in them together. The same tables may be
in other files, so the documents are passed already parsed, with a function that locates a key in its file.

`lint` warns about rules that never apply and models that cannot do what a rule requires, with the place of each. A
policy with warnings remains in force.

`evaluate` replays a table of recorded answers of several models, with score and cost. It compares the policy's choice
with the best single model, random choice, and an oracle that knows every outcome, and reports if one model is both the
best and the cheapest.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import TypeVar, cast

from ullage.models import ModelTable, Price
from ullage.tool import JsonObject

__all__ = [
    "Bucket",
    "Case",
    "Evaluation",
    "Fault",
    "LanguageRule",
    "MeanResult",
    "ModelEntry",
    "Place",
    "Policy",
    "PolicyWarning",
    "RecordedOutcome",
    "evaluate",
    "lint",
    "read_policy",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model of the policy."""

    id: str
    """The policy's name for it: `openai:gpt-4o`."""
    provider: str
    """Name of the configured provider that serves it."""
    model: str
    """The provider's name for it."""
    max_output_tokens: int | None = None
    temperature: float | None = None
    cap_default: int | None = None
    """Output tokens if neither tier nor request asks for more."""
    cap_hard: int | None = None
    """Upper limit of output tokens."""
    price: Price | None = None
    """The user's own price, which overrides every other source."""
    window: int | None = None
    """The user's own context window, which overrides the model table's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRule:
    """The alias and temperature for prompts in one language."""

    alias: str | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The alias for prompts within a range of tokens."""

    alias: str
    at_least: int = 0
    at_most: int | None = None
    """None for no upper limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The models that may be asked, and the rules that choose among them."""

    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Model ids by alias."""
    models: Mapping[str, ModelEntry] = field(default_factory=dict[str, ModelEntry])
    default_alias: str | None = None
    languages: Mapping[str, LanguageRule] = field(default_factory=dict[str, LanguageRule])
    """Rules by two-letter language code."""
    buckets: tuple[Bucket, ...] = ()
    """In order; the first whose range contains the prompt's size applies."""
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By alias, the names to try after it, in order."""
    cap_default: int | None = None
    tiers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Output tokens by tier."""
    temperatures: Mapping[str, float] = field(default_factory=dict[str, float])
    """By domain, `default` included."""
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    """System prompts by task: `run`, `diff`, `tests`, `judge`."""
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """File and line by dotted key (`routing.tokenBuckets.0`), for warnings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOutcome:
    """The recorded score and cost of one model's answer."""

    score: float
    cost: float | None = None
    """None if it was not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One prompt of an evaluation, with the recorded answers of several models."""

    prompt: str = ""
    prompt_tokens: int | None = None
    """None to count the prompt itself."""
    language: str | None = None
    domain: str | None = None
    tier: str | None = None
    outcomes: Mapping[str, RecordedOutcome] = field(default_factory=dict[str, RecordedOutcome])
    """Results by model id or alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanResult:
    """The mean result of one way of choosing models."""

    name: str
    score: float
    """Mean over all cases."""
    cost: float | None
    """Mean over all cases; None if a cost is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The result of `evaluate`: the policy compared with single models, random choice and an oracle."""

    policy: MeanResult
    singles: tuple[MeanResult, ...]
    """Each model on its own, the best score first."""
    chance: MeanResult
    oracle: MeanResult
    cases: int
    left_out: int
    """Cases that lack an outcome of the model the policy chose, or of one of the compared models."""
    dominant: str | None
    """The model that no other beats in score or in cost; None if there is none, or costs are unknown."""
    chosen: Mapping[str, int]
    """How often the policy chose each model."""

    @property
    def best(self) -> MeanResult:
        """The single model with the best score."""
        return self.singles[0]

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        gained = self.policy.score - self.best.score
        if gained > 0:
            return f"{gained:.3f} above `{self.best.name}` alone{_describe_saving(self.policy, self.best)}"
        if self.dominant is not None:
            best = f"`{self.dominant}` is the best and the cheapest"
            return f"{best}: routing gains nothing here, and an oracle {self.oracle.score - self.best.score:.3f}"
        if gained < 0 and not (
            self.policy.cost is not None and self.best.cost is not None and self.policy.cost < self.best.cost
        ):
            return f"`{self.best.name}` alone is better and costs no more than this policy"
        if gained == 0:
            return f"as good as `{self.best.name}` alone{_describe_saving(self.policy, self.best)}"
        return f"{-gained:.3f} below `{self.best.name}` alone{_describe_saving(self.policy, self.best)}"


def evaluate(cases: Sequence[Case], choose: Callable[[Case], Sequence[str]]) -> Evaluation | None:
    """Compare the policy's choices with single models, random choice and an oracle.

    Args:
        cases: prompts with recorded outcomes.
        choose: returns the names of the model that the policy chooses for a case.

    Returns:
        The comparison; None if no case can be judged.
    """
    # Cases that lack one of the models with outcomes in most cases are left out.
    counts = dict[str, int]()
    for case in cases:
        for model in case.outcomes:
            counts[model] = counts.get(model, 0) + 1
    models = [model for model, count in counts.items() if 2 * count > len(cases)]
    judged = list[tuple[Case, str]]()
    for case in cases:
        name = next((name for name in choose(case) if name in models), None)
        if name is not None and all(model in case.outcomes for model in models):
            judged.append((case, name))
    if not judged:
        return None
    kept = [case for case, _ in judged]
    singles = [_mean_result(model, [case.outcomes[model] for case in kept]) for model in models]
    best_answers = [
        min((case.outcomes[model] for model in models), key=lambda one: (-one.score, one.cost is None, one.cost or 0))
        for case in kept
    ]
    dominant = None
    if len(singles) >= 2 and all(one.cost is not None for one in singles):
        best = max(one.score for one in singles)
        least = min(one.cost or 0 for one in singles)
        dominant = next((one.name for one in singles if one.score == best and one.cost == least), None)
    return Evaluation(
        policy=_mean_result("policy", [case.outcomes[name] for case, name in judged]),
        singles=tuple(sorted(singles, key=lambda one: (-one.score, one.cost is None, one.cost or 0))),
        chance=_mean_result("random", [RecordedOutcome(score=one.score, cost=one.cost) for one in singles]),
        oracle=_mean_result("oracle", best_answers),
        cases=len(judged),
        left_out=len(cases) - len(judged),
        dominant=dominant,
        chosen={model: sum(name == model for _, name in judged) for model in models},
    )


def _mean_result(name: str, outcomes: Sequence[RecordedOutcome]) -> MeanResult:
    costs = [one.cost for one in outcomes if one.cost is not None]
    return MeanResult(
        name=name,
        score=sum(one.score for one in outcomes) / len(outcomes),
        cost=sum(costs) / len(costs) if len(costs) == len(outcomes) else None,
    )


def _describe_saving(one: MeanResult, other: MeanResult) -> str:
    if one.cost is None or not other.cost:
        return ""
    part = 1 - one.cost / other.cost
    if round(part, 2) == 0:
        return " at the same cost"
    return f", {part:.0%} cheaper" if part > 0 else f", {-part:.0%} dearer"


Place = Callable[[Sequence[str]], str | None]
"""Returns file and line of the key at a path, if known."""
Value = TypeVar("Value")

_MODEL_KEYS = ("provider", "model", "max_output_tokens", "temperature", "cap", "pricing", "window")
_ROUTING_KEYS = ("defaultAlias", "languageHeuristics", "tokenBuckets", "fallbacks")
_BUCKET_KEYS = ("min", "maxPromptTokens", "alias")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A key whose value cannot be read."""

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
    """Read the policy and return it with all faults.

    Args:
        models: the parsed document that lists models and aliases.
        policies: the parsed document with routing, caps, temperatures and prompts.
        place: locates a key in its file, for messages.

    Returns:
        The policy without the parts that could not be read, and the faults.
    """
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
        cap, price = _table(said, (*path, "cap"), reading), None
        if "pricing" in said:
            pricing = (*path, "pricing")
            table_of_prices = _table(said, pricing, reading)
            keys = ("input", "output", "cache_read", "cache_write")
            read = {key: _one(table_of_prices, (*pricing, key), _money, reading) for key in keys}
            price = Price(
                input=read["input"],
                output=read["output"],
                cache_read=read["cache_read"],
                cache_write=read["cache_write"],
                currency=_one(table_of_prices, (*pricing, "currency"), _text, reading) or "USD",
                source="the user's own",
                date=None,
            )
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
                price=price,
                window=_one(said, (*path, "window"), _whole, reading),
            ),
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
    """Return a finite number; TOML and Python's JSON also allow NaN and infinity."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None


def _money(value: object) -> Decimal | None:
    """Return a decimal from the shortest notation: JSON's 0.000003 is exactly that, not the nearest binary fraction."""
    number = _number(value)
    return Decimal(repr(value)) if number is not None and number >= 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyWarning:
    """A problem found in a policy."""

    key: str
    """Dotted key, as in the file: `routing.tokenBuckets.0`."""
    message: str
    place: str | None
    """File and line, if known."""


_Finding = tuple[str, str]


def lint(policy: Policy, models: ModelTable, today: date) -> tuple[PolicyWarning, ...]:
    """Return warnings about rules that never apply and models that cannot do what a rule requires.

    Args:
        policy: the policy to check.
        models: prices, windows and abilities of known models.
        today: the date on which models are checked for retirement.
    """
    findings = (finding for check in _CHECKS for finding in check(policy, models, today))
    warnings: list[PolicyWarning] = []
    for key, message in findings:
        # The place of the key, or of the nearest table that contains it.
        placed = key
        while placed and placed not in policy.places:
            placed = placed.rpartition(".")[0]
        warnings.append(PolicyWarning(key=key, message=message, place=policy.places.get(placed)))
    return tuple(warnings)


def _entry(alias: str, policy: Policy) -> ModelEntry | None:
    return policy.models.get(policy.aliases.get(alias, alias))


def _find_unknown_names(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Find aliases that point to no model, and names that are neither."""
    for alias, identity in policy.aliases.items():
        if identity not in policy.models:
            yield f"aliases.{alias}", f"alias `{alias}` refers to `{identity}`, which is not a model of the policy"
    mentions = [] if policy.default_alias is None else [("routing.defaultAlias", policy.default_alias)]
    for language, rule in policy.languages.items():
        if rule.alias is not None:
            mentions.append((f"routing.languageHeuristics.{language}", rule.alias))
    for number, bucket in enumerate(policy.buckets):
        mentions.append((f"routing.tokenBuckets.{number}", bucket.alias))
    for alias, chain in policy.fallbacks.items():
        mentions += [(f"routing.fallbacks.{alias}", name) for name in (alias, *chain)]
    for key, alias in mentions:
        if _entry(alias, policy) is None and alias not in policy.aliases:
            yield key, f"no alias or model is called `{alias}`"


def _find_dead_buckets(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Find buckets that no prompt reaches, and gaps between buckets."""
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


def _find_dead_aliases(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Find a first bucket that never applies because the language's alias takes precedence, and a default that never
    applies because of the buckets."""
    first = policy.buckets[0].alias if policy.buckets else None
    for language, rule in policy.languages.items():
        if rule.alias is not None and first is not None and rule.alias != first:
            said = (
                f"for `{language}` the first bucket's `{first}` is dead: the language's `{rule.alias}` comes before it"
            )
            yield "routing.tokenBuckets.0", said
    if policy.default_alias is not None and policy.buckets:
        takes_all = policy.buckets[-1].at_most is None and policy.buckets[0].at_least == 0
        if takes_all and all(bucket.alias != policy.default_alias for bucket in policy.buckets):
            yield "routing.defaultAlias", f"default `{policy.default_alias}` is dead: a bucket takes every prompt"


def _find_small_models(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Find buckets whose model has too small a context window for their prompts."""
    windows = {identity: _window(entry, models) or 0 for identity, entry in policy.models.items()}
    largest = max(windows, key=windows.__getitem__, default="")
    for number, bucket in enumerate(policy.buckets):
        entry = _entry(bucket.alias, policy)
        window = None if entry is None else _window(entry, models)
        if window is None:
            continue
        key = f"routing.tokenBuckets.{number}"
        if max(bucket.at_most or 0, bucket.at_least) >= window:
            yield key, f"`{bucket.alias}` has a window of {window:,}, less than the prompts of its bucket"
        elif bucket.at_most is None and windows[largest] > window:
            yield key, f"`{bucket.alias}` takes prompts of any size with a window of {window:,}; `{largest}` has more"


def _find_useless_tiers(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Find tiers that no model can reach, and tiers with the same effect."""
    limits: list[int] = []
    for entry in policy.models.values():
        match = models.get(entry.model)
        caps = (entry.cap_hard, entry.max_output_tokens, None if match is None else match.card.max_output)
        if known := [cap for cap in caps if cap is not None]:
            limits.append(min(known))
    most = max(limits, default=None)
    for tier, cap in policy.tiers.items():
        if most is not None and cap > most:
            yield f"caps.tiers.{tier}", f"tier `{tier}` allows {cap:,}, and no model gives more than {most:,}"
    for (one, low), (other, high) in pairwise(sorted(policy.tiers.items(), key=lambda item: item[1])):
        if most is not None and low >= most and high > low:
            yield (
                f"caps.tiers.{other}",
                f"tier `{other}` comes to the same as `{one}`: no model gives more than {most:,}",
            )


def _find_useless_caps(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
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


def _find_cycles(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    """Find fallbacks that form a cycle. They are harmless, since no model is tried twice, but hide how short a chain
    is."""
    for alias, chain in policy.fallbacks.items():
        back = [name for name in chain if alias in policy.fallbacks.get(name, ())]
        if alias in chain:
            yield f"routing.fallbacks.{alias}", f"`{alias}` falls back on itself"
        for name in back:
            if name != alias and alias < name:
                yield f"routing.fallbacks.{alias}", f"`{alias}` and `{name}` fall back on one another"
    for ring in map(partial(_shortest_cycle, policy=policy), policy.fallbacks):
        if len(ring) > 2 and ring[0] == min(ring):
            circle = " -> ".join(f"`{name}`" for name in (*ring, ring[0]))
            yield f"routing.fallbacks.{ring[0]}", f"fallbacks in a circle: {circle}"
    for alias, chain in policy.fallbacks.items():
        same = [
            name
            for name in chain
            if name != alias and (policy.aliases.get(alias, alias) == policy.aliases.get(name, name))
        ]
        yield from (
            (f"routing.fallbacks.{alias}", f"`{alias}` falls back on `{name}`, which is the same model")
            for name in same
        )


def _shortest_cycle(alias: str, policy: Policy) -> tuple[str, ...]:
    """Return the shortest cycle of fallbacks from an alias to itself, starting with it; empty if there is none."""
    ways, seen = [(alias,)], {alias}
    for way in ways:
        chain = policy.fallbacks.get(way[-1], ())
        if alias in chain:
            return way
        ways += [(*way, name) for name in dict.fromkeys(chain) if name not in seen]
        seen |= set(chain)
    return ()


def _find_refused_temperatures(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    for identity, entry in policy.models.items():
        match = models.get(entry.model)
        if entry.temperature is not None and match is not None and match.card.accepts.get("temperature") is False:
            yield f"models.{identity}", f"`{identity}` refuses a temperature; {entry.temperature:g} is left out"
    out_of_bounds = ((name, value) for name, value in policy.temperatures.items() if not 0 <= value <= 2)
    for name, value in out_of_bounds:
        yield f"temperatures.{name}", f"temperature `{name}` is {value:g}; it is held to 0 to 2"


def _find_retired_models(policy: Policy, models: ModelTable, today: date) -> Iterator[_Finding]:
    for identity, entry in policy.models.items():
        match = models.get(entry.model)
        if match is None:
            yield f"models.{identity}", f"`{entry.model}` is not in the model table: its window and price are not known"
        elif (retired := match.card.retired) is not None:
            instead = f"; use `{match.card.replaced_by}`" if match.card.replaced_by else ""
            when = "was retired" if retired <= today else "will be retired"
            yield f"models.{identity}", f"`{match.card.id}` {when} on {retired.isoformat()}{instead}"


def _window(entry: ModelEntry, models: ModelTable) -> int | None:
    match = models.get(entry.model)
    return entry.window or (None if match is None else match.window)


_CHECKS: tuple[Callable[[Policy, ModelTable, date], Iterator[_Finding]], ...] = (
    _find_unknown_names,
    _find_dead_buckets,
    _find_dead_aliases,
    _find_small_models,
    _find_useless_tiers,
    _find_useless_caps,
    _find_cycles,
    _find_refused_temperatures,
    _find_retired_models,
)
