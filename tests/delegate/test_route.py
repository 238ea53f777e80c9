from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegate.policies import policy
from ullage.delegate.policy import Bucket, LanguageRule, ModelEntry, Policy
from ullage.delegate.router import Candidate, Route, RouteRequest, route, without
from ullage.errors import InvalidArguments
from ullage.models import shipped

pytestmark = pytest.mark.requirement("S4:route")

MODELS = shipped()


def routed(request: RouteRequest, by: Policy | None = None) -> Route:
    return route(request, by or policy(), MODELS)


def first(request: RouteRequest, by: Policy | None = None) -> Candidate:
    return routed(request, by).candidates[0]


@pytest.mark.requirement("S4:route", "S4:examples")
def test_portuguese_goes_to_the_premium_model_at_its_own_temperature():
    chosen = routed(RouteRequest(prompt_tokens=20, language="pt", language_from="detected"))
    assert chosen.candidates[0].alias == "chat-premium"
    assert chosen.candidates[0].parameters.temperature == 0.6
    assert chosen.rationale[0] == "language: pt (detected) -> chat-premium"


@pytest.mark.requirement("S4:examples")
def test_a_forced_model_with_tier_domain_and_cap_gets_all_of_them():
    chosen = first(
        RouteRequest(
            prompt_tokens=20,
            language="en",
            force_model="reasoning",
            tier="enterprise",
            domain="creative",
            max_output_tokens=2048,
        )
    )
    assert chosen.entry.id == "anthropic:claude-3-5-sonnet"
    assert (chosen.parameters.temperature, chosen.parameters.max_output_tokens) == (0.9, 2048)


@pytest.mark.requirement("S4:route")
@pytest.mark.parametrize(
    ("tokens", "language", "alias"),
    [
        (20, None, "chat-default"),
        (1200, "en", "chat-default"),
        (1200, "pt", "chat-premium"),
        (1201, "en", "chat-premium"),
        (2800, "pt", "chat-premium"),
        (2801, "pt", "long-context"),
        (51_000, "en", "long-context"),
        (20, "es", "chat-default"),
        (20, "fr", "chat-default"),
    ],
)
def test_a_bucket_above_the_first_beats_the_language_and_the_language_the_first(
    tokens: int, language: str | None, alias: str
):
    assert first(RouteRequest(prompt_tokens=tokens, language=language)).alias == alias


@pytest.mark.requirement("S4:route")
@pytest.mark.parametrize(
    ("asked", "temperature"),
    [
        (RouteRequest(prompt_tokens=20), 0.7),
        (RouteRequest(prompt_tokens=20, force_model="reasoning"), 0.6),
        (RouteRequest(prompt_tokens=20, force_model="reasoning", language="es"), 0.65),
        (RouteRequest(prompt_tokens=20, language="pt", domain="code"), 0.25),
        (RouteRequest(prompt_tokens=20, language="pt", domain="code", temperature=1.5), 1.5),
        (RouteRequest(prompt_tokens=20, temperature=7), 2.0),
        (RouteRequest(prompt_tokens=20, temperature=-1), 0.0),
    ],
)
def test_temperature_is_the_models_then_the_languages_then_the_domains_then_the_requests(
    asked: RouteRequest, temperature: float
):
    assert first(asked).parameters.temperature == temperature


@pytest.mark.requirement("S4:route")
@pytest.mark.parametrize(
    ("asked", "tokens"),
    [
        (RouteRequest(prompt_tokens=20), 2048),
        (RouteRequest(prompt_tokens=20, force_model="long-context"), 2048),
        (RouteRequest(prompt_tokens=20, tier="trial"), 1024),
        (RouteRequest(prompt_tokens=20, tier="enterprise"), 4096),
        (RouteRequest(prompt_tokens=20, tier="trial", max_output_tokens=3000), 3000),
        (RouteRequest(prompt_tokens=20, max_output_tokens=100_000), 4096),
        (RouteRequest(prompt_tokens=20, force_model="long-context", max_output_tokens=100_000), 8192),
    ],
)
def test_output_is_what_is_asked_for_up_to_the_hard_cap(asked: RouteRequest, tokens: int):
    assert first(asked).parameters.max_output_tokens == tokens


def test_a_tier_above_the_default_cap_is_given_and_the_rationale_says_who_capped():
    assert routed(RouteRequest(prompt_tokens=20, tier="enterprise")).rationale[-1] == "output: 4096 (tier enterprise)"
    beyond = routed(RouteRequest(prompt_tokens=20, max_output_tokens=9_999))
    assert beyond.rationale[-1] == "output: 4096 (the model's hard cap)"


@pytest.mark.requirement("S4:route", "S4:risks")
def test_a_candidate_that_cannot_hold_the_prompt_is_not_asked():
    chosen = routed(RouteRequest(prompt_tokens=900_000))
    assert [one.alias for one in chosen.candidates] == ["long-context"]
    assert "chat-premium: window of 128000 is too small for 900000 + 2048" in chosen.rationale


@pytest.mark.requirement("S4:route")
def test_a_prompt_that_no_model_of_its_chain_holds_goes_to_the_smallest_other_that_does():
    small = replace(policy(), fallbacks={}, buckets=())
    chosen = routed(RouteRequest(prompt_tokens=500_000), small)
    assert chosen.candidates[0].entry.id == "google:gemini-1.5-pro"
    assert "window: long-context holds it" in chosen.rationale


