"""`ullage scan`, `ullage` alone, and what `install` makes of what a scan finds."""

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sign_in_server import serve_sign_in

from approving import approve
from ullage.app import count
from ullage.app.install_plan import find_doubled
from ullage.app.scan_servers import approval_of
from ullage.cli import main
from ullage.cli.scan import show_overview
from ullage.clients.configs import (
    PROGRAMS,
    ClientConfig,
    Put,
    ServerEntry,
    current_surroundings,
    edit_content,
    format_definition,
    read_clients,
)
from ullage.config import Places
from ullage.gateway import Server
from ullage.tool import Tool
from upstreams import scripted, tool, users_file

pytestmark = pytest.mark.requirement("U:scan")

ECHO = tool("echo", "Says a text again.")
LONG = tool("long", "Does one thing after another, and tells at length what came of each of them. " * 20)


def code(text: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-c", text]}


def home(work: Path) -> Path:
    return work.parent / "home"


def claude_file(work: Path, **servers: object) -> Path:
    path = home(work) / ".claude.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def gemini_file(work: Path, **servers: object) -> Path:
    path = home(work) / ".gemini" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def scan(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    assert main(["scan", "--json", *words]) == 0
    return {one["client"]: one for one in json.loads(capsys.readouterr().out)["clients"]}


def by_name(client: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["server"]: one for one in client["servers"]}


@pytest.mark.requirement("U:scan")
def test_scan_has_one_row_for_each_server_whatever_it_does(work: Path, capsys: pytest.CaptureFixture[str]):
    good = {f"good{number}": scripted(ECHO, LONG) for number in range(8)}
    flood = "import sys; sys.stderr.write('x' * 20_000_000)\n" + "import runpy; sys.argv = sys.argv[1:]; "
    started = scripted(ECHO)
    with serve_sign_in() as url:
        gemini_file(
            work,
            **good,
            hang=code("import time; time.sleep(600)"),
            crash=code("import sys; sys.exit('no key is set')"),
            flood={
                "command": sys.executable,
                "args": ["-c", flood + "runpy.run_path(sys.argv[0], run_name='__main__')", *started["args"]],
            },
            locked={"httpUrl": url},
        )
        begun = time.monotonic()
        capsys.readouterr()
        assert main(["scan", "--json", "--wait", "12"]) == 0
        shown = capsys.readouterr()
        gemini = next(one for one in json.loads(shown.out)["clients"] if one["client"] == "gemini")
    assert re.search(r"ullage: \d+ of 12 servers answered; waiting for .*hang.* \(\d+ s\)", shown.err)
    assert "xxxx" not in shown.err
    assert time.monotonic() - begun < 30
    servers = by_name(gemini)
    assert len(gemini["servers"]) == len(servers) == 12
    states = {name: one["state"] for name, one in servers.items()}
    assert states == {
        **dict.fromkeys(good, "counted"), "hang": "late", "crash": "failed", "flood": "counted", "locked": "sign-in",
    }  # fmt: skip
    assert "no key is set" in servers["crash"]["reason"]
    assert [one["name"] for one in servers["good0"]["tools"]] == ["long", "echo"]
    assert all(
        one["tokens"] == one["instructions"] + sum(each["tokens"] for each in one["tools"])
        for one in servers.values()
        if one["tools"]
    )
    counted = [one["tokens"] for one in servers.values() if one["state"] == "counted"]
    assert gemini["tokens"]["now"] == sum(counted)
    assert gemini["tokens"]["saved"] == gemini["tokens"]["now"] - gemini["tokens"]["with_ullage"]


@pytest.mark.requirement("U:scan")
def test_scan_counts_with_the_model_of_each_program(work: Path, capsys: pytest.CaptureFixture[str]):
    claude_file(work, fs=scripted(LONG))
    gemini_file(work, fs=scripted(LONG))
    found = scan(capsys)
    description = LONG["description"]
    for client in ("claude", "gemini"):
        (server,) = found[client]["servers"]
        model = found[client]["model"]
        assert found[client]["model_assumed"]
        sent = Tool(name="long", description=description, input_schema=LONG["inputSchema"])
        (cost,) = server["tools"]
        assert cost["tokens"] == count(format_definition(client, "fs", sent), model).tokens
        assert 0 < cost["tokens"] - count(description, model).tokens < 100
        assert server["tokens"] == cost["tokens"] + server["instructions"]
    assert found["claude"]["model"] != found["gemini"]["model"]


@pytest.mark.requirement("U:scan")
def test_savings_go_by_what_a_program_defers_itself(work: Path, capsys: pytest.CaptureFixture[str]):
    tools = [{**LONG, "name": f"long{number}"} for number in range(40)]
    claude_file(work, fs=scripted(*tools))
    (home(work) / ".qwen").mkdir()
    (home(work) / ".qwen" / "settings.json").write_text(json.dumps({"mcpServers": {"fs": scripted(*tools)}}))
    found = scan(capsys)
    claude, qwen = found["claude"], found["qwen"]
    assert claude["defers_tools"]
    assert claude["servers"][0]["tokens"] > 40 * 300
    assert 40 * 5 < claude["tokens"]["now"] < 40 * 20
    assert 40 * 20 < qwen["tokens"]["now"] < 40 * 80
    settings = home(work) / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"env": {"ENABLE_TOOL_SEARCH": "false"}}), encoding="utf-8")
    again = scan(capsys, "claude")["claude"]
    assert again["tokens"]["now"] == again["servers"][0]["tokens"]


