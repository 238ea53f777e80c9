from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.search import Document, HybridIndex, LexicalIndex, load_table
from ullage.search.ranking import CANDIDATES, FEATURES, Candidates, Reranker, distinctness
from ullage.search.static_embedder import Pieces, StaticTable

pytestmark = pytest.mark.requirement("S1:hybrid")

WORDS = ("get", "pull", "request", "files", "build", "logs", "mail", "send", "letter")
MEANINGS = {"letter": "mail"}
"""Words that mean nearly the same as another."""


def table(weights: Sequence[float] = ()) -> StaticTable:
    """Every word has a direction of its own, or nearly that of the word it means."""
    rows = np.zeros((len(WORDS), len(WORDS)), dtype=np.int8)
    for row, word in enumerate(WORDS):
        rows[row, row] = 127
        if word in MEANINGS:
            rows[row, [row, WORDS.index(MEANINGS[word])]] = 30, 120
    return StaticTable(
        digest="words",
        pieces=Pieces(WORDS),
        rows=rows,
        steps=np.full(len(WORDS), 1 / 127, dtype=np.float32),
        telling=np.ones(len(WORDS), dtype=np.float32),
        weights=(1.0, 1.0, 1.0, 1.0, 1.0),
        feature_weights=tuple(weights),
    )


def only(feature: str) -> tuple[float, ...]:
    return (0.1, *(float(each == feature) for each in FEATURES))


def features(
    query: str, documents: Sequence[Document], *, clauses: Sequence[str] = (), nearness: Sequence[float] = (1, 1)
) -> dict[str, list[float]]:
    """Each clause fits the document of its own place, by words and, as near as is said, by meaning."""
    own = np.eye(len(clauses), len(documents))
    seen = Candidates(
        query=query,
        places=[*range(len(documents))],
        fused=np.linspace(1, 0.5, len(documents)),
        words=np.zeros(len(documents)),
        clauses=clauses,
        clause_totals=own,
        clause_nearness=own * np.array(nearness)[: len(clauses), None],
    )
    found = Reranker(documents, table(), 7.0).features(seen)
    return {name: found[:, column].round(3).tolist() for column, name in enumerate(FEATURES)}


PULL = Document(id="pull", name="get_pull_request", server="forge")
FILES = Document(id="files", name="get_pull_request_files", server="forge")
LOGS = Document(id="logs", name="get_build_logs", server="works", description="Build logs.")
MAIL = Document(id="mail", name="send_mail", server="post", description="Send mail.")


def test_a_name_that_says_more_than_was_asked_for_is_covered_less():
    assert features("get pull request", [PULL, FILES])["name"] == [1, 0.75]


def test_a_word_finds_the_word_that_means_the_same():
    found = features("send letter", [MAIL, LOGS])
    assert found["said"] == pytest.approx([0.985, 0], abs=0.01)
    assert found["exact"] == pytest.approx([0.5, 0], abs=0.02)
    assert found["head"] == pytest.approx([0.985, 0], abs=0.01)


def test_what_all_candidates_say_tells_none_of_them_apart():
    found = features("pull request files", [PULL, FILES])
    assert found["said"] == pytest.approx([0.667, 1], abs=0.001)
    assert found["rare"] == [0, 1]


def test_each_clause_brings_its_best_tool_up():
    found = features("get pull request. send mail", [PULL, FILES, MAIL], clauses=["get pull request", "send mail"])
    assert found["clause"] == pytest.approx([0, 0.25, -0.5], abs=0.001)


def test_a_clause_that_is_near_to_no_tool_brings_none_up():
    asked = features("get logs. mail files", [LOGS, MAIL], clauses=["get logs", "mail files"], nearness=[1, 0.5])
    assert asked["clause"] == pytest.approx([0, 0.5])
    assert asked["strong clause"] == pytest.approx([0, 0.125 - 0.5])


def test_a_tool_that_says_all_of_one_clause_is_not_held_to_the_others():
    found = features("get pull request. send mail", [PULL, LOGS, MAIL], clauses=["get pull request", "send mail"])
    assert found["said"] == pytest.approx([0.6, 0.2, 0.4])
    assert found["said by clause"] == pytest.approx([0, 0, 0.2])
    assert found["name by clause"][0] == pytest.approx(1 - (3 / 5) ** 0.5, abs=0.001)
    assert found["name by clause"][2] == pytest.approx(1 - (2 / 5) ** 0.5, abs=0.001)


def test_clauses_of_words_that_nobody_knows_say_nothing_apart():
    found = features("get pull request. zzz yyy", [PULL, MAIL], clauses=["get pull request", "zzz yyy"])
    assert set(found["said by clause"]) == set(found["name by clause"]) == {0}


def test_a_tool_gains_by_the_best_of_its_server():
    assert features("pull", [PULL, LOGS, FILES])["server"] == [1, 0.75, 1]


def test_nothing_is_compared_where_no_word_is_known_or_nothing_was_found():
    assert set(features("zzz", [PULL])["said"]) == {0}
    assert features("pull", []) == {name: [] for name in FEATURES}


def test_candidates_that_were_looked_at_again_change_places():
    documents = [FILES, PULL]
    plain = HybridIndex(documents, table())
    again = HybridIndex(documents, table(only("name")))
    query = "which pull request shall we get"
    assert {hit.explain().closer for hit in plain.search(query)} == {0}
    assert again.search(query)[0].document is PULL
    gained = {hit.document.id: hit.explain().closer for hit in again.search(query)}
    assert gained == pytest.approx({"pull": 1, "files": 0.75})


