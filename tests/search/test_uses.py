import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.search import MOST_BONUS, MOST_USES, Need, Use, Uses, need_of, terms

pytestmark = pytest.mark.requirement("S1:hybrid")

DAY = 86_400.0
NOW = 1_000 * DAY
ISSUE, BRANCH, NOTE = ("github", "create_issue"), ("github", "create_branch"), ("notes", "think")


VERBS = "draw sell paint cook sail plant repair wash weigh ring print pack"
NOUNS = "horse rice wall soup boat tree watch dog gold bell poster bag"


def known(_: str) -> bool:
    return True


def need(query: str) -> Need:
    return need_of(query, known)


def learnt(*calls: tuple[str, tuple[str, str]], at: float = NOW) -> Uses:
    uses = Uses()
    for query, tool in calls:
        uses.add(need(query), tool, at)
    return uses


# What is kept of a query


def test_only_words_that_the_catalogue_has_too_are_kept():
    held = set(terms("Create an issue in a repository; send a message"))
    query = "create an issue for Anneliese in acme-billing with token ghp_16C7e42F292c69 from /home/ann/plan.txt"
    assert need_of(query, held.__contains__).terms == set(terms("create issue"))


def test_numbers_are_not_kept_even_where_the_catalogue_has_them():
    assert need("pay invoice 4711").terms == set(terms("pay invoice"))


def test_words_that_hold_a_request_together_are_not_kept():
    assert need("could you please help me with this") == Need()


@pytest.mark.parametrize("query", ["create_issue", "github.createIssue", "mcp__github__create_issue", " create-iss "])
def test_a_query_that_is_only_a_name_teaches_nothing(query: str):
    assert not need(query)
    uses = Uses()
    uses.add(need(query), ISSUE, NOW)
    assert len(uses) == 0


def test_a_need_in_a_script_without_spaces_is_kept():
    assert need("创建3个问题").terms


@given(st.text(max_size=400))
def test_nothing_that_the_catalogue_has_not_is_ever_kept(query: str):
    held = set(terms("create an issue in a repository"))
    kept = need_of(query, held.__contains__)
    assert kept.terms | kept.kin <= held
    assert kept.terms <= set(terms(query))


def test_words_that_the_catalogue_has_only_kin_of_ask_for_nothing():
    assert need_of("launch it", {"start"}.__contains__) == Need()


# What it is worth


def test_a_tool_gains_by_the_same_query_as_before():
    uses = learnt(("create an issue", ISSUE))
    assert list(uses.bonuses(need("create an issue"), NOW)) == [ISSUE]


def test_a_tool_gains_less_by_a_query_that_is_less_like_it():
    uses = learnt(("create an issue in the repository", ISSUE))
    same, near = (
        uses.bonuses(need(query), NOW)[ISSUE]
        for query in ("an issue in the repository, create it", "open an issue in that repository")
    )
    assert same > near > 0


def test_a_query_for_something_else_gives_nothing():
    uses = learnt(("create an issue", ISSUE), ("weather forecast for tomorrow", ("weather", "forecast")))
    assert uses.bonuses(need("create a branch"), NOW) == {}
    assert uses.bonuses(need("translate a text"), NOW) == {}
    assert uses.bonuses(Need(), NOW) == {}


def test_more_calls_count_more_and_ever_less_so():
    calls = [learnt(*[("create an issue", ISSUE)] * times) for times in (1, 2, 3, 50)]
    once, twice, thrice, often = (uses.bonuses(need("create an issue"), NOW)[ISSUE] for uses in calls)
    assert once < twice < thrice < often <= MOST_BONUS
    assert twice - once > thrice - twice


def test_what_was_long_ago_counts_less_and_in_the_end_nothing():
    uses = learnt(("create an issue", ISSUE))
    new, old, ancient = (
        uses.bonuses(need("create an issue"), NOW + days * DAY).get(ISSUE, 0.0) for days in (0, 60, 100_000)
    )
    assert new > old > ancient == 0.0


def test_a_clock_that_was_put_back_harms_nothing():
    assert 0 < learnt(("create an issue", ISSUE)).bonuses(need("create an issue"), NOW - 9 * DAY)[ISSUE] <= MOST_BONUS


def test_a_tool_that_is_called_after_everything_gains_next_to_nothing():
    queries = [f"{verb} {noun}" for verb, noun in zip(VERBS.split(), NOUNS.split(), strict=True)]
    uses = learnt(*((query, NOTE) for query in queries * 5), *((query, ("shop", query)) for query in queries))
    for query in queries:
        gained = uses.bonuses(need(query), NOW)
        assert gained["shop", query] > 3 * gained[NOTE]


def test_a_tool_of_two_needs_is_as_good_as_one_of_a_single_need():
    one = learnt(("create an issue", ISSUE)).bonuses(need("create an issue"), NOW)
    two = learnt(("create an issue", ISSUE), ("report a bug", ISSUE)).bonuses(need("create an issue"), NOW)
    assert two == pytest.approx(one)


def test_a_few_tools_gain_at_most():
    uses = learnt(*(("create an issue", ("server", f"tool_{number}")) for number in range(20)))
    assert len(uses.bonuses(need("create an issue"), NOW)) == 3


WORDS = st.sampled_from(["issue", "branch", "create", "list", "file", "weather", "mail", "send", "red", "blue"])
QUERIES = st.lists(WORDS, max_size=6).map(" ".join)
TOOLS = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z"]))


@given(
    st.lists(st.tuples(QUERIES, TOOLS, st.integers(1, 10**9), st.floats(0, 1e12)), max_size=30),
    QUERIES,
    st.floats(0, 1e12),
)
def test_no_history_gives_more_than_the_bound(
    history: list[tuple[str, tuple[str, str], int, float]], query: str, now: float
):
    uses = Uses(
        Use(terms=need(said).terms, tool=tool, count=count, last=last)
        for said, tool, count, last in history
        if need(said)
    )
    gained = uses.bonuses(need(query), now)
    assert all(0 < value <= MOST_BONUS for value in gained.values())
    assert len(gained) <= 3
    assert set(gained) <= {tool for _, tool, _, _ in history}
    assert list(gained.values()) == sorted(gained.values(), reverse=True)


@given(st.lists(st.tuples(QUERIES, TOOLS), max_size=40), QUERIES)
def test_the_order_of_what_was_read_makes_no_difference(history: list[tuple[str, tuple[str, str]]], query: str):
    rows = {
        (need(said).terms, tool): Use(terms=need(said).terms, tool=tool, last=float(place))
        for place, (said, tool) in enumerate(history)
    }
    there, back = (Uses(each).bonuses(need(query), NOW) for each in (rows.values(), list(rows.values())[::-1]))
    assert there == pytest.approx(back)


# How much is remembered


def test_the_longest_unused_go_first():
    uses = Uses(most=2)
    for at, query in enumerate(["mow the lawn", "sail a boat", "mow the lawn", "fry an egg"]):
        uses.add(need(query), ("home", query), NOW + at)
    assert len(uses) == 2
    assert not uses.bonuses(need("sail a boat"), NOW)
    assert uses.bonuses(need("mow the lawn"), NOW)


def test_memory_is_bounded_whatever_is_called():
    uses = Uses()
    for number in range(MOST_USES + 500):
        uses.add(Need(frozenset({f"word{number}", "issu"})), ("server", f"tool{number}"), NOW + number)
    assert len(uses) == MOST_USES
    assert not uses.bonuses(Need(frozenset({"word1", "issu"})), NOW), "the first were let go"
    assert uses.bonuses(Need(frozenset({"word2100", "issu"})), NOW)