@pytest.mark.requirement("U:scan")
def test_tools_that_ullage_lists_directly_are_deferred_as_well(work: Path, capsys: pytest.CaptureFixture[str]):
    claude_file(work, fs=scripted(*({**LONG, "name": f"long{number}"} for number in range(5))))
    claude = scan(capsys)["claude"]
    listed_in_full = claude["servers"][0]["tokens"]
    assert claude["tokens"]["now"] < claude["tokens"]["with_ullage"] < listed_in_full


@pytest.mark.requirement("U:scan")
def test_servers_of_unapproved_project_files_are_pending_and_never_started(
    work: Path, capsys: pytest.CaptureFixture[str]
):
    mark = work / "started"
    evil = code(f"open({str(mark)!r}, 'w')")
    for name in (".mcp.json", ".cursor/mcp.json", ".gemini/settings.json", ".vscode/mcp.json", "opencode.json"):
        (work / name).parent.mkdir(exist_ok=True)
        key = {"vscode": "servers", "opencode": "mcp"}.get(name.split("/")[0].strip(".").split(".")[0], "mcpServers")
        entry = {"type": "local", "command": [evil["command"], *evil["args"]]} if key == "mcp" else evil
        (work / name).write_text(json.dumps({key: {"evil": entry}}), encoding="utf-8")
    (work / ".codex").mkdir()
    words = json.dumps(evil["args"])
    (work / ".codex" / "config.toml").write_text(
        f"[mcp_servers.evil]\ncommand = {json.dumps(evil['command'])}\nargs = {words}\n", encoding="utf-8"
    )
    found = scan(capsys)
    assert {"claude", "cursor", "gemini", "vscode", "opencode", "codex"} <= found.keys()
    for client in found.values():
        (server,) = client["servers"]
        assert (server["state"], server["tools"]) == ("pending", None)
        assert server["command"] == [evil["command"], *evil["args"]]
    assert main(["scan"]) == 0
    said = capsys.readouterr().out
    assert "ullage trust" in said
    assert main(["--json"]) == 0
    for client in found:
        assert main(["install", client, "--yes", "--scope", "all"]) == 0
    assert not mark.exists()
    assert "evil" not in users_file(work.parent).read_text(encoding="utf-8")
    assert all(json.loads((work / ".mcp.json").read_text())["mcpServers"].values())


@pytest.mark.requirement("U:scan")
def test_a_pending_server_at_an_address_is_reported_with_it(work: Path, capsys: pytest.CaptureFixture[str]):
    entry = {"type": "http", "url": "http://127.0.0.1:9/mcp?key=hush"}
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": {"far": entry}}), encoding="utf-8")
    server = by_name(scan(capsys)["claude"])["far"]
    assert (server["state"], server["command"], server["url"]) == ("pending", None, "http://127.0.0.1:9/mcp")


@pytest.mark.requirement("U:scan")
def test_an_approved_project_file_is_scanned(work: Path, capsys: pytest.CaptureFixture[str]):
    path = work / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"fs": scripted(ECHO)}}), encoding="utf-8")
    approve(path)
    assert by_name(scan(capsys)["claude"])["fs"]["state"] == "counted"
    path.write_text(path.read_text() + " ", encoding="utf-8")
    assert by_name(scan(capsys)["claude"])["fs"]["state"] == "pending"


