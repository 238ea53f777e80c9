from collections.abc import Iterator
from itertools import count, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ullage.models import shipped
from ullage.table import Continued, Fitted, fit, fit_steps, in_steps
from ullage.tokens import Meter

pytestmark = pytest.mark.requirement("S0:sql:limit")

METER = Meter(shipped())
LINE = st.one_of(
    st.text(alphabet=st.sampled_from(list("ab,./ 1🙂é\t")), max_size=12),
    st.sampled_from(["", "/", "//", " ", "    ", ",,,", "1,Ada", "x" * 300, "日本語,1"]),
)


def tokens(text: str) -> int:
    return METER.count(text, "gpt-4o").tokens


def footer(rows: int, complete: bool) -> str:  # noqa: FBT001
    return f"-- {rows} rows; complete" if complete else f"-- first {rows} rows; more by handle r_123"


def silent(rows: int, complete: bool) -> str:  # noqa: FBT001
    return ""


def text_of(header: str, lines: list[str], rows: int, last: object = footer) -> str:
    end = last(rows, rows == len(lines))  # pyright: ignore[reportCallIssue]
    return "\n".join([*([header] if header else []), *lines[:rows], *([end] if end else [])])


def check(fitted: Fitted, header: str, lines: list[str], budget: int, last: object = footer) -> None:
    """Never over; and one more row would be."""
    assert tokens(fitted.text) == fitted.tokens <= budget
    if fitted.rows or fitted.text == text_of(header, lines, 0, last):
        assert fitted.text == text_of(header, lines, fitted.rows, last)
        assert fitted.complete == (fitted.rows == len(lines))
        assert fitted.complete or tokens(text_of(header, lines, fitted.rows + 1, last)) > budget
    else:
        assert tokens(text_of(header, lines, 0, last)) > budget
        assert footer(0, False).startswith(fitted.text)


@pytest.mark.requirement("S0:sql:limit")
@settings(max_examples=300)
@given(
    st.sampled_from(["", "id,name", "a very long header,with many,columns"]),
    st.lists(LINE, max_size=40),
    st.integers(0, 150),
    st.sampled_from([footer, silent]),
)
def test_the_longest_head_that_fits_is_shown_and_never_a_token_more(header, lines, budget, last):
    check(fit(header, iter(lines), last, tokens, budget), header, lines, budget, last)


def test_every_budget_is_kept_to_the_token():
    lines = [f"{number},Person {number},{number * 1.5}" for number in range(60)]
    whole = tokens(text_of("id,name,x", lines, 60))
    shown = [fit("id,name,x", lines, footer, tokens, budget) for budget in range(whole + 3)]
    for budget, fitted in enumerate(shown):
        check(fitted, "id,name,x", lines, budget)
    assert [fitted.complete for fitted in shown[-4:]] == [False, True, True, True]
    assert shown[0].text == ""
    assert shown[1].text == "--"


def test_a_complete_answer_may_fit_where_a_cut_one_would_not():
    lines = ["1", "2"]
    budget = tokens(text_of("id", lines, 2))
    assert budget < tokens(text_of("id", lines, 1))
    assert fit("id", lines, footer, tokens, budget).complete


def test_where_even_the_header_is_too_much_the_footer_speaks():
    fitted = fit("h" * 200, ["1"], footer, tokens, 12)
    assert (fitted.text, fitted.rows, fitted.complete) == ("-- first 0 rows; more by handle r_123", 0, False)
    assert fit("h" * 200, ["1"], silent, tokens, 3).text == ""
    assert fit("h" * 200, ["1"], lambda *_: "unsayable" * 9, tokens, 3).text == ""


def test_few_weighings_settle_it():
    weighed: list[int] = []

    def weigh(text: str) -> int:
        weighed.append(len(text))
        return tokens(text)

    lines = [f"{number},Person {number},{'long ' * (number % 17)}" for number in range(5_000)]
    fitted = fit("id,name,note", lines, footer, weigh, 5_000)
    check(fitted, "id,name,note", lines, 5_000)
    assert len(weighed) <= 10
    assert sum(weighed) <= 10 * len(fitted.text)


def test_only_as_many_rows_are_taken_as_may_be_needed():
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        for taken in count(1):
            yield f"{taken},x"

    fitted = fit("id,x", endless(), footer, tokens, 500)
    assert not fitted.complete
    assert fitted.rows < taken <= 8 * fitted.rows


def test_rows_that_weigh_next_to_nothing_are_taken_in_turns():
    lines = [" " * 70] * 3_000
    fitted = fit("x", lines, footer, tokens, 1_000)
    check(fitted, "x", lines, 1_000)


def test_a_row_beyond_all_measure_costs_no_more_than_its_beginning():
    weighed: list[int] = []

    def weigh(text: str) -> int:
        weighed.append(len(text))
        return tokens(text)

    lines = ["1,a", "2," + "word " * 1_000_000, "3,c"]
    fitted = fit("id,text", lines, footer, weigh, 100)
    assert fitted.rows == 1
    assert sum(weighed) < 300_000


def test_a_long_light_text_is_weighed_whole():
    lines = ["1,a", " " * 200_000, "3,c"]
    fitted = fit("id,text", lines, footer, lambda text: len(text.split()), 30)
    assert fitted.complete


def test_others_are_let_in_while_rows_are_taken():
    lines = (f"{number},some words of text" for number in range(200_000))
    steps = fit_steps("id,text", islice(lines, 100_000), footer, in_steps(tokens), 150_000)
    assert sum(1 for _ in steps) > 10


def test_a_line_that_is_continued_stands_on_the_line_above():
    fitted = fit("head", ["one ", Continued("two"), "three"], lambda rows, is_all: "end", len, 100)
    assert fitted.text == "head\none two\nthree\nend"
    assert fit("", [Continued("one"), "two"], lambda rows, is_all: "", len, 100).text == "one\ntwo"
