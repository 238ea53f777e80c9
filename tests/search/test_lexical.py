import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.search import Document, Field, Index, LexicalIndex, Named

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
