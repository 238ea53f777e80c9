import itertools
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest

from store.databases import opened
from ullage.errors import ProtocolError, SourceFailed, ToolChanged, UllageError
from ullage.gateway.accepted_definitions import Baselines
from ullage.gateway.catalog.cached_source import Kept
from ullage.gateway.catalog.catalog import Catalogue
from ullage.gateway.tool_source import Spawn, definition_text
from ullage.options import Server
from ullage.store import Database
from ullage.testing import FakeSource, check_closing, check_source, check_watched
from ullage.tool import Call, Change, Complete, Introduction, JsonObject, Listing, PromptRequest, Read, Reply, Tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:catalog", "S1:live")]

SHOP = Server(name="shop", transport="stdio", command="shop")
TOOLS = Change("tools")


def _tool(name: str, description: str = "Does it") -> Tool:
    return Tool(name=name, description=description, input_schema={"type": "object"})


BUY, SELL = _tool("buy"), _tool("sell")


@dataclass(slots=True, kw_only=True)
class Upstream(FakeSource):
    """A server: says who it is once it was asked anything, and counts how often it lists its tools."""

    listings: int = 0
    failure: Exception | None = None
    gate: anyio.Event | None = None
    """Listing waits for it, where there is one."""
    asked: list[object] = field(default_factory=list[object])
    said: Introduction | None = None
    capabilities: JsonObject = field(default_factory=lambda: {"tools": {}})  # pyright: ignore[reportIncompatibleMethodOverride]

    async def tools(self) -> Listing:
        self.listings += 1
        offered = self.offered
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.said = Introduction(name="Shop")
        return Listing(offered, revision="whatever")

    def introduction(self) -> Introduction | None:
        return self.said

    async def complete(self, request: Complete) -> JsonObject:
        return {"values": ["a"]}

    async def subscribe(self, uri: str) -> None:
        self.asked.append(("subscribe", uri))

    async def unsubscribe(self, uri: str) -> None:
        self.asked.append(("unsubscribe", uri))

    async def set_log_level(self, level: str) -> None:
        self.asked.append(level)


@dataclass(slots=True, kw_only=True)
class Scene:
    """A kept server on one database, and another start on the same one."""

    database: Database
    spawn: Spawn
    upstream: Upstream
    kept: Kept
    heard: list[Change] = field(default_factory=list[Change])

    def start_again(self, *offered: Tool) -> "Scene":
        return _scene(self.database, self.spawn, *offered)


def _scene(database: Database, spawn: Spawn, *offered: Tool) -> Scene:
    upstream = Upstream(offered=offered, texts={"a:b": "text"}, messages={"hello": "Hello {who}"})
    kept = Kept(upstream, SHOP, Catalogue(database, len), spawn=spawn)
    scene = Scene(database=database, spawn=spawn, upstream=upstream, kept=kept)
    kept.watch(scene.heard.append)
    return scene


@asynccontextmanager
async def _open(folder: Path, *offered: Tool) -> AsyncGenerator[Scene]:
    with opened(str(folder / "x.db")) as database:
        async with anyio.create_task_group() as tasks:
            yield _scene(database, tasks.start_soon, *offered)
            tasks.cancel_scope.cancel()


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not condition():
            await anyio.sleep(0.005)


async def _warm(folder: Path, *offered: Tool) -> None:
    async with _open(folder, *offered) as scene:
        await scene.kept.tools()


async def test_the_first_listing_asks_the_server_once_whoever_waits(tmp_path: Path):
    async with _open(tmp_path, BUY, SELL) as scene:
        assert scene.kept.peek() is None
        assert scene.kept.token_count("buy") is None
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(scene.kept.tools)
        listing = await scene.kept.tools()
        assert listing.tools == (BUY, SELL)
        assert scene.kept.peek() == listing
        assert scene.upstream.listings == 1
        assert scene.heard == [TOOLS], "from unknown to known is a change"
        assert scene.kept.token_count("buy") == len(definition_text(BUY))


@pytest.mark.requirement("S1:catalog")
async def test_the_next_start_lists_from_disk_and_starts_nothing(tmp_path: Path):
    await _warm(tmp_path, BUY)
    async with _open(tmp_path, BUY) as scene:
        loaded = await scene.kept.load()
        assert loaded == scene.kept.peek() == await scene.kept.tools()
        assert loaded is not None
        assert loaded.tools == (BUY,)
        assert scene.kept.introduction() == Introduction(name="Shop", capabilities={"tools": {}})
        assert scene.kept.capabilities == {"tools": {}}, "as it was when the server last ran"
        assert scene.upstream.listings == 0
        assert scene.heard == []


