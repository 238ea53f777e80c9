"""How are `models.json` and `policies.json` understood?

Two documents in, a policy out, or every fault in them together. The same tables may stand in other files, so documents
come already parsed, and whoever parsed them tells where a key stands. What is wrong with a policy that can be read,
`lint` says.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar, cast

from ullage.models import Price
from ullage.tool import JsonObject

from .policy import Bucket, LanguageRule, ModelEntry, Policy

__all__ = ["Fault", "Place", "read_policy"]

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