def gain_of_first(number: int, query: str, description: str) -> float:
    """The gain of the first of some tools, whose description alone may differ from the others'."""
    documents = [Document(id=str(place), name="files", description="Get mail.") for place in range(number)]
    documents[0] = Document(id="0", name="files", description=description)
    hits = HybridIndex(documents, table(only("said"))).search(query, number)
    return next(hit.explain().closer for hit in hits if hit.document.id == "0")


def test_candidates_with_the_same_first_sentence_keep_the_first_ranking():
    assert gain_of_first(15, "get mail", "Get mail.") == 0
    assert gain_of_first(14, "get mail", "Get mail.") == pytest.approx(1), "few candidates are always compared"
    assert gain_of_first(15, "send mail", "Send mail.") == pytest.approx(1)
    assert gain_of_first(15, "files", "") > 0, "no sentence is found in the query, so names are compared"


def test_weight_of_the_comparison_grows_with_the_lead_of_the_best_first_sentence():
    features = np.zeros((15, len(FEATURES)))
    assert distinctness(features) == 1, "nothing but names to compare"
    features[:, FEATURES.index("head")] = 0.5
    assert distinctness(features) == 0
    features[3, FEATURES.index("head")] += 0.025 * 15 / 14
    assert distinctness(features) == pytest.approx(0.5)
    features[3, FEATURES.index("head")] += 0.2
    assert distinctness(features) == 1
    assert distinctness(features[4:]) == 1
    wide = np.concatenate([features, np.zeros((25, len(FEATURES)))])
    assert distinctness(wide) == 1, "the others are not compared"


def test_an_explanation_with_the_second_look_sums_to_the_score():
    index = HybridIndex([PULL, FILES, LOGS, MAIL], table(only("said")))
    for hit in index.search("send the build logs by letter"):
        why = hit.explain()
        assert why.words + why.meaning + why.closer + why.use == pytest.approx(hit.score)
        assert sum(reason.score for reason in why.reasons) == pytest.approx(why.words)
        assert why.meaning <= why.share + 1e-9


def test_only_the_best_are_looked_at_again():
    documents = [Document(id=str(number), name="get" + " build" * number) for number in range(2 * CANDIDATES)]
    hits = HybridIndex(documents, table(only("said"))).search("get", 2 * CANDIDATES)
    assert sum(hit.explain().closer > 0 for hit in hits) == CANDIDATES


def test_what_an_index_remembers_of_documents_is_bounded():
    documents = [Document(id=str(number), name="get pull request") for number in range(5_000)]
    reranker = Reranker(documents, table(), 7.0)
    for start in range(0, len(documents), 500):
        places = [*range(start, start + 500)]
        none = np.zeros((0, len(documents)))
        seen = Candidates(
            query="get",
            places=places,
            fused=np.ones(500),
            words=np.ones(500),
            clauses=(),
            clause_totals=none,
            clause_nearness=none,
        )
        reranker.features(seen)
    assert len(reranker._known) <= 4_096  # pyright: ignore[reportPrivateUsage]


@given(st.lists(st.lists(st.sampled_from((*WORDS, "unknown")), max_size=6), min_size=1, max_size=8), st.data())
def test_features_are_finite_and_shares_are_shares(names: list[list[str]], data: st.DataObject):
    documents = [Document(id=str(number), name="_".join(name)) for number, name in enumerate(names)]
    found = features(" ".join(data.draw(st.lists(st.sampled_from(WORDS), max_size=6))), documents)
    for name in ("said", "said in name", "name", "head", "exact", "rare"):
        assert all(0 <= value <= 1.001 for value in found[name])


TOOLS = [
    Document(id=f"{server}:{name}", name=name, server=server, description=description)
    for server, name, description in (
        (
            "ci",
            "get_failed_job_logs",
            "Get the output of a build that failed, to see what went wrong and in whose commit.",
        ),
        ("ci", "trigger_pipeline", "Run the build pipeline of a branch."),
        ("ci", "list_artifacts", "List the files that a build left behind."),
        ("forge", "get_pull_request", "Get a pull request."),
        ("forge", "get_pull_request_files", "Get the files that a pull request changes."),
        ("forge", "get_pull_request_reviews", "Get the reviews of a pull request."),
        ("forge", "create_issue", "Open a new issue in a repository."),
        ("notes", "add_fact", "Store something about the user in long-term memory."),
        ("notes", "search_facts", "Search what is stored in long-term memory."),
        ("calendar", "create_event", "Put an event into the calendar."),
        ("weather", "forecast", "Weather of the next days for a place."),
        ("mail", "send_message", "Send an e-mail to somebody."),
    )
]


@pytest.mark.parametrize(
    ("query", "needed", "within"),
    [
        ("who broke the build", {"ci:get_failed_job_logs"}, 1),
        ("remember that I prefer tea", {"notes:add_fact"}, 1),
        ("shall I take an umbrella tomorrow", {"weather:forecast"}, 1),
        ("book a meeting on Monday", {"calendar:create_event"}, 1),
        (
            "Look up whether it will rain in Oslo on Friday, put the picnic into my calendar and write to Ben about it",
            {"weather:forecast", "calendar:create_event", "mail:send_message"},
            4,
        ),
    ],
)
def test_everyday_requests_find_what_they_need(query: str, needed: set[str], within: int):
    found, by_words = (
        {hit.document.id for hit in index.search(query, within)}
        for index in (HybridIndex(TOOLS, load_table()), LexicalIndex(TOOLS))
    )
    assert needed <= found
    assert not needed <= by_words  # the words of the request alone do not find them


def test_the_shipped_table_weighs_every_feature():
    shipped = load_table()
    assert isinstance(shipped, StaticTable)
    assert len(shipped.feature_weights) == 1 + len(FEATURES)
    assert shipped.feature_weights[0] > 0
