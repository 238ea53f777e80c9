from dataclasses import replace
from datetime import date, timedelta

import pytest

from delegate.policies import MODELS, POLICIES, policy
from ullage.delegate import Bucket, LanguageRule, ModelEntry, Policy, lint, read_policy
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


def bare(**settings: object) -> Policy:
    """A policy of two models that the table does not know, with windows of 100 and 300 tokens."""
    models = {
        "a": ModelEntry(id="a", provider="mine", model="my-a", window=100),
        "b": ModelEntry(id="b", provider="mine", model="my-b", window=300, cap_hard=50),
    }
    return Policy(**{"models": models, "aliases": {"x": "a", "y": "b"}, **settings})  # pyright: ignore[reportArgumentType]


def rules(**settings: object) -> dict[str, list[str]]:
    """The warnings of such a policy without those about single models."""
    return {key: messages for key, messages in warned(bare(**settings)).items() if not key.startswith("models.")}


def buckets(*ranges: tuple[str, int, int | None]) -> tuple[Bucket, ...]:
    return tuple(Bucket(alias=alias, at_least=low, at_most=high) for alias, low, high in ranges)


B = "routing.tokenBuckets"
DEAD = "bucket `y` is dead: those before it take every prompt of its size"


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (buckets(("y", 0, None)), {}),
        (buckets(("x", 0, 99), ("y", 100, None)), {}),
        (buckets(("x", 0, 99), ("y", 99, None)), {}),
        (buckets(("x", 0, 99), ("y", 0, 99), ("y", 0, None)), {f"{B}.1": [DEAD]}),
        (buckets(("x", 0, 99), ("y", 0, 98), ("y", 0, None)), {f"{B}.1": [DEAD]}),
        (buckets(("x", 0, 98), ("y", 0, 99), ("y", 0, None)), {}),
        (buckets(("y", 5, 4), ("y", 0, None)), {f"{B}.0": [DEAD]}),
        (buckets(("y", 5, 5), ("y", 0, None)), {f"{B}.0": ["no bucket takes prompts of 0 to 4 tokens"]}),
        (buckets(("x", 0, 9), ("y", 11, None)), {f"{B}.1": ["no bucket takes prompts of 10 to 10 tokens"]}),
        (buckets(("x", 0, 9), ("y", 2_000, None)), {f"{B}.1": [
            "no bucket takes prompts of 10 to 1,999 tokens",
            "`y` has a window of 300, less than the prompts of its bucket",
        ]}),
        (buckets(("x", 0, 99)), {B: ["no bucket takes prompts of more than 99 tokens"]}),
        (buckets(("x", 0, 100), ("y", 0, None)), {
            f"{B}.0": ["`x` has a window of 100, less than the prompts of its bucket"]
        }),
        (buckets(("y", 299, None)), {f"{B}.0": ["no bucket takes prompts of 0 to 298 tokens"]}),
        (buckets(("y", 0, 10), ("y", 300, None)), {f"{B}.1": [
            "no bucket takes prompts of 11 to 299 tokens",
            "`y` has a window of 300, less than the prompts of its bucket",
        ]}),
        (buckets(("x", 0, None)), {
            f"{B}.0": ["`x` takes prompts of any size with a window of 100; `b` has more"]
        }),
    ],
)  # fmt: skip
def test_every_range_of_buckets_is_judged_at_its_ends(made: tuple[Bucket, ...], found: dict[str, list[str]]):
    assert rules(buckets=made) == found


def test_a_first_bucket_is_dead_for_a_language_with_another_alias():
    languages = {"pt": LanguageRule(alias="y"), "en": LanguageRule(alias="x"), "de": LanguageRule(temperature=0.1)}
    first = buckets(("x", 0, 9), ("y", 0, None))
    assert rules(buckets=first, languages=languages) == {
        f"{B}.0": ["for `pt` the first bucket's `x` is dead: the language's `y` comes before it"]
    }
    assert rules(languages=languages) == {}


@pytest.mark.parametrize(
    ("default", "made", "is_dead"),
    [
        ("x", buckets(("y", 0, None)), True),
        ("x", buckets(("y", 0, 9), ("y", 0, None)), True),
        ("x", buckets(("x", 0, 9), ("y", 0, None)), False),
        ("x", buckets(("y", 1, None)), False),
        ("x", buckets(("y", 0, 9)), False),
        ("x", (), False),
        (None, buckets(("y", 0, None)), False),
    ],
)
def test_a_default_is_dead_where_buckets_take_every_prompt(
    default: str | None, made: tuple[Bucket, ...], *, is_dead: bool
):
    found = rules(default_alias=default, buckets=made)
    said = ["default `x` is dead: a bucket takes every prompt"]
    assert found.get("routing.defaultAlias") == (said if is_dead else None)


