import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from retrieve.retrievers import grown
from ullage.errors import InvalidArguments
from ullage.retrieve import Bounds, FolderRetriever, Place, Query, RetrieveSettings
from ullage.retrieve.folder_files import Walk, roots_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S4:more")]

HAY = "nothing of note here, only hay"
NEEDLE = "the needle lies here"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def settings(
    *folders: Path,
    files: tuple[Path, ...] = (),
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    gitignore: bool = True,
    max_file_bytes: int = 1_000,
    bounds: Bounds | None = None,
) -> RetrieveSettings:
    return RetrieveSettings(
        name="notes",
        folders=folders,
        files=files,
        include=include,
        exclude=exclude,
        gitignore=gitignore,
        max_file_bytes=max_file_bytes,
        bounds=bounds or Bounds(),
    )


async def paths(retriever: FolderRetriever, query: str = "needle", path: str | None = None) -> list[str]:
    return sorted(place.path for place in (await retriever.search(Query(text=query, path=path))).places)


async def found(chosen: RetrieveSettings, query: str = "needle") -> list[str]:
    return await paths(FolderRetriever(chosen), query)


async def test_the_nearest_passage_comes_first_and_is_read_as_it_stands(tmp_path: Path):
    grown(
        tmp_path, {"a.md": f"# Hay\n\n{HAY}\n", "b/c.md": f"# Needles\n\n{NEEDLE}\n", "d.md": f"{HAY} a needle {HAY}"}
    )
    retriever = FolderRetriever(settings(tmp_path))
    result = await retriever.search(Query(text="where is the needle"))
    assert result.places[0] == Place(path="b/c.md", first=1, last=3)
    assert result.notes == ()
    (passage,) = await retriever.read(result.places[:1])
    assert passage.lines == ("# Needles", "", NEEDLE)


async def test_a_search_can_be_held_to_a_file_a_folder_or_a_pattern(tmp_path: Path):
    grown(tmp_path, dict.fromkeys(("a.md", "b/c.md", "b/d.py", "e/b.txt"), NEEDLE))
    retriever = FolderRetriever(settings(tmp_path))
    assert await paths(retriever, path="b") == ["b/c.md", "b/d.py"]
    assert await paths(retriever, path="./b/c.md") == ["b/c.md"]
    assert await paths(retriever, path="*.md") == ["a.md", "b/c.md"]
    assert await paths(retriever, "absent", path="b") == []
    with pytest.raises(InvalidArguments, match="no text that is searched lies in `f`") as caught:
        await paths(retriever, path="f")
    assert caught.value.options == ("a.md", "b", "e")


@pytest.mark.parametrize("path", ["..", "b/../../etc", "/etc/passwd", "~/x", "", ".", "!b", "#x", "b\\..\\.."])
async def test_a_path_that_leads_out_of_the_folders_is_refused(tmp_path: Path, path: str):
    retriever = FolderRetriever(settings(grown(tmp_path, {"a.md": NEEDLE})))
    with pytest.raises(InvalidArguments, match="no path in the folders"):
        await paths(retriever, path=path)


async def test_secrets_and_machinery_are_not_searched(tmp_path: Path):
    names = (
        ".env",
        ".ENV.local",
        "prod.env",
        "key.pem",
        "id_rsa",
        "id_rsa.pub",
        "x/ID_ED25519",
        ".git/config",
        ".netrc",
    )
    more = (
        "node_modules/a/b.js",
        ".aws/config",
        "x/credentials.json",
        "sub/.git",
        "__pycache__/a.txt",
        "terraform.tfvars",
    )
    grown(tmp_path, dict.fromkeys((*names, *more, "a.md", ".env.example"), NEEDLE))
    assert await found(settings(tmp_path)) == [".env.example", "a.md"]


async def test_the_user_can_take_an_exclusion_back_and_a_folder_cannot(tmp_path: Path):
    grown(tmp_path, {"id_rsa.md": NEEDLE, ".env": NEEDLE, "b.md": NEEDLE, ".gitignore": "!.env\n!*\n"})
    assert await found(settings(tmp_path, exclude=("!id_rsa.md", "b.md"))) == ["id_rsa.md"]


