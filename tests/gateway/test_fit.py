from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.gateway.find.find_reply import Candidate, Fitted, Piece, fit, fit_brief, has_brief_reply

pytestmark = pytest.mark.requirement("S1:budget")

FORMS = ("full", "signature", "line", "name")
COSTS = (200, 60, 25, 5)


def candidate(
    name: str, costs: tuple[int, int, int, int] = COSTS, *, named: bool = False, near: bool = True
) -> Candidate:
    definition, signature, line, alone = (
        Piece(f"{name}:{form}", cost) for form, cost in zip(FORMS, costs, strict=True)
    )
    return Candidate(definition=definition, signature=signature, line=line, name=alone, named=named, near=near)


def forms(fitted: Fitted) -> list[str]:
    return [piece.text for piece in (*fitted.tools, *fitted.more)]


def number(fitted: Fitted, form: str) -> int:
    return sum(text.endswith(f":{form}") for text in forms(fitted))


MANY = [candidate(str(rank)) for rank in range(40)]
costs = st.tuples(*[st.integers(1, 500)] * 4)


@pytest.mark.requirement("S1:budget")
@given(st.lists(st.tuples(costs, st.booleans(), st.booleans()), max_size=60), st.integers(0, 6_000))
def test_what_is_shown_never_costs_more_than_the_room_and_nothing_is_shown_twice(
    tools: list[tuple[tuple[int, int, int, int], bool, bool]], room: int
):
    candidates = [candidate(str(rank), each, named=named, near=near) for rank, (each, named, near) in enumerate(tools)]
    fitted = fit(candidates, room)
    shown = [text.split(":")[0] for text in forms(fitted)]
    assert fitted.cost <= room
    assert len(set(shown)) == len(shown)
    for pieces in (fitted.tools, fitted.more):
        ranks = [int(piece.text.split(":")[0]) for piece in pieces]
        assert ranks == sorted(ranks), "best first"


@pytest.mark.requirement("S1:budget")
@given(st.integers(0, 5_000), st.integers(1, 60))
def test_with_as_much_room_for_each_the_nearer_is_never_shown_in_less(room: int, number: int):
    fitted = fit([candidate(str(rank)) for rank in range(number)], room)
    shown = {int(text.split(":")[0]): FORMS.index(text.split(":")[1]) for text in forms(fitted)}
    assert sorted(shown) == list(range(len(shown)))
    assert [shown[rank] for rank in sorted(shown)] == sorted(shown.values())


@pytest.mark.requirement("S1:budget")
def test_the_best_are_whole_the_next_are_signatures_then_lines_and_names_take_the_rest():
    fitted = fit(MANY, 1_000)
    assert [piece.text for piece in fitted.tools] == ["0:full", "1:full"]
    assert [piece.text for piece in fitted.more[:6]] == [*(f"{rank}:signature" for rank in range(2, 7)), "7:line"]
    assert (number(fitted, "signature"), number(fitted, "line"), number(fitted, "name")) == (5, 6, 27)


def test_no_more_than_three_are_whole_before_all_others_are_shown():
    small = [candidate(str(rank), (50, 20, 15, 10)) for rank in range(40)]
    assert (number(fit(small, 500), "full"), len(forms(fit(small, 500)))) == (3, 27)
    assert (number(fit(small, 2_000), "full"), len(forms(fit(small, 2_000)))) == (8, 40)
    assert number(fit(small, 100_000), "full") == 8, "beyond, a definition is no better a guess than a signature"


def test_with_more_room_all_become_fuller_best_first():
    fitted = fit(MANY[:6], 1_000)
    assert forms(fitted)[:4] == ["0:full", "1:full", "2:full", "3:full"]
    assert fitted.more[0].text == "4:signature"


