import json

import pytest

from ullage.table import find_table, find_table_in

pytestmark = pytest.mark.requirement("S0:meta:data")

PEOPLE = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace", "born": 1906}]


@pytest.mark.requirement("S0:meta:data")
@pytest.mark.parametrize(
    ("value", "path", "columns", "size"),
    [
        (PEOPLE, (), ("id", "name", "born"), (2, 3)),
        ([{"a": 1}], (), ("a",), (1, 1)),
        ([[1, 2], [3, 4], [5, 6]], (), (), (3, 2)),
        ({"items": PEOPLE, "total": 2}, ("items",), ("id", "name", "born"), (2, 3)),
        ({"data": {"page": 1, "users": PEOPLE}}, ("data", "users"), ("id", "name", "born"), (2, 3)),
        ({"columns": ["a", "b"], "rows": [[1, 2], [3, 4]]}, ("rows",), ("a", "b"), (2, 2)),
        ({"columns": ["a"], "rows": [[1, 2], [3, 4]]}, ("rows",), (), (2, 2)),
        ({"columns": [1, 2], "rows": [[1, 2], [3, 4]]}, ("rows",), (), (2, 2)),
        ({"few": [{"a": 1}], "many": PEOPLE, "none": []}, ("many",), ("id", "name", "born"), (2, 3)),
    ],
)
def test_rows_are_found_where_they_stand(value, path, columns, size):
    for found in (
        find_table(value),
        find_table_in(json.dumps(value)),
        find_table_in("\n " + json.dumps(value, indent=1)),
    ):
        assert found is not None
        assert (found.path, found.columns, (found.row_count, found.column_count)) == (path, columns, size)
        assert len(found.rows) == found.row_count


@pytest.mark.requirement("S0:meta:data")
@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        7,
        [],
        {},
        [1, 2, 3],
        ["a", "b"],
        [[1], [2]],
        [[1, 2]],
        [[1, 2], [3]],
        [{}, {}],
        [{"a": 1}, 2],
        [[1, 2], 3],
        [{str(n): n} for n in range(9)],
        {"name": "x", "version": "1", "scripts": {"a": 1, "b": 2}, "people": [{"id": 1}]},
        {"a": {"b": {"c": {"d": PEOPLE}}}},
        {"sizes": [1, 2, 3, 4, 5, 6, 7], "people": PEOPLE},
    ],
)
def test_what_is_no_table_is_none(value):
    assert find_table(value) is None
    assert find_table_in(json.dumps(value)) is None


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("| a | b |\n|---|:-:|\n| 1 | 2 |\n| x\\|y | 3 |\n", ("a", "b"), 2),
        ("a | b\n--- | ---\n1 | 2", ("a", "b"), 1),
        ("id,name\n1,Ada\n2,Grace\n", ("id", "name"), 2),
        ('id,name\r\n1,"Lovelace, Ada"\r\n2,Grace\r\n', ("id", "name"), 2),
    ],
)
def test_tables_of_text_are_found(text, columns, rows):
    found = find_table_in(text)
    assert found is not None
    assert (found.columns, found.row_count, found.column_count, found.rows) == (columns, rows, 2, [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one line",
        "[not json",
        "[" * 100_000,
        "a|b\n1|2\n3|4",
        "| a |\n|---|\n| 1 |",
        "| a | b |\n|---|---|\n| 1 |",
        "Dear Ada, Grace,\nhow are you?\nWell, I hope, and busy.",
        "id,name\n1,Ada\n2,Grace,Hopper",
        'id,name\n1,Ada\n2,"Grace',
        "id,name\n1,Ada",
        "1,2\n3,4\n5,6",
        "id,name\n" + "1,Ada\n" * 40_000,
    ],
)
def test_doubtful_text_is_no_table(text):
    assert find_table_in(text) is None