async def test_what_a_gitignore_names_is_not_searched(tmp_path: Path):
    grown(
        tmp_path,
        {
            ".gitignore": "*.log\n/build/\n!keep.log\n",
            "sub/.gitignore": "own.md\n!b.log\n",
            **dict.fromkeys(
                ("a.log", "keep.log", "build/x.md", "sub/build/x.md", "sub/own.md", "sub/b.log", "own.md"), NEEDLE
            ),
        },
    )
    assert await found(settings(tmp_path)) == ["keep.log", "own.md", "sub/b.log", "sub/build/x.md"]
    assert len(await found(settings(tmp_path, gitignore=False))) == 7


async def test_a_gitignore_that_cannot_be_read_is_none(tmp_path: Path):
    grown(tmp_path, {"a.md": NEEDLE, "b/c.md": NEEDLE})
    (tmp_path / ".gitignore").mkdir()
    (tmp_path / "b/.gitignore").write_bytes(b"\0*\n")
    assert await found(settings(tmp_path)) == ["a.md", "b/c.md"]


async def test_only_what_is_included_is_searched(tmp_path: Path):
    grown(tmp_path, dict.fromkeys(("a.md", "b.py", "docs/c.txt", "src/d.MD"), NEEDLE))
    assert await found(settings(tmp_path, include=("*.md", "docs/"))) == ["a.md", "docs/c.txt", "src/d.MD"]


async def test_several_folders_are_told_apart_by_their_names(tmp_path: Path):
    grown(tmp_path, {"x/docs/a.md": NEEDLE, "y/docs/a.md": NEEDLE, "z/b.md": NEEDLE})
    chosen = settings(tmp_path / "x/docs", tmp_path / "y/docs", tmp_path / "y/docs", files=(tmp_path / "z/b.md",))
    retriever = FolderRetriever(chosen)
    assert await paths(retriever) == ["docs-2/a.md", "docs/a.md", "z/b.md"]
    (passage,) = await retriever.read((Place(path="docs-2/a.md", first=1, last=1),))
    assert passage.lines == (NEEDLE,)


async def test_a_file_that_is_named_is_searched_whatever_its_name_and_its_neighbours_are_not(tmp_path: Path):
    grown(tmp_path, {"notes.key": NEEDLE, "other.md": NEEDLE})
    (tmp_path / "link.md").symlink_to(tmp_path / "notes.key")
    assert await found(settings(files=(tmp_path / "link.md", tmp_path / "notes.key"))) == ["notes.key"]


async def test_what_is_not_there_is_said(tmp_path: Path):
    grown(tmp_path, {"here/a.md": NEEDLE})
    chosen = settings(tmp_path / "here", tmp_path / "gone", files=(tmp_path / "lost.md",))
    result = await FolderRetriever(chosen).search(Query(text="needle"))
    assert [place.path for place in result.places] == ["here/a.md"]
    assert result.notes == ("cannot be read: gone, lost.md",)


async def test_no_link_leads_out_of_a_folder(tmp_path: Path):
    grown(tmp_path, {"outside/secret.md": NEEDLE, "in/a.md": NEEDLE})
    folder = tmp_path / "in"
    (folder / "folder").symlink_to(tmp_path / "outside")
    (folder / "file.md").symlink_to(tmp_path / "outside/secret.md")
    (folder / "round").symlink_to(folder)
    (folder / "broken").symlink_to(tmp_path / "absent")
    assert await found(settings(folder)) == ["a.md"]


async def test_a_file_that_becomes_a_link_is_not_read_any_more(tmp_path: Path):
    grown(tmp_path, {"outside/secret.md": NEEDLE, "in/a.md": NEEDLE, "in/b/c.md": NEEDLE})
    retriever = FolderRetriever(settings(tmp_path / "in"))
    places = (await retriever.search(Query(text="needle"))).places
    assert len(places) == 2
    (tmp_path / "in/a.md").unlink()
    (tmp_path / "in/a.md").symlink_to(tmp_path / "outside/secret.md")
    (tmp_path / "in/b/c.md").unlink()
    (tmp_path / "in/b").rmdir()
    (tmp_path / "in/b").symlink_to(tmp_path / "outside")
    assert await retriever.read((*places, Place(path="../outside/secret.md", first=1, last=1))) == ()


async def test_pipes_odd_names_and_binary_files_are_passed_over(tmp_path: Path):
    grown(tmp_path, {"a.md": NEEDLE, "image.md": b"\0" + NEEDLE.encode(), "empty.md": "", "blank.md": "\n \n"})
    os.mkfifo(tmp_path / "pipe.md")
    for name in (b"line\nbreak.md", b"turned\xe2\x80\xae.md", b"no text\xff.md"):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_text(NEEDLE)
    assert await found(settings(tmp_path)) == ["a.md"]


