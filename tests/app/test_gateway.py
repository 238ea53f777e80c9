"""The rooms put together, in this process, around real servers."""

import json
import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from approving import examine, load
from ullage.app import count
from ullage.app import count_text as counting
from ullage.app.build_gateway import Gateway, open_gateway
from ullage.clients.configs import ListedServer, first_request_texts
from ullage.config import Flags
from ullage.errors import BadConfiguration, UnknownResource
from ullage.gateway import META, definition_text
from ullage.ledger import read_entries
from ullage.store import Database
from ullage.tokens import Count, Meter, default_engine
from ullage.tool import Call, Caller, Change, Json, Reply, Tool
from upstreams import scripted, tool, unruly, users_file, write_json, write_toml

pytestmark = pytest.mark.anyio

LONG = "Sends a message to everybody who is subscribed to the channel of that name, and answers with its number. " * 3
MANY = [tool(f"send_to_channel_{number}", LONG) for number in range(60)]
ECHO = tool("echo", "Says a text again.", annotations={"readOnlyHint": True})


def caller(gateway: Gateway, client: str | None = None, session: str = "s") -> Caller:
    return Caller(principal="me", session=session, client=client, model=gateway.flagged(client).model)


@asynccontextmanager
async def opened(work: Path, *, follow: bool = False, **flags) -> AsyncGenerator[Gateway]:
    given = Flags(**flags)
    loaded = load(given, os.environ, work)
    again = (lambda _: examine(given, os.environ, work)) if follow else None
    async with open_gateway(loaded, environment=os.environ, again=again) as gateway:
        yield gateway


async def names(gateway: Gateway, client: str | None = None) -> list[str]:
    return [tool.name for tool in (await gateway.flagged(client).source.tools()).tools]


async def ask(gateway: Gateway, name: str, client: str | None = None, **arguments) -> Reply:
    return await gateway.flagged(client).source.call(
        Call(tool=name, arguments=arguments, caller=caller(gateway, client))
    )


def text(reply: Reply) -> str:
    return str(reply.content[0]["text"])


def noted(reply: Reply, key: str) -> dict[str, Any]:
    return cast("dict[str, Any]", reply.meta[key])


def starts(log: Path) -> int:
    return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0


@pytest.mark.requirement("S1:surface")
async def test_sixty_tools_cost_what_three_do_and_all_of_them_can_be_called(work: Path):
    include = write_json(work / "mcp.json", mail=scripted(*MANY, ECHO))
    async with opened(work, include=(include,)) as gateway:
        await gateway.view(30)
        tools = (await gateway.flagged(None).source.tools()).tools
        assert [one.name for one in tools] == [
            "find_tool",
            "call_tool",
            "call_tool_write",
            "count-tokens",
            "read_result",
        ]

        def weigh(text: str) -> int:
            return count(text, "gpt-4o").tokens

        assert sum(weigh(definition_text(one)) for one in tools if one.name != "count-tokens") <= 400
        instructions = gateway.flagged(None).identity.current_instructions()
        assert instructions is not None
        assert 0 < weigh(instructions) <= 300
        assert text(await ask(gateway, "mail__echo", text="by its name")) == "by its name"


@pytest.mark.requirement("S1:surface")
async def test_few_tools_are_listed_as_they_are_and_the_choice_outlives_the_process(work: Path):
    log = work / "starts"
    include = write_json(work / "mcp.json", notes=scripted(ECHO, tool("write"), starts=log))
    for _ in range(2):
        async with opened(work, include=(include,)) as gateway:
            await gateway.view(30)
            assert await names(gateway) == ["count-tokens", "read_result", "notes__echo", "notes__write"]
            # A name that has no profile of its own shares what was decided for everybody.
            assert await names(gateway, "someone") == ["count-tokens", "read_result", "notes__echo", "notes__write"]
    async with opened(work, include=(include,)) as gateway:
        assert gateway.find().surface == gateway.find("someone").surface == "direct"
    assert starts(log) == 1


