import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.databases import opened
from ullage.errors import InvalidArguments, StoreFailed
from ullage.gateway.access_rules import Guarded
from ullage.gateway.catalog.index_storage import StoredUses
from ullage.gateway.find.find_settings import FindSettings, Surroundings
from ullage.gateway.find.find_source import Find
from ullage.gateway.find.tool_forms import NAMES
from ullage.gateway.find.usage_learning import Learning, UseStore
from ullage.gateway.merge.merge import Merge
from ullage.gateway.merge.tool_view import Member
from ullage.models import shipped
from ullage.options import Rules
from ullage.search import Document, HybridIndex, Use, Used, restrained
from ullage.store import Database
from ullage.testing import FakeSource
from ullage.tokens import Meter
from ullage.tool import Call, Caller, Reply, Tool

Value = Any
"""Any JSON, and whatever else a test hands on."""

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:hybrid")]

METER = Meter(shipped())
ANN, BOB = (Caller(principal=name, session="one") for name in ("ann", "bob"))
SCHEMA: dict[str, Value] = {"type": "object", "properties": {"text": {"type": "string"}}}
READS = {"readOnlyHint": True}


def tool(name: str, description: str, **annotations: Value) -> Tool:
    return Tool(name=name, description=description, input_schema=SCHEMA, annotations=annotations)


TALK = (
    tool("send_message", "Send a message to the team.", **READS),
    tool("send_to_team", "Send a message to the team of a project, at once or later, by hand.", **READS),
    tool("delete_message", "Delete a message.", **READS),
    tool("post", "Write to the team.", destructiveHint=True),
)
WEATHER = (tool("forecast", "The weather of the coming days.", **READS),)
QUERY = "send a message to the team"


@pytest.fixture
def database(tmp_path: Path):
    with opened(str(tmp_path / "ullage.db")) as one:
        yield one


class Untouched:
    """A store that nobody may touch."""

    def load(self, principal: str, now: float) -> tuple[Use, ...]:
        raise AssertionError("it was read")

    def add(self, principal: str, terms: Iterable[str], tool: Used, now: float) -> None:
        raise AssertionError("it was written")


class Failing:
    def load(self, principal: str, now: float) -> tuple[Use, ...]:
        raise StoreFailed("the database is gone")

    def add(self, principal: str, terms: Iterable[str], tool: Used, now: float) -> None:
        raise StoreFailed("the database is gone")


def finding(store: UseStore, *members: Member, learn: bool = True) -> Find:
    own = Member(
        name="ullage",
        source=FakeSource(offered=(tool("count", "Count the words of a message.", **READS),)),
        prefix="",
        own=True,
        rules=Rules(pinned=("count",)),
    )
    known = members or (member("talk", TALK), member("weather", WEATHER))
    inner = Guarded(Merge([own, *known], reserved=NAMES, patience=0.02))
    settings = FindSettings(mode="search", start_wait=0.05, index="words", learn=learn)
    return Find(inner, METER, settings, Surroundings(learning=Learning(store)))


def member(name: str, tools: tuple[Tool, ...], **changes: Value) -> Member:
    return replace(Member(name=name, source=FakeSource(offered=tools), prefix=name), **changes)


async def found(source: Find, query: str = QUERY, caller: Caller = ANN, **arguments: Value) -> list[str]:
    """The names that the reply shows, in its order."""
    asked = {"tool_description": query, **arguments}
    reply = await source.call(Call(tool="find_tool", arguments=asked, caller=caller))
    said = json.loads(str(reply.content[0]["text"]))
    return [one["name"] for one in said["tools"]] + [line.partition("(")[0].split(" ")[0] for line in said["more"]]


async def run(source: Find, name: str, caller: Caller = ANN, door: str = "call_tool") -> Reply:
    return await source.call(Call(tool=door, arguments={"tool_name": name, "parameters": {}}, caller=caller))


def kept(database: Database, principal: str = "ann") -> list[Used]:
    return [use.tool for use in StoredUses(database).load(principal, 0.0)]


async def test_what_was_called_after_a_search_comes_first_in_the_next(database: Database):
    source = finding(StoredUses(database))
    assert (await found(source))[:2] == ["talk__send_message", "talk__send_to_team"]
    await run(source, "talk__send_to_team")
    assert (await found(source))[:2] == ["talk__send_to_team", "talk__send_message"]
    again = finding(StoredUses(database))
    assert (await found(again, "please send this message to our team"))[0] == "talk__send_to_team", (
        "after a restart too"
    )


async def test_nobody_gains_by_what_another_called(database: Database):
    source = finding(StoredUses(database))
    await found(source)
    await run(source, "talk__send_to_team")
    assert (await found(source, caller=BOB))[0] == "talk__send_message"
    assert kept(database, "bob") == []


async def test_an_unrelated_search_is_ranked_as_ever(database: Database):
    source = finding(StoredUses(database))
    before = await found(source, "delete a message")
    await found(source)
    await run(source, "talk__send_to_team")
    assert await found(source, "delete a message") == before


@pytest.mark.parametrize("door", ["call_tool", "call_tool_write", "talk__send_to_team"])
async def test_it_does_not_matter_through_which_door_it_was_called(database: Database, door: str):
    source = finding(StoredUses(database))
    await found(source)
    await (source.call(Call(tool=door, caller=ANN)) if door not in NAMES else run(source, "send_to_team", door=door))
    assert kept(database) == [("talk", "send_to_team")]