def test_what_is_far_down_waits_until_all_before_are_as_full_as_they_may_be():
    many = [candidate(str(rank)) for rank in range(60)]
    enough = 8 * 200 + 32 * 60
    assert len(forms(fit(many, enough))) == 40
    assert number(fit(many, enough + 25), "name") == 5
    assert number(fit(many, enough + 20 * 25), "line") == 20


def test_a_definition_that_is_too_large_gives_way_to_a_signature_and_to_the_next():
    fitted = fit([candidate("giant", (5_000, 60, 25, 5)), candidate("small", (100, 60, 25, 5))], 400)
    assert forms(fitted) == ["small:full", "giant:signature"]


def test_with_little_room_there_is_a_line_or_a_name():
    giant = candidate("giant", (5_000, 900, 25, 5))
    assert forms(fit([giant], 30)) == ["giant:line"]
    assert forms(fit([giant], 24)) == ["giant:name"]
    assert forms(fit([giant], 4)) == []


def test_the_definition_of_a_tool_asked_for_by_name_may_take_all_the_room():
    others = [candidate(str(rank)) for rank in range(5)]
    assert forms(fit([candidate("asked", (395, 60, 25, 5), named=True), *others], 400)) == ["asked:full", "0:name"]
    assert forms(fit([candidate("found", (395, 60, 25, 5)), *others], 400))[-1] != "found:full"


def test_a_list_in_no_order_of_nearness_names_everything_before_it_says_more_of_anything():
    listed = [candidate(str(rank), near=False) for rank in range(60)]
    assert number(fit(listed, 300), "name") == 60
    assert forms(fit(listed, 320))[0] == "0:line"
    near = [candidate("near"), *listed]
    assert forms(fit(near, 500))[:2] == ["near:full", "0:name"]


def test_less_takes_the_last_line_first_and_then_the_last_definition():
    fitted = fit(MANY[:3], 1_000)
    a, b, c = MANY[0].definition, MANY[1].definition, MANY[2].definition
    assert fitted == Fitted(tools=(a, b, c))
    assert Fitted(tools=(a,), more=(b, c)).less() == Fitted(tools=(a,), more=(b,))
    assert Fitted(tools=(a,)).less() == Fitted() == Fitted().less()


@pytest.mark.requirement("S1:brief")
def test_a_clear_search_shows_its_best_match_whole_a_rival_and_the_names_of_what_is_not_far():
    scores = [1.2, 1.0, *(0.7 - 0.01 * rank for rank in range(20)), *[0.1] * 18]
    assert has_brief_reply(scores, 1_000)
    fitted = fit_brief(MANY, scores, 1_000)
    assert forms(fitted) == ["0:full", "1:signature", *(f"{rank}:name" for rank in range(2, 22))]
    assert fitted.cost <= 400


@pytest.mark.requirement("S1:brief")
def test_a_search_that_may_mean_many_tools_or_that_nothing_fits_uses_the_whole_room():
    assert not has_brief_reply([1.0] * 40, 1_000)
    assert not has_brief_reply([0.8, 0.1, 0.1], 1_000), "the best match is weak"
    assert not has_brief_reply([], 1_000)
    assert not has_brief_reply([1.2, 0.3], 200), "so small a room is used anyway"


@pytest.mark.requirement("S1:brief")
def test_what_is_far_is_shown_only_among_the_nearest_five():
    scores = [1.4, *[0.2] * 39]
    assert has_brief_reply(scores, 1_000)
    assert [text.split(":")[0] for text in forms(fit_brief(MANY, scores, 1_000))] == ["0", "1", "2", "3", "4"]


@pytest.mark.requirement("S1:brief")
def test_a_long_definition_is_shown_where_the_search_is_sure_and_pushes_no_name_out():
    long = [candidate("0", (600, 60, 25, 5)), *MANY[1:]]
    sure = fit_brief(long, [1.4, *[0.8] * 39], 1_000)
    assert forms(sure)[0] == "0:full"
    assert number(sure, "name") == 39
    unsure = fit_brief(long, [1.0, 0.98, 0.97, *[0.5] * 37], 1_000)
    assert forms(unsure)[:3] == ["0:signature", "1:signature", "2:signature"]


