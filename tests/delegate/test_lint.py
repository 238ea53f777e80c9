from dataclasses import replace
from datetime import date

import pytest

from delegate.policies import MODELS, POLICIES, policy
from ullage.delegate.policy import Bucket, LanguageRule, ModelEntry, Policy, lint, read_policy
from ullage.models import shipped

pytestmark = pytest.mark.requirement("S4:lint")

TODAY = date(2026, 11, 15)


def warned(by: Policy) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for one in lint(by, shipped(), TODAY):
        found.setdefault(one.key, []).append(one.message)
    return found


@pytest.mark.requirement("S4:lint")
def test_the_rules_of_the_original_that_never_come_to_bear_are_named():
    found = warned(policy())
    assert found["routing.tokenBuckets.0"] == [
        "for `pt` the first bucket's `chat-default` is dead: the language's `chat-premium` comes before it"
    ]
    assert "fall back on one another" in found["routing.fallbacks.chat-default"][0]
    assert "was retired on 2025-10-28" in found["models.anthropic:claude-3-5-sonnet"][0]
    assert "was retired" in found["models.google:gemini-1.5-pro"][0]
    assert "will be retired on" in found["models.openai:gpt-4o"][0]


@pytest.mark.requirement("S4:lint")
def test_a_warning_names_the_line_it_is_about_or_the_nearest_around_it():
    read, _ = read_policy(MODELS, POLICIES, lambda path: None if path[-1] == "0" else f"here:{'.'.join(path)}")
    places = {one.key: one.place for one in lint(read, shipped(), TODAY)}
    assert places["models.openai:gpt-4o"] == "here:models.openai:gpt-4o"
    assert places["routing.tokenBuckets.0"] == "here:routing.tokenBuckets"


@pytest.mark.requirement("S4:lint")
@pytest.mark.parametrize(
    ("buckets", "key", "said"),
    [
        ([(0, None), (0, 500)], "routing.tokenBuckets.1", "is dead"),
        ([(0, 500), (0, 400), (0, None)], "routing.tokenBuckets.1", "is dead"),
        ([(0, 500), (600, None)], "routing.tokenBuckets.1", "no bucket takes prompts of 501 to 599"),
        ([(0, 500)], "routing.tokenBuckets", "more than 500"),
        ([(0, 128_000), (0, None)], "routing.tokenBuckets.0", "less than the prompts of its bucket"),
        ([(0, None)], "routing.tokenBuckets.0", "prompts of any size"),
    ],
)
def test_buckets_that_are_dead_or_leave_gaps_or_are_too_large_are_named(
    buckets: list[tuple[int, int | None]], key: str, said: str
):
    made = tuple(Bucket(alias="chat-default", at_least=low, at_most=high) for low, high in buckets)
    assert any(said in message for message in warned(replace(policy(), buckets=made))[key])


@pytest.mark.requirement("S4:lint")
def test_tiers_that_no_model_reaches_are_named():
    found = warned(replace(policy(), tiers={"big": 8192, "huge": 9000}))
    assert "no model gives more than 8,192" in found["caps.tiers.huge"][0]
    assert "comes to the same as `big`" in found["caps.tiers.huge"][1]
    assert "caps.tiers.big" not in found


@pytest.mark.requirement("S4:lint")
def test_cycles_of_fallbacks_are_named():
    found = warned(
        replace(
            policy(),
            aliases={**policy().aliases, "twin": "openai:gpt-4o"},
            fallbacks={"reasoning": ("reasoning",), "chat-premium": ("twin",)},
        )
    )
    assert found["routing.fallbacks.reasoning"] == ["`reasoning` falls back on itself"]
    assert found["routing.fallbacks.chat-premium"] == ["`chat-premium` falls back on `twin`, which is the same model"]
    circle = {"reasoning": ("long-context",), "long-context": ("chat-default",), "chat-default": ("reasoning",)}
    found = warned(replace(policy(), fallbacks=circle))
    assert found["routing.fallbacks.chat-default"] == [
        "fallbacks in a circle: `chat-default` -> `reasoning` -> `long-context` -> `chat-default`"
    ]
    assert not {"routing.fallbacks.reasoning", "routing.fallbacks.long-context"} & found.keys()


@pytest.mark.requirement("S4:lint")
def test_names_that_lead_nowhere_are_named():
    found = warned(
        replace(
            policy(),
            aliases={"lost": "nobody"},
            default_alias="gone",
            languages={"pt": LanguageRule(alias="away")},
            buckets=(),
            fallbacks={},
        )
    )
    assert {"aliases.lost", "routing.defaultAlias", "routing.languageHeuristics.pt"} <= set(found)


@pytest.mark.requirement("S4:lint")
def test_a_default_that_no_prompt_reaches_is_named():
    found = warned(replace(policy(), default_alias="reasoning"))
    assert found["routing.defaultAlias"] == ["default `reasoning` is dead: a bucket takes every prompt"]


@pytest.mark.requirement("S4:lint")
def test_temperatures_and_caps_that_a_model_cannot_have_are_named():
    entries = {
        "a": ModelEntry(id="a", provider="openai", model="gpt-5", temperature=0.5, cap_default=10, cap_hard=5),
        "b": ModelEntry(id="b", provider="openai", model="gpt-4o", cap_hard=1_000_000),
        "c": ModelEntry(id="c", provider="openai", model="gpt-4o", max_output_tokens=1_000_000),
        "d": ModelEntry(id="d", provider="local", model="my-very-own"),
    }
    found = warned(Policy(models=entries, default_alias="a", temperatures={"hot": 3.0}))
    assert "refuses a temperature" in found["models.a"][0]
    assert "above its hard cap" in found["models.a.cap"][0]
    assert "gives 16,384 tokens at most" in found["models.b.cap"][0]
    assert "not 1,000,000" in found["models.c"][0]
    assert "not in the model table" in found["models.d"][0]
    assert "held to 0 to 2" in found["temperatures.hot"][0]


def test_a_sound_policy_has_no_warnings():
    entry = ModelEntry(id="openai:gpt-5.6-sol", provider="openai", model="gpt-5.6-sol", cap_default=1000, cap_hard=2000)
    assert warned(Policy(aliases={"chat": entry.id}, models={entry.id: entry}, default_alias="chat")) == {}


@pytest.mark.requirement("S4:lint")
def test_temperatures_from_0_to_2_are_in_bounds():
    entries = {"a": ModelEntry(id="a", provider="openai", model="gpt-4o")}
    temperatures = {"cold": 0.0, "hot": 2.0, "colder": -0.1, "hotter": 2.1}
    found = warned(Policy(models=entries, default_alias="a", temperatures=temperatures))
    assert {key for key in found if key.startswith("temperatures.")} == {"temperatures.colder", "temperatures.hotter"}