async def test_what_vanishes_during_a_walk_is_passed_over(tmp_path: Path):
    grown(tmp_path, {"a.md": NEEDLE, "b.md": NEEDLE, "c/d.md": NEEDLE})
    chosen = settings(tmp_path)
    walk = Walk(chosen, roots_of(chosen))
    files = walk.files()
    assert next(files) is None
    (tmp_path / "b.md").unlink()
    (tmp_path / "c/d.md").unlink()
    (tmp_path / "c").rmdir()
    assert [file.path for file in files if file is not None] == ["a.md"]
    assert walk.missing == []


async def test_odd_encodings_and_long_lines_are_searched(tmp_path: Path):
    grown(tmp_path, {"a.md": NEEDLE.encode("utf-16"), "b.md": b"caf\xe9 needle", "c.md": "needle " + "x" * 900})
    assert await found(settings(tmp_path)) == ["a.md", "b.md", "c.md"]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read everything")
async def test_a_file_that_may_not_be_read_is_passed_over(tmp_path: Path):
    grown(tmp_path, {"a.md": NEEDLE, "b.md": NEEDLE, "c/d.md": NEEDLE})
    (tmp_path / "b.md").chmod(0)
    (tmp_path / "c").chmod(0)
    assert await found(settings(tmp_path)) == ["a.md"]


async def test_what_changed_is_known_at_the_next_search(tmp_path: Path):
    grown(tmp_path, {"a.md": NEEDLE, "b.md": HAY, "c.md": NEEDLE})
    retriever = FolderRetriever(settings(tmp_path), pace=0.0, clock=Clock())
    assert await paths(retriever) == ["a.md", "c.md"]
    grown(tmp_path, {"b.md": f"{NEEDLE} too", "d/e.md": NEEDLE})
    (tmp_path / "a.md").unlink()
    assert await paths(retriever) == ["b.md", "c.md", "d/e.md"]


async def test_folders_are_not_looked_at_again_within_a_moment(tmp_path: Path):
    clock = Clock()
    grown(tmp_path, {"a.md": NEEDLE})
    retriever = FolderRetriever(settings(tmp_path), pace=2.0, clock=clock)
    assert await paths(retriever) == ["a.md"]
    grown(tmp_path, {"b.md": NEEDLE})
    clock.now = 1.9
    assert await paths(retriever) == ["a.md"]
    clock.now = 2.1
    assert await paths(retriever) == ["a.md", "b.md"]


async def test_a_large_folder_is_read_in_several_goes_and_that_is_said(tmp_path: Path):
    grown(tmp_path, {f"{number:02}.md": NEEDLE for number in range(30)})
    retriever = FolderRetriever(settings(tmp_path), patience=40.0, clock=map(float, range(10_000)).__next__)
    first = await retriever.search(Query(text="needle", path="absent.md"))
    assert first.places == ()
    assert first.notes[0].startswith("the folders are still being read, ")
    second = await retriever.search(Query(text="needle"))
    assert len(second.places) == 30
    assert second.notes == ()


async def test_a_deadline_is_kept(tmp_path: Path):
    grown(tmp_path, {f"{number:02}.md": NEEDLE for number in range(30)})
    retriever = FolderRetriever(settings(tmp_path))
    result = await retriever.search(Query(text="needle", deadline=anyio.current_time()))
    assert result.places == ()
    assert "still being read" in result.notes[0]
    assert len((await retriever.search(Query(text="needle"))).places) == 30


async def test_a_search_that_is_cancelled_ends_and_the_next_goes_on(tmp_path: Path):
    grown(tmp_path, {f"{number:02}.md": NEEDLE for number in range(30)})
    scope = anyio.CancelScope()

    def ticking() -> Iterator[float]:
        yield from (0.0, 0.0, 0.0)
        anyio.from_thread.run_sync(scope.cancel)
        while True:
            yield 0.0

    retriever = FolderRetriever(settings(tmp_path), clock=ticking().__next__)
    with scope:
        await retriever.search(Query(text="needle"))
    assert scope.cancelled_caught
    assert retriever._collection.files < 30
    assert len(await paths(retriever)) == 30