@pytest.mark.requirement("S1:surface", "U:own")
async def test_pinned_tools_are_listed_hidden_ones_only_answer_and_denied_ones_are_not_there(work: Path):
    notes = scripted(ECHO, tool("secret"), tool("give"), tool("drop_all"))
    notes |= {"pinned": ["echo"], "hidden": ["secret"], "deny": ["drop_*"]}
    write_toml(work / "ullage.toml", '[gateway]\nmode = "search"\n[own]\nhidden = ["count-tokens"]', notes=notes)
    async with opened(work) as gateway:
        await gateway.view(30)
        assert await names(gateway) == ["find_tool", "call_tool", "call_tool_write", "read_result", "notes__echo"]
        found = json.loads(text(await ask(gateway, "find_tool", tool_description="secret drop count-tokens tokens")))
        said = json.dumps(found["tools"] + found["more"])
        assert "secret" not in said
        assert "drop_all" not in said
        assert "count-tokens" not in said
        counted = json.loads(text(await ask(gateway, "count_tokens", text="Hello, world!")))
        assert counted["token_count"] == 4
        denied = await ask(gateway, "call_tool_write", tool_name="notes__drop_all", parameters={})
        assert json.loads(text(denied))["error_code"] == "DENIED"


@pytest.mark.requirement("U:reference")
async def test_figures_are_those_of_the_model_named_for_the_client(work: Path):
    clients = '[clients.exact]\nmodel = "gpt-4"\n[clients.guessed]\nmodel = "claude-sonnet-4-5"\n'
    write_toml(work / "ullage.toml", clients, notes=scripted(ECHO))
    async with opened(work) as gateway:
        found = {}
        for client in (None, "exact", "guessed", "unheard-of"):
            reply = await ask(gateway, "notes__echo", client, text="안녕하세요, 세계" * 20)
            found[client] = noted(reply, META)["tokens"]
    assert found["exact"] == {"estimated": 200, "approximationMethod": "gpt-4"}
    assert found["guessed"]["approximationMethod"] == "claude-sonnet-4-5"
    assert "warning" in found["guessed"]
    assert found[None] == found["unheard-of"]
    assert found[None]["approximationMethod"] == "o200k_base"
    assert found[None]["estimated"] < 200
    assert "warning" in found[None]


async def test_a_client_of_no_name_in_the_settings_has_no_path_but_may_have_a_flag(work: Path):
    write_toml(work / "ullage.toml", "[clients.claude]\n")
    async with opened(work) as gateway:
        assert gateway.profile("claude").model is None
        with pytest.raises(UnknownResource) as caught:
            gateway.profile("cursor")
        assert caught.value.options == ("claude",)
        assert gateway.flagged("cursor").source is not gateway.profile("claude").source
        assert gateway.profile("claude") is gateway.profile("claude")


@pytest.mark.requirement("S1:surface", "U:own")
async def test_a_client_may_have_another_surface_one_door_and_names_without_hyphens(work: Path):
    top = '[gateway]\nmode = "search"\njoin_calls = true\n[clients.plain]\nmode = "direct"\nunderscore_names = true\n'
    write_toml(users_file(work.parent), top, notes=scripted(tool("echo")))
    async with opened(work) as gateway:
        await gateway.view(30)
        assert await names(gateway) == ["find_tool", "call_tool", "count-tokens", "read_result"]
        assert await names(gateway, "plain") == ["count_tokens", "read_result", "notes__echo"]
        reply = await ask(gateway, "call_tool", tool_name="notes__echo", parameters={"text": "through one door"})
        assert text(reply) == "through one door"
        assert json.loads(text(await ask(gateway, "count_tokens", "plain", text="hi")))["token_count"] == 1


@pytest.mark.requirement("S1:aggregate")
async def test_servers_that_die_or_do_not_exist_harm_nobody_and_are_named(work: Path):
    gone = {"command": "no-such-program", "args": ["--token", "hunter2hunter2"]}
    include = write_json(work / "mcp.json", notes=scripted(ECHO), dead=unruly("exits"), gone=gone)
    async with opened(work, include=(include,)) as gateway:
        view = await gateway.view(30)
        assert [entry.listed for entry in view.entries] == ["count-tokens", "read_result", "notes__echo"]
        reasons = {one.server: one.reason for one in view.missing}
        assert reasons.keys() == {"dead", "gone"}
        assert "no such table" in reasons["dead"]
        assert "hunter2" not in str(reasons)
        assert {one.server: one.state for one in gateway.health()}["notes"] == "ready"
        found = json.loads(text(await ask(gateway, "find_tool", tool_description="say a text again")))
        assert found["tools"][0]["name"] == "notes__echo"
        assert [one.split(":")[0] for one in found["missing"]] == ["dead", "gone"]
        assert text(await ask(gateway, "notes__echo", text="alive")) == "alive"


