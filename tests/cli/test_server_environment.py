"""What a server gets of the environment of the real command, and what a person is told of the rest."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from approving import approve
from ullage.gateway import Server
from ullage.store import MIGRATIONS, Database
from ullage.store.migrations import pending_notices
from upstreams import scripted, tool, users_file, write_json, write_toml

pytestmark = pytest.mark.requirement("U:env")

CANARY = "CANARY_API_KEY"
SECRET = "canary-value-of-nobody"
SURROUNDINGS = {
    CANARY: SECRET,
    "HTTPS_PROXY": "http://ada:proxy-password@127.0.0.1:9",
    "no_proxy": "localhost",
    "NODE_EXTRA_CA_CERTS": "/ca.pem",
    "LC_ALL": "C.UTF-8",
}
DUMPED = 'env > "$0"; exec "$@"'


def dumping(work: Path, **more) -> tuple[dict, Path]:
    """A server that writes its environment into a file before it answers."""
    dump = work / "environment"
    started = scripted(tool("echo"))
    words = ["-c", DUMPED, str(dump), started["command"], *started["args"]]
    return {"command": "sh", "args": words, **more}, dump


def ullage(*words: str, environment: dict[str, str] | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    given = {**os.environ, **(SURROUNDINGS if environment is None else environment)}
    return subprocess.run(
        [sys.executable, "-m", "ullage", *words], capture_output=True, text=True, check=False, env=given, input=stdin
    )


def dumped(dump: Path) -> dict[str, str]:
    lines = dump.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
TALK = "\n".join(
    json.dumps({"jsonrpc": "2.0", **message})
    for message in (
        {"id": 1, "method": "initialize", "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "notes__echo", "arguments": {"text": "hi"}}},
    )
)


@pytest.mark.requirement("U:env")
@pytest.mark.parametrize(
    "words",
    [
        ("call", "notes__echo", '{"text": "hi"}'),
        ("find", "echo"),
        ("tools",),
        ("doctor",),
        ("serve", "--mode", "direct"),
    ],
    ids=lambda words: words[0],
)
def test_a_key_in_the_environment_reaches_no_server(work: Path, words: tuple[str, ...]):
    entry, dump = dumping(work)
    write_toml(users_file(work.parent), notes=entry)
    done = ullage(*words, stdin=f"{TALK}\n" if words[0] == "serve" else "")
    given = dumped(dump)
    assert CANARY not in given
    assert given["PATH"] == os.environ["PATH"]
    assert {name: given[name] for name in SURROUNDINGS if name != CANARY} == {
        name: value for name, value in SURROUNDINGS.items() if name != CANARY
    }
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.requirement("U:env")
@pytest.mark.parametrize("more", [True, [CANARY], ["CANARY_*"], ["*"]], ids=str)
def test_inherit_env_gives_a_server_what_it_names(work: Path, more: object):
    entry, dump = dumping(work, inherit_env=more)
    write_toml(users_file(work.parent), notes=entry)
    assert ullage("call", "notes__echo", '{"text": "hi"}').returncode == 0
    assert dumped(dump)[CANARY] == SECRET


@pytest.mark.requirement("U:env")
def test_what_an_entry_sets_reaches_the_server_and_wins(work: Path):
    env = {"CANARY_COPY": f"${{{CANARY}}}", "LC_ALL": "C"}
    entry, dump = dumping(work, env=env, inherit_env=["LC_ALL"])
    write_toml(users_file(work.parent), notes=entry)
    assert ullage("call", "notes__echo", '{"text": "hi"}').returncode == 0
    given = dumped(dump)
    assert (given["CANARY_COPY"], given["LC_ALL"], CANARY in given) == (SECRET, "C", False)


def test_codex_names_variables_that_its_servers_get(work: Path):
    entry, dump = dumping(work)
    lines = ["[mcp_servers.notes]", f"command = {json.dumps(entry['command'])}", f"args = {json.dumps(entry['args'])}"]
    lines.append(f'env_vars = ["{CANARY}", {{ name = "NOBODY_SET_IT" }}]')
    (work / "config.toml").write_text("\n".join(lines), encoding="utf-8")
    approve(work / "config.toml")
    write_toml(users_file(work.parent), f"include = [{json.dumps(str(work / 'config.toml'))}]\n")
    assert ullage("call", "notes__echo", '{"text": "hi"}').returncode == 0
    assert dumped(dump)[CANARY] == SECRET
    assert "NOBODY_SET_IT" not in dumped(dump)


@pytest.mark.requirement("U:env")
def test_doctor_names_what_a_server_does_not_get_with_the_line_to_add(work: Path):
    entry, _ = dumping(work)
    named, _ = dumping(work, inherit_env=[CANARY])
    include = json.dumps(str(write_json(work / "mcp.json", bird=entry)))
    write_toml(users_file(work.parent), f"include = [{include}]\n", canary=entry, other=entry, sorted=named)
    environment = {**SURROUNDINGS, "STRIPE_SECRET": SECRET}
    done = ullage("doctor", environment=environment)
    file = users_file(work.parent)
    assert done.stdout.count("does not get") == 4
    assert (
        f"  note  does not get `{CANARY}` and 1 more; if it needs one, "
        f'add `inherit_env = ["{CANARY}"]` to `[servers.canary]` in {file}\n'
    ) in done.stdout
    assert f'if it needs one, add `inherit_env = ["{CANARY}"]` to `[servers.other]`' in done.stdout
    assert f'add `"env": {{ "{CANARY}": "${{{CANARY}}}" }}` to `[mcpServers.bird]` in ' in done.stdout
    assert SECRET not in done.stdout + done.stderr
    found = {
        one["server"]: one for one in json.loads(ullage("doctor", "--json", environment=environment).stdout)["servers"]
    }
    assert {name: one["withheld_variables"] for name, one in found.items()} == {
        "bird": [CANARY, "STRIPE_SECRET"],
        "canary": [CANARY, "STRIPE_SECRET"],
        "other": [CANARY, "STRIPE_SECRET"],
        "sorted": ["STRIPE_SECRET"],
    }
    assert f'inherit_env = ["{CANARY}"]' in found["canary"]["withheld_hint"]


def test_nothing_is_said_where_nothing_is_missing(work: Path):
    entry, _ = dumping(work)
    write_toml(users_file(work.parent), notes=entry)
    done = ullage("doctor", environment={})
    assert "does not get" not in done.stdout


@pytest.mark.requirement("U:env")
def test_a_server_that_dies_of_a_missing_variable_says_what_to_add(work: Path):
    code = f"import os, sys; sys.exit('Error: {CANARY} is not set')"
    write_toml(users_file(work.parent), notes={"command": sys.executable, "args": ["-c", code]})
    line = (
        f'it names `{CANARY}`, which is set but not given to it: add `inherit_env = ["{CANARY}"]` to `[servers.notes]`'
    )
    assert line in ullage("doctor").stdout
    assert line in ullage("call", "notes__echo", "{}").stderr
    assert line in ullage("find", "echo").stderr
    assert "it names" not in ullage("doctor", environment={}).stdout


def test_a_server_that_dies_in_a_call_says_what_to_add(work: Path):
    code = f"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "tools/call":
        sys.exit("fatal: {CANARY} missing\\n  at main\\n  at start")
    server = {{"name": "x", "version": "1"}}
    result = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}, "serverInfo": server}}
    if message["method"] == "tools/list":
        result = {{"tools": [{{"name": "echo", "inputSchema": {{"type": "object"}}}}]}}
    if "id" in message:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""
    write_toml(users_file(work.parent), notes={"command": sys.executable, "args": ["-c", code]})
    done = ullage("call", "notes__echo", "{}")
    assert f"it names `{CANARY}`, which is set but not given to it" in done.stderr


def test_a_call_that_fails_for_a_missing_variable_is_handed_on_and_the_log_says_what_to_add(work: Path):
    write_toml(users_file(work.parent), notes=scripted(tool("give", inputSchema={"type": "object"})))
    result = {"content": [{"type": "text", "text": f"401: set {CANARY}"}], "isError": True}
    done = ullage("call", "notes__give", json.dumps({"result": result}))
    assert done.returncode == 1
    assert done.stdout == f"401: set {CANARY}\n"
    assert f"ullage: server `notes` failed: it names `{CANARY}`" in done.stderr


@pytest.mark.requirement("U:env")
def test_after_an_upgrade_it_is_said_once_and_on_a_new_machine_never(work: Path):
    write_toml(users_file(work.parent), notes=scripted(tool("echo")))
    store = work.parent / "home" / "data" / "ullage" / "ullage.db"
    said = "servers no longer get every variable of this environment"
    fresh = [ullage("tools"), ullage("tools")]
    assert [said in one.stderr for one in fresh] == [False, False]
    # As the version before left it: with servers, and without the later migrations.
    older = store.with_name("older.db")
    Database.open(older, migrations=MIGRATIONS[: MIGRATIONS.index(pending_notices)]).close()
    with closing(sqlite3.connect(older)) as connection, connection:
        connection.execute("ATTACH ? AS present", (str(store),))
        connection.execute("INSERT INTO main.ullage_servers SELECT * FROM present.ullage_servers")
    for suffix in ("-wal", "-shm"):
        store.with_name(store.name + suffix).unlink(missing_ok=True)
    older.replace(store)
    assert said not in ullage("tools", environment={}).stderr
    upgraded = [ullage("tools"), ullage("tools")]
    assert [said in one.stderr for one in upgraded] == [True, False]
    assert f"`{CANARY}`" in upgraded[0].stderr
    assert SECRET not in upgraded[0].stderr


def test_a_change_of_inherit_env_is_another_server_and_the_default_is_the_one_known_before():
    one = Server(name="a", transport="stdio", command="x")
    assert one.key == "9e725a157bf1923f750290194d287c728f3e09c6d565a8a82eece7826f35c7d8"
    assert Server(name="a", transport="stdio", command="x", inherit_env=("A",)).key != one.key
