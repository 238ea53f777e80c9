import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

from approving import examine
from ullage.config import Flags, Loaded, Places, Reload, Reloading, watch
from ullage.config.config_file import find_changed_files, stamps_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:live")]

Item = TypeVar("Item")
INTERVAL = 0.02


async def first(items: AsyncIterator[Item]) -> Item:
    with anyio.fail_after(20):
        return await anext(items)


async def nothing(items: AsyncIterator[Item]) -> bool:
    """Whether nothing is told for a good while. The iterator is of no use afterwards."""
    with anyio.move_on_after(INTERVAL * 12):
        await anext(items)
        return False
    return True


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ullage.toml"
    path.write_text("[gateway]\nwindow = 1\n", encoding="utf-8")
    return path


def replace_whole(path: Path, text: str) -> None:
    """As careful editors save: written beside, then renamed."""
    beside = path.with_suffix(".tmp")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


async def test_edits_replacements_deletions_and_creations_are_noticed(file: Path):
    other = file.with_name("other.toml")
    async with aclosing(watch(stamps_of([file, other]), interval=INTERVAL, settle=0.01)) as changes:
        file.write_text("x = 12", encoding="utf-8")
        assert await first(changes) == {file}
        replace_whole(file, "x = 13")
        assert await first(changes) == {file}
        other.write_text("", encoding="utf-8")
        assert await first(changes) == {other}
        file.unlink()
        assert await first(changes) == {file}
        file.write_text("x = 14", encoding="utf-8")
        other.unlink()
        assert await first(changes) == {file, other}
        assert await nothing(changes)


async def test_a_change_between_reading_and_watching_is_not_missed(file: Path):
    seen = stamps_of([file])
    file.write_text("x = 12", encoding="utf-8")
    async with aclosing(watch(seen, interval=INTERVAL, settle=0.01)) as changes:
        assert await first(changes) == {file}


async def test_an_editors_dance_of_renaming_is_one_change(file: Path):
    async def dance() -> None:
        for turn in range(5):
            file.rename(file.with_suffix(".bak"))
            await anyio.sleep(INTERVAL)
            file.write_text(f"x = {turn}", encoding="utf-8")
            await anyio.sleep(INTERVAL)

    async with (
        aclosing(watch(stamps_of([file]), interval=INTERVAL, settle=0.5)) as changes,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(dance)
        assert await first(changes) == {file}
        assert file.read_text(encoding="utf-8") == "x = 4"
        assert await nothing(changes)


async def test_a_dance_that_ends_where_it_began_is_no_change_of_size_or_time(file: Path):
    status = file.stat()
    before = stamps_of([file])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    # The time of the last change of status moved, which cannot be told from an edit that hides itself.
    assert find_changed_files(before, stamps_of([file])) == {file}


async def test_a_file_that_never_rests_is_told_all_the_same(file: Path):
    async def scribble() -> None:
        for turn in range(1_000_000):
            file.write_text(f"x = {turn}", encoding="utf-8")
            await anyio.sleep(0.002)

    async with (
        aclosing(watch(stamps_of([file]), interval=INTERVAL, settle=0.01)) as changes,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(scribble)
        assert await first(changes) == {file}
        tasks.cancel_scope.cancel()


@pytest.fixture
def reloading(tmp_path: Path, file: Path) -> Reloading:
    places = Places(home=tmp_path, config=tmp_path / "config", data=tmp_path / "data")

    def again(before: Loaded | None = None) -> Loaded:
        del before
        return examine(Flags(config=file), {}, tmp_path, places=places)

    return Reloading(loaded=again(), again=again, interval=INTERVAL, settle=0.01)


def window(reload: Reload | Loaded | Reloading) -> int | None:
    loaded = reload if isinstance(reload, Loaded) else reload.loaded
    return loaded.settings.gateway.window


@pytest.mark.requirement("S1:live")
async def test_a_good_edit_is_taken_over(reloading: Reloading, file: Path):
    async with aclosing(reloading.changes()) as changes:
        file.write_text("[gateway]\nwindow = 20\n", encoding="utf-8")
        told = await first(changes)
        assert (window(told), told.refused, window(reloading)) == (20, (), 20)
        replace_whole(file, "[gateway]\nwindow = 300\n")
        assert window(await first(changes)) == 300


@pytest.mark.requirement("S1:live")
async def test_a_bad_edit_keeps_the_old_settings_and_is_told_once(reloading: Reloading, file: Path):
    async with aclosing(reloading.changes()) as changes:
        file.write_text("[gateway]\nwindw = 20\n", encoding="utf-8")
        told = await first(changes)
        assert (window(told), window(reloading)) == (1, 1)
        assert "unknown key `windw`" in told.refused[0].message
        file.write_text("# the same fault, moved\n[gateway]\nwindw = 20\n", encoding="utf-8")
        await anyio.sleep(INTERVAL * 5)
        file.write_text("[gateway]\nwindw = 20\nmodee = 1\n", encoding="utf-8")
        assert len((await first(changes)).refused) == 2
        file.write_text("[gateway]\nwindow = 20\n", encoding="utf-8")
        assert (await first(changes)).refused == ()
        assert window(reloading) == 20


async def test_an_edit_that_means_nothing_new_is_not_told(reloading: Reloading, file: Path):
    async with aclosing(reloading.changes()) as changes:
        file.write_text("# only a remark\n\n[gateway]\nwindow = 1\n", encoding="utf-8")
        assert await nothing(changes)


async def test_a_fault_that_is_mended_leaves_nothing_to_tell(reloading: Reloading, file: Path):
    async with aclosing(reloading.changes()) as changes:
        file.write_text("[gateway", encoding="utf-8")
        assert (await first(changes)).refused
        file.write_text("[gateway]\nwindow = 1\n", encoding="utf-8")
        assert await nothing(changes)


async def test_a_file_that_is_newly_included_is_watched_from_then_on(reloading: Reloading, file: Path):
    included = file.with_name("mcp.json")
    async with aclosing(reloading.changes()) as changes:
        file.write_text("include = ['mcp.json']\n[gateway]\nwindow = 2\n", encoding="utf-8")
        assert window(await first(changes)) == 2
        included.write_text('{"mcpServers": {"a": {"command": "x"}}}', encoding="utf-8")
        assert [server.name for server in (await first(changes)).loaded.settings.servers] == ["a"]
        included.write_text('{"mcpServers": {"a": {"command": ', encoding="utf-8")
        told = await first(changes)
        assert "is not JSON" in told.refused[0].message
        assert [server.name for server in told.loaded.settings.servers] == ["a"]
        included.unlink()
        assert (await first(changes)).loaded.settings.servers == ()


async def test_a_named_file_that_vanishes_keeps_the_old_settings(reloading: Reloading, file: Path):
    async with aclosing(reloading.changes()) as changes:
        file.unlink()
        told = await first(changes)
        assert window(told) == 1
        assert "does not exist" in told.refused[0].message
