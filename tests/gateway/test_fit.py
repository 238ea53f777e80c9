import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.gateway.find.fit import Candidate, Fitted, Piece, fit


def candidate(name: str, costs: tuple[int, int, int, int] = (200, 60, 25, 5), *, named: bool = False) -> Candidate:
    definition, signature, line, alone = (
        Piece(f"{name}:{form}", cost) for form, cost in zip(("full", "signature", "line", "name"), costs, strict=True)
    )
    return Candidate(definition=definition, signature=signature, line=line, name=alone, named=named)


def forms(fitted: Fitted) -> list[str]:
    return [piece.text for piece in (*fitted.tools, *fitted.more)]


MANY = [candidate(str(rank)) for rank in range(40)]
costs = st.tuples(*[st.integers(1, 500)] * 4)


@pytest.mark.requirement("S1:budget")
@given(st.lists(st.tuples(costs, st.booleans()), max_size=20), st.integers(0, 3_000))
def test_what_is_shown_never_costs_more_than_the_room(tools: list[tuple[tuple[int, ...], bool]], room: int):
    candidates = [
        candidate(str(rank), (each[0], each[1], each[2], each[3]), named=named)
        for rank, (each, named) in enumerate(tools)
    ]
    fitted = fit(candidates, room)
    shown = [text.split(":")[0] for text in forms(fitted)]
    assert fitted.cost <= room
    assert len(set(shown)) == len(shown)


@pytest.mark.requirement("S1:budget")
def test_few_definitions_and_many_lines_are_shown():
    fitted = fit(MANY, 1_000)
    assert [piece.text for piece in fitted.tools] == ["0:full", "1:full"]
    assert len(fitted.more) == 24
    assert fitted.more[0].text == "2:line"


def test_with_more_room_lines_become_signatures_best_first():
    fitted = fit(MANY[:6], 1_000)
    assert forms(fitted)[:4] == ["0:full", "1:full", "2:full", "3:full"]
    assert fitted.more[0].text == "4:signature"


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


def test_less_takes_the_last_line_first_and_then_the_last_definition():
    fitted = fit(MANY[:3], 1_000)
    a, b, c = MANY[0].definition, MANY[1].definition, MANY[2].definition
    assert fitted == Fitted(tools=(a, b, c))
    assert Fitted(tools=(a,), more=(b, c)).less() == Fitted(tools=(a,), more=(b,))
    assert Fitted(tools=(a,)).less() == Fitted() == Fitted().less()
