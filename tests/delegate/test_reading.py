from decimal import Decimal
from typing import cast

import pytest

from delegate.policies import MODELS, POLICIES
from ullage.delegate import Bucket, LanguageRule, ModelEntry, Policy, read_policy
from ullage.models import Price
from ullage.tool import Json, JsonObject

pytestmark = pytest.mark.requirement("S4:config")


@pytest.mark.requirement("S4:config")
def test_the_two_files_of_the_original_are_read_as_they_are():
    policy, faults = read_policy(MODELS, POLICIES)
    assert faults == ()
    assert policy.aliases["reasoning"] == "anthropic:claude-3-5-sonnet"
    assert policy.languages["es"] == LanguageRule(alias=None, temperature=0.65)
    assert policy.buckets[1] == Bucket(alias="chat-premium", at_most=2800)
    assert policy.fallbacks["reasoning"] == ("chat-premium",)
    assert (policy.cap_default, policy.tiers["pro"], policy.temperatures["code"]) == (2048, 3072, 0.25)


@pytest.mark.requirement("S4:config", "S4:route")
@pytest.mark.parametrize("currency", ["EUR", None])
def test_a_price_without_a_currency_is_in_dollars(currency: str | None):
    pricing = {"input": 0.001, "output": 0.002, "cache_read": 0.0001, "cache_write": 0.003}
    own = {"provider": "openai", "model": "own", "pricing": {**pricing, **({"currency": currency} if currency else {})}}
    policy, faults = read_policy({"models": {"openai:own": own}}, {})
    price = policy.models["openai:own"].price
    assert not faults
    assert price is not None
    assert price.currency == (currency or "USD")
    read = {key: getattr(price, key) for key in pricing}
    assert read == {key: Decimal(str(value)) for key, value in pricing.items()}


@pytest.mark.requirement("S4:config", "S4:route")
def test_a_language_rule_with_a_key_that_is_none_is_reported():
    rules = {"es": {"alias": "chat-premium", "temprature": 0.5}, "pt": {"temperature": 0.2}}
    policy, faults = read_policy(MODELS, {"routing": {"languageHeuristics": rules}})
    assert policy.languages["es"] == LanguageRule(alias="chat-premium", temperature=None)
    assert policy.languages["pt"] == LanguageRule(alias=None, temperature=0.2)
    assert any("temprature" in str(fault) for fault in faults)
    assert not any("pt" in str(fault) for fault in faults)


@pytest.mark.requirement("S4:config")
def test_a_price_is_read_as_it_is_written():
    price = read_policy(MODELS, POLICIES)[0].models["openai:gpt-4o-mini"].price
    assert price is not None
    assert (price.input, price.output, price.currency) == (Decimal("0.000003"), Decimal("0.000009"), "USD")


@pytest.mark.parametrize(
    ("models", "policies", "said"),
    [
        ({"models": {"x": {"provider": "openai"}}}, {}, "`models.x` must have `provider` and `model`"),
        ({"models": []}, {}, "`models` must be a table"),
        ({"aliases": {"a": 3}}, {}, "`aliases.a` cannot be `3`"),
        ({"other": {}}, {}, "`other` is not known here; known are aliases, models"),
        ({}, {"routing": {"tokenBuckets": {}}}, "`routing.tokenBuckets` must be a list"),
        ({}, {"routing": {"tokenBuckets": [3]}}, "`routing.tokenBuckets.0` must be a table with an `alias`"),
        ({}, {"routing": {"tokenBuckets": [{"alias": "a", "max": 3}]}}, "`routing.tokenBuckets.0.max` is not known"),
        ({}, {"routing": {"fallbacks": {"a": [1]}}}, "`routing.fallbacks.a` cannot be `[1]`"),
        ({}, {"caps": {"default": -1}}, "`caps.default` cannot be `-1`"),
        ({}, {"temperatures": {"code": True}}, "`temperatures.code` cannot be `True`"),
        ({}, {"temperatures": {"code": float("nan")}}, "`temperatures.code` cannot be `nan`"),
        ({}, {"temperatures": {"code": 10**400}}, "`temperatures.code` cannot be `1000"),
        (
            {"models": {"x": {"provider": "a", "model": "b", "pricing": {"input": -1}}}},
            {},
            "`models.x.pricing.input` cannot be `-1`",
        ),
    ],
)
def test_what_cannot_be_read_is_a_fault_that_names_its_key(models: JsonObject, policies: JsonObject, said: str):
    assert any(fault.message.startswith(said) for fault in read_policy(models, policies)[1])


