import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.search import terms
from ullage.search.stemming_and_synonyms import _of_word, parts, runs, wanted

pytestmark = pytest.mark.requirement("S1:hybrid")


@pytest.mark.parametrize(
    "name", ["getUserById", "get_user_by_id", "get-user-by-id", "get.user.by.id", "GetUserByID", "get user by id"]
)
def test_a_name_has_the_same_words_however_it_is_joined(name: str):
    assert parts(name) == ["get", "user", "by", "id"]


def test_a_joined_word_is_found_by_its_parts_and_whole():
    assert terms("GitHub") == ["git", "hub", "github"]
    assert terms("base64") == ["base", "64", "base64"]
    assert terms("HTTPServer") == ["http", "server", "httpserver"]


@pytest.mark.parametrize(
    "family",
    [
        "translate translation translator translating translates",
        "create created creating creates",
        "stop stopped stopping stops",
        "query queries querying",
        "connect connection connected",
        "file files filing",
    ],
)
def test_forms_of_one_word_meet_in_one_stem(family: str):
    assert len(set(terms(family))) == 1


@pytest.mark.parametrize("word", ["news", "class", "status", "sing", "bed", "by", "sky", "ion", "feed", "agreed"])
def test_a_stem_is_never_empty(word: str):
    assert all(terms(word))


def test_what_is_too_long_for_a_word_keeps_its_ending():
    assert terms("antidisestablishmentarianisms") == terms("antidisestablishmentarianism")
    assert terms("a" * 30 + "b" * 20 + "ing") == ["a" * 30 + "b" * 20 + "ing"]


def test_accents_widths_and_cases_are_folded():
    assert terms("Búsqueda ＡＰＩ Straße") == terms("busqueda api STRASSE")


def test_scripts_without_spaces_become_pairs_of_letters():
    assert terms("查询车票") == ["查询", "询车", "车票"]
    assert terms("票") == ["票"]
    assert terms("ガス代") == ["ガス", "ス代"]
    assert terms("查询API") == ["查询", "api"]


def test_words_of_other_alphabets_meet_by_their_beginning():
    assert terms("сообщение") == terms("сообщения") == ["сообще"]


def test_a_weak_word_counts_less_and_a_repeated_one_less_each_time():
    wants = wanted("the invoice and the invoice")
    assert wants["the"].weight < 0.5
    assert 1 < wants["invoic"].weight < 2


def test_kin_of_a_verb_is_wanted_less_than_the_verb_itself():
    wants = wanted("remove user")
    assert wants["remov"].asked
    assert not wants["delet"].asked
    assert wants["delet"].weight < wants["remov"].weight


def test_a_kin_word_that_was_asked_for_counts_as_asked():
    assert all(
        want.asked and want.weight == 1 for term, want in wanted("get fetch").items() if term in {"get", "fetch"}
    )


@pytest.mark.parametrize("text", ["", "   ", "?!…", "_" * 1_000, "\u0301\u0301"])
def test_a_text_without_words_has_no_terms(text: str):
    assert terms(text) == []


def test_a_query_of_any_length_has_a_bounded_number_of_terms():
    assert len(wanted(" ".join(f"w{number}x" for number in range(100_000)))) < 300


def test_what_has_no_spaces_between_words_is_not_remembered():
    """Its runs hardly come again, and each has dozens of pairs."""
    before = _of_word.cache_info().currsize
    for number in range(100):
        assert len(terms(chr(0x4E00 + number) * 64)) == 63
    assert _of_word.cache_info().currsize == before


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text("aé́が—_ 1한ᄒ", max_size=40))
def test_a_text_is_parted_where_neither_letter_nor_digit_stands(text: str):
    letters = unicodedata.normalize("NFKD", text)
    bare = "".join(one for one in letters if one in "\u3099\u309a" or unicodedata.category(one)[0] != "M")
    assert runs(text) == re.findall(r"[^\W_]+", unicodedata.normalize("NFC", bare))