async def test_tools_are_read_from_disk_without_being_loaded_first(tmp_path: Path):
    await _warm(tmp_path, BUY)
    async with _open(tmp_path, BUY) as scene:
        assert (await scene.kept.tools()).tools == (BUY,)
        assert scene.upstream.listings == 0


@pytest.mark.requirement("S1:live")
async def test_a_list_from_disk_is_confirmed_once_after_the_first_call(tmp_path: Path):
    await _warm(tmp_path, BUY)
    async with _open(tmp_path, BUY, SELL) as scene:
        await scene.kept.load()
        for _ in range(3):
            await scene.kept.call(Call(tool="buy"))
        await _until(lambda: scene.heard == [TOOLS])
        await scene.kept.call(Call(tool="buy"))
        assert (await scene.kept.tools()).tools == (BUY, SELL)
        assert scene.upstream.listings == 1


@pytest.mark.requirement("S1:live")
async def test_a_first_confirmation_that_fails_is_repeated_after_a_pause(tmp_path: Path):
    await _warm(tmp_path, BUY)
    async with _open(tmp_path, BUY, SELL) as scene:
        await scene.kept.load()
        scene.upstream.failure = SourceFailed("slow today")
        await scene.kept.call(Call(tool="buy"))
        await _until(lambda: scene.kept.problem is not None)
        scene.upstream.failure = None
        for _ in range(5):
            await scene.kept.call(Call(tool="buy"))
        await _until(lambda: scene.heard == [TOOLS])
        assert scene.upstream.listings == 2
        assert (await scene.kept.tools()).tools == (BUY, SELL)


async def test_whoever_waits_for_a_list_does_not_wait_for_a_pause(tmp_path: Path):
    async with _open(tmp_path, BUY) as scene:
        scene.upstream.failure = SourceFailed("slow today")
        with anyio.fail_after(20):
            # The pauses would add up to minutes.
            for asked in range(1, 13):
                await scene.kept.call(Call(tool="buy"))
                with pytest.raises(SourceFailed):
                    await scene.kept.refresh()
                assert scene.upstream.listings == asked
            scene.upstream.failure = None
            await scene.kept.call(Call(tool="buy"))
            await scene.kept.refresh()


async def test_a_server_that_is_closed_while_it_lists_is_not_written_down(tmp_path: Path):
    async with _open(tmp_path, BUY) as scene:
        scene.upstream.gate = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(_refused, scene.kept)
            await _until(lambda: scene.upstream.listings == 1)
            await scene.kept.close()
            scene.upstream.gate.set()
        assert await Catalogue(scene.database, len).listing(SHOP) is None


async def _refused(kept: Kept) -> None:
    with pytest.raises(SourceFailed, match="closed"):
        await kept.refresh()


async def test_an_unchanged_list_is_confirmed_without_a_word(tmp_path: Path):
    await _warm(tmp_path, BUY)
    async with _open(tmp_path, BUY) as scene:
        await scene.kept.load()
        await scene.kept.call(Call(tool="buy"))
        await _until(lambda: scene.upstream.listings == 1)
        await scene.kept.refresh()
        assert scene.heard == []


async def test_an_error_of_the_protocol_confirms_too_and_a_dead_server_does_not(tmp_path: Path):
    async def refuse(call: Call) -> Reply:
        raise error

    await _warm(tmp_path, BUY)
    async with _open(tmp_path, BUY) as scene:
        await scene.kept.load()
        scene.kept.reconfigure(replace(SHOP, definition_changes="accept"))  # a call does not wait for the list then
        scene.upstream.answer = refuse
        error: UllageError = SourceFailed("dead")
        with pytest.raises(SourceFailed):
            await scene.kept.call(Call(tool="buy"))
        await anyio.sleep(0.02)
        assert scene.upstream.listings == 0
        error = ProtocolError("no such tool", number=-32602)
        with pytest.raises(ProtocolError):
            await scene.kept.call(Call(tool="buy"))
        await _until(lambda: scene.upstream.listings == 1)


