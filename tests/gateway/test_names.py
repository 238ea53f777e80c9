import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.gateway.merge.tool_names import LONGEST, Book, Origin, Owned, fold, key, listed_names, nearest, remembered
from ullage.gateway.merge.tool_view import Entry, Member
from ullage.testing import FakeSource
from ullage.tool import Tool

pytestmark = pytest.mark.requirement("S1:aggregate")


def owned(server: str, *names: str, prefix: str | None = None) -> Owned:
    return Owned(server=server, prefix=server if prefix is None else prefix, names=names)


def book(*pairs: tuple[str, str, str], aliases: tuple[str, ...] = ()) -> Book[Entry]:
    """Of server, name there and listed name."""
    return Book(
        Entry(
            listed=listed,
            tool=Tool(name=listed, input_schema={}, aliases=aliases),
            member=Member(name=server, source=FakeSource(), prefix=server),
            original=original,
        )
        for server, original, listed in pairs
    )


HUB = book(
    ("github", "create_issue", "github__create_issue"),
    ("github", "search", "github__search"),
    ("jira", "createIssue", "jira__createIssue"),
    ("jira", "get-board", "jira__get-board"),
)


def test_a_tool_is_listed_behind_its_servers_prefix():
    names = listed_names([owned("github", "create_issue"), owned("jira", "createIssue", prefix="j")])
    assert names == {("github", "create_issue"): "github__create_issue", ("jira", "createIssue"): "j__createIssue"}


def test_with_an_empty_prefix_a_name_stays_as_it_is_however_long_or_odd():
    odd = "a tool.with/odd letters " + "x" * 60
    assert listed_names([owned("one", odd, prefix="")]) == {("one", odd): odd}


def test_letters_that_some_model_refuses_become_underscores():
    names = listed_names([owned("my server!", "delegate.run", "größe")])
    assert list(names.values()) == ["my_server___delegate_run", "my_server___gr__e"]


def test_a_name_of_which_nothing_legible_is_left_is_told_apart_by_a_hash():
    one, two = listed_names([owned("wetter", "天气", "时间")]).values()
    assert one != two
    assert all(re.fullmatch(r"wetter____?_[0-9a-f]{6}", name) for name in (one, two))


def test_a_long_name_is_cut_and_never_falls_together_with_its_neighbour():
    stem = "create_a_new_page_in_the_workspace_of_the_current_user_"
    names = list(listed_names([owned("a-rather-long-server-name-that-goes-on", stem + "1", stem + "2")]).values())
    assert len({*names}) == 2
    assert all(len(name) == LONGEST for name in names)
    assert all(name.startswith("a-rather-long-se__create_a_new_page") for name in names)


def test_a_short_tool_leaves_its_room_to_a_long_prefix():
    (name,) = listed_names([owned("a-server-whose-name-alone-has-forty-eight-letters", "get")]).values()
    assert name.startswith("a-server-whose-name-alone-has-forty-__get_")
    assert len(name) <= LONGEST


@pytest.mark.parametrize(
    "owners",
    [
        [owned("one", "read", prefix=""), owned("two", "read", prefix="")],
        [owned("a__b", "c"), owned("a", "b__c")],
        [owned("one", "getUser", "getuser")],
        [owned("one", "run-it", "run.it", "run_it", prefix="")],
        [owned("a b", "c"), owned("a_b", "c")],
    ],
    ids=["no prefix", "prefix in a prefix", "case", "dots and hyphens", "cleaned alike"],
)
def test_names_that_a_client_may_take_for_the_same_are_kept_apart(owners: list[Owned]):
    names = list(listed_names(owners).values())
    assert len(names) == len({fold(name) for name in names})
    assert names[0] == listed_names(owners[:1])[owners[0].server, owners[0].names[0]], "the first keeps its name"


def test_a_suffix_never_takes_a_name_that_someone_has():
    (suffixed,) = {*listed_names([owned("a", "x", prefix=""), owned("b", "x", prefix="")]).values()} - {"x"}
    names = listed_names([owned("a", "x", prefix=""), owned("b", "x", prefix=""), owned("c", suffixed, prefix="")])
    assert names["c", suffixed] == suffixed
    assert names["b", "x"].startswith(suffixed), "more of the hash tells them apart"


def test_a_server_that_takes_every_name_of_another_does_not_keep_it_from_having_one():
    taken = ["x"]
    for _ in range(60):
        taken.append(listed_names([owned("a", *taken, prefix=""), owned("b", "x", prefix="")])["b", "x"])
    assert len({*taken}) == len(taken)
    assert all(len(name) <= LONGEST for name in taken)


def test_a_name_once_given_stays_with_its_owner_whoever_is_heard_later():
    a, b = owned("a", "search", prefix=""), owned("b", "search", prefix="")
    given: dict[str, Origin] = {}
    seen: dict[str, set[Origin]] = {}
    for heard in ([b], [a, b], [a], [a, b], [b], [], [a]):
        listed = listed_names(heard, given=given)
        given = remembered(given, listed)
        for origin, name in listed.items():
            seen.setdefault(name, set()).add(origin)
    assert seen["search"] == {("b", "search")}
    assert sorted(map(len, seen.values())) == [1, 1], "each has one name, and each name one owner"


def test_a_name_of_another_prefix_is_given_anew_and_the_old_one_to_nobody_else():
    given = remembered({}, listed_names([owned("one", "get", prefix="old")]))
    listed = listed_names([owned("one", "get", prefix="new"), owned("two", "get", prefix="old")], given=given)
    assert listed["one", "get"] == "new__get"
    assert listed["two", "get"].startswith("old__get_")


