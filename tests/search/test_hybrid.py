from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ullage.search import MOST_BONUS, Document, Field, HybridIndex, LexicalIndex, Named
from ullage.search.ranking import Matrix

pytestmark = pytest.mark.requirement("S1:hybrid")

Vectors = NDArray[np.float32]

ISSUE = Document(id="issue", server="github", name="create_issue", description="Open a new issue in a repository.")
SEARCH = Document(id="search", server="github", name="search_issues", description="Find issues that match a query.")
SEND = Document(id="send", server="slack", name="send_message", description="Post a message to a channel.")
ERASE = Document(id="erase", server="files", name="delete_file", description="Erases a file from the disk.")
DOCUMENTS = (ISSUE, SEARCH, SEND, ERASE)


@dataclass
class Compass:
    """Knows in which direction each text lies; what it does not know lies nowhere."""

    directions: Mapping[str, tuple[float, float]]
    """By a document's id, or a query's sentence."""
    edition: str = "compass"
    weight: float = 7.0
    embedded: list[str] = field(default_factory=list[str])

    def embed_documents(self, documents: Sequence[Document]) -> Vectors:
        self.embedded += [document.id for document in documents]
        return self._vectors([document.id for document in documents])

    def embed_query(self, query: str) -> Vectors:
        sentences = query.split(". ")
        return self._vectors([query, *sentences] if len(sentences) > 1 else [query])

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        return np.array([self.directions.get(text, (0, 0)) for text in texts], dtype=np.float32).reshape(-1, 2)


EAST, NORTH, WEST = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)
NORTHEAST, ALMOST_NORTH = (0.6, 0.8), (0.05, 0.99875)
PLACES = {"issue": EAST, "search": NORTHEAST, "send": NORTH, "erase": WEST}


def _index(*queries: tuple[str, tuple[float, float]], documents: Sequence[Document] = DOCUMENTS) -> HybridIndex:
    return HybridIndex(documents, Compass({**PLACES, **dict(queries)}))


def _ids(index: HybridIndex, query: str, limit: int = 10) -> list[str]:
    return [hit.document.id for hit in index.search(query, limit)]


def test_what_shares_no_word_is_found_by_its_meaning():
    assert LexicalIndex(DOCUMENTS).search("complain") == ()
    assert _ids(_index(("complain", EAST)), "complain") == ["issue", "search"]


def test_words_and_nearness_are_each_divided_by_their_best_and_share_the_score():
    query, words = "match a message", LexicalIndex(DOCUMENTS).scores("match a message")
    best = max(words.values())
    share = 7 / (7 + best)
    near = {"issue": 1.0, "search": 0.6, "send": 0.0, "erase": 0.0}
    expected = {id_: (1 - share) * words.get(id_, 0) / best + share * near[id_] for id_ in near}
    assert words["send"] == best
    assert 0 < words["search"] < best
    scores = _index((query, EAST)).scores(query)
    assert scores == pytest.approx({id_: score for id_, score in expected.items() if score}, abs=0.003)


def test_nearness_of_several_sentences_is_half_that_of_the_whole_and_half_that_of_the_nearest():
    query = "complain. tell them"
    index = _index((query, NORTHEAST), ("complain", EAST), ("tell them", NORTH))
    near = {hit.document.id: hit.explain().nearness for hit in index.search(query)}
    assert near == pytest.approx(
        {"issue": 0.5 * 0.6 + 0.5, "search": 0.5 + 0.5 * 0.8, "send": 0.5 * 0.8 + 0.5}, abs=0.01
    )


def test_a_query_that_meaning_knows_nothing_of_is_ranked_by_words_alone():
    query = "new issue in a file"
    words = HybridIndex(DOCUMENTS)
    assert _index().search(query) == words.search(query)
    assert [hit.document.id for hit in words.search(query)] == [
        hit.document.id for hit in LexicalIndex(DOCUMENTS).search(query)
    ]
    best = max(LexicalIndex(DOCUMENTS).scores(query).values())
    assert words.scores(query) == pytest.approx(
        {id_: score / best for id_, score in LexicalIndex(DOCUMENTS).scores(query).items()}
    )


