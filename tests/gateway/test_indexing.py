"""What stands behind a search: the index, what of it waits for the next start, and what if a part of it is missing."""

import json
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import numpy as np
import pytest
from numpy.typing import NDArray

from ullage.gateway.find.find_settings import FindSettings, Mode, Surroundings
from ullage.gateway.find.find_source import Find
from ullage.gateway.find.tool_forms import NAMES
from ullage.gateway.find.tool_index import Embedders, VectorKey
from ullage.gateway.merge.merge import Merge
from ullage.gateway.merge.tool_view import Member
from ullage.gateway.tool_source import Work, definition_hash
from ullage.models import shipped
from ullage.search import Document
from ullage.testing import FakeEmbedder, FakeSource
from ullage.tokens import Meter
from ullage.tool import Call, Caller, Change, JsonObject, Tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:hybrid")]

METER = Meter(shipped())


@dataclass(slots=True, kw_only=True)
class Noting(FakeEmbedder):
    """Knows what it embedded, and where."""

    embedded: list[str] = field(default_factory=list[str])
    threads: set[str] = field(default_factory=set[str])

    def embed_documents(self, documents: Sequence[Document]) -> NDArray[np.float32]:
        self.embedded += [one.id for one in documents]
        self.threads.add(threading.current_thread().name)
        return FakeEmbedder.embed_documents(self, documents)


@dataclass(slots=True)
class FakeCache:
    kept: dict[VectorKey, bytes] = field(default_factory=dict[VectorKey, bytes])
    asked: list[VectorKey] = field(default_factory=list[VectorKey])

    def load(self, keys: Iterable[VectorKey]) -> Mapping[VectorKey, bytes]:
        wanted = list(keys)
        self.asked += wanted
        return {key: self.kept[key] for key in wanted if key in self.kept}

    def save(self, vectors: Mapping[VectorKey, bytes]) -> None:
        self.kept.update(vectors)


def tool(name: str, description: str) -> Tool:
    return Tool(name=name, description=description, input_schema={"type": "object"})


PAINT, MEND = tool("paint", "Paints a wall."), tool("mend", "Mends a pipe.")


def member(name: str, *tools: Tool, own: bool = False) -> Member:
    return Member(name=name, source=FakeSource(offered=tools), prefix="" if own else name, own=own)


def finding(
    *members: Member,
    embedder: FakeEmbedder | None = None,
    cache: FakeCache | None = None,
    spawn: Callable[[Work], object] | None = None,
    settings: FindSettings | None = None,
) -> Find:
    loaders = {} if embedder is None else {"static": lambda: embedder}
    around = Surroundings(embedders=Embedders(loaders), vectors=cache, spawn=spawn)  # type: ignore[arg-type]
    inner = Merge(members or (member("house", PAINT, MEND),), reserved=NAMES, patience=0.02)
    return Find(inner, METER, settings or FindSettings(mode="search", start_wait=0.05), around)


async def names(source: Find, description: str) -> list[str]:
    reply = await source.call(Call(tool="find_tool", arguments={"tool_description": description}))
    said = json.loads(str(reply.content[0]["text"]))
    return [*(one["name"] for one in said["tools"]), *(re.split(r" — |\(", line)[0] for line in said["more"])]


def change(source: Find, server: str, *tools: Tool) -> None:
    changed: Any = next(each.source for each in source.members if each.name == server)
    changed.offered = tools
    changed.change(Change("tools"))


@pytest.mark.requirement("S1:catalog")
async def test_a_definition_is_embedded_once_in_its_life():
    cache, first, second = FakeCache(), Noting(), Noting()
    assert await names(finding(embedder=first, cache=cache), "paints a wall")
    assert first.embedded == ["house__paint", "house__mend"]
    assert list(cache.kept) == [("house", definition_hash(PAINT)), ("house", definition_hash(MEND))]
    before = await names(finding(embedder=first, cache=cache), "mends")
    assert await names(finding(embedder=second, cache=cache), "mends") == before
    assert second.embedded == []


async def test_of_a_changed_catalogue_only_what_is_new_is_embedded_and_asked_for():
    cache, embedder = FakeCache(), Noting()
    source = finding(embedder=embedder, cache=cache)
    source.watch(lambda _: None)
    await names(source, "paints")
    embedder.embedded.clear()
    cache.asked.clear()
    better = replace(PAINT, description="Paints a wall twice.")
    change(source, "house", better, MEND)
    assert "house__paint" in await names(source, "twice")
    assert embedder.embedded == ["house__paint"]
    assert cache.asked == [("house", definition_hash(better))]


