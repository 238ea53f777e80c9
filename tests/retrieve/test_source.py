import json
from pathlib import Path

import pytest

from retrieve.retrievers import FakeRetriever, ask, grown, text_of, tokens, told, weigh
from ullage.errors import InvalidArguments, UnknownHandle, UnknownTool
from ullage.retrieve import TOOL, FolderRetriever, RetrieveSettings, RetrieveSource
from ullage.testing import check_source
from ullage.tool import Call, Caller

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S4:more")]

ANN = Caller(principal="ann", session="s")
TEXTS = {f"{name}.md": "\n".join(f"{name} says thing {number}" for number in range(20)) for name in "abcdef"}


def source(*notes: str) -> RetrieveSource:
    return RetrieveSource(FakeRetriever(TEXTS, notes), weigh)


async def test_it_is_a_source():
    await check_source(source(), Call(tool="retrieve.search", arguments={"query": "things"}))


async def test_the_definition_is_short():
    written = {"name": TOOL.name, "description": TOOL.description, "input_schema": TOOL.input_schema}
    assert tokens(json.dumps(written)) <= 90


@pytest.mark.requirement("S4:more")
async def test_passages_are_cited_and_a_handle_stands_for_all_of_them():
    reply = await ask(source(), "things", max_tokens=400)
    text, about = text_of(reply), told(reply)
    assert text.startswith("a.md:1-20\na says thing 0\n")
    assert about["citations"][0] == "a.md:1-20"
    assert all(citation in text for citation in about["citations"])
    assert about["handle"] in text.rsplit("\n", 1)[1]
    assert tokens(text) <= 400


@pytest.mark.requirement("S4:more")
async def test_a_handle_gives_more_to_another_model_than_the_caller_was_shown():
    one = source()
    reply = await ask(one, "things", max_tokens=100)
    passages = await one.passages((told(reply)["handle"],), ANN, 5_000)
    assert "f.md:1-20" not in text_of(reply)
    assert "f.md:1-20\nf says thing 0" in passages
    assert "--" not in passages
    assert tokens(await one.passages((told(reply)["handle"],), ANN, 250)) <= 250


async def test_several_handles_are_opened_in_their_order_and_nothing_comes_twice():
    one = source()
    handle = told(await ask(one, "things"))["handle"]
    assert await one.passages((handle, handle), ANN, 9_000) == await one.passages((handle,), ANN, 9_000)


async def test_a_handle_is_nobody_elses():
    one = source()
    handle = told(await ask(one, "things"))["handle"]
    with pytest.raises(UnknownHandle):
        await one.passages((handle,), Caller(principal="bob", session="s"), 100)


@pytest.mark.parametrize("budget", [1, 5, 20, 50, 101, 333, 1_000, 3_000])
async def test_a_reply_is_never_over_its_budget(budget: int):
    reply = await ask(source("9 files are left out"), "things", max_tokens=budget)
    assert tokens(text_of(reply)) <= budget


async def test_the_same_search_gives_the_same_reply():
    one = source()
    assert await ask(one, "things") == await ask(one, "things")


async def test_notes_are_in_the_text_and_beside_it():
    reply = await ask(source("9 files are left out"), "things")
    assert text_of(reply).endswith("\n-- 9 files are left out")
    assert told(reply)["notes"] == ["9 files are left out"]


async def test_nothing_found_is_said():
    reply = await ask(RetrieveSource(FakeRetriever({}), weigh), "things")
    assert text_of(reply) == "-- no passage has these words"
    assert told(reply) == {"citations": [], "handle": None, "notes": []}


async def test_what_is_asked_reaches_the_retriever():
    retriever = FakeRetriever(TEXTS)
    call = Call(tool="retrieve_search", arguments={"query": "x", "path": "docs", "max_tokens": 9}, deadline=5.0)
    await RetrieveSource(retriever, weigh).call(call)
    assert [(asked.text, asked.path, asked.deadline) for asked in retriever.asked] == [("x", "docs", 5.0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`query` must be a text"),
        ({"query": "  "}, "`query` must be a text"),
        ({"query": 3}, "`query` must be a text"),
        ({"query": "x", "max_tokens": 0}, "`max_tokens` must be a whole number above 0"),
        ({"query": "x", "max_tokens": True}, "`max_tokens` must be a whole number above 0"),
        ({"query": "x", "max_tokens": "9"}, "`max_tokens` must be a whole number above 0"),
        ({"query": "x", "path": 1}, "`path` must be a text"),
        ({"query": "x", "querry": "y"}, "`querry` is not known"),
        ({"query": "x", "zzz": "y"}, "`zzz` is not known"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, object], message: str):
    with pytest.raises(InvalidArguments) as caught:
        await source().call(Call(tool="retrieve.search", arguments=arguments))  # pyright: ignore[reportArgumentType]
    assert caught.value.message == message
    assert caught.value.suggestion


async def test_another_tool_is_unknown():
    with pytest.raises(UnknownTool):
        await source().call(Call(tool="retrieve.everything"))


@pytest.mark.requirement("S4:more")
async def test_a_folder_is_searched_and_its_passages_handed_on_as_they_are_now(tmp_path: Path):
    grown(tmp_path, {"guide.md": "# Rust\nIron corrodes.\n", "other.md": "# Tin\nTin does not.\n"})
    retriever = FolderRetriever(RetrieveSettings(name="notes", folders=(tmp_path,)))
    one = RetrieveSource(retriever, weigh)
    reply = await ask(one, "what corrodes")
    assert text_of(reply).startswith("guide.md:1-2\n# Rust\nIron corrodes.\n")
    grown(tmp_path, {"guide.md": "# Rust\nIron corroded.\n"})
    passages = await one.passages((told(reply)["handle"],), ANN, 100)
    assert passages == "guide.md:1-2\n# Rust\nIron corroded.\n"