@pytest.mark.requirement("S1:live")
async def test_a_second_start_lists_without_a_server_and_a_session_asks_each_server_once(work: Path):
    log = work / "starts"
    write_toml(work / "ullage.toml", "[results]\nencode = false")
    include = write_json(work / "mcp.json", notes=scripted(starts=log))
    for _ in range(2):
        async with opened(work, include=(include,)) as gateway:
            await gateway.view(30)
            await names(gateway)
            await ask(gateway, "find_tool", tool_description="echo")
            assert starts(log) <= 1
        assert starts(log) == 1
    async with opened(work, include=(include,)) as gateway:
        methods: list[str] = []
        with anyio.fail_after(20):
            while "tools/list" not in methods[:-3]:
                await names(gateway)
                methods = [one["method"] for one in json.loads(text(await ask(gateway, "notes__seen")))]
        assert methods.count("tools/list") == 1
    assert starts(log) == 2


@pytest.mark.requirement("S1:net")
@pytest.mark.parametrize(
    ("client", "program", "wish", "defers"),
    [
        ("claude", "claude", "", True),
        ("claude-code", "claude", "false", False),
        ("codex", "codex", "", False),
        ("gemini-cli", "gemini", "", False),
        ("qwen", "qwen", "", True),
    ],
)
async def test_the_net_figure_goes_by_what_the_clients_program_sends(
    work: Path, monkeypatch: pytest.MonkeyPatch, client: str, program: str, wish: str, *, defers: bool
):
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", wish)
    schema: dict[str, Json] = {"type": "object", "properties": {"a": {"type": "string", "title": "The first " * 9}}}
    include = write_json(work / "mcp.json", mail=scripted(*({**one, "inputSchema": schema} for one in MANY)))
    async with opened(work, include=(include,)) as gateway:
        await gateway.view(30)
        reply, unknown = [await ask(gateway, "find_tool", one, tool_description="send") for one in (client, "somebody")]
    tools = [Tool(name=one["name"], description=LONG, input_schema=schema) for one in MANY]
    sent = "".join(first_request_texts(program, [ListedServer("mail", tools, "be kind")], defers=defers))
    plain = sum(count(definition_text(each)).tokens for each in tools)
    saved = noted(reply, "dev.ullage/savings")["first_request"]
    assert saved["without"] == count(sent, gateway.flagged(client).model or "gpt-4o").tokens
    assert saved["net_tokens"] == saved["without"] - saved["surface"] - saved["instructions"]
    assert noted(unknown, "dev.ullage/savings")["first_request"]["without"] == plain != saved["without"]


@pytest.mark.requirement("S1:net")
async def test_what_a_program_sends_is_counted_once_for_several_starts(work: Path, monkeypatch: pytest.MonkeyPatch):
    include = write_json(work / "mcp.json", mail=scripted(*MANY))
    counted: list[int] = []
    count_text = Meter.count

    def note(self: Meter, text: str, model: str = "gpt-4o") -> Count:
        counted.append(len(text))
        return count_text(self, text, model)

    monkeypatch.setattr(Meter, "count", note)
    figures = list[object]()
    for _ in range(2):
        async with opened(work, include=(include,)) as gateway:
            await gateway.view(30)
            counted.clear()
            reply = await ask(gateway, "find_tool", "codex", tool_description="send")
            figures.append(noted(reply, "dev.ullage/savings")["first_request"])
            assert (max(counted) > len(LONG) * len(MANY)) is (len(figures) == 1)
    assert figures[0] == figures[1]