async def test_vectors_of_another_edition_and_damaged_ones_are_made_anew():
    cache = FakeCache()
    await names(finding(embedder=Noting(), cache=cache), "paints")
    other = Noting(edition="fake-2")
    await names(finding(embedder=other, cache=cache), "paints")
    assert len(other.embedded) == 2
    cache.kept["house", definition_hash(MEND)] = b"nonsense"
    again = Noting(edition="fake-2")
    assert await names(finding(embedder=again, cache=cache), "mends a pipe")
    assert again.embedded == ["house__mend"]


async def test_one_definition_on_two_servers_has_two_vectors_since_the_servers_words_count():
    cache, embedder = FakeCache(), Noting()
    await names(finding(member("house", PAINT), member("boat", PAINT), embedder=embedder, cache=cache), "paints")
    assert len(embedder.embedded) == len(cache.kept) == 2


async def test_our_own_tools_are_no_part_of_the_catalogue():
    cache, embedder = FakeCache(), Noting()
    source = finding(member("house", PAINT), member("ullage", MEND, own=True), embedder=embedder, cache=cache)
    assert "mend" in await names(source, "mends a pipe")
    assert [server for server, _ in cache.asked] == [server for server, _ in cache.kept] == ["house"]


async def test_embedding_is_done_aside_and_keeping_behind():
    cache, embedder, later = FakeCache(), Noting(), list[Work]()
    source = finding(embedder=embedder, cache=cache, spawn=later.append)
    assert await names(source, "paints")
    assert threading.current_thread().name not in embedder.threads
    assert cache.kept == {}
    for work in later:
        await work()
    assert len(cache.kept) == 2


@pytest.mark.parametrize(("tools", "aside"), [(2, False), (2_000, True)])
async def test_among_many_tools_one_is_looked_for_aside(tools: int, aside: bool):  # noqa: FBT001
    asked = list[bool]()

    class Asked(FakeEmbedder):
        def embed_query(self, query: str) -> NDArray[np.float32]:
            if query:
                asked.append(threading.current_thread() is not threading.main_thread())
            return FakeEmbedder.embed_query(self, query)

    house = member("house", *(tool(f"paint_{number}", "Paints a wall.") for number in range(tools)))
    assert await names(finding(house, embedder=Asked()), "paints a wall")
    assert asked == [aside]


async def test_a_search_goes_on_with_what_it_began_with_while_the_catalogue_changes():
    class Changing:
        """Has the catalogue changed and prepared anew while forms are being made for a search."""

        def __init__(self) -> None:
            self.once: Callable[[], Coroutine[Any, Any, None]] | None = None

        def load(self, hashes: Iterable[str]) -> Mapping[str, JsonObject]:
            if self.once is not None:
                once, self.once = self.once, None
                anyio.from_thread.run(once)
            return {}

        def save(self, forms: Mapping[str, JsonObject]) -> None: ...

    forms = Changing()
    inner = Merge((member("house", PAINT, MEND),), reserved=NAMES, patience=0.02)
    source = Find(inner, METER, FindSettings(mode="search", index="words"), Surroundings(forms=forms))

    async def once() -> None:
        change(source, "house", tool("plant", "Plants a tree."))
        await source.prepare()

    assert await names(source, "paints") == ["house__paint"]
    forms.once = once
    assert [one.partition("(")[0] for one in await names(source, "paints a wall, mends a pipe")] == [
        "house__paint",
        "house__mend",
    ]
    assert await names(source, "plants a tree") == ["house__plant"]


@pytest.mark.parametrize(("mode", "embedded"), [("search", 2), ("direct", 0)])
async def test_what_searches_need_is_made_behind_a_list_and_not_where_nobody_searches(mode: Mode, embedded: int):
    embedder, later = Noting(), list[Work]()
    source = finding(embedder=embedder, spawn=later.append, settings=FindSettings(mode=mode, start_wait=0.05))
    await source.tools()
    source.replace(source.settings)
    assert embedder.asked == []
    for work in later:
        await work()
    assert len(embedder.embedded) == embedded


async def test_without_a_cache_a_fresh_catalogue_is_searched_at_once():
    embedder = Noting()
    assert (await names(finding(embedder=embedder), "paints a wall"))[0] == "house__paint"
    assert len(embedder.embedded) == 2


@pytest.mark.requirement("S1:live")
async def test_the_index_follows_the_settings():
    embedder, words = Noting(), FindSettings(mode="search", start_wait=0.05, index="words")
    source = finding(embedder=embedder, settings=words)
    assert (await names(source, "paints a wall"))[0] == "house__paint"
    assert embedder.asked == []
    source.replace(replace(words, index="static"))
    assert (await names(source, "paints a wall"))[0] == "house__paint"
    assert len(embedder.embedded) == 2
    asked = len(embedder.asked)
    source.replace(words)
    await names(source, "paints a wall")
    assert len(embedder.asked) == asked