def test_without_an_embedder_nearness_is_unknown_and_not_nought():
    (hit,) = HybridIndex(DOCUMENTS).search("erase", limit=1)
    assert hit.explain().nearness is None
    assert hit.explain().share == 0
    assert hit.score == pytest.approx(1)


@pytest.mark.parametrize("query", ["create_issue", "createIssue", "github create", "please run github__create_issue"])
def test_who_says_a_name_gets_that_tool_first_however_near_another_is(query: str):
    hits = _index((query, NORTH)).search(query, learnt={"send": 1.0})
    assert hits[0].document.id == "issue"
    assert hits[0].named > Named.NO


@pytest.mark.parametrize("query", ["", " ", "?", "qqqq wwww", "\x00"])
def test_a_query_of_nothing_known_finds_nothing(query: str):
    assert _index().search(query) == ()
    assert _index().scores(query) == {}
    assert HybridIndex(DOCUMENTS).search(query) == ()


def test_what_is_hardly_near_and_shares_no_word_is_not_returned_as_if_it_were_found():
    index = _index(("nonsense", ALMOST_NORTH))
    assert _ids(index, "nonsense") == ["send", "search"]
    assert _ids(index, "nonsense") == [*sorted(index.scores("nonsense"), reverse=True)]


def test_among_more_tools_chance_comes_nearer_and_so_must_what_is_found():
    chance = (0.2, 0.9798)
    few = [Document(id="it", name="it")]
    many = [*few, *(Document(id=str(number), name=f"n{number}") for number in range(2_000))]
    compass = Compass({"it": EAST, "vague": chance})
    assert _ids(HybridIndex(few, compass), "vague") == ["it"]
    assert _ids(HybridIndex(many, compass), "vague") == []


def test_fewer_are_returned_than_asked_for_where_no_more_are_near():
    index = _index(("complain", EAST))
    assert len(index.search("complain", 4)) == 2
    assert len(index.search("complain", 1)) == 1
    assert index.search("complain", 0) == ()


def test_equal_documents_keep_their_order():
    twins = [Document(id=id_, name="ping", description="Is it up?") for id_ in "zayb"]
    index = HybridIndex(twins, Compass({**dict.fromkeys("zayb", EAST), "is it up": NORTHEAST}))
    assert _ids(index, "is it up") == [*"zayb"]
    assert _ids(index, "is it up", 2) == [*"za"]


def test_what_differs_in_the_last_bits_of_a_sum_only_is_equally_near():
    twins = [Document(id=id_, name="ping") for id_ in "ab"]
    there = np.array(NORTHEAST, dtype=np.float32)
    vectors = {"a": there, "b": there * np.float32(1 + 3e-7)}
    index = HybridIndex(twins, Compass({"is it up": NORTHEAST}), vectors=vectors)
    assert _ids(index, "is it up") == [*"ab"]


def test_what_was_of_use_before_comes_before_its_rivals_and_not_before_what_fits_far_better():
    index = _index(("complain", (0.7, 0.71414)))
    assert _ids(index, "complain") == ["search", "send", "issue"]
    learnt = {"issue": 0.25, "somebody else's": 0.25}
    assert [hit.document.id for hit in index.search("complain", learnt=learnt)] == ["search", "issue", "send"]


@pytest.mark.parametrize(
    ("gain", "used"), [(0.1, 0.1), (0.25, 0.25), (7.0, MOST_BONUS), (-1.0, 0.0), (float("nan"), 0.0)]
)
def test_what_use_adds_is_bounded(gain: float, used: float):
    index = _index(("complain", EAST))
    before = {hit.document.id: hit.score for hit in index.search("complain")}
    after = {hit.document.id: hit for hit in index.search("complain", learnt={"search": gain})}
    assert after["search"].score == pytest.approx(before["search"] + used)
    assert after["search"].explain().use == used
    assert after["issue"].score == before["issue"]