@pytest.mark.parametrize(
    ("bounds", "held"),
    [
        (Bounds(files=3), ["0.md", "1.md", "2.md"]),
        (Bounds(bytes=2 * len(NEEDLE)), ["0.md", "1.md"]),
        (Bounds(passages=4), ["0.md", "1.md", "2.md", "3.md"]),
        (Bounds(entries=5), None),
    ],
)
async def test_what_is_beyond_a_bound_is_left_out_and_said(tmp_path: Path, bounds: Bounds, held: list[str] | None):
    grown(tmp_path, {f"{number}.md": NEEDLE for number in range(9)})
    retriever = FolderRetriever(settings(tmp_path, bounds=bounds), pace=0.0)
    result = await retriever.search(Query(text="needle"))
    names = sorted(place.path for place in result.places)
    assert names == held if held else len(names) == 5
    (note,) = result.notes
    assert note.startswith("at least ")
    assert " files are left out: " in note


async def test_room_that_is_freed_is_used(tmp_path: Path):
    grown(tmp_path, {f"{number}.md": NEEDLE for number in range(3)})
    retriever = FolderRetriever(settings(tmp_path, bounds=Bounds(passages=2)), pace=0.0, clock=Clock())
    assert await paths(retriever) == ["0.md", "1.md"]
    (tmp_path / "0.md").unlink()
    assert await paths(retriever) == ["1.md", "2.md"]
    assert (await retriever.search(Query(text="needle"))).notes == ()


async def test_a_large_file_is_left_out_and_said_until_it_is_small(tmp_path: Path):
    grown(tmp_path, {"a.md": NEEDLE, "large.md": "needle " * 1_000, "large.bin": b"\0" * 5_000})
    retriever = FolderRetriever(settings(tmp_path), pace=0.0, clock=Clock())
    result = await retriever.search(Query(text="needle"))
    assert [place.path for place in result.places] == ["a.md"]
    assert result.notes == ("1 files of more than 1000 bytes are left out",)
    grown(tmp_path, {"large.md": NEEDLE})
    assert await paths(retriever) == ["a.md", "large.md"]


async def test_a_place_that_grew_short_is_cited_as_long_as_it_is(tmp_path: Path):
    grown(tmp_path, {"a.md": "one\ntwo\nneedle\n", "b.md": "needle\n"})
    retriever = FolderRetriever(settings(tmp_path))
    await retriever.search(Query(text="needle"))
    grown(tmp_path, {"a.md": "one\n"})
    (tmp_path / "b.md").unlink()
    places = (
        Place(path="a.md", first=1, last=3),
        Place(path="a.md", first=3, last=3),
        Place(path="b.md", first=1, last=1),
    )
    assert [passage.place.citation for passage in await retriever.read(places)] == ["a.md:1-1"]


async def test_what_shares_little_with_the_query_is_not_found(tmp_path: Path):
    grown(tmp_path, {"a.md": "the zeppelin hangar", **{f"{number}.md": f"the hay {number}" for number in range(9)}})
    assert await found(settings(tmp_path), "the zeppelin") == ["a.md"]


async def test_equal_passages_come_in_the_order_of_their_citations(tmp_path: Path):
    grown(tmp_path, {"b.md": NEEDLE, "c.md": NEEDLE})
    retriever = FolderRetriever(settings(tmp_path), pace=0.0, clock=Clock())
    await paths(retriever)
    grown(tmp_path, {"a.md": NEEDLE, "b.md": f"{NEEDLE} "})
    places = (await retriever.search(Query(text="needle"))).places
    assert [place.path for place in places] == ["a.md", "b.md", "c.md"]


async def test_searches_at_the_same_time_do_not_disturb_one_another(tmp_path: Path):
    grown(tmp_path, {f"{number:02}.md": f"{NEEDLE} {number}" for number in range(40)})
    retriever = FolderRetriever(settings(tmp_path), pace=0.0)
    seen: list[int] = []

    async def one() -> None:
        seen.append(len((await retriever.search(Query(text="needle"))).places))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(one)
    assert seen == [40] * 8


async def test_a_question_finds_the_section_that_answers_it():
    docs = Path(__file__).parent.parent.parent / "docs"
    retriever = FolderRetriever(RetrieveSettings(name="docs", folders=(docs,), include=("*.md",)))
    for question, page in {
        "how do I give an agent a PostgreSQL database": "sql.md",
        "mask a column with passwords": "sql.md",
        "how sure is a count": "counting.md",
        "read more of a result that was cut": "results.md",
    }.items():
        places = (await retriever.search(Query(text=question))).places
        assert page in [place.path for place in places[:3]], question