async def test_where_meaning_cannot_be_loaded_words_are_searched_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
):
    def broken() -> FakeEmbedder:
        raise ImportError("numpy is half installed")

    around = Surroundings(embedders=Embedders({"static": broken}))
    inner = Merge((member("house", PAINT, MEND),), reserved=NAMES)
    source = Find(inner, METER, FindSettings(mode="search"), around)
    with caplog.at_level(logging.WARNING):
        assert [(await names(source, "paints a wall"))[0] for _ in range(2)] == ["house__paint"] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "search by meaning (`static`) cannot be loaded: numpy is half installed; tools are searched by words alone"
    ]


async def test_an_index_of_nothing_is_made_once():
    embedder = Noting()
    source = finding(member("house"), embedder=embedder)
    assert [await names(source, "paints a wall") for _ in range(3)] == [[]] * 3
    assert embedder.asked.count("") == 1


OFFLINE = """
import json, socket, sys
def closed(*_, **__): raise OSError("the network is closed")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = closed
import anyio
from ullage.app import meter
from ullage.gateway import Find, FindSettings, Member, Merge
from ullage.testing import FakeSource
from ullage.tool import Call, Tool

DOES = {
    "get_forecast": "Weather forecast for a city, for up to ten days.",
    "create_issue": "Create an issue in a repository.",
    "resize_image": "Scale an image to other dimensions.",
    "delete_file": "Remove one path from disk.",
    "list_commits": "List commits of a branch.",
}

async def main():
    tools = tuple(Tool(name=name, description=does, input_schema={"type": "object"}) for name, does in DOES.items())
    source = FakeSource(offered=tools)
    merge, queries = Merge([Member(name="all", source=source, prefix="")]), sys.argv[1:]
    for index in ("static", "words"):
        find = Find(merge, meter(), FindSettings(mode="search", index=index))
        await find.tools()
        assert "numpy" not in sys.modules or index == "words", "numpy is loaded before anybody searches"
        for query in queries:
            reply = await find.call(Call(tool="find_tool", arguments={"tool_description": query}))
            found = json.loads(reply.content[0]["text"])
            print(index, next((one["name"] for one in found["tools"]), None))

anyio.run(main)
"""
ASKED = {
    "will it rain tomorrow": "get_forecast",
    "report bug": "create_issue",
    "make photos smaller": "resize_image",
    "destroy documents": "delete_file",
    "wie wird das wetter morgen": "get_forecast",
}
"""None of these has a word in common with the tool it asks for."""


