from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegate.policies import policy
from ullage.delegate import Bucket, Candidate, LanguageRule, ModelEntry, Policy, Route, RouteRequest, TooLong, route
from ullage.delegate.router import shorten_last_message, without
from ullage.errors import InvalidArguments
from ullage.messages import Message, Text
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


def test_a_policy_without_models_is_reported():
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
    assert "temperature: omitted, gpt-5 does not accept it" in chosen.rationale


def test_an_unknown_model_is_asked_without_window_limit_or_temperature():
    mine = Policy(models={"mine": ModelEntry(id="mine", provider="local", model="my-model")}, default_alias="mine")
    chosen = routed(RouteRequest(prompt_tokens=10_000_000), mine)
    assert chosen.candidates[0].window is None
    assert chosen.candidates[0].parameters.temperature is chosen.candidates[0].parameters.max_output_tokens is None
    assert chosen.rationale == ("default: mine",)


def test_a_model_is_asked_once_even_under_several_names():
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


ROOMS = {"small": 100, "middle": 200, "large": 300, "open": None}


def made_up(**settings: object) -> Policy:
    """A policy of models that no table knows, with windows of 100, 200 and 300 tokens and one that is not known."""
    models = {
        name: ModelEntry(id=name, provider="mine", model=f"my-{name}", window=window, cap_hard=20)
        for name, window in ROOMS.items()
    }
    return Policy(**{"models": models, "aliases": {"s": "small", "l": "large"}, "default_alias": "s", **settings})  # pyright: ignore[reportArgumentType]


def names(found: Route) -> list[str]:
    return [one.alias or one.entry.id for one in found.candidates]


def test_every_decision_has_its_line_of_rationale():
    assert routed(RouteRequest(prompt_tokens=20)).rationale == (
        "bucket: 20 tokens -> chat-default",
        "temperature: 0.7 (model)",
        "output: 2048 (default)",
    )
    assert routed(RouteRequest(prompt_tokens=20, language="pt", tier="pro", domain="code")).rationale == (
        "language: pt (given) -> chat-premium",
        "temperature: 0.25 (domain code)",
        "output: 3072 (tier pro)",
    )
    forced = RouteRequest(
        prompt_tokens=20, force_model="reasoning", temperature=0.5, max_output_tokens=9, language="es"
    )
    assert routed(forced).rationale == ("forced: reasoning", "temperature: 0.5 (request)", "output: 9 (request)")
    warm = replace(policy(), models={**policy().models}, buckets=())
    assert routed(RouteRequest(prompt_tokens=2_000, language="es"), warm).rationale == (
        "default: chat-default",
        "temperature: 0.65 (language es)",
        "output: 2048 (default)",
    )
    plain = Policy(
        models={"m": ModelEntry(id="m", provider="mine", model="my-m")},
        default_alias="m",
        temperatures={"default": 0.3},
    )
    assert routed(RouteRequest(prompt_tokens=1), plain).rationale == ("default: m", "temperature: 0.3 (default)")


def test_a_bucket_reaches_from_its_least_to_its_most_tokens():
    apart = replace(
        policy(),
        buckets=(
            Bucket(alias="chat-default", at_least=10, at_most=20),
            Bucket(alias="chat-premium", at_least=30, at_most=40),
        ),
        default_alias="reasoning",
    )
    found = {tokens: first(RouteRequest(prompt_tokens=tokens), apart).alias for tokens in (9, 10, 20, 21, 30, 40, 41)}
    assert found == {
        **dict.fromkeys((9, 21, 41), "reasoning"),
        **dict.fromkeys((10, 20), "chat-default"),
        **dict.fromkeys((30, 40), "chat-premium"),
    }


@pytest.mark.requirement("S4:risks", "S4:route")
@pytest.mark.parametrize(
    ("tokens", "asked"), [(80, ["s"]), (81, ["middle", "l"]), (180, ["middle", "l"]), (181, ["l"])]
)
def test_a_window_holds_the_prompt_and_the_answer(tokens: int, asked: list[str]):
    found = routed(RouteRequest(prompt_tokens=tokens), made_up())
    assert names(found) == asked
    small = f"s: window of 100 is too small for {tokens} + 20"
    assert (small in found.rationale) is (tokens > 80)
    assert (f"window: {asked[0]} holds it" in found.rationale) is (tokens > 80)


@pytest.mark.requirement("S4:risks")
def test_without_a_cap_one_token_is_left_for_the_answer():
    free = made_up(
        models={"m": ModelEntry(id="m", provider="mine", model="my-m", window=100)}, aliases={}, default_alias="m"
    )
    assert names(routed(RouteRequest(prompt_tokens=99), free)) == ["m"]
    with pytest.raises(TooLong) as refused:
        routed(RouteRequest(prompt_tokens=100), free)
    assert refused.value.room == 99
    assert refused.value.message == "the prompt has 100 tokens, and the largest window is 100"
    assert refused.value.options == ()