def test_scan_says_what_ullage_saves_where_it_is_installed(work: Path, capsys: pytest.CaptureFixture[str]):
    tools = [{**LONG, "name": f"long{number}"} for number in range(40)]
    gemini_file(work, fs=scripted(*tools))
    before = scan(capsys)["gemini"]["tokens"]
    assert main(["install", "gemini", "--yes"]) == 0
    after = scan(capsys)["gemini"]
    assert after["installed"]
    assert (after["tokens"]["without"], after["tokens"]["now"]) == (before["now"], before["with_ullage"])
    assert main(["scan"]) == 0
    assert "tokens in every request" in capsys.readouterr().out


@pytest.mark.requirement("U:scan")
def test_the_screen_of_ullage_alone_starts_nothing(work: Path, capsys: pytest.CaptureFixture[str]):
    starts = work / "starts"
    gemini_file(work, fs=scripted(ECHO, starts=starts))
    assert main(["--json"]) == 0
    (client,) = json.loads(capsys.readouterr().out)["clients"]
    assert (client["tokens"]["now"], client["servers"][0]["state"]) == (None, "unknown")
    assert not starts.exists()
    scan(capsys)
    begun = starts.read_text(encoding="utf-8")
    assert main(["--json"]) == 0
    (client,) = json.loads(capsys.readouterr().out)["clients"]
    assert client["tokens"]["now"] > 0
    assert starts.read_text(encoding="utf-8") == begun


@pytest.mark.requirement("U:scan")
def test_the_screen_shows_what_the_scan_counted(work: Path, capsys: pytest.CaptureFixture[str]):
    only_as_task = {**tool("render", "Renders a film."), "execution": {"taskSupport": "required"}}
    claude_file(work, fs=scripted(ECHO, LONG, only_as_task))
    gemini_file(work, fs={**scripted(ECHO, LONG, only_as_task), "timeout": 900_000, "excludeTools": ["long"]})
    scanned = {name: one["tokens"]["now"] for name, one in scan(capsys).items()}
    assert "render" in [one["name"] for one in by_name(scan(capsys, "claude")["claude"])["fs"]["tools"]]

    def shown() -> dict[str, int]:
        capsys.readouterr()
        assert main(["--json"]) == 0
        clients = json.loads(capsys.readouterr().out)["clients"]
        return {one["client"]: one["tokens"]["without"] for one in clients}

    assert shown() == scanned
    # The two servers share a name, and the installed one takes it.
    assert main(["install", "gemini", "--yes", "--no-start"]) == 0
    assert shown() == scanned


@pytest.mark.requirement("U:scan")
def test_install_leaves_a_server_that_needs_a_sign_in_where_it_is(work: Path, capsys: pytest.CaptureFixture[str]):
    with serve_sign_in() as url:
        path = gemini_file(work, fs=scripted(ECHO), locked={"httpUrl": url})
        assert main(["install", "gemini", "--yes"]) == 0
    assert "locked: it needs a sign-in" in capsys.readouterr().out
    assert list(json.loads(path.read_text(encoding="utf-8"))["mcpServers"]) == ["locked", "ullage"]


def test_doctor_says_that_a_server_needs_a_sign_in(work: Path, capsys: pytest.CaptureFixture[str]):
    with serve_sign_in() as url:
        users_file(work.parent).write_text(f'[servers.locked]\nurl = "{url}"\n', encoding="utf-8")
        assert main(["doctor", "--json"]) == 1
        (server,) = json.loads(capsys.readouterr().out)["servers"]
        assert server["error"]["error_code"] == "SIGN_IN_NEEDED"
        assert main(["doctor"]) == 1
        said = capsys.readouterr().out
    assert "locked  needs a sign-in" in said
    assert "check its address" not in said


def test_one_bad_entry_does_not_spoil_a_scan(work: Path, capsys: pytest.CaptureFixture[str]):
    gemini_file(work, fs=scripted(ECHO), odd={"httpUrl": "localhost:3000"}, empty={"command": " "}, none=[])
    states = {name: one["state"] for name, one in by_name(scan(capsys)["gemini"]).items()}
    assert states == {"fs": "counted", "odd": "failed", "empty": "failed", "none": "failed"}


@pytest.mark.requirement("U:scan")
def test_scan_takes_any_clients_files_as_they_are(work: Path, capsys: pytest.CaptureFixture[str]):
    path = gemini_file(work, fs=scripted(ECHO))
    path.write_text("{ this is not JSON", encoding="utf-8")
    claude_file(work, fs=scripted(ECHO))
    found = scan(capsys)
    assert found["gemini"]["problems"]
    assert by_name(found["claude"])["fs"]["state"] == "counted"