async def test_a_call_that_was_refused_or_failed_teaches_nothing(database: Database):
    async def fail(call: Call) -> Reply:
        return Reply.text("no", is_error=True)

    source = finding(StoredUses(database), member("talk", TALK, source=FakeSource(offered=TALK, answer=fail)))
    assert "talk__post" in await found(source, "write to the team")
    with pytest.raises(InvalidArguments):
        await run(source, "talk__post")
    assert (await run(source, "talk__post", door="call_tool_write")).is_error
    assert kept(database) == []


async def test_what_a_reply_did_not_show_is_not_learnt(database: Database):
    many = tuple(tool(f"send_{number}", f"Send message {number} to the team.", **READS) for number in range(30))
    source = finding(StoredUses(database), member("many", many))
    shown = await found(source, max_tokens=100)
    hidden = next(one for one in many if f"many__{one.name}" not in shown)
    await run(source, hidden.name)
    assert kept(database) == []
    await run(source, shown[-1])
    assert len(kept(database)) == 1


async def test_what_was_asked_for_by_name_is_not_learnt(database: Database):
    source = finding(StoredUses(database))
    for query in ("talk__send_to_team", "send_to_team", "use talk__send_to_team to tell the team"):
        assert (await found(source, query))[0] == "talk__send_to_team"
        await run(source, "talk__send_to_team")
    assert kept(database) == []


async def test_what_is_always_listed_is_not_learnt(database: Database):
    source = finding(StoredUses(database))
    assert "count" in await found(source, "count the words of a message")
    assert not (await source.call(Call(tool="count", caller=ANN))).is_error
    assert kept(database) == []


async def test_a_tool_that_the_query_names_stays_before_all_that_was_learnt(database: Database):
    source = finding(StoredUses(database))
    query = "send a message to the team with send_message"
    for _ in range(5):
        await found(source, query)
        await run(source, "talk__send_to_team")
    assert (await found(source, query))[0] == "talk__send_message"


async def test_a_tool_or_server_that_is_gone_is_simply_not_found(database: Database):
    source = finding(StoredUses(database))
    await found(source)
    await run(source, "talk__send_to_team")
    without = finding(StoredUses(database), member("talk", TALK[:1]), member("weather", WEATHER))
    assert (await found(without))[0] == "talk__send_message"
    assert "talk__send_message" not in await found(finding(StoredUses(database), member("weather", WEATHER)))


async def test_a_tool_of_the_same_name_on_another_server_gains_nothing(database: Database):
    source = finding(StoredUses(database))
    await found(source)
    await run(source, "talk__send_to_team")
    moved = finding(StoredUses(database), member("chat", TALK))
    assert (await found(moved))[0] == "chat__send_message"


async def test_switched_off_nothing_is_read_written_or_used():
    source = finding(Untouched(), learn=False)
    assert (await found(source))[0] == "talk__send_message"
    await run(source, "talk__send_to_team")
    assert (await found(source))[0] == "talk__send_message"


async def test_it_can_be_switched_off_while_running(database: Database):
    source = finding(StoredUses(database))
    await found(source)
    await run(source, "talk__send_to_team")
    source.replace(replace(source.settings, learn=False))
    assert (await found(source))[0] == "talk__send_message"
    await run(source, "talk__send_message")
    assert kept(database) == [("talk", "send_to_team")]


async def test_a_store_that_fails_is_no_error_for_a_search_or_a_call():
    source = finding(Failing())
    assert (await found(source))[0] == "talk__send_message"
    assert not (await run(source, "talk__send_to_team")).is_error
    assert "talk__send_message" in await found(source)


async def test_nothing_of_the_users_own_words_is_kept(database: Database):
    source = finding(StoredUses(database))
    await found(source, "send a message to Anneliese of the team about invoice 4711, password hunter2, /home/ann/x.txt")
    await run(source, "talk__send_to_team")
    terms = set[str]().union(*(use.terms for use in StoredUses(database).load("ann", 0.0)))
    assert terms == {"send", "messag", "team"}


# What learning can do to a ranking at the most

WORDS = ("red", "green", "blue", "grey")
DOCUMENTS = tuple(
    Document(id=str(number), name=f"tool{number}", description=" ".join(WORDS[: number % 4 + 1]))
    for number in range(12)
)
INDEX = HybridIndex(DOCUMENTS)


@given(
    st.lists(st.sampled_from([*WORDS, "tool3", "tool_7", "paint"]), min_size=1, max_size=5).map(" ".join),
    st.dictionaries(st.sampled_from([document.id for document in DOCUMENTS]), st.floats(0.0, 0.25), max_size=6),
)
def test_what_came_first_comes_second_at_the_worst_and_nothing_is_lost(query: str, learnt: dict[str, float]):
    plain = INDEX.search(query, 12)
    hits = INDEX.search(query, 12, learnt=learnt)
    ranked = restrained(hits, learnt)
    assert sorted(hit.document.id for hit in ranked) == sorted(hit.document.id for hit in hits)
    if plain:
        best = {hit.document.id for hit in plain if (hit.named, hit.score) == (plain[0].named, plain[0].score)}
        assert best & {hit.document.id for hit in ranked[:2]}
    assert [hit.named for hit in ranked] == sorted((hit.named for hit in ranked), reverse=True)