def test_all_faults_are_reported_with_their_places_and_the_rest_is_read():
    policy, faults = read_policy(
        {"aliases": {"a": "m", "b": 1}},
        {"caps": {"default": "many"}, "routing": {"fallbacks": {"a": "b"}}},
        lambda path: f"line of {path[-1]}",
    )
    assert [(fault.key, fault.place) for fault in faults] == [
        ("aliases.b", "line of b"),
        ("caps.default", "line of default"),
    ]
    assert (policy.aliases, policy.fallbacks) == ({"a": "m"}, {"a": ("b",)})


ENTRY = {
    "provider": "openai", "model": "m", "max_output_tokens": 1, "temperature": 0.5, "cap": {"default": 2, "hard": 3},
    "pricing": {"currency": "EUR", "input": 0.1, "output": 0.2, "cache_read": 0.3, "cache_write": 0.4}, "window": 4,
}  # fmt: skip


def test_every_key_of_both_files_is_read_and_every_place_is_known():
    policies = {
        "routing": {
            "defaultAlias": "a",
            "languageHeuristics": {"pt": {"alias": "b", "temperature": 0}},
            "tokenBuckets": [{"min": 5, "maxPromptTokens": 9, "alias": "c"}, {"alias": "d"}],
            "fallbacks": {"a": ["b", "c"], "b": "c"},
        },
        "caps": {"default": 0, "tiers": {"t": 7}},
        "temperatures": {"default": 1, "law": 0.2},
        "prompts": {"run": "Be brief."},
    }
    read, faults = read_policy({"aliases": {"a": "x"}, "models": {"x": ENTRY}}, policies, "/".join)
    assert faults == ()
    price = Price(
        input=Decimal("0.1"), output=Decimal("0.2"), cache_read=Decimal("0.3"), cache_write=Decimal("0.4"),
        currency="EUR", source="the user's own", date=None,
    )  # fmt: skip
    assert read == Policy(
        aliases={"a": "x"},
        models={
            "x": ModelEntry(
                id="x", provider="openai", model="m", max_output_tokens=1, temperature=0.5, cap_default=2, cap_hard=3,
                price=price, window=4,
            )
        },
        default_alias="a",
        languages={"pt": LanguageRule(alias="b", temperature=0.0)},
        buckets=(Bucket(alias="c", at_least=5, at_most=9), Bucket(alias="d")),
        fallbacks={"a": ("b", "c"), "b": ("c",)},
        cap_default=0,
        tiers={"t": 7},
        temperatures={"default": 1.0, "law": 0.2},
        prompts={"run": "Be brief."},
        places={
            key: key.replace(".", "/")
            for key in (
                "aliases.a", "models.x", "routing.languageHeuristics.pt", "routing.tokenBuckets",
                "routing.tokenBuckets.0", "routing.tokenBuckets.1", "routing.fallbacks.a", "routing.fallbacks.b",
                "caps.tiers.t", "temperatures.default", "temperatures.law", "prompts.run",
            )
        },
    )  # fmt: skip


def test_a_model_without_the_rest_has_only_provider_and_model():
    read, faults = read_policy({"models": {"x": {"provider": "p", "model": "m", "cap": {}}}}, {})
    assert (read.models, faults) == ({"x": ModelEntry(id="x", provider="p", model="m")}, ())
    assert read_policy({}, {}) == (Policy(), ())


