import math
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.search import Document, Field, Index, LexicalIndex, Named, terms
from ullage.search.postings import Postings, count
from ullage.search.stemming_and_synonyms import wanted

pytestmark = pytest.mark.requirement("S1:hybrid")

DOCUMENTS = (
    Document(id="1", server="github", name="create_issue", description="Open a new issue in a repository."),
    Document(id="2", server="github", name="search_issues", description="Find issues that match a query."),
    Document(id="3", server="gitlab", name="createIssue", description="Report a bug."),
    Document(id="4", server="slack", name="send_message", description="Post a message to a channel.", title="Say"),
    Document(
        id="5",
        server="weather",
        name="forecast",
        description="The weather of the coming days.",
        parameter_names=("city", "days"),
        parameter_descriptions=("Name of the city, such as Lisbon",),
    ),
    Document(id="6", server="files", name="delete_file", description="Erases a file from the disk."),
    Document(id="7", server="rail", name="tickets", description="查询余票信息"),
)


def _ids(query: str, *, limit: int = 10, index: LexicalIndex | None = None) -> list[str]:
    return [hit.document.id for hit in (index or LexicalIndex(DOCUMENTS)).search(query, limit)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.id)
@pytest.mark.parametrize(
    "spelling",
    ["{server}.{name}", "{server}__{name}", "{server}:{name}", "{server} {name}", "please run {server}__{name} for me"],
)
def test_a_tool_asked_for_by_its_name_is_first(document: Document, spelling: str):
    assert _ids(spelling.format(server=document.server, name=document.name))[0] == document.id


@pytest.mark.parametrize("query", ["create_issue", "createIssue", "Create-Issue", "createissue", "create issue"])
def test_a_name_is_found_in_every_spelling_and_ranks_above_every_score(query: str):
    hits = LexicalIndex(DOCUMENTS).search(query)
    assert {hit.document.id for hit in hits[:2]} == {"1", "3"}
    assert all(hit.named >= Named.WHOLLY for hit in hits[:2])


@pytest.mark.parametrize("query", ["send_mes", "send mes", "slack send", "sendMessage", "essage"])
def test_part_of_a_name_is_enough(query: str):
    assert _ids(query)[0] == "4"


@pytest.mark.parametrize(("query", "first"), [("create_issue", "1"), ("createIssue", "3")])
def test_of_two_names_that_differ_in_spelling_the_one_as_asked_is_first(query: str, first: str):
    assert _ids(query)[0] == first


def test_a_tool_is_found_by_the_name_it_is_listed_under():
    index = LexicalIndex([*DOCUMENTS, Document(id="8", name="report_a_very_long_story", aliases=("rep_a1b2c3",))])
    assert _ids("rep_a1b2c3", index=index)[0] == "8"
    index.remove("8")
    assert "8" not in _ids("rep_a1b2c3", index=index)


def test_a_prefix_that_a_client_adds_to_a_name_does_not_hide_it():
    assert _ids("mcp__ullage__send_message")[0] == "4"


def test_a_server_named_alone_does_not_pass_for_a_tool():
    assert all(hit.named is Named.NO for hit in LexicalIndex(DOCUMENTS).search("github"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("report bugs", "3"),
        ("posting to channels", "4"),
        ("Lisbon", "5"),
        ("remove files", "6"),
        ("say", "4"),
        ("余票", "7"),
        ("what will the weather be in my city?", "5"),
    ],
)
def test_a_need_finds_its_tool_through_any_field(query: str, found: str):
    assert _ids(query)[0] == found


@pytest.mark.parametrize("query", ["", "   ", "?", "zebra", "\x00", "_"])
def test_a_query_that_is_near_nothing_finds_nothing(query: str):
    assert _ids(query) == []


def test_no_more_is_returned_than_asked_for():
    assert len(_ids("issue", limit=1)) == 1
    assert _ids("issue", limit=0) == []


def test_equal_documents_keep_their_order():
    twins = [Document(id=id_, name="ping", description="Is it up?") for id_ in "zayb"]
    assert _ids("is it up", index=LexicalIndex(twins)) == list("zayb")
    assert _ids("ping", index=LexicalIndex(twins), limit=2) == list("za")


def test_many_equal_documents_keep_their_order_among_others():
    kinds = [Document(id=str(place), name=("ping", "ping all", "ping them all")[place % 3]) for place in range(600)]
    found = _ids("pings", index=LexicalIndex(kinds), limit=600)
    assert found == [*map(str, (*range(0, 600, 3), *range(1, 600, 3), *range(2, 600, 3)))]


def test_a_replaced_document_keeps_its_place_and_loses_its_old_words():
    index = LexicalIndex(Document(id=id_, name="ping") for id_ in "abc")
    index.add(Document(id="b", name="pong"))
    index.add(Document(id="b", name="ping"))
    assert _ids("ping", index=index) == list("abc")
    assert _ids("pong", index=index) == []


def test_a_hit_explains_its_score():
    (hit,) = LexicalIndex(DOCUMENTS).search("erase file", limit=1)
    assert sum(reason.score for reason in hit.reasons) == pytest.approx(hit.score)
    assert {(reason.term, reason.field, reason.asked) for reason in hit.reasons} >= {
        ("file", Field.NAME, True),
        ("file", Field.SERVER, True),
        ("eras", Field.DESCRIPTION, True),
        ("delet", Field.NAME, False),
    }


