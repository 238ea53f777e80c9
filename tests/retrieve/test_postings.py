import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.retrieve import PassageIndex
from ullage.search import Document

pytestmark = pytest.mark.requirement("S4:more")


def passage(name: str, text: str, title: str = "", path: str = "") -> Document:
    return Document(id=name, name=title, server=path, description=text)


def best(index: PassageIndex, query: str) -> list[str]:
    scores = index.scores(query)
    return sorted(scores, key=lambda name: -scores[name])


def test_a_rare_word_counts_more_than_a_common_one():
    index = PassageIndex()
    for number in range(20):
        index.add(passage(f"common {number}", "the pool opens a connection"))
    index.add(passage("rare", "the pool recycles"))
    assert best(index, "recycle the pool")[0] == "rare"


def test_what_a_passage_is_about_counts_more_than_what_it_mentions():
    index = PassageIndex()
    index.add(passage("mentions", "retry " + "word " * 20))
    index.add(passage("titled", "again " + "word " * 20, title="retry"))
    index.add(passage("in the path", "again " + "word " * 20, path="net/retry.py"))
    assert best(index, "retry") == ["titled", "in the path", "mentions"]


def test_a_query_without_words_has_no_scores():
    index = PassageIndex()
    index.add(passage("a", "some words"))
    assert index.scores("") == index.scores("…") == index.scores("absent") == {}


def test_a_passage_that_comes_again_is_replaced():
    index = PassageIndex()
    index.add(passage("a", "old"))
    index.add(passage("a", "new"))
    assert len(index) == 1
    assert index.scores("old") == {}
    assert index.scores("new").keys() == {"a"}


def test_a_passage_that_is_not_there_can_be_removed():
    index = PassageIndex()
    index.remove("never")
    assert len(index) == 0


WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta"]), min_size=1, max_size=6).map(" ".join)


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | WORDS), max_size=40))
def test_an_index_that_changed_is_as_one_that_was_made_anew(changes: list[tuple[int, str | None]]):
    index, texts = PassageIndex(), dict[str, str]()
    for number, text in changes:
        name = str(number)
        texts.pop(name, None)
        if text is None:
            index.remove(name)
        else:
            index.add(passage(name, text))
            texts[name] = text
    fresh = PassageIndex()
    for name, text in texts.items():
        fresh.add(passage(name, text))
    assert index.scores("alpha beta") == fresh.scores("alpha beta")


def test_what_was_removed_is_let_go_in_the_end():
    index = PassageIndex()
    for number in range(3_000):
        index.add(passage("same", f"word{number} constant"))
    index.add(passage("other", "constant"))
    assert len(index._ids) < 1_500
    assert index.scores("constant").keys() == {"same", "other"}
    assert index.scores("word2999").keys() == {"same"}
    assert len(index._postings) < 5_000


def test_a_word_that_comes_very_often_counts_as_many_times_as_fit():
    index = PassageIndex()
    index.add(passage("a", "echo " * 1_000))
    assert index.scores("echo")["a"] > 0