@pytest.mark.requirement("S4:risks")
def test_a_prompt_for_a_forced_model_is_refused_with_those_that_hold_it():
    with pytest.raises(TooLong) as refused:
        routed(RouteRequest(prompt_tokens=150, force_model="s"), made_up())
    assert refused.value.options == ("middle", "l")
    assert refused.value.room == 80, "of the forced model and its fallbacks alone"
    assert refused.value.message == "the prompt has 150 tokens, and neither `s` nor its fallbacks hold them"
    with pytest.raises(TooLong) as refused:
        routed(RouteRequest(prompt_tokens=281), made_up())
    assert (refused.value.room, refused.value.options) == (280, ())


def test_a_chain_is_the_first_and_the_fallbacks_of_its_alias():
    chained = made_up(fallbacks={"s": ("l", "open", "small"), "middle": ("s",)})
    assert names(routed(RouteRequest(prompt_tokens=1), chained)) == ["s", "l", "open"]
    assert names(routed(RouteRequest(prompt_tokens=1, force_model="small"), chained)) == ["s", "l", "open"]
    assert names(routed(RouteRequest(prompt_tokens=1, force_model="middle"), chained)) == ["middle", "s"]
    assert names(routed(RouteRequest(prompt_tokens=150), chained)) == ["l", "open"]


SIGHTED = {"gpt": "gpt-4o", "blind": "gpt-3.5-turbo", "mine": "my-own"}


def sighted(**settings: object) -> Policy:
    models = {name: ModelEntry(id=name, provider="openai", model=model) for name, model in SIGHTED.items()}
    return Policy(**{"models": models, "default_alias": "blind", **settings})  # pyright: ignore[reportArgumentType]


def test_images_go_to_a_model_that_sees_or_may_see():
    seen = RouteRequest(prompt_tokens=1, has_images=True)
    assert names(routed(RouteRequest(prompt_tokens=1), sighted())) == ["blind"]
    found = routed(seen, sighted())
    assert names(found) == ["gpt"]
    assert "blind: takes no images" in found.rationale
    chained = sighted(fallbacks={"blind": ("mine", "gpt")})
    assert names(routed(seen, chained)) == ["mine", "gpt"], "what is not known may be tried"
    assert {one.sees for one in routed(seen, chained).candidates} == {None, True}


def test_images_are_refused_if_no_model_accepts_them():
    blind = sighted(models={"blind": ModelEntry(id="blind", provider="openai", model="gpt-3.5-turbo")})
    with pytest.raises(InvalidArguments, match="there are images, and no model of the policy takes them") as refused:
        routed(RouteRequest(prompt_tokens=1, has_images=True), blind)
    assert refused.value.options == ()
    forced = RouteRequest(prompt_tokens=1, has_images=True, force_model="blind")
    with pytest.raises(InvalidArguments, match="neither `blind` nor its fallbacks take them") as refused:
        routed(forced, sighted())
    assert refused.value.options == ("gpt",)
    with pytest.raises(InvalidArguments, match="neither `blind` nor its fallbacks take them"):
        routed(forced, blind)


def test_a_candidate_has_the_facts_of_its_models_card():
    one = first(RouteRequest(prompt_tokens=1), replace(sighted(), default_alias="gpt"))
    card = MODELS.find("gpt-4o").card
    assert (one.window, one.parameters.max_output_tokens) == (card.window, card.max_output)
    assert (one.sees, one.thinks) == (True, card.accepts.get("reasoning"))
    own = ModelEntry(id="gpt", provider="openai", model="gpt-4o", window=50, max_output_tokens=7)
    mine = first(RouteRequest(prompt_tokens=1), Policy(models={"gpt": own}, default_alias="gpt"))
    assert (mine.window, mine.parameters.max_output_tokens) == (50, 7)