def test_what_was_called_after_such_a_query_is_found_though_nothing_else_speaks_for_it():
    assert _ids(_index(("complain", EAST)), "complain") == ["issue", "search"]
    hits = _index(("complain", EAST)).search("complain", learnt={"erase": 0.2})
    assert [hit.document.id for hit in hits] == ["issue", "search", "erase"]
    assert hits[-1].score == 0.2


@given(
    st.sampled_from(["find an issue", "post to a channel. erase it", "create_issue", "message", "complain", "github"]),
    st.dictionaries(st.sampled_from([*PLACES]), st.floats(0, 0.3), max_size=4),
    st.sampled_from([EAST, NORTH, WEST, NORTHEAST]),
)
def test_an_explanation_sums_to_the_score(query: str, learnt: dict[str, float], direction: tuple[float, float]):
    for hit in _index((query, direction)).search(query, learnt=learnt):
        why = hit.explain()
        assert why.words + why.meaning + why.use == pytest.approx(hit.score)
        assert sum(reason.score for reason in why.reasons) == pytest.approx(why.words)
        assert why.meaning <= why.share + 1e-9
        assert hit.reasons == why.reasons


def test_an_explanation_names_terms_and_fields():
    (hit,) = _index(("erase file", WEST)).search("erase file", limit=1)
    assert {(reason.term, reason.field, reason.asked) for reason in hit.reasons} >= {
        ("file", Field.NAME, True),
        ("eras", Field.DESCRIPTION, True),
        ("delet", Field.NAME, False),
    }


def test_only_vectors_that_are_not_known_are_made_and_handed_out():
    compass = Compass(PLACES)
    first = HybridIndex(DOCUMENTS, compass)
    assert compass.embedded == [*PLACES]
    assert {id_: vector.tolist() for id_, vector in first.made.items()} == {
        id_: pytest.approx(direction, abs=1e-3) for id_, direction in PLACES.items()
    }
    again = HybridIndex(DOCUMENTS, compass, vectors={id_: first.made[id_] for id_ in ("issue", "send")})
    assert compass.embedded == [*PLACES, "search", "erase"]
    assert [*again.made] == ["search", "erase"]
    assert HybridIndex(DOCUMENTS).made == {}


def test_a_search_finds_the_same_with_vectors_that_were_kept():
    compass = Compass({**PLACES, "issue": (0.83201, 0.55472), "complain": (0.94868, 0.31625)})
    first = HybridIndex(DOCUMENTS, compass)
    again = HybridIndex(DOCUMENTS, compass, vectors=first.made)
    assert again.search("complain") == first.search("complain")


def test_a_vector_of_another_size_is_made_anew():
    compass = Compass(PLACES)
    index = HybridIndex(DOCUMENTS, compass, vectors={"issue": np.ones(3, dtype=np.float32)})
    assert [*index.made] == [*PLACES]


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_kept_and_has_no_length_is_made_anew(number: float):
    kept = {"issue": np.array([number, 0], dtype=np.float32)}
    assert [*HybridIndex(DOCUMENTS, Compass(PLACES), vectors=kept).made] == [*PLACES]


def test_a_vector_without_length_spoils_no_other_score():
    nowhere = (float("nan"), float("inf"))
    index = HybridIndex(DOCUMENTS, Compass({**PLACES, "erase": nowhere, "complain": EAST, "a file": nowhere}))
    assert _ids(index, "complain") == ["issue", "search"]
    assert index.search("a file") == HybridIndex(DOCUMENTS, Compass(PLACES)).search("a file")


def test_an_index_that_takes_over_what_stayed_finds_what_one_made_anew_finds():
    compass = Compass({**PLACES, "complain": EAST})
    before = HybridIndex(DOCUMENTS, compass)
    now = [SEND, replace(SEARCH, description="Looks for problems."), Document(id="new", name="new"), ISSUE]
    index, anew = HybridIndex(now, compass, before=before), HybridIndex(now, compass)
    for query in ("complain", "problems", "matching issues", "message", "new", "delete"):
        assert index.search(query) == anew.search(query)
        assert index.scores(query) == anew.scores(query)
    assert before.search("match") == HybridIndex(DOCUMENTS, compass).search("match")