@pytest.mark.requirement("S1:net")
async def test_searches_calls_and_definitions_are_in_the_ledger_and_searches_say_what_they_saved(work: Path):
    include = write_json(work / "mcp.json", mail=scripted(*MANY, ECHO))
    async with opened(work, include=(include,)) as gateway:
        await gateway.view(30)
        await names(gateway)
        reply = await ask(gateway, "find_tool", tool_description="say a text again")
        await ask(gateway, "call_tool", tool_name="mail__echo", parameters={"text": "hi"})
        await ask(gateway, "call_tool", tool_name="nobody", parameters={})
        url = gateway.settings.store
    saved = noted(reply, "dev.ullage/savings")
    assert saved["first_request"]["net_tokens"] > 1000
    assert saved["session"]["net_tokens"] > saved["first_request"]["net_tokens"]
    database = Database.open(url)
    entries = list(read_entries(database))
    database.close()
    kinds = [entry.kind for entry in entries]
    kinds.remove("definitions")
    assert kinds == ["search", "result", "result"], "what the requests carried is one entry"
    definitions = next(entry for entry in entries if entry.kind == "definitions")
    search, result, failed = (entry for entry in entries if entry is not definitions)
    assert definitions.detail["requests"] == 4
    replies = 2 * search.tokens + failed.tokens
    assert definitions.detail["replies"] == replies, "the search's own entry charges it for the request after it"
    assert definitions.saved_tokens == 4 * saved["first_request"]["net_tokens"] - replies
    assert search.saved_tokens is not None
    assert (definitions.session, definitions.principal) == ("s", "me")
    assert (result.saved_tokens, search.saved_tokens) == (0, -search.tokens)
    assert (result.server, result.tool, result.session, result.principal) == ("mail", "echo", "s", "me")
    assert failed.is_error


async def test_without_its_store_a_gateway_serves_all_the_same_and_says_so(
    work: Path, caplog: pytest.LogCaptureFixture
):
    include = write_json(work / "mcp.json", notes=scripted(ECHO))
    (work / "file").write_text("", encoding="utf-8")
    async with opened(work, include=(include,), store=f"sqlite:///{work}/file/ullage.db") as gateway:
        assert gateway.store_error is not None
        assert text(await ask(gateway, "notes__echo", text="still here")) == "still here"
    assert "nothing is kept of this session" in caplog.text


async def test_what_breaks_in_the_background_ends_nothing(work: Path, caplog: pytest.LogCaptureFixture):
    async def broken() -> None:
        raise ZeroDivisionError

    async with opened(work) as gateway:
        gateway.spawn(broken)
        await anyio.sleep(0.01)
        assert await names(gateway) == ["count-tokens", "read_result"]
    assert "something went wrong in the background" in caplog.text


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(20):
        while not condition():
            await anyio.sleep(0.02)


@pytest.mark.requirement("S1:live")
async def test_an_edit_of_the_settings_is_followed_and_only_what_matters_is_announced(
    work: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING)
    log, file = work / "starts", users_file(work.parent)
    direct = '[gateway]\nmode = "direct"\n'
    notes = scripted(ECHO, tool("write"), starts=log)
    write_toml(file, direct, notes=notes)
    heard: list[Change] = []
    async with opened(work, follow=True) as gateway:
        source: Any = gateway.flagged(None).source
        source.watch(heard.append)
        await gateway.view(30)
        assert await names(gateway) == ["count-tokens", "read_result", "notes__echo", "notes__write"]
        heard.clear()

        write_toml(file, f"# means the same\n{direct}", notes=notes)
        await anyio.sleep(1.6)
        assert heard == []
        assert caplog.text == ""

        write_toml(file, f"{direct}modell = 1\n", notes=notes)
        await until(lambda: "not taken over" in caplog.text)
        assert "ullage.toml:3" in caplog.text
        assert heard == []

        later = scripted(tool("look"), env={"PASS": "hunter2hunter2"})
        write_toml(file, f'{direct}model = "gpt-4"\n', notes={**notes, "deny": ["write"]}, late=later)
        await until(lambda: "and taken over" in caplog.text)
        await until(lambda: heard)
        await gateway.view(30)
        assert await names(gateway) == ["count-tokens", "read_result", "late__look", "notes__echo"]
        assert "from the next start on: gateway.model" in caplog.text
        assert starts(log) == 1

        heard.clear()
        write_toml(file, direct, late={**later, "env": {"PASS": "${NOBODY_SET_THIS}"}})
        await until(lambda: heard)
        assert await names(gateway) == ["count-tokens", "read_result"]
        await until(lambda: "NOBODY_SET_THIS" in caplog.text)
        assert [one.server for one in gateway.health()] == []
        assert len(heard) == 1
    assert "hunter2" not in caplog.text


