import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.databases import ENGINES, fresh_place, opened
from ullage.errors import StoreFailed, UnknownHandle
from ullage.gateway.results.held_result import Held, Part, pack, read_shapes, survey, unpack, write_shapes
from ullage.gateway.results.result_store import DatabaseResultStore, MemoryResultStore, NotStored, Vault
from ullage.store import Database
from ullage.tokens import drain

pytestmark = pytest.mark.requirement("U:budget")

START = datetime(2026, 11, 15, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def part(text: str, label: str = "") -> Part:
    return Part(text=text, layout=drain(survey(text)), label=label)


def held(*texts: str, principal: str = "ada") -> Held:
    return Held(principal=principal, server="shop", tool="toy", parts=tuple(map(part, texts)))


def lines(number: int) -> str:
    return "\n".join(f"line {one} of a long text" for one in range(number))


@pytest.fixture(params=("memory", *ENGINES))
def database(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "memory":
        yield None
        return
    with fresh_place(request.param, tmp_path) as place, opened(place) as one:
        yield one


@pytest.mark.requirement("U:budget")
def test_what_was_kept_is_read_from_any_unit_on(database: Database | None):
    vault = Vault(database)
    records = json.dumps({"total": 2, "items": [{"id": one, "half": "\ud800"} for one in range(9_000)], "next": "x"})
    kept = vault.open(vault.keep(held(lines(9_000), records)), "ada")
    first, second = kept.shapes
    assert (first.units, second.units, kept.units) == (9_000, 9_000, 18_000)
    assert (second.path, second.first, second.kind) == (("items",), 9_000, "records")
    for start in (0, 1, 2_500, 8_999):
        number, unit = next(kept.read(first, start))
        assert (number, unit) == (start, f"line {start} of a long text")
        number, unit = next(kept.read(second, 9_000 + start))
        assert (number, json.loads(unit)["id"]) == (9_000 + start, start)
    assert [unit for _, unit in kept.read(first, 0)] == lines(9_000).split("\n")
    assert list(kept.read(first, 9_000)) == []
    assert kept.text(first) == lines(9_000)
    assert kept.text(second) == records
    assert kept.around(second) == ('{"total": 2, "items": [', '], "next": "x"}')
    assert len(range(first.start, first.start + first.body)) > 1


@pytest.mark.requirement("U:budget")
def test_a_handle_belongs_to_its_principal_and_cannot_be_guessed(database: Database | None):
    vault = Vault(database)
    handles = {vault.keep(held("a\nb", principal="ada\0")) for _ in range(3)}
    assert len(handles) == 3
    handle = handles.pop()
    assert handle[0] == "r"
    assert len(handle) == 19
    assert vault.open(handle, "ada\0").header.tool == "toy"
    for stranger in ("bob", "ada", ""):
        with pytest.raises(UnknownHandle) as other:
            vault.open(handle, stranger)
        with pytest.raises(UnknownHandle) as none:
            vault.open("r0", stranger)
        assert other.value.suggestion == none.value.suggestion
        assert other.value.message.replace(handle, "r0") == none.value.message


def test_a_result_is_let_go_when_it_is_old(database: Database | None):
    clock = Clock()
    vault = Vault(database, age=60.0, now=clock)
    handle = vault.keep(held("a\nb"))
    clock.now += timedelta(seconds=59)
    kept = vault.open(handle, "ada")
    clock.now += timedelta(seconds=2)
    with pytest.raises(UnknownHandle) as caught:
        vault.open(handle, "ada")
    assert "call the tool again" in caught.value.suggestion
    vault.keep(held("c"))
    with pytest.raises(UnknownHandle):
        kept.text(kept.shapes[0])


def test_the_oldest_are_let_go_where_there_is_no_room(database: Database | None):
    clock = Clock()
    vault = Vault(database, size=100_000, now=clock)
    handles = list[str]()
    for number in range(12):
        clock.now += timedelta(seconds=1)
        handles.append(vault.keep(held("".join(f"{number} {one * one % 9973} " for one in range(9_000)))))

    def is_there(handle: str) -> bool:
        try:
            return vault.open(handle, "ada").units > 0
        except UnknownHandle:
            return False

    there = list(map(is_there, handles))
    assert there[-1]
    assert not there[0]
    assert there == sorted(there)


def test_what_is_larger_than_all_may_be_is_not_kept(database: Database | None):
    with pytest.raises(NotStored):
        Vault(database, size=10).keep(held("a\nb"))


@pytest.mark.requirement("U:budget")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_handle_survives_a_restart(engine: str, tmp_path: Path):
    with fresh_place(engine, tmp_path) as place:
        with opened(place) as database:
            handle = Vault(database).keep(held(lines(50)))
        with opened(place) as database:
            kept = Vault(database).open(handle, "ada")
            assert kept.text(kept.shapes[0]) == lines(50)


def test_a_database_that_cannot_be_read_is_said_to_be_the_reason(tmp_path: Path):
    with opened(str(tmp_path / "ullage.db")) as database:
        vault = Vault(database)
        handle = vault.keep(held("a"))
        database.write(lambda connection: connection.execute("ALTER TABLE ullage_results RENAME TO gone"))
        with pytest.raises(StoreFailed):
            vault.open(handle, "ada")


def test_a_shelf_that_has_nothing_says_so(tmp_path: Path):
    with opened(str(tmp_path / "ullage.db")) as database:
        for shelf in (MemoryResultStore(), DatabaseResultStore(database)):
            assert shelf.header("r1") is None
            assert shelf.piece("r1", 0) is None
            assert shelf.position("r1", range(3, 9), 5) == 3


@given(st.text(alphabet='ab \n",{}[]:1é\ud800', max_size=400))
def test_packing_loses_nothing(text: str):
    one = part(text)
    shapes, pieces = pack([one])
    assert "".join(unpack(piece)[0] for piece in pieces) == text
    units = [unit for piece in pieces for unit in unpack(piece)[1]]
    assert units == [text[slice(*one.layout.span(unit))] for unit in range(len(one.layout))]
    assert read_shapes(write_shapes(shapes)) == shapes
