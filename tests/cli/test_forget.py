import json
from pathlib import Path

import pytest

from approving import main
from ullage.gateway import StoredUses
from ullage.processes import user_name
from ullage.store import Database
from upstreams import users_file, write_toml

NOW = 4e9
TOOL = ("hub", "merge")


@pytest.fixture
def store(work: Path):
    """With a token in the user's own settings."""
    write_toml(users_file(work.parent), '[http.tokens.phone]\nenv = "PHONE"')
    database = Database.open(work / "ullage.db")
    yield StoredUses(database)
    database.close()


def forget(work: Path, *more: str) -> int:
    return main(["find", "--forget", "--store", f"sqlite:///{work}/ullage.db", *more])


def test_what_was_learnt_is_forgotten_at_a_word(store: StoredUses, work: Path, capsys: pytest.CaptureFixture[str]):
    for principal, term in ((user_name(), "merg"), (user_name(), "pull"), ("phone", "merg"), ("somebody else", "merg")):
        store.add(principal, {term}, TOOL, NOW)
    assert forget(work) == 0
    assert capsys.readouterr().out == "3 uses forgotten.\n"
    assert store.load(user_name(), NOW) == store.load("phone", NOW) == ()
    assert len(store.load("somebody else", NOW)) == 1


def test_where_there_is_nothing_to_forget_that_is_said(work: Path, capsys: pytest.CaptureFixture[str]):
    assert forget(work, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"forgotten": 0, "shapes_forgotten": 0}


def test_forget_refuses_a_query(store: StoredUses, work: Path, capsys: pytest.CaptureFixture[str]):
    store.add(user_name(), {"merg"}, TOOL, NOW)
    assert forget(work, "merge") == 2
    assert "--forget searches for nothing" in capsys.readouterr().err
    assert store.load(user_name(), NOW)


@pytest.mark.requirement("U:errors")
def test_a_store_that_cannot_be_opened_is_an_error_here(work: Path, capsys: pytest.CaptureFixture[str]):
    (work / "ullage.db").write_text("no database")
    assert forget(work, "--json") != 0
    assert json.loads(capsys.readouterr().err)["error_code"] == "STORE_FAILED"


@pytest.mark.requirement("U:errors")
def test_whoever_asks_for_nothing_is_told_how(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["find"]) == 2
    assert "the query is empty" in capsys.readouterr().err