def opencode_file(work: Path, **settings: object) -> Path:
    path = home(work) / "config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings), encoding="utf-8")
    return path


@pytest.mark.requirement("U:scan")
def test_tools_without_arguments_looks_at_all_programs(work: Path, capsys: pytest.CaptureFixture[str]):
    claude_file(work, fs=scripted(ECHO))
    server = scripted(tool("sum", "Adds numbers."))
    opencode_file(work, mcp={"sums": {"type": "local", "command": [server["command"], *server["args"]]}})
    assert main(["tools", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {("fs", "echo"), ("sums", "sum")} <= {(one["server"], one["original_name"]) for one in found["tools"]}
    assert found["behind"] is False
    assert main(["tools"]) == 0
    said = capsys.readouterr().out
    assert "servers of Claude Code and opencode. None is behind Ullage yet" in said
    assert main(["install", "claude", "--yes"]) == 0
    capsys.readouterr()
    assert main(["tools"]) == 0
    assert "Not counted here: the servers of opencode" in capsys.readouterr().out


@pytest.mark.requirement("U:status")
def test_a_doubled_server_is_recognised_under_any_name(work: Path, capsys: pytest.CaptureFixture[str]):
    server = scripted(ECHO)
    path = claude_file(work, fs=server)
    assert main(["install", "claude", "--yes"]) == 0
    document = json.loads(path.read_text(encoding="utf-8"))
    document["mcpServers"]["another"] = server
    path.write_text(json.dumps(document), encoding="utf-8")
    for verb in ("status", "tools", "doctor", "scan"):
        capsys.readouterr()
        main([verb])
        assert "another" in (said := capsys.readouterr().out), verb
        assert "paid for twice" in said, verb
        assert "install claude" in said, verb


@pytest.mark.requirement("U:status")
def test_a_server_behind_included_files_is_doubled_too(work: Path, capsys: pytest.CaptureFixture[str]):
    path = claude_file(work, fs=scripted(ECHO))
    document = json.loads(path.read_text(encoding="utf-8"))
    other = home(work) / ".cursor" / "mcp.json"
    other.parent.mkdir()
    other.write_text(json.dumps({"mcpServers": {"files": document["mcpServers"]["fs"]}}), encoding="utf-8")
    document["mcpServers"]["gateway"] = {"command": "ullage", "args": ["serve", "--include", str(other)]}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert main(["status", "--json"]) == 0
    claude = next(one for one in json.loads(capsys.readouterr().out)["clients"] if one["client"] == "claude")
    assert (claude["behind"], claude["doubled"]) == (["files"], ["fs"])
    # Installing keeps what was behind it, and takes the place of the entry.
    assert main(["install", "claude", "--yes"]) == 0
    capsys.readouterr()
    assert main(["status", "--json"]) == 0
    claude = next(one for one in json.loads(capsys.readouterr().out)["clients"] if one["client"] == "claude")
    assert claude["doubled"] == []
    assert set(claude["behind"]) >= {"files"}
    entries = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]
    assert list(entries) == ["gateway"]
    assert str(other) in entries["gateway"]["args"]


def test_versions_and_ways_to_start_make_no_other_server():
    def entry(name: str, command: str, *arguments: str, url: str | None = None) -> ServerEntry:
        return ServerEntry(
            name=name, program="x", file="f", path=("mcpServers", name), scope="user",
            command=None if url else command, arguments=arguments, url=url,
        )  # fmt: skip

    own = [
        entry("ullage", "/opt/ullage", "serve"),
        entry("a", "npx", "@acme/server@latest"),
        entry("b", "C:\\Program Files\\nodejs\\npx.cmd", "-y", "@acme/server@1.2.3"),
        entry("c", "npx", "-y", "@acme/other"),
        entry("d", "", url="https://h/mcp/"),
        entry("e", "cmd", "/c", "npx", "-y", "@acme/server"),
    ]
    config = ClientConfig(program=PROGRAMS["cursor"], servers=tuple(own))
    behind = [
        Server(name="x", transport="stdio", command="npx", arguments=("-y", "@acme/server")),
        Server(name="y", transport="http", url="https://h/mcp"),
    ]
    assert [one.name for one in find_doubled(config, behind)] == ["a", "b", "d", "e"]


@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "0"}, False),
    ],
)
def test_colours_of_a_pipe_are_those_that_were_asked_for(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, environment: dict[str, str],
    *, is_coloured: bool,
):  # fmt: skip
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    gemini_file(work, fs=scripted(ECHO))
    for words in (["scan"], ["status"]):
        assert main(words) == 0
        assert ("\x1b[" in capsys.readouterr().out) == is_coloured, words
    assert main(["scan", "--json"]) == 0
    json.loads(capsys.readouterr().out)


