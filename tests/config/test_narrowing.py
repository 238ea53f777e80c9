from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.config.permissions import literal, narrowed, narrower, overridden, tool_names, within
from ullage.gateway import Rules

pytestmark = pytest.mark.requirement("U:access")

NAMES = st.lists(st.sampled_from(["a", "b", "c", "d*", "[e]"]), max_size=3)
TOOLS = ["a", "b", "c", "d*", "[e]", "dx", "e", "z"]
ORDER = {"allow": 0, "ask": 1, "deny": 2}


def client_rules() -> st.SearchStrategy[Rules]:
    return st.builds(
        lambda only, denied, asked, ask_rest, unasked: narrowed(
            only=only, denied=denied, asked=asked, ask_rest=ask_rest, unasked=unasked
        ),
        st.none() | NAMES,
        NAMES,
        NAMES,
        st.booleans(),
        NAMES,
    )


@pytest.mark.requirement("U:access")
@given(only=st.none() | NAMES, denied=NAMES, asked=NAMES, ask_rest=st.booleans(), unasked=NAMES)
def test_a_tool_that_was_excluded_or_asked_for_is_never_plainly_allowed(
    *, only: list[str] | None, denied: list[str], asked: list[str], ask_rest: bool, unasked: list[str]
):
    rules = narrowed(
        only=only, denied=denied, asked=[one for one in asked if one not in unasked], ask_rest=ask_rest, unasked=unasked
    )
    for tool in TOOLS:
        excluded = tool in denied or (only is not None and tool not in only)
        must_ask = (tool in asked or ask_rest) and tool not in unasked
        assert rules.access(tool) == "deny" or not excluded
        assert rules.access(tool) != "allow" or not must_ask


def patterned_rules() -> st.SearchStrategy[Rules]:
    lists = st.lists(st.sampled_from(["a", "b*", "*", "?"]), max_size=2).map(tuple)
    return st.builds(Rules, allow=lists, ask=lists, deny=lists, only=st.none() | lists)


@pytest.mark.requirement("U:access")
@given(patterned_rules(), patterned_rules())
def test_rules_within_others_are_as_strict_as_both(rules: Rules, bound: Rules):
    both = within(rules, bound)
    for tool in ("a", "b", "bb", "cc"):
        assert ORDER[both.access(tool)] == max(ORDER[rules.access(tool)], ORDER[bound.access(tool)])


def test_what_another_holds_to_be_writing_stays_so():
    rules = within(Rules(read_only=("*",), writing=("a",)), Rules(writing=("b",)))
    assert [rules.is_read_only(tool, {}) for tool in ("a", "b", "c")] == [False, False, True]


@pytest.mark.requirement("U:access")
def test_a_tool_that_is_wanted_and_asked_for_is_asked_for():
    assert narrowed(only=["a"], asked=["a"]).access("a") == "ask"
    assert narrowed(only=["a"], ask_rest=True).access("a") == "ask"
    assert narrowed(only=["a"], ask_rest=True, unasked=["a", "b"]).access("b") == "deny"


@pytest.mark.requirement("U:access")
def test_a_star_among_what_is_excluded_is_any_text():
    assert [narrowed(denied=["de*[x]"]).access(tool) for tool in ("delete[x]", "de*[x]", "dex")] == [
        "deny", "deny", "allow",
    ]  # fmt: skip
    assert narrowed(denied=["*"], ask_rest=True, unasked=["a"]).access("a") == "deny"


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("run(rm)", {"run"}),
        ("mcp__my_server__run", {"mcp__my_server__run", "run"}),
        ("mcp__my_server___run", {"mcp__my_server___run", "_run"}),
        ("mcp__other__run", {"mcp__other__run"}),
    ],
)
def test_tools_are_called_as_their_server_calls_them(listed: str, expected: set[str]):
    assert set(tool_names([listed], "my server")) == expected


def test_the_only_tools_wanted_are_the_only_ones_allowed():
    rules = narrowed(only=["read", "list"], denied=["list"])
    assert [rules.access(tool) for tool in ("read", "list", "write")] == ["allow", "deny", "deny"]


def test_an_empty_list_of_wanted_tools_wants_none():
    assert narrowed(only=[]).access("anything") == "deny"


def test_without_a_word_everything_is_allowed():
    assert narrowed() == Rules()


def test_names_are_no_patterns():
    rules = narrowed(only=["d*", "[e]"])
    assert [rules.access(tool) for tool in ("d*", "dx", "[e]", "e")] == ["allow", "deny", "allow", "deny"]
    assert literal("a?[b]*") == "a[?][[]b][*]"


@given(client_rules(), client_rules())
def test_a_server_in_two_files_is_held_to_both(first: Rules, second: Rules):
    both = narrower(first, second)
    for tool in TOOLS:
        assert ORDER[both.access(tool)] >= max(ORDER[first.access(tool)], ORDER[second.access(tool)])


@given(client_rules())
def test_the_users_own_file_keeps_what_another_held_back(other: Rules):
    own = Rules(deny=("a",), pinned=("b",))
    rules = overridden(own, other)
    assert rules.pinned == ("b",)
    for tool in TOOLS:
        assert ORDER[rules.access(tool)] >= max(ORDER[own.access(tool)], ORDER[other.access(tool)])


def test_the_user_may_allow_by_name_what_another_file_held_back():
    assert overridden(Rules(allow=("a",)), narrowed(denied=["a", "b"])).access("a") == "allow"
    assert overridden(Rules(allow=("a",)), narrowed(only=["b"])).access("a") == "allow"
    assert overridden(Rules(allow=("a",)), narrowed(only=["b"])).access("c") == "deny"


PATTERNS = st.lists(st.sampled_from(["a", "b", "d*", "*", "[[]e]"]), max_size=3).map(tuple)


@given(
    own=st.builds(Rules, allow=PATTERNS, ask=PATTERNS, deny=PATTERNS, only=st.none() | PATTERNS), other=client_rules()
)
def test_a_users_rules_stay_as_strict_beside_another_file(own: Rules, other: Rules):
    joined = overridden(own, other)
    for tool in TOOLS:
        assert ORDER[joined.access(tool)] >= ORDER[own.access(tool)]
        is_lifted = any(fnmatchcase(tool, pattern) for pattern in own.allow)
        assert is_lifted or ORDER[joined.access(tool)] >= ORDER[other.access(tool)]