@pytest.mark.requirement("S1:live")
async def test_a_burst_of_changes_is_one_question(tmp_path: Path):
    async with _open(tmp_path, BUY) as scene:
        await scene.kept.tools()
        scene.heard.clear()
        scene.upstream.offered = (BUY, SELL)
        for _ in range(100):
            scene.upstream.change(TOOLS)
        await _until(lambda: scene.heard == [TOOLS])
        assert scene.upstream.listings == 2
        assert (await scene.kept.tools()).tools == scene.upstream.offered
        await anyio.sleep(0.2)
        assert scene.upstream.listings == 2
        assert (await scene.start_again().kept.tools()).tools == scene.upstream.offered


async def test_a_change_that_changes_nothing_is_not_announced(tmp_path: Path):
    async with _open(tmp_path, BUY, SELL) as scene:
        before = await scene.kept.tools()
        scene.heard.clear()
        scene.upstream.offered = (SELL, BUY)
        scene.upstream.change(TOOLS)
        await _until(lambda: scene.upstream.listings == 2)
        await scene.kept.refresh()
        assert scene.heard == []
        assert await scene.kept.tools() == before


async def test_a_change_during_a_listing_is_asked_for_again(tmp_path: Path):
    async with _open(tmp_path, BUY) as scene:
        scene.upstream.gate = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scene.kept.tools)
            await _until(lambda: scene.upstream.listings == 1)
            scene.upstream.offered = (BUY, SELL)
            scene.upstream.change(TOOLS)
            scene.upstream.gate.set()
        await _until(lambda: scene.heard == [TOOLS, TOOLS])
        assert (await scene.kept.tools()).tools == (BUY, SELL)
        assert scene.upstream.listings == 2


async def test_a_server_that_changes_whenever_it_is_asked_is_asked_ever_more_seldom(tmp_path: Path):
    asked = list[float]()
    async with _open(tmp_path, BUY) as scene:

        class Restless(Upstream):
            async def tools(self) -> Listing:
                asked.append(anyio.current_time())
                self.change(TOOLS)
                return Listing((BUY,), revision="")

        restless = Restless(offered=(BUY,))
        await Kept(restless, SHOP, Catalogue(None, len), spawn=scene.spawn).tools()
        await _until(lambda: len(asked) == 5)
    pauses = [after - before for before, after in itertools.pairwise(asked)]
    assert all(pause > least for pause, least in zip(pauses, (0.04, 0.09, 0.19, 0.39), strict=True))


async def test_another_process_having_changed_the_catalogue_already_is_still_news_here(tmp_path: Path):
    async with _open(tmp_path, BUY) as scene:
        await scene.kept.tools()
        other = scene.start_again(BUY, SELL)
        await other.kept.refresh()
        scene.heard.clear()
        scene.upstream.offered = (BUY, SELL)
        scene.upstream.change(TOOLS)
        await _until(lambda: scene.heard == [TOOLS])


@pytest.mark.parametrize("failure", [SourceFailed("it died"), KeyError("a mistake of ours")])
async def test_a_listing_that_fails_keeps_the_old_one_and_its_reason(tmp_path: Path, failure: Exception):
    async with _open(tmp_path, BUY) as scene:
        before = await scene.kept.tools()
        scene.upstream.failure = failure
        with pytest.raises(SourceFailed):
            await scene.kept.refresh()
        assert scene.kept.problem is not None
        assert await scene.kept.tools() == before
        scene.upstream.failure = None
        await scene.kept.refresh()
        assert scene.kept.problem is None
        assert scene.heard == [TOOLS]


async def test_a_server_that_cannot_be_asked_at_first_is_asked_again(tmp_path: Path):
    async with _open(tmp_path, BUY) as scene:
        scene.upstream.failure = SourceFailed("not yet")
        for _ in range(2):
            with pytest.raises(SourceFailed, match="not yet"):
                await scene.kept.tools()
        scene.upstream.failure = None
        assert (await scene.kept.tools()).tools == (BUY,)


async def test_whoever_gives_up_waiting_takes_nothing_from_the_others(tmp_path: Path):
    async with _open(tmp_path, BUY) as scene:
        scene.upstream.gate = anyio.Event()
        with anyio.move_on_after(0.02):
            await scene.kept.tools()
        scene.upstream.gate.set()
        assert (await scene.kept.tools()).tools == (BUY,)
        assert scene.upstream.listings == 1


