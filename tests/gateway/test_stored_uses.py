import pytest

from store.databases import in_processes, opened
from ullage.errors import StoreFailed
from ullage.gateway.catalog.index_storage import StoredUses
from ullage.search import Use
from ullage.store import MIGRATIONS, Database

pytestmark = pytest.mark.requirement("S1:hybrid")

DAY = 86_400.0
NOW = 20_000 * DAY
ISSUE = ("github", "create_issue")


@pytest.fixture
def stored(database: Database) -> StoredUses:
    return StoredUses(database)


def test_a_use_is_read_as_it_was_written(stored: StoredUses):
    stored.add("ann", {"issu", "creat"}, ISSUE, NOW)
    assert stored.load("ann", NOW) == (Use(terms=frozenset({"issu", "creat"}), tool=ISSUE, count=1, last=NOW),)


def test_the_same_use_again_is_counted(stored: StoredUses):
    for at in range(3):
        stored.add("ann", ["creat", "issu"] if at else ["issu", "creat"], ISSUE, NOW + at)
    assert stored.load("ann", NOW) == (Use(terms=frozenset({"issu", "creat"}), tool=ISSUE, count=3, last=NOW + 2),)


def test_other_terms_another_tool_and_another_server_are_other_uses(stored: StoredUses):
    stored.add("ann", {"issu"}, ISSUE, NOW)
    stored.add("ann", {"issu", "new"}, ISSUE, NOW)
    stored.add("ann", {"issu"}, ("github", "get_issue"), NOW)
    stored.add("ann", {"issu"}, ("gitlab", "create_issue"), NOW)
    assert [use.count for use in stored.load("ann", NOW)] == [1, 1, 1, 1]


def test_one_principal_has_nothing_of_another(stored: StoredUses):
    stored.add("ann", {"issu"}, ISSUE, NOW)
    assert stored.load("bob", NOW) == ()
    stored.add("bob", {"issu"}, ISSUE, NOW)
    assert stored.forget(["bob"]) == 1
    assert len(stored.load("ann", NOW)) == 1


@pytest.mark.parametrize("strange", ["a\0b", "\ud800", "größe 表", "x" * 5_000, ""])
def test_names_may_be_anything(stored: StoredUses, strange: str):
    stored.add("ann", {"issu"}, (strange, strange), NOW)
    assert stored.load("ann", NOW)[0].tool == (strange, strange)


def test_forgetting_says_how_many_there_were_and_leaves_none(stored: StoredUses):
    for term in ("issu", "branch", "file"):
        stored.add("ann", {term}, ISSUE, NOW)
    stored.add("token-of-ann", {"issu"}, ISSUE, NOW)
    assert stored.forget(["ann", "token-of-ann"]) == 4
    assert stored.load("ann", NOW) == ()
    assert stored.forget(["ann"]) == 0
    stored.add("ann", {"issu"}, ISSUE, NOW)
    assert stored.load("ann", NOW)[0].count == 1, "what was forgotten does not come back with the next use"


def test_the_longest_unused_make_room_for_new_ones(database: Database):
    stored = StoredUses(database, most=3)
    stored.add("bob", {"old"}, ISSUE, NOW - 9)
    for at, term in enumerate(["a", "b", "a", "c", "d"]):
        stored.add("ann", {term}, ISSUE, NOW + at)
    assert [sorted(use.terms) for use in stored.load("ann", NOW)] == [["d"], ["c"], ["a"]]
    assert len(stored.load("bob", NOW)) == 1, "nobody makes room for another"


def test_what_is_half_a_year_old_is_forgotten(stored: StoredUses, database: Database):
    stored.add("ann", {"issu"}, ISSUE, NOW)
    assert stored.load("ann", NOW + 179 * DAY)
    assert stored.load("ann", NOW + 181 * DAY) == ()
    stored.add("bob", {"issu"}, ISSUE, NOW + 181 * DAY)
    rows = database.read(lambda connection: connection.scalar("SELECT count(*) FROM ullage_uses"))
    assert rows == 1, "and is gone from the database with anybody's next use"


def test_a_database_of_an_earlier_version_gets_its_table(place: str):
    with opened(place, migrations=MIGRATIONS[:4]):
        pass
    with opened(place) as database:
        StoredUses(database).add("ann", {"issu"}, ISSUE, NOW)
        assert StoredUses(database).load("ann", NOW)


def test_what_cannot_be_read_is_a_failure_of_the_store(stored: StoredUses, database: Database):
    stored.add("ann", {"issu"}, ISSUE, NOW)
    database.write(lambda connection: connection.execute("UPDATE ullage_uses SET tool = 'no JSON'"))
    with pytest.raises(StoreFailed):
        stored.load("ann", NOW)


def test_two_processes_count_together(place: str):
    with opened(place) as database:
        assert in_processes(_add_ten, [(place,)] * 2) == [None, None]
        assert StoredUses(database).load("ann", NOW)[0].count == 20


def _add_ten(place: str) -> None:
    with opened(place) as database:
        for _ in range(10):
            StoredUses(database).add("ann", {"issu"}, ISSUE, NOW)
