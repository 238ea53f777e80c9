import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieve.retrievers import tokens
from ullage.retrieve import Passage, Place
from ullage.retrieve.retriever import fit_passages, trim_passages

pytestmark = pytest.mark.requirement("S4:more")


def passage(path: str, *lines: str, first: int = 1) -> Passage:
    return Passage(Place(path=path, first=first, last=first + len(lines) - 1), lines)


def none(shown: int) -> str:
    del shown
    return ""


FIVE = [passage(f"{name}.md", *(f"line {number} of the text {name}" for number in range(12))) for name in "abcde"]
LINES = st.lists(st.text(st.characters(exclude_characters="\n"), max_size=60), min_size=1, max_size=15)


@given(st.lists(LINES, max_size=6), st.integers(1, 400))
def test_the_text_is_never_over_the_budget(texts: list[list[str]], budget: int):
    passages = trim_passages([passage(f"{number}.txt", *lines) for number, lines in enumerate(texts)])
    shown = fit_passages(passages, lambda number: f"-- {number} of {len(passages)}", tokens, budget)
    assert tokens(shown.text) <= budget
    assert all(place.citation in shown.text for place in shown.places)


@pytest.mark.parametrize("budget", range(20, 700, 29))
def test_nothing_more_would_have_fitted(budget: int):
    shown = fit_passages(FIVE, none, tokens, budget)
    lines = [line for one in FIVE for line in one.lines]
    number = sum(line in lines for line in shown.text.split("\n"))
    last = shown.places[-1] if shown.places else None
    if number < len(lines) and last is not None and last.last < 12:
        longer = shown.text.replace(last.citation, f"{last.path}:1-{last.last + 1}") + f"{lines[number]}\n"
        assert tokens(longer) > budget


def test_a_citation_says_where_a_passage_was_cut():
    shown = fit_passages(FIVE[:1], none, tokens, 60)
    place = shown.places[0]
    assert 1 < place.last < 12
    assert shown.text.split("\n")[0] == f"a.md:1-{place.last}"
    assert f"line {place.last - 1} of" in shown.text
    assert f"line {place.last} of" not in shown.text


def test_a_line_or_two_of_a_second_passage_are_not_worth_showing():
    whole = tokens(fit_passages(FIVE[:1], none, tokens, 10_000).text)
    assert len(fit_passages(FIVE, none, tokens, whole + 20).places) == 1
    assert len(fit_passages(FIVE, none, tokens, whole + 60).places) == 2


def test_where_nothing_fits_there_is_nothing():
    assert fit_passages(FIVE, none, tokens, 3).text == ""


def test_empty_lines_around_a_passage_are_not_shown_nor_cited():
    (shown,) = trim_passages([passage("a", "", "  ", "word", "", "more", "", first=10)])
    assert shown == passage("a", "word", "", "more", first=12)
    assert trim_passages([passage("a", "", " ")]) == ()


def test_the_same_text_is_shown_once():
    assert trim_passages([passage("a", "word"), passage("b", "word")]) == (passage("a", "word"),)


def test_what_nobody_sees_is_taken_out_and_a_line_stays_one():
    (shown,) = trim_passages([passage("a", "one\u202e\u200btwo\x1b[0m", "three\u2028four\x85five")])
    assert shown.lines == ("onetwo[0m", "three four five")


def test_a_line_for_machines_is_shown_by_its_beginning():
    (shown,) = trim_passages([passage("a", "x" * 50_000)])
    assert shown.lines == ("x" * 1_000 + "…",)