@pytest.mark.requirement("S4:risks")
def test_a_prompt_that_no_window_holds_is_refused():
    with pytest.raises(InvalidArguments, match="the largest window is") as refused:
        routed(RouteRequest(prompt_tokens=50_000_000))
    assert "let it be cut" in refused.value.suggestion


def test_a_forced_model_is_not_left_for_one_outside_its_chain():
    with pytest.raises(InvalidArguments, match="neither `chat-default` nor its fallbacks") as refused:
        routed(
            RouteRequest(prompt_tokens=500_000, force_model="chat-default"), replace(policy(), fallbacks={}, buckets=())
        )
    assert refused.value.options == ("long-context",)


def test_a_model_can_be_forced_by_its_id_and_keeps_its_fallbacks():
    chosen = routed(RouteRequest(prompt_tokens=20, force_model="openai:gpt-4o"))
    assert [one.alias for one in chosen.candidates] == ["chat-premium", "chat-default", "long-context"]


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (RouteRequest(prompt_tokens=1, force_model="gpt-9"), "chat-default"),
        (RouteRequest(prompt_tokens=1, tier="gold"), "trial"),
        (RouteRequest(prompt_tokens=1, domain="poetry"), "creative"),
    ],
)
def test_what_the_policy_does_not_know_is_refused_with_what_it_does(asked: RouteRequest, options: str):
    with pytest.raises(InvalidArguments) as refused:
        routed(asked)
    assert options in refused.value.options


def test_a_policy_that_names_nobody_says_so():
    with pytest.raises(InvalidArguments, match="names no model"):
        routed(RouteRequest(prompt_tokens=1), replace(policy(), default_alias=None, buckets=()))


def test_a_gap_between_buckets_falls_to_the_default():
    gapped = replace(policy(), buckets=(Bucket(alias="chat-premium", at_least=500),))
    assert first(RouteRequest(prompt_tokens=20), gapped).alias == "chat-default"
    assert first(RouteRequest(prompt_tokens=500), gapped).alias == "chat-premium"


def test_a_temperature_that_the_model_refuses_is_left_out_and_said():
    refusing = ModelEntry(id="o", provider="openai", model="gpt-5", temperature=0.5)
    chosen = routed(RouteRequest(prompt_tokens=1), Policy(models={"o": refusing}, default_alias="o"))
    assert chosen.candidates[0].parameters.temperature is None
    assert "temperature: left out, gpt-5 refuses it" in chosen.rationale


def test_a_model_nobody_knows_has_no_window_no_cap_and_no_temperature_but_is_asked():
    mine = Policy(models={"mine": ModelEntry(id="mine", provider="local", model="my-model")}, default_alias="mine")
    chosen = routed(RouteRequest(prompt_tokens=10_000_000), mine)
    assert chosen.candidates[0].window is None
    assert chosen.candidates[0].parameters.temperature is chosen.candidates[0].parameters.max_output_tokens is None
    assert chosen.rationale == ("default: mine",)


def test_a_model_is_asked_once_whatever_it_is_called():
    twice = replace(
        policy(),
        aliases={**policy().aliases, "same": "openai:gpt-4o-mini"},
        fallbacks={"chat-default": ("same", "chat-premium")},
    )
    assert [one.alias for one in routed(RouteRequest(prompt_tokens=1), twice).candidates] == [
        "chat-default",
        "chat-premium",
    ]


def test_a_benched_candidate_is_left_out_unless_it_is_the_last():
    chosen = routed(RouteRequest(prompt_tokens=1))
    rest = without(chosen, frozenset({"openai:gpt-4o-mini"}))
    assert [one.alias for one in rest.candidates] == ["chat-premium", "long-context"]
    assert rest.rationale[-1] == "benched: chat-default"
    assert without(chosen, frozenset(one.entry.id for one in chosen.candidates)) is chosen
    assert without(chosen, frozenset()) is chosen


@given(
    tokens=st.integers(0, 3_000_000),
    language=st.sampled_from([None, "pt", "en", "es", "de"]),
    tier=st.sampled_from([None, "trial", "pro", "enterprise"]),
    cap=st.none() | st.integers(1, 20_000),
    temperature=st.none() | st.floats(-5, 5),
)
def test_whatever_is_asked_the_first_candidate_holds_it_and_no_cap_is_broken(
    tokens: int, language: str | None, tier: str | None, cap: int | None, temperature: float | None
):
    asked = RouteRequest(
        prompt_tokens=tokens, language=language, tier=tier, max_output_tokens=cap, temperature=temperature
    )
    try:
        found = routed(asked)
    except InvalidArguments:
        assert tokens > 900_000
        return
    for one in found.candidates:
        output = one.parameters.max_output_tokens
        assert output is not None
        assert output <= (one.entry.cap_hard or 0)
        assert tokens + output <= (one.window or 0)
        assert 0 <= (one.parameters.temperature or 0) <= 2


def test_a_language_without_an_alias_only_warms_or_cools():
    only = replace(policy(), languages={"de": LanguageRule(temperature=0.1)}, buckets=())
    assert first(RouteRequest(prompt_tokens=1, language="de"), only).parameters.temperature == 0.1
