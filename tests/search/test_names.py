from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.search import Document, HybridIndex, LexicalIndex, Named
from ullage.search.postings import Lines, Names, Spellings
from ullage.search.stemming_and_synonyms import parts

pytestmark = pytest.mark.requirement("S1:hybrid")

WORDS = st.sampled_from(
    ["create", "issue", "issues", "get", "a", "ab", "Git", "hub", "datei", "öffnen", "查询", "2", "_"]
)
NAMES = st.lists(WORDS, max_size=4).map("_".join)
DOCUMENTS = st.lists(
    st.builds(Document, id=st.text("abcdefgh", min_size=1, max_size=2), name=NAMES, server=NAMES), max_size=12
)
QUERIES = st.one_of(
    NAMES, st.lists(WORDS, max_size=4).map(" ".join), st.lists(WORDS, max_size=4).map("".join), st.text(max_size=20)
)


def _levels(names: Names, query: str) -> list[Named]:
    return [*map(Named, names.named(query))]


def _one_by_one(documents: Sequence[Document], query: str) -> list[Named]:
    """The same, by looking at each name."""
    others = {word for word in query.split() for word in _longest_ending(documents, parts(word))}
    return [_level(document, query, others) for document in documents]


def _longest_ending(documents: Sequence[Document], words: list[str]) -> list[str]:
    endings = ("".join(words[start:]) for start in range(len(words) - 1))
    return [ending for ending in endings if any(ending in _together(document) for document in documents)][:1]


def _level(document: Document, query: str, others: set[str]) -> Named:
    words, server, name = parts(query), _spaced(parts(document.server)), _spaced(parts(document.name))
    spaced, together = _spaced(words), "".join(words)
    inside = len(together) >= 4 and not any(map(str.isspace, query.strip())) and together in name.replace(" ", "")
    levels = (
        Named.EXACTLY * (query.strip() == document.name),
        Named.WHOLLY * (together in _together(document)),
        Named.AMONG_OTHERS * bool(others & _together(document)),
        Named.IN_PART * (bool(words) and spaced in server + name and (spaced in name or spaced not in server)),
        Named.IN_PART * inside,
    )
    return Named(max(levels))


def _together(document: Document) -> set[str]:
    """The spellings without anything between words."""
    name = "".join(parts(document.name))
    return {name, "".join(parts(document.server)) + name} if name else set()


def _spaced(words: Sequence[str]) -> str:
    return "".join(f" {word}" for word in words)


@given(DOCUMENTS, QUERIES)
def test_a_name_is_known_as_if_each_had_been_looked_at(documents: list[Document], query: str):
    assert _levels(Names(documents), query) == _one_by_one(documents, query)


@given(DOCUMENTS, DOCUMENTS, QUERIES)
def test_names_that_were_taken_over_are_those_made_anew(before: list[Document], new: list[Document], query: str):
    old = [*{document.id: document for document in before}.values()]
    now = [*{document.id: document for document in (*new, *old[::2])}.values()]
    assert _levels(Names(now, Names(old)), query) == _levels(Names(now), query)


@pytest.mark.parametrize("make", [LexicalIndex, HybridIndex])
def test_a_name_of_one_word_among_a_thousand_tools_is_found_exactly_and_in_part(
    make: Callable[[list[Document]], LexicalIndex | HybridIndex],
):
    noise = [Document(id=str(number), name=f"get_{number}", description="ping the server") for number in range(1_000)]
    index = make([*noise, Document(id="it", name="ping", server="net")])
    for query in ("ping", "Ping", "net.ping", "pin", "net pi"):
        assert index.search(query, 1)[0].document.id == "it"


def test_the_same_name_in_many_servers_is_named_in_all_of_them_and_in_their_order():
    documents = [Document(id=f"{number}", name="search", server=f"s{number}") for number in range(50)]
    hits = LexicalIndex(documents).search("search", 50)
    assert [hit.document.id for hit in hits] == [document.id for document in documents]
    assert {hit.named for hit in hits} == {Named.EXACTLY}


def test_half_of_a_pair_of_surrogates_is_a_name_like_any_other():
    names = Names([Document(id="1", name="\ud83d"), Document(id="2", name="other")])
    assert _levels(names, "\ud83d") == [Named.EXACTLY, Named.NO]


def test_a_name_stuffed_with_words_is_named_by_its_beginning_and_as_it_stands_and_not_by_the_rest():
    stuffed = "send_mail_" + "read_every_file_" * 1_000 + "create_issue"
    names = Names([Document(id="1", name=stuffed), Document(id="2", name="create_issue_now")])
    assert _levels(names, "create issue") == [Named.NO, Named.IN_PART]
    assert _levels(names, "send mail") == [Named.IN_PART, Named.NO]
    assert _levels(names, stuffed) == [Named.EXACTLY, Named.NO]


@pytest.mark.parametrize("query", ["the user's orders", "the user\u2019s orders", 'orders of "the user\'s"'])
def test_whose_something_is_names_no_tool(query: str):
    names = Names([Document(id="1", name="users"), Document(id="2", name="get_order")])
    assert _levels(names, query) == [Named.NO, Named.NO]
    assert _levels(names, f"{query} by get_order") == [Named.NO, Named.AMONG_OTHERS]


def test_a_word_that_stands_in_the_server_alone_names_no_tool():
    names = Names([Document(id="1", server="git git", name="hub")])
    assert _levels(names, "git git") == [Named.NO]
    assert _levels(names, "git hub") == [Named.IN_PART]


@given(st.lists(st.text("ab ", max_size=8), max_size=8), st.text("ab ", min_size=2, max_size=6))
def test_a_text_is_found_in_every_line_and_at_every_place_where_it_stands(lines: list[str], text: str):
    found = zip(*(each.tolist() for each in Lines([line.encode() for line in lines]).find(text.encode())), strict=True)
    assert [*found] == [
        (number, at) for number, line in enumerate(lines) for at in range(len(line)) if line.startswith(text, at)
    ]


def test_a_spelling_is_known_after_its_document_has_moved_and_forgotten_after_it_is_gone():
    old = Spellings.of([("a", 0), ("b", 1), ("a", 1)])
    now = old.taken_over(np.array([-1, 3], dtype=np.int32), Spellings.of([("c", 0)]))
    assert [now.holders(spelling).tolist() for spelling in "abcd"] == [[3], [3], [0], []]


@pytest.mark.parametrize(
    ("query", "level"),
    [
        ("push it to GitHub now", Named.NO),
        ("push it to GitHub's servers", Named.NO),
        ("an MP4 of it", Named.NO),
        ("use GetOrder for it", Named.AMONG_OTHERS),
        ("use `GetOrder`, please", Named.AMONG_OTHERS),
        ("use getOrder for it", Named.AMONG_OTHERS),
        ("use get_order for it", Named.AMONG_OTHERS),
    ],
)
def test_a_word_that_may_be_anybodys_name_means_the_tool_that_is_written_so(query: str, level: Named):
    documents = [Document(id=name, name=name) for name in ("github", "GetOrder", "mp4")]
    assert max(_levels(Names(documents), query)) == level
