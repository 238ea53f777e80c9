import pytest

from ullage.errors import InvalidArguments
from ullage.gateway.results.result_query import is_definite, read_steps, select
from ullage.tool import Json

pytestmark = pytest.mark.requirement("U:budget")

VALUE: Json = {
    "items": [{"id": one, "odd key": [one], "in": {"id": -one}} for one in range(5)],
    "a.b": {"x": 1, "it's": 2},
    "*": "star",
}


@pytest.mark.parametrize(
    ("path", "picked"),
    [
        ("$.items[3].id", [3]),
        ("items[-1]['odd key'][0]", [4]),
        ("items[*].id", [0, 1, 2, 3, 4]),
        ("items.*.id", [0, 1, 2, 3, 4]),
        ("items[1:3].id", [1, 2]),
        ("items[::2].id", [0, 2, 4]),
        ("items[ -2 : ].id", [3, 4]),
        ("$.items..id", [0, 0, 1, -1, 2, -2, 3, -3, 4, -4]),
        ("$..['odd key'][0]", [0, 1, 2, 3, 4]),
        ('"a.b".x', [1]),
        ("$['a.b'].x", [1]),
        ('["a.b"]["x"]', [1]),
        ("['a.b']['it\\'s']", [2]),
        ("nothing", []),
        ("items[9]", []),
        ("items.id", []),
        ("items[0][0]", []),
        ("['a.b'][0:1]", []),
    ],
)
def test_a_path_picks_by_place(path: str, picked: list[Json]):
    assert list(select(VALUE, read_steps(path))) == picked


def test_the_root_is_everything():
    assert list(select(VALUE, read_steps("$"))) == [VALUE]
    assert read_steps(" ") == ()
    assert len(list(select(VALUE, read_steps("$..*")))) > 20


def test_a_path_is_definite_where_it_picks_one_at_most():
    assert is_definite(read_steps("a[1].b"))
    assert not any(is_definite(read_steps(path)) for path in ("a[*]", "a..b", "a[1:]"))


@pytest.mark.parametrize(
    "path",
    [
        "a[",
        "a[?(@.x)]",
        "a..",
        "[",
        "['x'",
        "a]",
        ".",
        "a['b]",
        "a" + "[0]" * 100,
        '["x]',
        "..a..b..c",
        "[1:2:0]",
        "a'b",
    ],
)
def test_what_is_no_path_is_refused_with_how_to_write_one(path: str):
    with pytest.raises(InvalidArguments) as caught:
        read_steps(path)
    assert "items[3].name" in caught.value.options
