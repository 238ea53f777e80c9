"""The cache of first answers: what an entry is found by, what makes it untrue, and what is never read."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ullage import start_cache
from ullage.config.config_file import project_folders
from ullage.start_cache import (
    Entry,
    Situation,
    cache_folder,
    catalogue_token,
    digest,
    drop_entries,
    file_stamp,
    make_facts,
    make_folder,
    project_walk,
    read_entry,
    renew_catalogue,
    write_entry,
)

pytestmark = pytest.mark.requirement("U:start")

STORE = "postgresql://me:hunter2hunter2@db/ullage"
ANSWERS = {"versions": ["2025-11-25"], "initialize": {}}


def situation(client: str | None = None, **flags: Any) -> Situation:  # noqa: ANN401
    return Situation(flags, os.environ, str(Path.cwd()), client)


def write(
    here: Situation,
    *files: Path,
    variables: tuple[str, ...] = (),
    clients: tuple[str, ...] = (),
    client_files: dict[str, tuple[str, tuple[str, ...]]] | None = None,
    is_bound: bool = False,
    tools: bytes = b"[]",
):
    """Writes an entry as the gateway does; returns its path."""
    made = make_folder(os.environ)
    assert made is not None
    folder, key = made
    catalogue = digest(key, STORE)
    looked_for = {str(path): file_stamp(str(path)) for path in (*files, *map(Path, here.project_places()))}
    facts = make_facts(
        here,
        key,
        version="1",
        stamps=looked_for,
        judged={path for path in looked_for if "/home/config/" not in path},
        variables=variables,
        client_files=client_files or {},
        is_bound_to_folder=is_bound,
        clients=clients,
        catalogue=(catalogue, catalogue_token(folder, catalogue)),
    )
    write_entry(here, Entry({"facts": facts, "answers": ANSWERS}, tools, tools), key=key, folder=folder)
    return Path(folder) / here.slot(key)


def hit(here: Situation | None = None, version: str = "1") -> bool:
    return read_entry(here or situation(), version=version) is not None


@pytest.fixture
def settings(work: Path) -> Path:
    path = work.parent / "home" / "config" / "ullage" / "ullage.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[gateway]\n", encoding="utf-8")
    return path


def test_an_entry_is_read_as_it_was_written(settings: Path):
    write(situation(), settings, tools=b'[{"name":"x"}]')
    found = read_entry(situation(), version="1")
    assert found is not None
    assert (found.tools, found.answers) == (b'[{"name":"x"}]', ANSWERS)


def test_a_new_folder_finds_the_answers_of_any_other(settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(situation(), settings)
    for name in ("home/projects/new", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        assert hit()


@pytest.mark.parametrize("name", ["ullage.toml", "conf/models.json"])
def test_a_project_file_that_comes_is_noticed(settings: Path, work: Path, name: str):
    write(situation(), settings)
    assert hit()
    (work / name).parent.mkdir(exist_ok=True)
    (work / name).write_text("{}", encoding="utf-8")
    assert not hit()


def test_a_project_file_above_the_working_folder_is_noticed(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    inner = tmp_path / "home" / "repo" / "src"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    write(situation(), settings)
    (inner.parent / "ullage.toml").write_text("", encoding="utf-8")
    assert not hit()
    write(situation(), settings, inner.parent / "ullage.toml")
    assert hit()
    (inner.parent / "ullage.toml").write_text("[gateway]\n", encoding="utf-8")
    assert not hit()


def test_edited_replaced_and_removed_settings_are_noticed(settings: Path):
    record = settings.with_name("record.json")
    write(situation(), settings, record)
    assert hit()
    record.write_text("{}", encoding="utf-8")
    assert not hit()
    record.unlink()
    assert hit()
    settings.with_name("new").write_text("[gateway]\n", encoding="utf-8")
    settings.with_name("new").replace(settings)
    assert not hit()
    write(situation(), settings)
    assert hit()
    settings.unlink()
    assert not hit()


def test_variables_that_settings_name_are_noticed_and_never_written(settings: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("API_TOKEN", "hunter2hunter2")
    path = write(situation(store=STORE), settings, variables=("API_TOKEN", "NOT_SET"))
    here = situation(store=STORE)
    assert hit(here)
    monkeypatch.setenv("OTHER", "x")
    assert hit(here)
    for file in path.parent.iterdir():
        assert b"hunter2" not in file.read_bytes()
        assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("NOT_SET", "")
    assert not hit(here)
    monkeypatch.delenv("NOT_SET")
    monkeypatch.setenv("API_TOKEN", "another")
    assert not hit(here)


@pytest.mark.parametrize("name", ["ULLAGE_MODE", "ULLAGE_ANYTHING", "ORCH_LOG_LEVEL", "XDG_CONFIG_HOME"])
def test_variables_of_ullage_and_of_its_places_are_part_of_the_key(
    settings: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    write(situation(), settings)
    monkeypatch.setenv(name, "/other")
    assert not hit()


def test_marks_on_child_processes_are_not(settings: Path, monkeypatch: pytest.MonkeyPatch):
    write(situation(), settings)
    monkeypatch.setenv("ULLAGE_OWNER", "12:34")
    assert hit()


def test_flags_are_part_of_the_key(settings: Path, work: Path):
    write(situation(), settings)
    others: list[dict[str, Any]] = [
        {"mode": "search"}, {"sample": True}, {"store": "sqlite:///x.db"}, {"config": "a.toml"},
    ]  # fmt: skip
    for flags in others:
        assert not hit(situation(**flags))
    write(situation(config="a.toml", include=["b.json"]), settings)
    assert hit(situation(config=str(work / "a.toml"), include=[str(work / "b.json")]))


def test_a_relative_file_named_by_a_variable_is_another_in_another_folder(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ULLAGE_CONFIG", "mine.toml")
    write(situation(), settings)
    assert hit()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert not hit()


def test_a_client_without_a_profile_gets_what_a_nameless_one_gets(settings: Path):
    write(situation(), settings, clients=("codex",))
    assert hit(situation("claude"))
    assert not hit(situation("codex"))
    write(situation("codex"), settings, clients=("codex",))
    assert hit(situation("codex"))
    settings.write_text("", encoding="utf-8")
    write(situation(), settings)
    assert hit(situation("codex"))


def test_another_version_or_installation_is_noticed(settings: Path, monkeypatch: pytest.MonkeyPatch):
    write(situation(), settings)
    assert not hit(version="2")
    monkeypatch.setattr(start_cache, "package_stamp", lambda: ["installed anew"])
    assert not hit()


def test_a_changed_catalogue_is_noticed(settings: Path):
    write(situation(), settings)
    renew_catalogue(os.environ, "sqlite:///another.db")
    assert hit()
    renew_catalogue(os.environ, STORE)
    assert not hit()
    write(situation(), settings)
    assert hit()
    drop_entries(os.environ)
    assert not hit()


def test_settings_that_name_the_working_folder_are_bound_to_it(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(situation(), settings, is_bound=True)
    assert hit()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert not hit()


def test_an_included_file_that_becomes_part_of_a_project_is_noticed(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    included = tmp_path / "home" / "tools" / "servers.json"
    included.parent.mkdir()
    included.write_text("{}", encoding="utf-8")
    write(situation(), settings, included)
    assert hit()
    (included.parent / ".git").mkdir()
    assert not hit()
    (included.parent / ".git").rmdir()
    monkeypatch.chdir(included.parent)
    assert not hit()


def test_counters_in_another_programs_file_change_nothing_and_its_servers_do(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "home" / ".claude.json"
    own, other = str(tmp_path / "home" / "own"), str(tmp_path / "home" / "other")
    document: dict[str, Any] = {
        "numStartups": 1,
        "mcpServers": {"a": {"command": "a"}},
        "projects": {own: {"mcpServers": {"b": {"command": "b"}}}, other: {"mcpServers": {}, "history": []}},
    }
    file.write_text(json.dumps(document), encoding="utf-8")
    parts = start_cache.parts_text(document, situation().folders)
    folders = tuple(start_cache.relevant_folders(document))
    assert folders == (own,)
    write(situation(), settings, file, client_files={str(file): (parts, folders)})
    assert hit()
    document["numStartups"] = 2
    document["projects"][other]["history"] = ["hello"]
    file.write_text(json.dumps(document), encoding="utf-8")
    assert hit()
    for folder, expected in ((other, True), (own, False)):
        Path(folder).mkdir()
        monkeypatch.chdir(folder)
        assert hit() is expected
    monkeypatch.chdir(tmp_path)
    document["mcpServers"]["a"]["command"] = "changed"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert not hit()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes().replace(b"[]", b"[1]")),
        lambda path: path.chmod(0o644),
        lambda path: path.with_name("key").write_bytes(os.urandom(32)),
        lambda path: path.with_name("key").chmod(0o640),
        lambda path: path.parent.chmod(0o755),
        lambda path: path.replace(path.with_name("x")) and path.symlink_to("x"),
        lambda path: path.unlink() or os.mkfifo(path, 0o600),
        lambda path: os.truncate(path, 17 * 1024 * 1024),
    ],
)
def test_what_is_damaged_planted_or_open_to_others_is_ignored(settings: Path, damage: Any):  # noqa: ANN401
    path = write(situation(), settings)
    assert hit()
    damage(path)
    assert not hit()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_what_another_user_owns_is_ignored(settings: Path):
    path = write(situation(), settings)
    os.chown(path, 12345, -1)
    assert not hit()
    os.chown(path, 0, -1)
    os.chown(path.parent, 12345, -1)
    assert not hit()


def test_a_cache_inside_the_project_is_not_used(settings: Path, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(work / "state"))
    write(situation(), settings)
    assert not hit()


def test_there_is_no_cache_without_a_home(monkeypatch: pytest.MonkeyPatch):
    assert cache_folder({}) is None
    assert cache_folder({"HOME": "relative"}) is None
    assert cache_folder({"HOME": "/home/me", "XDG_STATE_HOME": "relative"}) == "/home/me/.local/state/ullage/start"


def test_the_number_of_entries_is_bounded(settings: Path):
    paths = [write(situation(f"client {number}", model=str(number)), settings) for number in range(70)]
    assert len([one for one in paths[0].parent.iterdir() if one.suffix == ".entry"]) == 64
    assert hit(situation("client 69", model="69"))
    assert not hit(situation("client 0", model="0"))


WRITING = """
import os, sys
sys.path.insert(0, {tests!r})
from start.test_cache import situation, write
here = situation()
print("ready", flush=True)
while True:
    write(here, tools=b"[" + b" " * 3_000_000 + b"]")