@pytest.mark.requirement("U:project")
def test_an_entry_of_ullage_in_a_project_file_names_no_files_to_read(work: Path, capsys: pytest.CaptureFixture[str]):
    """Its flags would have other servers started, or taken over by `install`."""
    mark, elsewhere = work / "started", work.parent / "elsewhere.json"
    elsewhere.write_text(json.dumps({"mcpServers": {"evil": code(f"open({str(mark)!r}, 'w')")}}), encoding="utf-8")
    gateway = {"command": "ullage", "args": ["serve", "--include", str(elsewhere)], "env": {"ULLAGE_CONFIG": "x.toml"}}
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": {"ullage": gateway}}), encoding="utf-8")
    path = claude_file(work, fs=scripted(ECHO))
    assert not scan(capsys)["claude"]["installed"]
    for words in (["status"], ["tools"], ["--json"], ["install", "claude", "--yes", "--scope", "all"], ["scan"]):
        assert main(words) == 0
    assert not mark.exists()
    assert "elsewhere" not in path.read_text(encoding="utf-8")
    # Nor does it hide the user's own entry of that name.
    assert scan(capsys)["claude"]["installed"]


@pytest.mark.requirement("S1:aggregate")
@pytest.mark.parametrize("name", PROGRAMS)
def test_include_reads_the_file_of_every_program(name: str, work: Path, capsys: pytest.CaptureFixture[str]):
    program = PROGRAMS[name]
    place = next(one for one in program.list_files(current_surroundings()) if one.is_main and one.scope == "user")
    table = next(path for path in place.tables if path[0] != "projects")
    server = scripted(ECHO)
    entry = program.make_entry(server["command"], tuple(server["args"]), ())
    path = home(work) / ".files" / Path(place.path).name
    path.parent.mkdir()
    path.write_bytes(edit_content(None, place.format, [Put((*table, "fs"), entry)]))
    assert main(["tools", "--include", str(path), "--json"]) == 0
    assert "fs__echo" in {one["name"] for one in json.loads(capsys.readouterr().out)["tools"]}


def test_the_model_of_a_project_is_not_taken_into_the_profile(work: Path, capsys: pytest.CaptureFixture[str]):
    claude_file(work, fs=scripted(ECHO))
    for folder, model in ((home(work), "claude-sonnet-5"), (work, "claude-haiku-5-5")):
        (folder / ".claude").mkdir()
        (folder / ".claude" / "settings.json").write_text(json.dumps({"model": model}), encoding="utf-8")
    assert scan(capsys)["claude"]["model"] == "claude-haiku-5-5"
    assert main(["install", "claude", "--yes"]) == 0
    settings = users_file(work.parent).read_text(encoding="utf-8")
    assert "claude-sonnet-5" in settings
    assert "claude-haiku" not in settings


def test_the_first_screen_names_files_that_cannot_be_read(work: Path, capsys: pytest.CaptureFixture[str]):
    broken = work.parent / "home" / ".gemini" / "settings.json"
    broken.parent.mkdir()
    broken.write_text("{", encoding="utf-8")
    assert show_overview(as_json=False) == 0
    assert "problem  ~/.gemini/settings.json is not JSON: " in capsys.readouterr().out


@pytest.mark.requirement("U:project")
def test_a_project_file_is_approved_with_the_content_that_was_read(work: Path):
    path = work / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"fs": {"command": "good"}}}), encoding="utf-8")
    approve(path)
    good = path.read_text(encoding="utf-8")
    path.write_text(good.replace("good", "evil"), encoding="utf-8")
    (config,) = (one for one in read_clients(current_surroundings()) if one.program.name == "claude")
    path.write_text(good, encoding="utf-8")
    assert not approval_of(config, Places.of_user())(str(path))
    (config,) = (one for one in read_clients(current_surroundings()) if one.program.name == "claude")
    assert approval_of(config, Places.of_user())(str(path))