def test_an_explanation_holds_after_the_index_has_changed():
    index = LexicalIndex(DOCUMENTS)
    (hit,) = index.search("erase file", limit=1)
    index.remove(hit.document.id)
    assert sum(reason.score for reason in hit.reasons) == pytest.approx(hit.score)


def test_scores_are_those_of_the_hits():
    index: Index = LexicalIndex(DOCUMENTS)
    found = LexicalIndex(DOCUMENTS).search("new issue", len(DOCUMENTS))
    assert index.scores("new issue") == {hit.document.id: hit.score for hit in found if hit.score}


def test_removing_what_is_not_there_is_no_error():
    index = LexicalIndex(DOCUMENTS)
    index.remove("nobody")
    assert len(index) == len(DOCUMENTS)
    assert "1" in index
    assert "nobody" not in index


@given(st.lists(st.tuples(st.booleans(), st.integers(0, len(DOCUMENTS) - 1)), max_size=40))
def test_an_index_after_any_changes_equals_one_built_anew(changes: list[tuple[bool, int]]):
    index, living = LexicalIndex(), dict[str, Document]()
    for add, place in changes:
        document = DOCUMENTS[place]
        if add:
            index.add(document)
            living.setdefault(document.id, document)
        else:
            index.remove(document.id)
            living.pop(document.id, None)
    anew = LexicalIndex(living.values())
    for query in ("create_issue", "find the weather or a bug", "file"):
        assert index.search(query) == anew.search(query)


def test_a_long_life_of_changes_leaves_no_trace():
    index = LexicalIndex(DOCUMENTS)
    for number in range(500):
        index.add(Document(id=f"new {number}", name=f"passing_{number}"))
        index.remove(f"new {number}")
    assert index.search("new issue") == LexicalIndex(DOCUMENTS).search("new issue")
    assert index.search("passing_7") == ()


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_makes_the_index_fail(name: str, query: str):
    index = LexicalIndex([*DOCUMENTS, Document(id="odd", name=name, description=query)])
    assert len(index.search(query)) <= 10
    index.remove("odd")
    assert "odd" not in [hit.document.id for hit in index.search(name)]


WEIGHTS = (1.0, 3.0, 1.0, 1.0, 0.3, 0.3)
TEXTS = st.lists(st.sampled_from(["find", "search", "Issue", "the", "get_user", "日本語", "ö", "x1"]), max_size=9).map(
    " ".join
)
SOME = st.lists(
    st.builds(
        Document,
        id=st.sampled_from("abcdefghij"),
        name=TEXTS,
        server=TEXTS,
        description=TEXTS,
        parameter_names=st.lists(TEXTS, max_size=2).map(tuple),
    ),
    max_size=10,
)


def _by_the_book(documents: Sequence[Document], query: str) -> dict[str, float]:
    """BM25F, document by document."""
    counts = {one.id: [Counter(terms(text)) for text in one.texts()] for one in documents}
    means = [sum(fields[place].total() for fields in counts.values()) / len(counts) for place in range(6)]
    scores = dict.fromkeys(counts, 0.0)
    for term, want in wanted(query).items():
        holders = [id_ for id_, fields in counts.items() if any(term in field for field in fields)]
        rarity = math.log(1 + (len(counts) - len(holders) + 0.5) / (len(holders) + 0.5))
        for id_ in holders:
            share = sum(
                weight * field[term] / (0.25 + 0.75 * field.total() / (mean or 1))
                for weight, field, mean in zip(WEIGHTS, counts[id_], means, strict=True)
            )
            scores[id_] += want.weight * rarity * share / (share + 2)
    return {id_: score for id_, score in scores.items() if score}


@given(SOME, TEXTS)
def test_scores_are_those_by_the_book(documents: list[Document], query: str):
    held = [*{document.id: document for document in documents}.values()]
    scores = LexicalIndex(documents).scores(query)
    assert scores == pytest.approx(_by_the_book(held, query) if held else {}, rel=1e-12)
    assert [*scores] == [document.id for document in held if document.id in scores]


@given(SOME, SOME, TEXTS)
def test_what_was_counted_before_is_taken_over_as_it_would_be_counted_now(
    before: list[Document], new: list[Document], query: str
):
    old = [*{document.id: document for document in before}.values()]
    now = [*{document.id: document for document in (*new, *old[::2])}.values()]
    after, anew = Postings(now, Postings(old)), Postings(now)
    assert after.totals(wanted(query)).tolist() == anew.totals(wanted(query)).tolist()
    for place in range(len(now)):
        assert {*after.reasons(place, wanted(query))} == {*anew.reasons(place, wanted(query))}


def test_terms_of_documents_that_are_gone_take_no_room_for_ever():
    many = [Document(id=str(number), name=f"n{number}") for number in range(3_000)]
    before = count(many)
    after = count(many[-5:], before)
    assert len(after.numbers) < 20 < len(before.numbers)
    assert Postings(many[-5:], Postings(many)).holds("n2999")
    assert not Postings(many[-5:], Postings(many)).holds("n1")


def test_an_index_of_a_field_that_repeats_one_word_without_end_is_sound():
    index = LexicalIndex([Document(id="1", name="a", description="spam " * 40_000), *DOCUMENTS[1:]])
    assert _ids("spam", index=index) == ["1"]


def test_an_empty_index_finds_nothing():
    assert LexicalIndex().search("anything") == ()
    assert LexicalIndex().scores("anything") == {}
