import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.search import terms
from ullage.search.static_embedder import fold
from ullage.search.stemming_and_synonyms import apart

pytestmark = pytest.mark.requirement("S1:hybrid")

ACCENTS = "\u0301\u0323"
"""Each to be sorted before the one that precedes it."""


@given(text=st.text(st.sampled_from("eé가각が\uff76\uff9e\u3099\u0301\u0323ﬁ 1")), fill=st.integers(0, 600))
def test_letters_are_those_of_the_whole_text_however_long_it_is(text: str, fill: int):
    whole = "e" * fill + text + "\u0301" * fill + text
    for form in ("NFD", "NFKD"):
        assert _bare(apart(whole, form)) == _bare(unicodedata.normalize(form, whole))


def test_a_text_of_accents_without_end_is_read_in_no_time():
    """As it stood before, it took minutes."""
    letter = "e" + ACCENTS * 200_000
    assert terms(letter) == ["e"]
    assert fold(letter) == "e"


def _bare(text: str) -> str:
    """Without marks, but for those that are letters in Japanese."""
    return "".join(letter for letter in text if letter == "\u3099" or not unicodedata.category(letter).startswith("M"))