@pytest.mark.requirement("S1:aggregate")
async def test_a_server_called_as_we_are_keeps_its_name_and_disturbs_nobody(work: Path):
    file = write_toml(work / "ullage.toml", '[gateway]\nmode = "direct"\n', notes=scripted(ECHO))
    async with opened(work, follow=True) as gateway:
        await gateway.view(30)
        assert await names(gateway) == ["count-tokens", "read_result", "notes__echo"]
        write_toml(file, '[gateway]\nmode = "direct"\n', notes=scripted(ECHO), ullage=scripted(ECHO))
        with anyio.fail_after(20):
            while "ullage__echo" not in await names(gateway):
                await anyio.sleep(0.05)
        assert text(await ask(gateway, "ullage__echo", text="theirs")) == "theirs"
        assert json.loads(text(await ask(gateway, "count-tokens", text="ours")))["token_count"] == 1


@pytest.mark.requirement("S1:aggregate")
async def test_a_server_whose_address_is_our_own_is_left_out_and_said_to_be(
    work: Path, caplog: pytest.LogCaptureFixture
):
    loaded = load(
        Flags(include=(write_json(work / "mcp.json", me={"url": "http://us/mcp"}, notes=scripted(ECHO)),)),
        os.environ,
        work,
    )
    async with open_gateway(loaded, environment=os.environ, is_own_address=lambda url: "//us/" in url) as gateway:
        await gateway.adopt(loaded)
        view = await gateway.view(30)
        assert {entry.server for entry in view.entries} == {"notes", "ullage"}
        assert view.missing == ()
    assert caplog.messages == ["server `me` is left out: its address is where this very gateway is served"]


@pytest.mark.requirement("S1:live")
async def test_what_cannot_be_taken_over_leaves_all_as_it_was(work: Path):
    write_toml(work / "ullage.toml", notes=scripted(ECHO))
    async with opened(work) as gateway:
        await gateway.view(30)
        before, settings = gateway.loaded, gateway.settings
        twice = replace(settings, servers=(*settings.servers, replace(settings.servers[0], prefix="\0")))
        gateway.merge = cast("Any", Failing())
        with pytest.raises(BadConfiguration):
            await gateway.adopt(replace(before, settings=twice))
        assert gateway.loaded is before
        assert gateway.kept("notes").server == settings.servers[0]


class Failing:
    def replace(self, members: object) -> None:
        del members
        raise BadConfiguration("two servers are called `x`")


@pytest.mark.requirement("S1:live")
async def test_our_own_list_outlives_a_change_of_settings(work: Path):
    async with opened(work) as gateway:
        told: list[Change] = []
        await gateway.view()
        gateway.merge.watch(told.append)
        own = gateway.merge.members[0].source
        await gateway.adopt(gateway.loaded)
        assert gateway.merge.members[0].source is own
        assert told == []


async def test_no_server_is_given_the_tokens_of_those_who_come_in(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ADAS_TOKEN", "a" * 20)
    monkeypatch.setenv("OTHER", "b" * 20)
    shows = {"command": "sh", "args": ["-c", f"env > {work}/seen; exec sleep 60"]}
    shows["inherit_env"] = ["*"]
    write_toml(users_file(work.parent), '[http.tokens.ada]\nenv = "ADAS_TOKEN"\n', shows=shows)
    async with opened(work) as gateway:
        await gateway.view(1)
    seen = (work / "seen").read_text(encoding="utf-8")
    assert "OTHER=" in seen
    assert "ADAS_TOKEN" not in seen


@pytest.mark.requirement("U:access")
async def test_our_own_tools_can_be_denied_too(work: Path):
    write_toml(
        work / "ullage.toml", '[gateway]\nmode = "search"\n[own]\ndeny = ["call_tool_write"]', notes=scripted(ECHO)
    )
    async with opened(work) as gateway:
        await gateway.view(30)
        assert await names(gateway) == ["find_tool", "call_tool", "count-tokens", "read_result"]


@pytest.mark.requirement("S3:nonblocking")
async def test_long_texts_are_counted_in_another_process_while_a_gateway_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(counting, "_engine", cache(default_engine))
    counting.meter.cache_clear()
    try:
        async with opened(tmp_path) as gateway:
            reply = await ask(gateway, "count-tokens", text="hello " * 20_000, model="gpt-4o")
            engine = counting._engine()
            assert json.loads(text(reply))["token_count"] == 20_001
            assert engine.loaded == {}
            assert engine.worker is not None
            assert (worker := engine.worker).process_id is not None
        assert engine.worker is None
        assert worker.process_id is None
        assert count("hello " * 20_001, "gpt-4o").tokens == 20_002
        assert list(engine.loaded) == ["o200k_base"]
    finally:
        counting.meter.cache_clear()