@pytest.mark.parametrize(
    ("path", "taken", "refused"),
    [
        (("routing", "defaultAlias"), ("a",), ("", 3, [])),
        (("caps", "default"), (0, 10**9), (-1, 1.5, True, "1")),
        (("caps", "tiers", "t"), (0,), (-1, True)),
        (("temperatures", "code"), (0, -1.5, 1e308), (float("inf"), float("-inf"), -(10**400), "1", False)),
        (("prompts", "run"), ("x",), ("", 0)),
        (("routing", "fallbacks", "a"), ("b", ["b"], []), ("", [""], ["b", 1], 3)),
        (("routing", "languageHeuristics", "pt", "temperature"), (0,), ("1", True)),
    ],
)
def test_a_value_of_another_kind_is_a_fault(path: tuple[str, ...], taken: tuple[Json, ...], refused: tuple[Json, ...]):
    def written(value: Json) -> JsonObject:
        for key in reversed(path):
            value = {key: value}
        return cast("JsonObject", value)

    for value in taken:
        assert read_policy({}, written(value))[1] == ()
    assert read_policy({}, written(None))[1] == (), "null is not set"
    for value in refused:
        (fault,) = read_policy({}, written(value))[1]
        assert (fault.key, fault.message, fault.place) == (
            ".".join(path),
            f"`{'.'.join(path)}` cannot be `{value}`",
            None,
        )


@pytest.mark.parametrize("key", ["input", "output", "cache_read", "cache_write"])
def test_a_price_is_a_number_from_0_on(key: str):
    for value, money in ((0, Decimal(0)), (1e-7, Decimal("1e-07")), (2, Decimal(2))):
        entry = {"provider": "p", "model": "m", "pricing": {key: value}}
        read, faults = read_policy({"models": {"x": entry}}, {})
        price = read.models["x"].price
        assert price is not None
        assert (getattr(price, key), price.currency, faults) == (money, "USD", ())
    for value in (-1e-9, "1", True, float("nan")):
        entry = {"provider": "p", "model": "m", "pricing": {key: value}}
        (fault,) = read_policy({"models": {"x": entry}}, {})[1]
        assert fault.key == f"models.x.pricing.{key}"


@pytest.mark.parametrize(
    ("models", "policies", "key"),
    [
        ({"a": 1}, {}, "a"),
        ({"models": {"x": {**ENTRY, "a": 1}}}, {}, "models.x.a"),
        ({"models": {"x": 3}}, {}, "models.x"),
        ({"models": {"x": {"provider": "p", "model": "m", "cap": 3}}}, {}, "models.x.cap"),
        ({"models": {"x": {"provider": "p", "model": "m", "pricing": 3}}}, {}, "models.x.pricing"),
        ({"aliases": 3}, {}, "aliases"),
        ({}, {"a": 1}, "a"),
        ({}, {"routing": {"a": 1}}, "routing.a"),
        ({}, {"routing": 3}, "routing"),
        ({}, {"caps": {"a": 1}}, "caps.a"),
        ({}, {"caps": {"tiers": 3}}, "caps.tiers"),
        ({}, {"routing": {"languageHeuristics": {"pt": {"a": 1}}}}, "routing.languageHeuristics.pt.a"),
        ({}, {"routing": {"languageHeuristics": {"pt": 1}}}, "routing.languageHeuristics.pt"),
        ({}, {"routing": {"tokenBuckets": [{"alias": "x"}, {}]}}, "routing.tokenBuckets.1"),
        ({}, {"routing": {"tokenBuckets": [{"alias": "x", "min": -1}]}}, "routing.tokenBuckets.0.min"),
        ({}, {"routing": {"tokenBuckets": [{"alias": "x", "a": 1}]}}, "routing.tokenBuckets.0.a"),
    ],
)
def test_an_unknown_or_odd_part_is_one_fault_at_its_key(models: JsonObject, policies: JsonObject, key: str):
    faults = {fault.key: fault.place for fault in read_policy(models, policies, ":".join)[1]}
    assert faults[key] == key.replace(".", ":")
    assert all(other.startswith(key) for other in faults)