@pytest.mark.parametrize(
    ("caps", "asked", "tokens", "who"),
    [
        ({}, {}, 20, "the model's hard cap"),
        ({"cap_default": 9}, {}, 9, "default"),
        ({"cap_default": 15}, {}, 10, "default"),
        ({"cap_default": 5}, {"tier": "t"}, 12, "tier t"),
        ({"cap_default": 5}, {"tier": "t", "max_output_tokens": 19}, 19, "request"),
        ({"max_output_tokens": 8}, {"max_output_tokens": 19}, 8, "the model's hard cap"),
        ({}, {"max_output_tokens": 21}, 20, "the model's hard cap"),
        ({}, {"max_output_tokens": 20}, 20, "request"),
    ],
)
def test_the_output_is_the_least_of_the_caps_and_of_what_is_asked(
    caps: dict[str, int], asked: dict[str, object], tokens: int, who: str
):
    entry = ModelEntry(id="m", provider="mine", model="my-m", cap_hard=20, **caps)  # pyright: ignore[reportArgumentType]
    default = 10 if "cap_default" in caps else None
    by = Policy(models={"m": entry}, default_alias="m", tiers={"t": 12}, cap_default=default)
    found = routed(RouteRequest(prompt_tokens=1, **asked), by)  # pyright: ignore[reportArgumentType]
    assert found.candidates[0].parameters.max_output_tokens == tokens
    assert found.rationale[-1] == f"output: {tokens} ({who})"


def test_what_is_refused_is_named_with_what_there_is():
    with pytest.raises(InvalidArguments, match="no tier is called `gold`") as refused:
        routed(RouteRequest(prompt_tokens=1, tier="gold"), made_up())
    assert refused.value.suggestion == "leave the tier out: the policy has none"
    with pytest.raises(InvalidArguments) as refused:
        routed(RouteRequest(prompt_tokens=1, tier="gold"))
    assert (refused.value.suggestion, refused.value.options) == (
        "use one of the tiers below",
        ("trial", "pro", "enterprise"),
    )
    with pytest.raises(InvalidArguments, match="no domain is called `poetry`") as refused:
        routed(RouteRequest(prompt_tokens=1, domain="poetry"), made_up(temperatures={"law": 0.1}))
    assert refused.value.options == ("default", "code", "creative", "law")
    assert first(RouteRequest(prompt_tokens=1, domain="code"), made_up()).parameters.temperature == 0.25
    assert first(RouteRequest(prompt_tokens=1, domain="creative"), made_up()).parameters.temperature == 0.9
    assert first(RouteRequest(prompt_tokens=1), made_up()).parameters.temperature is None
    with pytest.raises(InvalidArguments, match="no model of the policy is called `x`") as refused:
        routed(RouteRequest(prompt_tokens=1, force_model="x"), made_up())
    assert refused.value.options == ("s", "l", *ROOMS)


def test_who_was_preferred_is_said_where_it_is_benched():
    chosen = routed(RouteRequest(prompt_tokens=1))
    assert chosen.preferred is None
    rest = without(chosen, frozenset({"openai:gpt-4o-mini", "google:gemini-1.5-pro"}))
    assert rest.preferred == "openai:gpt-4o-mini"
    assert rest.rationale == (*chosen.rationale, "benched: chat-default, long-context")


def said(*texts: str) -> Message:
    return Message(role="user", parts=tuple(Text(text) for text in texts))


@pytest.mark.requirement("S4:risks")
@pytest.mark.parametrize(
    ("room", "text", "left_out"),
    [
        (9, "abcde\n[… 1 characters left out …]\nghij", 1),
        (8, "abcd\n[… 2 characters left out …]\nghij", 2),
        (3, "ab\n[… 7 characters left out …]\nj", 7),
        (1, "a\n[… 9 characters left out …]\n", 9),
    ],
)
def test_a_prompt_is_cut_in_the_middle_of_its_last_message(room: int, text: str, left_out: int):
    prompt = said("first"), said("abcdefghij"), Message(role="assistant", parts=(Text("yes"),))
    mark = len("\n[… 1 characters left out …]\n")

    def fits(messages: tuple[Message, ...]) -> bool:
        (part,) = messages[1].parts
        return isinstance(part, Text) and len(part.text) - mark <= room

    cut = shorten_last_message(prompt, fits)
    assert cut is not None
    assert cut.messages == (prompt[0], said(text), prompt[2])
    assert cut.left_out == left_out


@pytest.mark.requirement("S4:risks")
def test_only_the_longest_text_of_the_last_message_is_cut_and_nothing_where_none_of_it_fits():
    cut = shorten_last_message((said("aa", "bbbbbb", "ccc"),), lambda messages: "b" * 5 not in str(messages))
    assert cut is not None
    assert [part.text for part in cut.messages[0].parts if isinstance(part, Text)] == [
        "aa", "bbb\n[… 1 characters left out …]\nbb", "ccc",
    ]  # fmt: skip
    assert shorten_last_message((said("abc"),), lambda _: False) is None
    assert shorten_last_message((Message(role="assistant", parts=(Text("abc"),)),), lambda _: True) is None
    assert shorten_last_message((Message(role="user", parts=()),), lambda _: True) is None