@pytest.mark.requirement("S1:brief", "U:shapes")
def test_what_the_best_match_returns_takes_neither_its_definition_nor_a_name():
    scores, short = [1.0, 0.98, 0.97, *[0.5] * 37], (130, 60, 25, 5)
    without = [candidate("0", short), *MANY[1:]]
    shown = [replace(candidate("0", (155, 85, 25, 5)), of_returns=25), *MANY[1:]]
    assert forms(fit_brief(shown, scores, 1_000)) == forms(fit_brief(without, scores, 1_000))
    assert forms(fit_brief(shown, scores, 1_000))[0] == "0:full"


@pytest.mark.requirement("S1:brief")
def test_what_was_asked_for_by_name_comes_whole_in_a_brief_reply():
    named = [candidate("0", named=True), candidate("1", named=True), *MANY[2:]]
    assert forms(fit_brief(named, [1.2, 0.95, *[0.6] * 38], 1_000))[:2] == ["0:full", "1:full"]


@pytest.mark.requirement("S1:budget")
@given(st.lists(st.tuples(costs, st.booleans(), st.floats(0, 2)), min_size=1, max_size=60), st.integers(0, 3_000))
def test_a_brief_reply_never_costs_more_than_the_room(
    tools: list[tuple[tuple[int, int, int, int], bool, float]], room: int
):
    candidates = [candidate(str(rank), each, named=named) for rank, (each, named, _) in enumerate(tools)]
    fitted = fit_brief(candidates, [score for _, _, score in tools], room)
    shown = [text.split(":")[0] for text in forms(fitted)]
    assert fitted.cost <= room
    assert len(set(shown)) == len(shown)


@pytest.mark.requirement("S1:brief")
def test_three_rivals_get_a_signature_and_names_end_where_one_does_not_fit():
    short = [candidate(str(rank), (200, 30, 25, 5)) for rank in range(12)]
    scores = [1.0, 0.99, 0.98, 0.97, 0.96, *[0.4] * 7]
    assert forms(fit_brief(short, scores, 1_000)) == [
        *(f"{rank}:signature" for rank in range(4)),
        *(f"{rank}:name" for rank in range(4, 12)),
    ]
    wide = [*short[:7], candidate("7", (500, 500, 500, 400)), *short[8:]]
    assert forms(fit_brief(wide, scores, 1_000)) == [
        *(f"{rank}:signature" for rank in range(4)),
        *(f"{rank}:name" for rank in range(4, 7)),
    ]


NAMES = (200, 60, 25, 20)
"""A name of twenty tokens, so that a brief reply of 360 is soon full."""


@pytest.mark.requirement("S1:brief")
@pytest.mark.parametrize(
    ("first", "of_returns", "scores", "shown", "names"),
    [
        # The usual 110 tokens of a definition count, and a rest of it and what is returned do not: 250 are left.
        ((110, 60, 25, 20), 0, [1.4], "full", 12),
        ((111, 60, 25, 20), 0, [1.4], "full", 12),
        ((130, 60, 25, 20), 0, [1.4], "full", 12),
        ((600, 60, 25, 20), 0, [1.4], "full", 12),
        ((600, 60, 25, 20), 300, [1.4], "full", 12),
        ((90, 60, 25, 20), 0, [1.4], "full", 13),
        ((110, 60, 25, 20), 25, [1.4], "full", 13),
        # Not sure of it: a definition of 140 tokens at most.
        ((140, 60, 25, 20), 0, [1.0], "full", 12),
        ((141, 60, 25, 20), 0, [1.0], "signature", 15),
        ((165, 60, 25, 20), 25, [1.0], "full", 12),
        ((166, 60, 25, 20), 25, [1.0], "signature", 15),
    ],
)
def test_a_brief_reply_has_room_for_names_beside_the_usual_definition(
    first: tuple[int, int, int, int], of_returns: int, scores: list[float], shown: str, names: int
):
    best = replace(candidate("0", first), of_returns=of_returns)
    near = [candidate(str(rank), NAMES) for rank in range(1, 40)]
    fitted = fit_brief([best, *near], [*scores, *[0.8] * 39], 2_000)
    assert forms(fitted) == [f"0:{shown}", *(f"{rank}:name" for rank in range(1, names + 1))]


