"""How the band of a whole request is stretched by what was recorded of its kind."""

from dataclasses import replace

import pytest
from fit_bands import HIDDEN_PROMPTS, Sample, fit

from ullage.messages import read_request
from ullage.models import Match, ModelCard, shipped
from ullage.tokens import Count, Meter, Method
from ullage.tokens.count import RESELLERS, Reach, keys_of, kind_of, reach_of
from ullage.tokens.fitted_bands import REACHES
from ullage.tool import Json

HELLO: dict[str, Json] = {"messages": [{"role": "user", "content": "Hello there, what a fine day it is today."}]}


def near(tokens: int, reach: int, method: Method = Method.CALIBRATED) -> Count:
    return Count(tokens=tokens, method=method, low=tokens - reach, high=tokens + reach)


@pytest.mark.requirement("S2:count")
def test_a_band_is_drawn_in_by_its_share_and_stretched_by_more() -> None:
    assert Reach(0.5, 1.0).apply(near(100, 10)) == Count(tokens=100, method=Method.CALIBRATED, low=95, high=110)
    stretched = Reach(1.0, 2.0).apply(near(100, 10))
    assert (stretched.low, stretched.high) == (90, 122)


@pytest.mark.requirement("S2:count")
def test_an_exact_count_stays_exact_only_where_its_class_is() -> None:
    assert Reach(1.0, 1.0, exact=True).apply(Count.exact(40)) == Count.exact(40)
    doubted = Reach(3.0, 2.0).apply(Count.exact(40))
    assert (doubted.method, doubted.low, doubted.high) == (Method.CALIBRATED, 36, 42)


@pytest.mark.requirement("S2:count")
def test_the_narrowest_class_that_was_measured_decides() -> None:
    match = Match(asked="m", card=ModelCard(id="m", provider="maker", family="f"), host="host", how="id")
    request = read_request(HELLO)
    keys = list(keys_of("host", "maker", "plain", Method.EXACT))
    for place, key in enumerate(keys):
        reaches = {other: Reach(float(at), 1.0) for at, other in enumerate(keys) if at >= place}
        assert reach_of(request, match, Method.EXACT, reaches) == reaches[key]
    assert reach_of(request, match, Method.EXACT, {}) is None


@pytest.mark.requirement("S2:count")
@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({}, "plain"),
        ({"response_format": {"type": "text"}}, "plain"),
        ({"tools": [{"type": "function", "function": {"name": "look"}}]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "other"),
        ({"response_format": {"type": "json_object"}}, "other"),
    ],
)
def test_a_request_is_plain_or_has_tools_or_something_else(more: dict[str, Json], kind: str) -> None:
    assert kind_of(read_request({**HELLO, **more})) == kind


@pytest.mark.requirement("S2:count")
def test_the_meter_applies_the_reach_to_the_sum_and_leaves_the_parts() -> None:
    request, model = read_request(HELLO), "openai/gpt-4o-mini"
    doubted = Meter(shipped(), reaches={"openai openai plain exact": Reach(2.0, 2.0)}).weigh(request, model)
    assert doubted.total.method is Method.CALIBRATED
    assert doubted.messages[0].method is Method.EXACT
    assert Meter(shipped()).weigh(request, model).total.method is Method.EXACT


@pytest.mark.requirement("S2:count")
def test_every_fitted_class_is_one_a_request_can_have() -> None:
    for key, reach in REACHES.items():
        *_, kind, method = key.split()
        assert kind in {"plain", "tools", "other"}
        assert method in set(Method)
        assert reach.exact <= (method == Method.EXACT)
    assert not [key for key in REACHES if key.split()[0] in HIDDEN_PROMPTS and REACHES[key].exact and "tools" in key]


def sample(count: Count, reported: int, repository: str = "a/b", host: str = "host") -> Sample:
    return Sample(host=host, maker="maker", kind="plain", repository=repository, count=count, reported=reported)


@pytest.mark.requirement("S2:count")
def test_a_class_that_misses_is_stretched_until_it_holds() -> None:
    rows = [sample(near(100, 2), 100 + place % 9, f"r/{place % 3}") for place in range(60)]
    reach = fit(rows)["host maker plain calibrated"]
    assert sum(reach.apply(row.count).high >= row.reported for row in rows) >= 57
    assert reach.below == 1.0


@pytest.mark.requirement("S2:count")
def test_a_class_is_drawn_in_only_where_many_repositories_agree() -> None:
    few = [sample(near(100, 40), 101, f"r/{place % 3}") for place in range(60)]
    many = [sample(near(100, 40), 101, f"r/{place % 12}") for place in range(60)]
    assert fit(few)["host maker plain calibrated"] == Reach(1.0, 1.0)
    assert fit(many)["host maker plain calibrated"] == Reach(0.5, 0.5)


@pytest.mark.requirement("S2:count")
def test_exact_counts_that_are_wrong_twice_in_fifty_are_exact_no_more() -> None:
    right = [sample(Count.exact(9), 9) for _ in range(48)]
    assert fit([*right, sample(Count.exact(9), 12)])["host maker plain exact"].exact
    doubted = fit([*right, sample(Count.exact(9), 12), sample(Count.exact(9), 12)])["host maker plain exact"]
    assert not doubted.exact
    assert doubted.apply(Count.exact(9)).high >= 12


@pytest.mark.requirement("S2:count")
def test_hosts_with_prompts_of_their_own_say_nothing_of_others() -> None:
    rows = [sample(Count.exact(9), 900, host=next(iter(HIDDEN_PROMPTS))) for _ in range(30)]
    found = fit([*rows, *(sample(Count.exact(9), 9) for _ in range(30))])
    assert found["* maker plain exact"].exact


@pytest.mark.requirement("S2:count")
def test_a_reseller_is_never_exact_because_others_are() -> None:
    rows = [sample(Count.exact(9), 9) for _ in range(60)]
    found = fit([*rows, *(sample(Count.exact(9), 9, host="zenmux") for _ in range(60))])
    assert found["* maker plain exact"].exact
    for host in sorted(RESELLERS):
        first = next(found[key] for key in keys_of(host, "maker", "plain", Method.EXACT) if key in found)
        assert not first.exact
        assert first.apply(Count.exact(9)).low < 9


@pytest.mark.requirement("S2:count")
def test_schemas_and_media_are_exact_only_on_hosts_where_they_were_recorded() -> None:
    rows = [replace(sample(Count.exact(9), 9), kind="other") for _ in range(60)]
    found = fit(rows)
    assert found["host * other exact"].exact
    assert not found["* maker other exact"].exact
    assert not found["* * other exact"].exact
