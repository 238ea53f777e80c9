from dataclasses import fields, replace

import pytest

from ullage.context import DEFAULTS, CachePrices, Options, read_options
from ullage.errors import InvalidArguments

pytestmark = pytest.mark.requirement("S2:options")


@pytest.mark.requirement("S2:options")
def test_without_a_word_the_threshold_is_65_hundredths_and_compaction_is_on():
    assert read_options({}) == DEFAULTS
    assert DEFAULTS.compact_threshold == 0.65
    assert not DEFAULTS.disable_compaction
    assert DEFAULTS.context_window is None


@pytest.mark.requirement("S2:options")
def test_both_spellings_are_understood():
    wanted = Options(context_window=9_000, compact_threshold=0.5, disable_compaction=True)
    camel = read_options({"contextWindow": 9_000, "compactThreshold": 0.5, "disableCompaction": True})
    assert camel == replace(wanted, keep=0.30)
    assert read_options({"context_window": 9_000, "compact_threshold": 0.5, "disable_compaction": True}) == wanted


def test_a_threshold_may_be_of_tokens_or_messages_as_json_writes_it():
    assert read_options({"compactThreshold": ["tokens", 5_000]}).threshold == ("tokens", 5_000)
    assert Options(compact_threshold=("messages", 40)).threshold == ("messages", 40)
    assert Options(compact_threshold=0.4).threshold == ("fraction", 0.4)


def test_an_unknown_option_is_refused_with_those_there_are():
    with pytest.raises(InvalidArguments, match="`threshold`") as refused:
        read_options({"threshold": 0.5})
    assert "compact_threshold" in refused.value.options


@pytest.mark.parametrize(
    "wrong",
    [
        {"compact_threshold": 0},
        {"compact_threshold": 1.5},
        {"compact_threshold": ("tokens", 0)},
        {"context_window": 0},
        {"keep": 1},
        {"target": -0.1},
        {"compact_threshold": ("percent", 50)},
        {"compact_threshold": ("tokens",)},
        {"compact_threshold": "0.5"},
        {"compact_threshold": float("nan")},
        {"compact_threshold": True},
        {"context_window": "128000"},
        {"keep": "0.3"},
        {"cold_threshold": 0},
        {"cache_prices": {"read": -1}},
        {"cache_prices": {"read": "0.1"}},
        {"cache_prices": {"reading": 0.1}},
        {"cache_prices": 5},
        {"cachePrices": "cheap"},
        {"cache_prices": [0.1, 1.25]},
        {"keep": {"read": 0.1}},
        {"target": {}},
        {"keep": [0.3]},
        {"disable_compaction": "false"},
        {"waitForColdCache": 1},
        {"summary_timeout": 0},
        {"summary_timeout": float("inf")},
        {"summary_timeout": float("nan")},
        {"summary_timeout": "60"},
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, object]):
    with pytest.raises(InvalidArguments):
        read_options(wrong)


@pytest.mark.parametrize(
    ("name", "taken", "refused"),
    [
        ("context_window", (1, 1.5, 10**9, None), (0, 0.5, -1, True)),
        ("compact_threshold", (0.001, 1, 1.0, ("fraction", 1), ("tokens", 1), ("messages", 0.5)), (1.001, 0, -1)),
        ("compact_threshold", (("tokens", 10**9),), (("tokens", float("inf")), ("messages", 0), ("tokens", True))),
        ("compact_threshold", (), (("fraction", 1.1), ("tokens", 1, 1), ("parts", 1), ("tokens", "1"))),
        *((name, (0, 0.0, 0.999), (1, 1.0, -0.001, True, None)) for name in ("target", "reserve", "least_gain")),
        ("keep", (0, 0.999, None), (1, -0.001, False)),
        ("cold_threshold", (0.001, 1), (0, 1.001, True, None)),
        ("summary_timeout", (0.001, 10**6), (0, -1, True, None)),
        *((name, (True, False), (0, 1, "true", None)) for name in ("disable_compaction", "wait_for_cold_cache")),
        ("cache_prices", (None, CachePrices()), (5, 0, False)),
    ],
)
def test_every_option_is_taken_up_to_its_bounds_and_refused_beyond(
    name: str, taken: tuple[object, ...], refused: tuple[object, ...]
):
    for value in taken:
        assert getattr(read_options({name: value}), name) == value
    for value in refused:
        with pytest.raises(InvalidArguments):
            read_options({name: value})


def test_every_default_is_as_documented():
    assert {one.name: getattr(DEFAULTS, one.name) for one in fields(DEFAULTS)} == {
        "context_window": None,
        "compact_threshold": 0.65,
        "disable_compaction": False,
        "keep": None,
        "target": 0.5,
        "reserve": 0.15,
        "least_gain": 0.1,
        "cold_threshold": 0.5,
        "wait_for_cold_cache": False,
        "cache_prices": None,
        "summary_timeout": 60.0,
    }


@pytest.mark.requirement("S2:money")
def test_cache_prices_are_understood_as_json_writes_them():
    assert read_options({"cachePrices": {"read": 0.5, "write": 1}}).cache_prices == CachePrices(read=0.5, write=1)


@pytest.mark.requirement("S2:options", "S2:money")
def test_without_prices_those_of_a_cache_of_five_minutes_are_used():
    prices = CachePrices()
    assert (prices.read, prices.write, prices.output, prices.lifetime) == (0.1, 1.25, 5.0, 300.0)
    assert DEFAULTS.cache_prices in (None, prices)


@pytest.mark.requirement("S2:options", "S2:money")
@pytest.mark.parametrize("name", ["read", "write", "output", "lifetime"])
@pytest.mark.parametrize("wrong", [-0.1, float("inf"), float("nan"), True, "0.1", None])
def test_a_cache_price_is_a_number_from_0_on(name: str, wrong: object):
    assert getattr(CachePrices(**{name: 0}), name) == 0
    assert getattr(CachePrices(**{name: 2.5}), name) == 2.5
    with pytest.raises(InvalidArguments, match=f"`{name}` of cache prices"):
        CachePrices(**{name: wrong})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("wrong", [5, "cheap", [0.1, 1.25], True])
def test_cache_prices_that_are_none_are_refused_with_those_there_are(wrong: object):
    with pytest.raises(InvalidArguments, match="`cache_prices`") as refused:
        read_options({"cachePrices": wrong})
    assert refused.value.options == ("read", "write", "output", "lifetime")


def test_an_object_where_a_number_is_wanted_is_not_taken_for_prices():
    with pytest.raises(InvalidArguments, match="`keep` is a share"):
        read_options({"keep": {"read": 0.1}})


@pytest.mark.requirement("S2:options", "S2:money")
@pytest.mark.parametrize(
    ("given", "keep"),
    [
        ({"contextWindow": 9_000}, 0.30),
        ({"compactThreshold": 0.5}, 0.30),
        ({"disableCompaction": False}, 0.30),
        ({"compactThreshold": 0.5, "coldThreshold": 0.9}, 0.30),
        ({"compactThreshold": 0.5, "keep": 0.2}, 0.2),
        ({"coldThreshold": 0.9}, None),
        ({"waitForColdCache": True, "cachePrices": {"read": 0.5}}, None),
        ({"leastGain": 0.2, "summaryTimeout": 5}, None),
    ],
)
def test_only_the_originals_own_options_bring_the_originals_tail(given: dict[str, object], keep: float | None):
    assert read_options(given).keep == keep
