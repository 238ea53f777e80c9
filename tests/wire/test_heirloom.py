import pytest

from ullage.wire.upstream.heirloom import depth, inherited


@pytest.mark.parametrize(
    ("told", "meant"),
    [(None, 0), ("", 0), ("0", 0), ("3", 3), (" 3 ", 3), ("-1", 0), ("x", 0), ("²", 0), ("9" * 99, 0)],
)
def test_a_depth_that_cannot_be_meant_is_none(told: str | None, meant: int):
    assert depth({} if told is None else {"ULLAGE_DEPTH": told}) == meant


def test_a_server_inherits_all_but_what_is_ours_and_what_is_withheld():
    given = {"PATH": "/bin", "ULLAGE_TOKENS": "a:b", "ULLAGE_STORE": "c", "ALICE_TOKEN": "d", "GH_TOKEN": "e"}
    assert inherited(given, {"ALICE_TOKEN"}) == {"PATH": "/bin", "GH_TOKEN": "e", "ULLAGE_DEPTH": "1"}


def test_each_generation_is_one_deeper():
    assert depth(inherited(inherited({}))) == 2
