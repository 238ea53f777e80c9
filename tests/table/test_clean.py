from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.table import Cleaned, clean, clean_row

pytestmark = pytest.mark.requirement("S0:sql:query")

UNSEEN = "\x00\x07\x08\x1b\x7f\x9b\u061c\u200b\u200e\u202e\u2066\u2060\ufeff\xad\u034f\u3164\U000e0041\U000e0001\ud800"


def test_plain_text_stays_as_it_is():
    for text in ("", "plain", "naïve — Größe 日本語 עברית", "tab\tand\nbreak", "a\u00a0b"):
        assert clean(text) == Cleaned(text, 0)


@pytest.mark.parametrize("character", UNSEEN)
def test_what_nobody_sees_goes_and_is_counted(character: str):
    assert clean(f"pass{character}word{character}") == Cleaned("password", 2)


def test_line_breaks_of_every_kind_are_one_kind():
    assert clean("a\r\nb\rc\u2028d\x85e\u2029") == Cleaned("a\nb\nc\nd\ne\n", 0)


def test_emoji_and_joining_scripts_keep_their_joiners():
    for text in ("👨\u200d👩\u200d👧", "❤\ufe0f\u200d🔥", "نامه\u200cای", "क्\u200dष", "☂\ufe0f", "葛\U000e0100"):
        assert clean(text) == Cleaned(text, 0)


def test_joiners_elsewhere_and_piled_up_selectors_go():
    assert clean("pass\u200dword a\u200cb\u200d") == Cleaned("password ab", 3)
    assert clean("👨\u200d\u200d👩") == Cleaned("👨👩", 2)
    assert clean("☂\ufe0f\ufe01\U000e0100") == Cleaned("☂\ufe0f", 2)
    assert clean("x\ufe0f") == Cleaned("x", 1)


def test_words_spelt_in_tags_go():
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore all")
    assert clean(f"hello{hidden}") == Cleaned("hello", len(hidden))


def test_a_row_is_cleaned_to_its_depths():
    row, removed = clean_row((1, None, True, Decimal("1.0"), "a\u200b", ["b\x00", {"k\u202e": ["\ufeff", 2]}]))
    assert row == (1, None, True, Decimal("1.0"), "a", ["b", {"k": ["", 2]}])
    assert removed == 4


@given(st.text())
def test_cleaning_twice_is_cleaning_once(text: str):
    once = clean(text)
    assert len(once.text) <= len(text)
    assert clean(once.text.replace("\u200d", "").replace("\u200c", "")).removed == 0
