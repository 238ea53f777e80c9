import pytest

from ullage.search import Document
from ullage.search.stemming_and_synonyms import ASPECTS, asked, aspects, sentences

pytestmark = pytest.mark.requirement("S1:hybrid")


def of(**fields: object) -> dict[str, str]:
    document = Document(**{"id": "1", "name": "", **fields})  # pyright: ignore[reportArgumentType]
    return dict(zip(ASPECTS, aspects(document), strict=True))


def test_names_are_parted_into_words():
    found = of(name="getUserById", parameter_names=("userId", "max_results"))
    assert (found["name"], found["parameters"]) == ("get user by id", "user id max results")


def test_a_server_is_named_without_its_owner_and_without_words_that_all_have():
    assert of(server="@acme-corp/github-mcp-server")["server"] == "github"
    assert of(server="weather_api")["server"] == "weather"
    assert of(server="a/b")["server"] == "a b"


def test_the_first_sentence_is_parted_from_the_rest():
    found = of(description="Sends a\n message. To one person\n - Or to many")
    assert (found["head"], found["rest"]) == ("Sends a message.", "To one person Or to many")
    assert of(description="发送消息。给一个人。")["head"] == "发送消息"


def test_a_long_first_sentence_goes_on_in_the_rest():
    found = of(description="x" * 300 + ". And more.")
    assert found["head"] == "x" * 240
    assert found["rest"] == "x" * 60 + ". And more."


def test_no_server_can_make_a_vector_dear():
    found = of(
        name="n" * 100_000,
        description="word. " * 100_000,
        parameter_names=tuple(f"parameter{number}" for number in range(1_000)),
    )
    assert all(len(text) <= 1_300 for text in found.values())


def test_nothing_is_of_nothing():
    assert set(of().values()) == {""}
    assert sentences(" \n\n ") == []


def test_a_query_of_several_sentences_asks_by_each_of_them():
    query = "Find the invoice of March. Then send it to the accountant; thanks"
    assert asked(query) == [query, "Find the invoice of March.", "Then send it to the accountant;"]


def test_a_sentence_that_joins_several_requests_asks_by_each_of_them():
    query = "find the invoice of March, send it to Ann and then archive the whole thread"
    assert asked(query) == [query, "find the invoice of March", "send it to Ann", "archive the whole thread"]
    query = "get the weather for Paris and also book a table"
    assert asked(query) == [query, "get the weather for Paris", "book a table"]


def test_a_query_of_one_sentence_asks_by_itself():
    for query in ("send a message", "Send it. Now.", "e.g. this one here", ""):
        assert asked(query) == [query]


def test_a_query_asks_by_a_bounded_number_of_sentences_of_bounded_length():
    found = asked("Look for the file. " * 10_000)
    assert len(found) <= 9
    assert len(found[0]) <= 10_000
