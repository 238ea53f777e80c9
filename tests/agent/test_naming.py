import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.agent.function_tools import acceptable_names

pytestmark = pytest.mark.requirement("S2:formats")

GOOD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
names = st.lists(st.text(max_size=80) | st.sampled_from(["a.b", "a_b", "a/b", "9", "x" * 64, "x" * 65]), max_size=8)


@given(names)
def test_every_provider_takes_every_name_and_no_two_are_alike(asked: list[str]):
    found = acceptable_names(asked)
    assert len(found) == len(asked)
    assert len(set(found)) == len(found)
    assert all(GOOD.fullmatch(name) for name in found)


def test_a_good_name_stays_whatever_stands_before_it():
    assert acceptable_names(["a.b", "a_b"])[1] == "a_b"


def test_dots_become_underscores():
    assert acceptable_names(["delegate.run", "github/list issues", "9lives"]) == [
        "delegate_run",
        "github_list_issues",
        "_9lives",
    ]


def test_names_that_would_be_alike_are_told_apart_by_a_mark_that_is_always_the_same():
    first, second = acceptable_names(["a.b", "a/b"])
    assert first == "a_b"
    assert second.startswith("a_b_")
    assert acceptable_names(["a.b", "a/b"]) == [first, second]
    assert acceptable_names(["a_b", "a/b"])[1] == second


def test_a_long_name_keeps_its_beginning():
    (found,) = acceptable_names(["server." + "x" * 100])
    assert len(found) == 64
    assert found.startswith("server_xxx")


def test_two_tools_of_one_name_are_two():
    first, second = acceptable_names(["read", "read"])
    assert first == "read"
    assert second != first