def test_every_name_that_leads_nowhere_is_named_where_it_is_written():
    assert rules(
        aliases={"x": "a", "z": "gone"},
        default_alias="q1",
        languages={"pt": LanguageRule(alias="q2")},
        buckets=buckets(("q3", 0, None)),
        fallbacks={"q4": ("x", "q5"), "x": ("z",), "a": ("b",)},
    ) == {
        "aliases.z": ["alias `z` refers to `gone`, which is not a model of the policy"],
        "routing.defaultAlias": [
            "no alias or model is called `q1`",
            "default `q1` is dead: a bucket takes every prompt",
        ],
        "routing.languageHeuristics.pt": ["no alias or model is called `q2`"],
        f"{B}.0": [
            "no alias or model is called `q3`",
            "for `pt` the first bucket's `q3` is dead: the language's `q2` comes before it",
        ],
        "routing.fallbacks.q4": ["no alias or model is called `q4`", "no alias or model is called `q5`"],
    }


@pytest.mark.parametrize(
    ("tiers", "found"),
    [
        ({"low": 49, "high": 50}, {}),
        ({"high": 51}, {"caps.tiers.high": ["tier `high` allows 51, and no model gives more than 50"]}),
        (
            {"high": 1_051, "low": 50},
            {
                "caps.tiers.high": [
                    "tier `high` allows 1,051, and no model gives more than 50",
                    "tier `high` comes to the same as `low`: no model gives more than 50",
                ]
            },
        ),
        ({"one": 50, "other": 50}, {}),
    ],
)
def test_a_tier_beyond_every_model_and_one_like_another_are_named(tiers: dict[str, int], found: dict[str, list[str]]):
    assert rules(tiers=tiers) == found
    unlimited = {"a": ModelEntry(id="a", provider="mine", model="my-a")}
    assert rules(tiers=tiers, models=unlimited, aliases={}) == {}


@pytest.mark.parametrize(
    ("fallbacks", "found"),
    [
        ({"x": ("y",)}, []),
        ({"x": ("x",)}, ["x: `x` falls back on itself"]),
        ({"x": ("y",), "y": ("x",)}, ["x: `x` and `y` fall back on one another"]),
        ({"y": ("x",), "x": ("y",)}, ["x: `x` and `y` fall back on one another"]),
        ({"x": ("y",), "y": ("z",), "z": ("x",)}, ["x: fallbacks in a circle: `x` -> `y` -> `z` -> `x`"]),
        ({"z": ("x",), "y": ("z",), "x": ("y",)}, ["x: fallbacks in a circle: `x` -> `y` -> `z` -> `x`"]),
        ({"x": ("y", "y"), "y": ("z",)}, []),
        ({"x": ("a",)}, ["x: `x` falls back on `a`, which is the same model"]),
        ({"x": ("a", "y"), "a": ("y",)}, ["x: `x` falls back on `a`, which is the same model"]),
    ],
)
def test_fallbacks_in_circles_and_on_the_same_model_are_named(fallbacks: dict[str, tuple[str, ...]], found: list[str]):
    said = rules(fallbacks=fallbacks, aliases={"x": "a", "y": "b", "z": "c"})
    said.pop("aliases.z")
    prefix = "routing.fallbacks."
    assert [f"{key.removeprefix(prefix)}: {message}" for key, messages in said.items() for message in messages] == found


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"model": "my-own"}, ["`my-own` is not in the model table: its window and price are not known"]),
        ({"model": "gpt-4.1"}, []),
        ({"model": "gpt-4.1", "cap_default": 10, "cap_hard": 10}, []),
        (
            {"model": "gpt-4.1", "cap_default": 1_001, "cap_hard": 1_000},
            ["`m` has a default cap of 1,001 above its hard cap of 1,000"],
        ),
        ({"model": "gpt-4.1", "cap_hard": 32_768}, []),
        (
            {"model": "gpt-4.1", "cap_hard": 32_769, "max_output_tokens": 99_999},
            ["`m` gives 32,768 tokens at most, and its hard cap is 32,769"],
        ),
        ({"model": "gpt-4.1", "cap_hard": 9, "max_output_tokens": 32_768}, []),
        ({"model": "gpt-4.1", "max_output_tokens": 32_769}, ["`m` gives 32,768 tokens at most, not 32,769"]),
        ({"model": "gpt-5", "temperature": 0.5}, ["`m` refuses a temperature; 0.5 is left out"]),
        ({"model": "gpt-5"}, []),
        ({"model": "gpt-4.1", "temperature": 0.5}, []),
    ],
)
def test_each_model_is_limited_by_its_card(entry: dict[str, object], found: list[str]):
    made = ModelEntry(**{"id": "m", "provider": "openai", **entry})  # pyright: ignore[reportArgumentType]
    messages = [one for said in warned(Policy(models={"m": made})).values() for one in said]
    assert [one for one in messages if "retired" not in one] == found


def test_a_model_is_retired_from_its_day_on():
    card = next(card for card in shipped().cards() if card.retired and card.replaced_by)
    assert card.retired is not None
    by = Policy(models={"m": ModelEntry(id="m", provider="any", model=card.id)})
    for day, when in ((card.retired, "was retired"), (card.retired - timedelta(1), "will be retired")):
        (found,) = [one.message for one in lint(by, shipped(), day) if "retired" in one.message]
        assert found == f"`{card.id}` {when} on {card.retired.isoformat()}; use `{card.replaced_by}`"