@pytest.mark.requirement("S1:brief")
@pytest.mark.parametrize(("second", "is_rival"), [(1.12, False), (1.13, True)])
def test_a_rival_has_a_tenth_of_the_shares(second: float, *, is_rival: bool):
    # A tool 0.275 behind another has 0.11 of its share, and 0.1 of both.
    fitted = fit_brief([candidate("0", NAMES), candidate("1", NAMES)], [1.4, second], 2_000)
    assert forms(fitted) == ["0:full", f"1:{'signature' if is_rival else 'name'}"]


@pytest.mark.requirement("S1:brief")
@pytest.mark.parametrize(("second", "is_sure"), [(1.34, True), (1.36, False)])
def test_a_sure_match_has_six_tenths_of_the_shares(second: float, *, is_sure: bool):
    fitted = fit_brief([candidate("0", NAMES), candidate("1", NAMES)], [1.4, second], 2_000)
    assert forms(fitted)[0] == ("0:full" if is_sure else "0:signature")


@pytest.mark.requirement("S1:brief")
@pytest.mark.parametrize(("score", "shown"), [(0.51, 12), (0.49, 5)])
def test_a_name_is_shown_up_to_a_distance_of_nine_tenths_and_of_the_nearest_five_always(score: float, shown: int):
    fitted = fit_brief([candidate(str(rank), NAMES) for rank in range(12)], [1.4, *[score] * 11], 2_000)
    assert len(forms(fitted)) == shown


@pytest.mark.requirement("S1:brief")
def test_a_named_tool_among_the_best_eight_is_whole_and_one_behind_them_is_not():
    def shown(at: int) -> list[str]:
        tools = [candidate(str(rank), (60, 30, 20, 5), named=rank == at) for rank in range(12)]
        return [piece.text for piece in fit_brief(tools, [1.0, *[0.99] * 11], 2_000).tools]

    assert (shown(7), shown(8)) == (["7:full"], ["0:full"])


@pytest.mark.requirement("S1:brief")
def test_whether_a_reply_is_brief_is_decided_by_the_best_score_the_spread_and_the_room():
    assert has_brief_reply([0.9, 0.1], 361)
    assert not has_brief_reply([0.89, 0.1], 361)
    assert not has_brief_reply([0.9, 0.1], 360)
    assert has_brief_reply([1.0] * 24, 361)
    assert not has_brief_reply([1.0] * 25, 361)


@pytest.mark.requirement("S1:budget")
def test_shares_of_the_room_bound_definitions_signatures_and_lines():
    same = [candidate(str(rank), (100, 50, 20, 10)) for rank in range(30)]
    # Of 1,000: definitions up to 500 for three, signatures up to 700, lines up to 850, names that become lines.
    assert [number(fit(same, 1_000), form) for form in FORMS] == [3, 5, 22, 0]
    assert forms(fit([candidate("0", (750, 50, 20, 10)), *same[1:]], 1_000))[0] == "0:full"
    assert forms(fit([candidate("0", (751, 50, 20, 10)), *same[1:]], 1_000))[0] == "1:full"
    assert number(fit([candidate("0", (300, 50, 20, 10)), *same[1:]], 1_000), "full") == 3
    assert number(fit([candidate("0", (301, 50, 20, 10)), *same[1:]], 1_000), "full") == 2
