from decimal import Decimal

import pytest

from delegate.policies import MODELS, POLICIES
from ullage.delegate.policy import Bucket, LanguageRule, read_policy
from ullage.tool import JsonObject

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


def test_all_faults_are_told_together_with_their_places_and_the_rest_is_read():
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