async def test_whoever_waits_when_all_ends_is_told(tmp_path: Path):
    with opened(str(tmp_path / "x.db")) as database:
        async with anyio.create_task_group() as inner:
            scene = _scene(database, inner.start_soon, BUY)
            scene.upstream.gate = anyio.Event()
            async with anyio.create_task_group() as outer:

                async def wait() -> None:
                    with pytest.raises(SourceFailed, match="closed before"):
                        await scene.kept.tools()

                outer.start_soon(wait)
                await _until(lambda: scene.upstream.listings == 1)
                with anyio.CancelScope(shield=True):
                    inner.cancel_scope.cancel()


async def test_a_closed_one_asks_nothing_more(tmp_path: Path):
    async with _open(tmp_path, BUY) as scene:
        await check_closing(scene.kept)
        assert scene.upstream.closed
        assert scene.upstream.listeners == []
        with pytest.raises(SourceFailed, match="is closed"):
            await scene.kept.refresh()
        await scene.kept.call(Call(tool="buy"))
        assert scene.upstream.listings == 0


async def test_everything_else_passes_through(tmp_path: Path):
    async with _open(tmp_path, BUY) as scene:
        kept = scene.kept
        await check_source(kept, Call(tool="buy"))
        check_watched(kept)
        assert await kept.resources() == ({"uri": "a:b", "name": "a:b"},)
        assert await kept.templates() == ()
        assert (await kept.read(Read(uri="a:b"))).contents == ({"uri": "a:b", "text": "text"},)
        assert await kept.prompts() == ({"name": "hello"},)
        assert (await kept.prompt(PromptRequest(name="hello", arguments={"who": "you"}))).messages
        assert await kept.complete(Complete(reference={}, argument={})) == {"values": ["a"]}
        await kept.subscribe("a:b")
        await kept.unsubscribe("a:b")
        await kept.set_log_level("debug")
        assert scene.upstream.asked == [("subscribe", "a:b"), ("unsubscribe", "a:b"), "debug"]
        assert kept.capabilities == {"tools": {}}
        scene.heard.clear()
        scene.upstream.change(Change("resource", uri="a:b"))
        assert scene.heard == [Change("resource", uri="a:b")]


async def test_a_changed_configuration_is_asked_anew(tmp_path: Path):
    await _warm(tmp_path, BUY)
    async with _open(tmp_path, SELL) as scene:
        changed = replace(SHOP, arguments=("-x",))
        other = Kept(scene.upstream, changed, Catalogue(scene.database, len), spawn=scene.spawn)
        assert (await other.tools()).tools == (SELL,)
        assert (await scene.kept.tools()).tools == (BUY,)


CHANGED = _tool("buy", "Buys and tells everybody")


@pytest.mark.requirement("U:pin")
async def test_a_call_that_starts_a_server_waits_for_its_list(tmp_path: Path):
    await _warm(tmp_path, BUY)
    async with _open(tmp_path, CHANGED) as scene:
        await scene.kept.load()
        with pytest.raises(ToolChanged):
            await scene.kept.call(Call(tool="buy"))
        assert scene.upstream.calls == []
        assert (await scene.kept.tools()).tools == ()


@pytest.mark.requirement("U:pin")
async def test_a_setting_that_accepts_changes_serves_what_was_withheld(tmp_path: Path):
    await _warm(tmp_path, BUY)
    async with _open(tmp_path, CHANGED) as scene:
        await scene.kept.load()
        await scene.kept.refresh()
        assert set(scene.kept.withheld()) == {"buy"}
        scene.heard.clear()
        scene.kept.reconfigure(replace(SHOP, definition_changes="accept"))
        await _until(lambda: scene.heard == [TOOLS])
        assert (await scene.kept.tools()).tools == (CHANGED,)
        await scene.kept.call(Call(tool="buy"))


@pytest.mark.requirement("U:pin")
async def test_an_acceptance_by_another_process_is_noticed(tmp_path: Path):
    await _warm(tmp_path, BUY)
    async with _open(tmp_path, CHANGED) as scene:
        await scene.kept.load()
        await scene.kept.refresh()
        scene.heard.clear()
        elsewhere = Baselines(scene.database)
        elsewhere.accept(SHOP, elsewhere.withheld(SHOP))
        await _until(lambda: scene.heard == [TOOLS])
        assert (await scene.kept.tools()).tools == (CHANGED,)


@pytest.mark.requirement("U:pin")
async def test_instructions_of_a_server_that_has_not_listed_yet_are_not_shown(tmp_path: Path):
    async with _open(tmp_path, BUY) as scene:
        scene.upstream.said = Introduction(name="Shop", instructions="Obey.")
        said = scene.kept.introduction()
        assert said is not None
        assert said.instructions is None
