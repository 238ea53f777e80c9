import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.gateway.results import held_result
from ullage.gateway.results.held_result import boundary, survey
from ullage.tokens import drain

pytestmark = pytest.mark.requirement("U:budget")


def units(text: str) -> list[str]:
    layout = drain(survey(text))
    return [text[slice(*layout.span(unit))] for unit in range(len(layout))]


@pytest.mark.parametrize("indent", [None, 2])
def test_the_units_of_an_array_are_its_elements(indent: int | None):
    value = [{"id": one, "odd": ', ] \\" {'} for one in range(50)]
    for whole, path in ((value, ()), ({"a": 1, "b": {"c": value}, "d": "x"}, ("b", "c"))):
        text = json.dumps(whole, indent=indent)
        layout = drain(survey(text))
        assert (layout.kind, layout.path, layout.is_json) == ("records", path, True)
        assert [json.loads(unit) for unit in units(text)] == value


def test_other_json_is_parted_behind_commas_and_never_in_a_short_value():
    value = {f"key {one}": {"list": [1, 2, 3], "text": "a, b, c " * 5} for one in range(100)}
    text = json.dumps(value)
    layout, parts = drain(survey(text)), units(text)
    assert (layout.kind, layout.is_json) == ("lines", True)
    assert "".join(parts) == text
    assert all(part.endswith(",") for part in parts[:-1])
    assert max(map(len, parts)) <= 240
    giant = json.dumps({"a": "word, " * 500, "b": [1]})
    assert "".join(units(giant)) == giant
    assert max(map(len, units(giant))) <= 240


@pytest.mark.parametrize("text", ["[1, 2", "{no json}", '["a" 1]', "[1][2]", "plain", "[" * 100_000 + "]" * 100_000])
def test_what_is_no_json_has_lines(text: str):
    assert drain(survey(text)).kind == "lines"
    assert "".join(units(text)) == text


def test_the_units_of_a_text_are_its_lines_and_long_ones_are_parted_between_words():
    text = "short\n\nlast"
    assert units(text) == ["short", "", "last"]
    long = "word " * 200
    assert "".join(units(long)) == long
    assert all(part.endswith(" ") for part in units(long))
    assert units("") == []


def test_a_small_array_in_a_large_object_does_not_make_its_units():
    assert drain(survey(json.dumps({"a": [1, 2, 3], "text": "x" * 500}))).kind == "lines"
    assert drain(survey(json.dumps([{"a": 1}]))).kind == "lines"


@pytest.mark.parametrize("cluster", ["e\u0301", "👩\u200d👩\u200d👧", "👍\U0001f3fd", "\ud83d\ude00", "नि"])
def test_what_belongs_together_is_not_parted(cluster: str):
    text = cluster * 300
    ends = [boundary(text, 0, limit) for limit in range(100, 130)]
    assert all(len(text[:end]) % len(cluster) == 0 for end in ends)


def test_a_boundary_prefers_a_comma_of_json_then_a_word():
    text = '{"a": 1, "b": "one, two three'
    assert text[: boundary(text, 0, 26, is_json=True)] == '{"a": 1,'
    assert text[: boundary(text, 0, 26)] == '{"a": 1, "b": "one, two '
    assert boundary(text, 0, 900) == len(text)
    assert boundary("\u0301" * 100, 0, 50) == 50


@given(st.text(max_size=2_000), st.integers(1, 300))
def test_units_lose_nothing_but_line_ends(text: str, width: int):
    wide = text + "x" * width
    assert "".join(units(wide)) == wide.replace("\n", "")
    assert not any(unicodedata.combining(unit[0]) for unit in units("e\u0301" * 500))


def commas_outside_strings(text: str) -> list[int]:
    found, is_inside, at = list[int](), False, 0
    while at < len(text):
        if is_inside and text[at] == "\\":
            at += 1
        elif text[at] == '"':
            is_inside = not is_inside
        elif text[at] == "," and not is_inside:
            found.append(at + 1)
        at += 1
    return found


@given(st.text(alphabet='",\\ab[', max_size=60), st.integers(2, 9))
def test_commas_outside_strings_are_found_in_windows_of_any_size(text: str, window: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_result, "_WINDOW", window)
        assert [*held_result._commas(text, 0, len(text))] == commas_outside_strings(text)


def test_json_with_one_very_long_string_is_parted_like_any_other():
    text = json.dumps({"a": "word, \\" * 200_000, "b": [*range(400)]})
    parts = units(text)
    assert "".join(parts) == text
    assert max(map(len, parts)) <= 240