"""


def test_a_writer_that_is_killed_leaves_a_whole_entry_or_none(settings: Path):
    tests = str(Path(__file__).parent.parent)
    for pause in (0.0, 0.003, 0.01):
        writer = subprocess.Popen([sys.executable, "-c", WRITING.format(tests=tests)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.05 + pause)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        found = read_entry(situation(), version="1")
        assert found is None or len(found.tools) == 3_000_002


def test_the_walk_ends_at_the_repository_or_the_home_folder(tmp_path: Path):
    home = tmp_path / "home"
    for name in ("home/a/b/c", "outside/x/y", "repo/.git", "repo/in/side"):
        (tmp_path / name).mkdir(parents=True)
    (home / "a" / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    walks = {
        "home": ["home"],
        "home/a": ["home/a"],
        "home/a/b/c": ["home/a/b/c", "home/a/b", "home/a"],
        "home/d": ["home/d", "home"],
        "outside": ["outside"],
        "outside/x/y": ["outside/x/y"],
        "repo": ["repo"],
        "repo/in/side": ["repo/in/side", "repo/in", "repo"],
    }
    for name, walk in walks.items():
        found = project_walk(str(tmp_path / name), str(home))
        assert found == [str(tmp_path / one) for one in walk]
        assert [str(one) for one in project_folders(tmp_path / name, home)] == found


def test_rules_on_the_clients_command_line_have_an_entry_of_their_own(tmp_path: Path):
    here = situation()
    write(here, tmp_path / "none.toml")
    assert read_entry(here, version="1") is not None
    denied = situation(client_rules={"deny": ["files__*"]})
    assert read_entry(denied, version="1") is None
    write(denied, tmp_path / "none.toml", tools=b'["other"]')
    assert read_entry(situation(client_rules={"deny": ["mail__*"]}), version="1") is None
    assert read_entry(here, version="1") is not None