def test_of_names_that_nobody_has_any_more_only_the_last_are_kept():
    given: dict[str, Origin] = {}
    for number in range(10):
        given = remembered(given, listed_names([owned("s", f"t{number}")], given=given), most=3)
    assert list(given) == ["s__t6", "s__t7", "s__t8", "s__t9"]


def test_reserved_names_go_to_nobody():
    names = listed_names([owned("one", "find-tool", prefix="")], reserved=["find_tool"])
    assert names["one", "find-tool"].startswith("find-tool_")


def test_a_name_given_twice_by_one_server_is_one_name():
    assert list(listed_names([owned("one", "a", "a")]).values()) == ["one__a"]


words = st.text(st.sampled_from("aAbB_-. é"), min_size=1, max_size=60)


@given(
    st.dictionaries(
        st.text("ab_", min_size=1, max_size=4), st.tuples(words | st.just(""), st.lists(words, max_size=5)), max_size=5
    )
)
def test_names_never_collide_and_do_not_depend_on_the_order_of_a_servers_tools(
    servers: dict[str, tuple[str, list[str]]],
):
    owners = [Owned(server=name, prefix=prefix, names=tuple(tools)) for name, (prefix, tools) in servers.items()]
    names = listed_names(owners)
    assert {*names} == {(owner.server, name) for owner in owners for name in owner.names}
    assert len({fold(name) for name in names.values()}) == len(names)
    assert names == listed_names(owners)
    prefixed = {owner.server for owner in owners if owner.prefix}
    assert all(
        len(name) <= LONGEST and re.fullmatch(r"[\w-]+", name, re.ASCII)
        for (server, _), name in names.items()
        if server in prefixed
    )


def test_names_of_one_server_do_not_depend_on_servers_that_cannot_have_them():
    alone = listed_names([owned("github", "a", "b")])
    for others in itertools.permutations([owned("github", "a", "b"), owned("jira", "a"), owned("slack", "a")]):
        assert {**listed_names(others), **alone} == listed_names(others)


@pytest.mark.parametrize(
    "spelling",
    [
        "github__create_issue",
        "github.create_issue",
        "github/create_issue",
        "github:create-issue",
        "GitHub_CreateIssue",
        "mcp__github__create_issue",
        "mcp__ullage__github__create_issue",
        "create_issue",
    ],
)
def test_a_tool_answers_to_every_spelling_that_means_it_alone(spelling: str):
    (found,) = HUB.find(spelling)
    assert (found.server, found.original) == ("github", "create_issue")


def test_a_spelling_that_may_mean_two_tools_means_both():
    assert [one.listed for one in HUB.find("create-issue")] == ["github__create_issue", "jira__createIssue"]


def test_a_server_given_settles_it():
    (found,) = HUB.find("create-issue", "jira")
    assert found.listed == "jira__createIssue"
    (found,) = HUB.find("create_issue", "github")
    assert found.listed == "github__create_issue"
    (found,) = HUB.find("jira__get_board", "jira")
    assert found.original == "get-board"
    assert HUB.find("create_issue", "slack") == ()


def test_a_listed_name_is_surer_than_a_declared_spelling_and_that_than_a_servers_own():
    listed = book(("own", "count-tokens", "count-tokens"), aliases=("count_tokens",))
    other = book(("other", "count_tokens", "other__count_tokens"))
    both = Book((*listed.find("count-tokens"), *other.find("count_tokens")))
    assert [one.server for one in both.find("count_tokens")] == ["own"]
    assert [one.server for one in both.find("other__count_tokens")] == ["other"]


def test_what_nobody_is_called_finds_nobody():
    assert HUB.find("paint_wall") == ()
    assert HUB.find("mcp__") == ()
    assert HUB.find("") == ()


def test_a_name_without_letters_or_beyond_measure_is_known_only_as_it_is_written():
    stem = "a" * 128
    odd = book(("s", "\N{ROCKET}", "s____1f680a"), ("s", f"{stem}_delete", "s__aaa_d1d1d1"))
    for unknown in ("s", "mcp__s", "!!!", f"{stem}_read", stem):
        assert odd.find(unknown) == ()
    assert [one.listed for one in odd.find("\N{ROCKET}")] == ["s____1f680a"]
    assert [one.listed for one in odd.find(f"{stem}_delete")] == ["s__aaa_d1d1d1"]
    assert [one.listed for one in odd.find("S.AAA-D1D1D1")] == ["s__aaa_d1d1d1"]
    assert key("\N{ROCKET}") == key(stem + "a") == ""
    assert odd.nearest(f"s__{stem}_delet") == ("s__aaa_d1d1d1",)


def test_the_nearest_names_are_those_with_the_same_letters():
    assert HUB.nearest("creat_isue", most=2) == ("github__create_issue", "jira__createIssue")
    assert HUB.nearest("get_bord", "jira") == ("jira__get-board",)
    assert HUB.nearest("zzzz") == ()
    assert nearest("", [("a",), ("b",)]) == ()


def test_the_nearest_of_thousands_are_found_among_those_that_share_something():
    many = [(f"server__tool_number_{number}",) for number in range(5_000)]
    assert nearest("tool_nmber_4321", many, most=1) == ("server__tool_number_4321",)


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.lists(st.sampled_from(["x", "X", "a__x"]), max_size=3)), max_size=3
        ),
        max_size=6,
    )
)
def test_a_listed_name_never_changes_hands(hearings: list[list[tuple[str, list[str]]]]):
    remember: dict[str, Origin] = {}
    owners: dict[str, Origin] = {}
    for heard in hearings:
        prefixes = {"a": "", "b": "", "c": "a"}
        now = [Owned(server=name, prefix=prefixes[name], names=tuple(tools)) for name, tools in dict(heard).items()]
        listed = listed_names(now, given=remember)
        remember = remembered(remember, listed)
        for origin, name in listed.items():
            assert owners.setdefault(fold(name), origin) == origin