def test_what_stayed_is_neither_counted_nor_embedded_again():
    counted = list[str]()

    class Noted(Document):
        def texts(self) -> tuple[str, ...]:
            counted.append(self.id)
            return super().texts()

    compass = Compass(PLACES)
    before = HybridIndex([Noted(id=id_, name=id_) for id_ in PLACES], compass)
    compass.embedded.clear()
    counted.clear()
    HybridIndex([Noted(id="send", name="other"), Noted(id="issue", name="issue")], compass, before=before)
    assert counted == compass.embedded == ["send"]


def test_vectors_of_another_edition_are_not_taken_over():
    before, compass = HybridIndex(DOCUMENTS, Compass(PLACES)), Compass(PLACES, edition="next")
    assert [*HybridIndex(DOCUMENTS, compass, before=before).made] == [*PLACES]


def test_an_index_can_follow_one_without_meaning_and_one_without_documents():
    for before in (HybridIndex(DOCUMENTS), HybridIndex([]), HybridIndex([], Compass({}))):
        index = HybridIndex(DOCUMENTS, Compass({**PLACES, "complain": EAST}), before=before)
        assert _ids(index, "complain") == ["issue", "search"]


def test_of_documents_with_one_id_the_last_is_held_in_the_place_of_the_first():
    index = HybridIndex([ISSUE, SEND, replace(ISSUE, name="report")])
    assert len(index) == 2
    assert "issue" in index
    assert "nobody" not in index
    assert _ids(index, "report") == ["issue"]
    assert index.search("create_issue")[0].named is Named.NO


def test_an_index_of_nothing_finds_nothing():
    assert HybridIndex([]).search("anything") == ()
    assert HybridIndex([], Compass({})).scores("anything") == {}


def test_an_index_says_which_terms_its_documents_have():
    index = HybridIndex(DOCUMENTS)
    assert index.holds("issu")
    assert not index.holds("weather")


@given(
    st.integers(1, 300),
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(0, 2**32 - 1),
)
def test_nearness_in_steps_is_nearness_but_for_a_hundredth(number: int, size: int, asked: int, seed: int):
    chance = np.random.default_rng(seed)
    rows, vectors = (_of_length_one(chance.normal(size=(count, size))) for count in (number, asked))
    matrix = Matrix(number, size)
    matrix.put(np.arange(number), rows)
    near = vectors @ rows.T
    assert matrix.nearness(vectors) == pytest.approx(near, abs=0.01)
    together = near[0] if asked == 1 else 0.3 * near[0] + 0.7 * near[1:].max(axis=0)
    assert matrix.nearness_together(vectors, 0.7) == pytest.approx(together, abs=0.01)


def test_rows_of_one_matrix_can_be_put_into_another():
    rows = _of_length_one(np.random.default_rng(1).normal(size=(5, 8)))
    one, other = Matrix(5, 8), Matrix(3, 8)
    one.put(np.arange(5), rows)
    other.take(np.array([0, 2]), one, np.array([4, 1]))
    (expected,) = one.nearness(rows[:1])
    assert other.nearness(rows[:1]).tolist() == [[expected[4], 0, expected[1]]]


def _of_length_one(rows: NDArray[np.float64]) -> Vectors:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_the_more_an_embedder_weighs_the_more_of_a_score_is_meaning():
    near = {"mail": (1.0, 0.0), "letter": (0.0, 1.0), "write a mail": (0.0, 1.0)}
    documents = [Document(id="mail", name="mail"), Document(id="letter", name="letter")]
    shares = [
        HybridIndex(documents, Compass(near, weight=weight)).search("write a mail")[0].explain().share
        for weight in (0.0, 1.0, 1e9)
    ]
    assert shares[0] == 0
    assert 0 < shares[1] < 1
    assert shares[2] == pytest.approx(1)
    best = HybridIndex(documents, Compass(near, weight=1e9)).search("write a mail")[0]
    assert best.document.id == "letter"
