import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.config.included_files import parse_relaxed
from ullage.jsonc import blank_comments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.requirement("S1:aggregate")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, // one\n "b": 2}', {"a": 1, "b": 2}),
        ('/* head\n */ {"a": [1, 2, /* x */ ], }', {"a": [1, 2]}),
        ('{"a": "http://x//y", "b": "/* no */",}', {"a": "http://x//y", "b": "/* no */"}),
        (r'{"a": "quote \" // not a comment", }', {"a": 'quote " // not a comment'}),
        (r'{"a": "ends with \\", "b": ",]"}', {"a": "ends with \\", "b": ",]"}),
        ("[1, // ,\n]", [1]),
        ("{}", {}),
    ],
)
def test_comments_and_trailing_commas_are_read_over(text: str, value: object):
    assert parse_relaxed(text) == value


@pytest.mark.requirement("S1:aggregate")
@given(JSON)
def test_plain_json_is_left_as_it_is(value: object):
    text = json.dumps(value, indent=1)
    assert blank_comments(text) == text


@pytest.mark.requirement("S1:aggregate")
@pytest.mark.parametrize("text", ["", "{", '{"a" 1}', "[1,,2]", "/* open", '"open', "[,]x"])
def test_what_is_not_json_is_still_refused(text: str):
    with pytest.raises(json.JSONDecodeError):
        parse_relaxed(text)


@pytest.mark.requirement("S1:aggregate")
def test_lines_stay_where_they_were():
    with pytest.raises(json.JSONDecodeError) as caught:
        parse_relaxed('{ // one\n/* two\nthree */\n"a": oops }')
    assert caught.value.lineno == 4
