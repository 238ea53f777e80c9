import pytest

from ullage.search.static_embedder import Pieces, fold

pytestmark = pytest.mark.requirement("S1:hybrid")

VOCABULARY = [
    *("get", "user", "github", "git", "##hub", "weather", "id", "v", "2", "cafe", "un", "##known", "##able"),
    "2d",
    *("天气", "天", "气", "预报", "날씨", "날"),
]


def words(text: str, most: int | None = None) -> list[str]:
    return [VOCABULARY[row] for row in Pieces(VOCABULARY).rows(text, most)]


def test_words_are_parted_where_names_join_them():
    for name in ("getUserId", "get_user-id", "GET USER.id", "GetUserID"):
        assert words(name) == ["get", "user", "id"]
    assert words("getUserV2") == ["get", "user", "v", "2"]


def test_a_joined_word_that_has_a_row_is_not_parted():
    assert words("GitHub") == ["github"]


def test_a_word_without_a_row_becomes_the_longest_pieces_from_its_beginning():
    assert words("unknownable") == ["un", "##known", "##able"]
    assert words("githubable") == ["github", "##able"]


def test_what_has_no_row_is_left_out():
    assert words("zzz get qqq") == ["get"]
    assert words("getzzzable") == ["get", "##able"]
    assert words("") == words(" ._! ") == []


def test_accents_and_widths_do_not_matter():
    assert words("CAFÉ ｇｅｔ Cafe\u0301") == ["cafe", "get", "cafe"]
    assert fold("plain") == "plain"


def test_scripts_without_spaces_become_the_longest_words_that_have_rows():
    assert words("天气预报") == ["天气", "预报"]
    assert words("天x气") == ["天", "气"]
    assert words("날씨는") == ["날씨"]


def test_rows_come_in_order_as_often_as_they_occur_and_no_more_than_asked_for():
    assert words("get user get") == ["get", "user", "get"]
    assert words("unknownable get", 2) == ["un", "##known"]
    assert words("get user", 5) == ["get", "user"]


@pytest.mark.parametrize("text", ["get" * 100_000, "天" * 100_000, "get " * 100_000])
def test_a_word_counts_up_to_a_length(text: str):
    assert len(words(text, 64)) <= 64


def test_no_more_words_are_remembered_than_a_bound():
    pieces = Pieces(VOCABULARY)
    before = pieces.rows("getUser")
    for number in range(40_000):
        pieces.rows(f"get{number}x")
    assert len(pieces._known) <= 32_768
    assert pieces.rows("getUser") == before


@pytest.mark.parametrize("text", ["weather", "getUserId zzzz", "unknown", "the 天气", "id", "2D"])
def test_a_text_with_a_known_word_or_a_long_piece_of_one_makes_sense(text: str):
    assert Pieces(VOCABULARY).makes_sense(text)


@pytest.mark.parametrize("text", ["", "zzzz", "v", "2 22", "unv", "vx?", "v2v"])
def test_letters_and_digits_alone_make_none(text: str):
    assert not Pieces(VOCABULARY).makes_sense(text)