@pytest.mark.requirement("S1:hybrid")
def test_what_is_asked_for_in_other_words_is_found_with_sockets_closed_and_an_empty_home(tmp_path: Path):
    run = subprocess.run(
        [sys.executable, "-c", OFFLINE, *ASKED],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": ""},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[: len(ASKED)] == [f"static {name}" for name in ASKED.values()]
    by_words = dict(zip(ASKED, lines[len(ASKED) :], strict=True))
    assert [query for query, found in by_words.items() if found.endswith(ASKED[query])] == [], "words alone miss them"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("S1:hybrid")
async def test_words_and_meaning_are_fused_and_names_come_before_both():
    far = tool("forecast_rain", "Says what the weather will be.")
    near = tool("get_rain", "Will it rain tomorrow? Rain, rain, rain.")
    members = (member("sky", far, near, tool("boil_egg", "Boils an egg.")),)
    source = Find(Merge(members, reserved=NAMES), METER, FindSettings(mode="search"))
    assert (await names(source, "will it rain tomorrow"))[:2] == ["sky__get_rain", "sky__forecast_rain"]
    assert (await names(source, "will it rain tomorrow, says boil_egg"))[0] == "sky__boil_egg"


async def test_while_an_encoder_reads_much_the_table_answers():
    tools = tuple(tool(f"tool_{number}", f"Does the {number}th thing.") for number in range(150))
    table, encoder, later = Noting(), Noting(), list[Work]()
    around = Surroundings(
        embedders=Embedders({"static": lambda: table, "encoder": lambda: encoder}), spawn=later.append
    )
    inner = Merge([member("house", *tools)], reserved=NAMES, patience=0.02)
    source = Find(inner, METER, FindSettings(mode="search", start_wait=0.05, index="encoder"), around)
    assert await names(source, "does the 7th thing")
    assert await names(source, "does the 8th thing")
    assert len(table.embedded) == 150
    assert encoder.embedded == []
    for work in later:
        await work()
    assert sorted(encoder.embedded) == sorted(table.embedded)
    assert (await names(source, "does the 7th thing"))[0] == "house__tool_7"
    assert len(table.embedded) == 150


async def test_an_encoder_that_has_little_to_read_is_waited_for():
    table, encoder, later = Noting(), Noting(), list[Work]()
    around = Surroundings(
        embedders=Embedders({"static": lambda: table, "encoder": lambda: encoder}), spawn=later.append
    )
    inner = Merge([member("house", PAINT, MEND)], reserved=NAMES, patience=0.02)
    source = Find(inner, METER, FindSettings(mode="search", start_wait=0.05, index="encoder"), around)
    assert await names(source, "paints a wall")
    assert (len(encoder.embedded), table.embedded) == (2, [])


@dataclass
class Breaking(FakeEmbedder):
    """Works until it does not."""

    queries: int = 0
    documents: bool = True

    def embed_documents(self, documents: Sequence[Document]) -> NDArray[np.float32]:
        if not self.documents:
            raise MemoryError("no room for documents")
        return FakeEmbedder.embed_documents(self, documents)

    def embed_query(self, query: str) -> NDArray[np.float32]:
        self.queries -= 1
        if self.queries < 0:
            raise MemoryError("no room for a query")
        return FakeEmbedder.embed_query(self, query)


def _finds(embedders: Embedders, spawn: Callable[[Work], object] | None = None, *tools: Tool) -> Find:
    around = Surroundings(embedders=embedders, spawn=spawn)
    inner = Merge([member("house", *(tools or (PAINT, MEND)))], reserved=NAMES, patience=0.02)
    return Find(inner, METER, FindSettings(mode="search", start_wait=0.05, index="encoder"), around)


@pytest.mark.parametrize(("queries", "documents"), [(0, True), (1, True), (9, False)])
@pytest.mark.parametrize(("table", "at_work"), [(FakeEmbedder(), "fake-1"), (None, None)])
async def test_a_search_goes_on_without_what_breaks(
    queries: int, *, documents: bool, table: FakeEmbedder | None, at_work: str | None
):
    broken = Breaking(edition="encoder", queries=queries, documents=documents)
    table = table or Breaking(edition="table", queries=queries, documents=documents)
    embedders = Embedders({"static": lambda: table, "encoder": lambda: broken})
    clients = [_finds(embedders) for _ in range(3)]
    for source in clients:
        assert (await names(source, "paints a wall"))[0] == "house__paint"
        assert (await names(source, "mends a pipe"))[0] == "house__mend"
    left = embedders.of("encoder")
    assert (None if left is None else left.edition) == at_work


async def test_several_searches_at_once_give_up_only_what_breaks():
    broken, table = Breaking(edition="encoder", queries=1), FakeEmbedder()
    embedders = Embedders({"static": lambda: table, "encoder": lambda: broken})
    source = _finds(embedders)
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(names, source, "paints a wall")
    assert embedders.of("encoder") is table


async def test_a_stand_in_that_breaks_leaves_the_encoder_at_work():
    tools = tuple(tool(f"tool_{number}", f"Does the {number}th thing.") for number in range(150))
    encoder, later = FakeEmbedder(edition="encoder"), list[Work]()
    embedders = Embedders({"static": lambda: Breaking(edition="table"), "encoder": lambda: encoder})
    source = _finds(embedders, later.append, *tools)
    assert (await names(source, "tool_7"))[0] == "house__tool_7"
    assert (embedders.of("static"), embedders.of("encoder")) == (None, encoder)


async def test_an_encoder_that_breaks_while_nobody_waits_is_given_up():
    tools = tuple(tool(f"tool_{number}", f"Does the {number}th thing.") for number in range(150))
    broken, table, later = Breaking(edition="encoder", queries=9, documents=False), FakeEmbedder(), list[Work]()
    embedders = Embedders({"static": lambda: table, "encoder": lambda: broken})
    source = _finds(embedders, later.append, *tools)
    assert await names(source, "does the 7th thing")
    for work in later:
        await work()
    assert embedders.of("encoder") is table
    assert (await names(source, "tool_7"))[0] == "house__tool_7"


async def test_what_is_explained_is_of_the_search_that_went_well():
    broken, table = Breaking(edition="encoder", weight=90.0, queries=2), FakeEmbedder()
    source = _finds(Embedders({"static": lambda: table, "encoder": lambda: broken}))
    asked = {"tool_description": "paints a wall", "tool_keywords": "brush colour"}
    first, again = [await source.explain(asked, Caller(principal="p", session="s")) for _ in range(2)]
    assert [each.hit and each.hit.score for each in first] == [each.hit and each.hit.score for each in again]
