import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from ullage.errors import ClientCannot, DeadlinePassed, InvalidArguments, ProtocolError, SourceFailed
from ullage.gateway import Server
from ullage.tool import Call, Caller, Change, Complete, JsonObject, PromptRequest, Read, Reply, Structured
from ullage.wire.upstream import Upstream, open_upstream

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:aggregate", "S1:call")]
TOY = str(Path(__file__).parent / "scripted_server.py")
ENVIRONMENT = dict(os.environ)
PREFIX = "io.modelcontextprotocol/"
ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])
ALICE, BOB = Caller(principal="u", session="alice"), Caller(principal="u", session="bob")


def toy(era: str = "modern", script: dict[str, Any] | None = None, **more) -> Server:
    arguments = ("-u", TOY, era, json.dumps(script or {}))
    return Server(name="toy", transport="stdio", command=sys.executable, arguments=arguments, **more)


@asynccontextmanager
async def opened(era: str = "modern", script: dict[str, Any] | None = None, **more) -> AsyncIterator[Upstream]:
    async with open_upstream(toy(era, script, **more), environment=ENVIRONMENT, hesitation=0.3) as upstream:
        yield upstream


def said(reply: Reply) -> Any:  # noqa: ANN401 - JSON of any kind
    text = str(reply.content[0]["text"])
    try:
        return json.loads(text)
    except ValueError:
        return text


async def call(upstream: Upstream, tool: str, /, **arguments) -> Any:  # noqa: ANN401 - JSON of any kind
    return said(await upstream.call(Call(tool=tool, arguments=arguments)))


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not true():
            await anyio.sleep(0.01)


# The two eras


@pytest.mark.parametrize(
    ("era", "version"),
    [("modern", "2026-07-28"), ("both", "2026-07-28"), ("legacy", "2025-11-25"), ("mortal", "2025-11-25")],
)
async def test_a_server_is_spoken_to_in_its_own_era(era: str, version: str):
    async with opened(era) as upstream:
        assert upstream.protocol_version == version
        assert (upstream.introduction().name, upstream.introduction().instructions) == ("toy", "be kind")
        assert upstream.capabilities == {"tools": {}}
        assert await call(upstream, "echo", text="hé\ud800") == "hé\ufffd"
        assert "echo" in [tool.name for tool in (await upstream.tools()).tools]
        assert upstream.process_id is not None
        assert upstream.notes == ()


async def test_a_server_that_ignores_what_it_does_not_know_is_greeted_all_the_same():
    async with opened("deaf") as upstream:
        assert upstream.protocol_version == "2025-11-25"


@pytest.mark.parametrize("era", ["modern", "both", "legacy"])
async def test_a_server_that_takes_long_to_start_is_not_mistaken_for_an_old_one(era: str):
    async with opened(era, {"slow_start": 0.6}) as upstream:
        assert upstream.protocol_version == ("2025-11-25" if era == "legacy" else "2026-07-28")
        assert await call(upstream, "echo", text="x") == "x"


async def test_a_server_that_discovers_only_old_versions_is_greeted():
    async with opened("both", {"versions": ["2025-11-25"]}) as upstream:
        assert upstream.protocol_version == "2025-11-25"


async def test_older_versions_are_accepted_and_unknown_ones_named():
    async with opened("legacy", {"version": "2024-11-05"}) as upstream:
        assert upstream.protocol_version == "2024-11-05"
    with pytest.raises(SourceFailed, match="speaks revision `1999-01-01`"):
        async with opened("legacy", {"version": "1999-01-01"}):
            pass


async def test_a_server_that_speaks_only_what_is_to_come_is_refused():
    with pytest.raises(SourceFailed, match="refused to be spoken to: modern only"):
        async with opened("modern", {"versions": ["2031-01-01"]}):
            pass


async def test_a_server_that_never_answers_is_given_up_in_time():
    reading = ("-c", "import sys; sys.stdin.read()")
    silent = Server(name="mute", transport="stdio", command=sys.executable, arguments=reading, start_timeout=0.3)
    with pytest.raises(SourceFailed, match=r"`mute` gave no answer within 0.3 s"):
        async with open_upstream(silent, environment=ENVIRONMENT):
            pass


async def test_a_server_that_cannot_start_says_why():
    broken = Server(
        name="broken",
        transport="stdio",
        command=sys.executable,
        arguments=("-c", "import sys; sys.exit('no key given')"),
    )
    with pytest.raises(SourceFailed, match="`broken` ended with exit status 1; it last said: no key given"):
        async with open_upstream(broken, environment=ENVIRONMENT):
            pass


async def test_a_program_that_ends_before_it_is_asked_anything_says_how():
    for _ in range(5):
        with pytest.raises(SourceFailed, match="`false` ended with exit status 1"):
            async with open_upstream(Server(name="false", transport="stdio", command="false"), environment=ENVIRONMENT):
                pass


async def test_a_program_that_prints_and_ends_is_told_by_what_it_printed():
    code = "import os; print('Usage: toy FILE', os.environ['API_KEY']); raise SystemExit(2)"
    usage = Server(
        name="usage",
        transport="stdio",
        command=sys.executable,
        arguments=("-c", code),
        environment={"API_KEY": "hush-hush"},
    )
    with pytest.raises(SourceFailed, match=r"`usage` ended with exit status 2; it printed: Usage: toy FILE \[secret\]"):
        async with open_upstream(usage, environment=ENVIRONMENT):
            pass


async def test_a_program_that_repeats_what_it_reads_is_told_for_what_it_is():
    with pytest.raises(SourceFailed, match="`cat` repeats our requests") as caught:
        async with open_upstream(Server(name="cat", transport="stdio", command="cat"), environment=ENVIRONMENT):
            pass
    assert "no MCP server" in caught.value.suggestion


async def test_a_refusal_that_repeats_a_secret_is_shown_without_it():
    code = """
import json, os
while True:
    number = json.loads(input()).get('id')
    error = {'code': -1, 'message': 'bad token ' + os.environ['API_TOKEN']}
    print(json.dumps({'jsonrpc': '2.0', 'id': number, 'error': error}), flush=True)
"""
    strict = Server(
        name="strict",
        transport="stdio",
        command=sys.executable,
        arguments=("-c", code),
        environment={"API_TOKEN": "hush-hush"},
    )
    with pytest.raises(SourceFailed, match=r"refused to be spoken to: bad token \[secret\]"):
        async with open_upstream(strict, environment=ENVIRONMENT):
            pass


async def test_whoever_was_calling_a_server_that_died_is_told_to_call_again():
    async with opened() as upstream:
        with pytest.raises(SourceFailed, match="killed") as caught:
            await call(upstream, "die")
        assert caught.value.suggestion == "call again: the server is started or reached anew for it"


async def test_an_opening_that_is_cancelled_leaves_nothing_behind(tmp_path: Path):
    mark = tmp_path / "pid"
    code = f"import os, sys; open({str(mark)!r}, 'w').write(str(os.getpid())); sys.stdin.read()"
    mute = Server(name="mute", transport="stdio", command=sys.executable, arguments=("-c", code))

    async def hold() -> None:
        async with open_upstream(mute, environment=ENVIRONMENT):
            raise AssertionError

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await until(lambda: mark.exists() and bool(mark.read_text(encoding="utf-8")))
        tasks.cancel_scope.cancel()
    await until(lambda: not is_running(int(mark.read_text(encoding="utf-8"))))


async def test_lines_before_the_first_message_are_skipped_and_noted():
    async with opened("legacy", {"preamble": ["Welcome!", "{}", "[]"]}) as upstream:
        assert await call(upstream, "echo", text="x") == "x"
        assert upstream.notes == ("printed 3 lines on standard output that are no messages; the first: Welcome!",)


@ERAS
async def test_a_request_carries_what_its_era_demands_and_what_the_client_sent_along(era: str):
    sent: JsonObject = {
        "traceparent": "00-1-2-03",
        "claudecode/toolUseId": "t1",
        "progressToken": "the client's",
        PREFIX + "clientInfo": {"name": "the client"},
        PREFIX + "protocolVersion": "1999",
        PREFIX + "logLevel": "debug",
    }
    async with opened(era) as upstream:
        await upstream.call(Call(tool="echo", meta=sent, capabilities={"elicitation": {"form": {}}}))
        meta = (await call(upstream, "seen"))[-2]["params"]["_meta"]
    assert meta.pop("progressToken") != "the client's"
    assert (meta.pop("traceparent"), meta.pop("claudecode/toolUseId")) == ("00-1-2-03", "t1")
    if era == "legacy":
        assert meta == {}
    else:
        assert meta.pop(PREFIX + "clientInfo")["name"] == "ullage"
        assert meta == {
            PREFIX + "protocolVersion": "2026-07-28",
            PREFIX + "clientCapabilities": {"elicitation": {"form": {}}},
            PREFIX + "logLevel": "debug",
        }


async def test_a_handshake_says_that_a_server_may_ask():
    async with opened("legacy") as upstream:
        (greeting,) = [one for one in await call(upstream, "seen") if one["method"] == "initialize"]
    assert set(greeting["params"]["capabilities"]) == {"elicitation", "sampling", "roots"}
    assert set(greeting["params"]["capabilities"]["elicitation"]) == {"form", "url"}


# Lists


@ERAS
async def test_lists_follow_their_pages(era: str):
    pages = [{"tools": [{"name": f"t{page}-{one}", "inputSchema": {}} for one in range(2)]} for page in range(3)]
    async with opened(era, {"results": {"tools/list": pages}}) as upstream:
        listing = await upstream.tools()
        assert [tool.name for tool in listing.tools] == ["t0-0", "t0-1", "t1-0", "t1-1", "t2-0", "t2-1"]
        assert (await upstream.tools()).revision == listing.revision


async def test_a_cursor_that_comes_again_ends_the_list():
    pages = [{"tools": [{"name": f"t{one}", "inputSchema": {"type": "object"}}]} for one in range(3)]
    async with opened("legacy", {"results": {"tools/list": pages}, "cursor": "1"}) as upstream:
        assert [tool.name for tool in (await upstream.tools()).tools] == ["t0", "t1"]
        assert any("no end" in note for note in upstream.notes)


async def test_odd_tools_cost_no_other_and_thousands_are_listed():
    odd = [{"name": "broken", "inputSchema": "nonsense"}, {"name": "odd", "inputSchema": {"properties": {}}}, {}]
    async with opened("legacy", {"results": {"tools/list": {"tools": odd}}}) as upstream:
        assert [tool.name for tool in (await upstream.tools()).tools] == ["odd"]
        assert len(upstream.notes) == 3
    async with opened("legacy", {"many": 5000}) as upstream:
        assert len((await upstream.tools()).tools) > 5000


@ERAS
async def test_a_list_that_the_server_does_not_know_is_empty(era: str):
    script = {
        "errors": {"tools/list": [-32601, "what?"], "prompts/list": [-32603, "oops"]},
        "capabilities": {"prompts": {}},
    }
    async with opened(era, script) as upstream:
        assert (await upstream.tools()).tools == ()
        assert (await upstream.resources(), await upstream.templates()) == ((), ())
        with pytest.raises(ProtocolError, match="oops"):
            await upstream.prompts()


async def test_a_list_that_is_none_is_empty():
    async with opened("legacy", {"results": {"tools/list": {"tools": None}}}) as upstream:
        assert (await upstream.tools()).tools == ()


@ERAS
async def test_resources_prompts_and_completions_are_read_raw(era: str):
    resource, prompt = {"uri": "a:1", "name": "a", "new": 1}, {"name": "p", "icons": []}
    template = {"uriTemplate": "a:{x}", "name": "a"}
    script = {
        "capabilities": {"resources": {}, "prompts": {}, "logging": {}},
        "results": {
            "resources/list": {"resources": [resource]},
            "resources/templates/list": {"resourceTemplates": [template]},
            "resources/read": {"contents": [{"uri": "a:1", "text": "x", "new": 1}], "_meta": {"a/b": 1}},
            "prompts/list": {"prompts": [prompt]},
            "prompts/get": {"messages": [{"role": "user", "content": {"type": "new"}}]},
            "completion/complete": {"completion": {"values": ["a"]}},
            "logging/setLevel": {},
            "resources/subscribe": {},
            "resources/unsubscribe": {},
        },
    }
    async with opened(era, script) as upstream:
        assert await upstream.resources() == (resource,)
        assert await upstream.templates() == (template,)
        assert (await upstream.read(Read(uri="a:1"))).contents == ({"uri": "a:1", "text": "x", "new": 1},)
        assert await upstream.prompts() == (prompt,)
        filled = await upstream.prompt(PromptRequest(name="p", arguments={"a": "b"}))
        assert filled.messages == ({"role": "user", "content": {"type": "new"}},)
        request = Complete(
            reference={"type": "ref/prompt"}, argument={"name": "a", "value": "b"}, context={"arguments": {}}
        )
        assert await upstream.complete(request) == {"values": ["a"]}
        await upstream.complete(replace(request, context={}))
        await upstream.subscribe("a:1")
        await upstream.unsubscribe("a:1")
        await upstream.set_log_level("error")
        seen = {one["method"]: one["params"] for one in await call(upstream, "seen")}
    assert seen["prompts/get"]["arguments"] == {"a": "b"}
    if era == "legacy":
        assert seen["logging/setLevel"]["level"] == "error"
        assert seen["resources/subscribe"]["uri"] == seen["resources/unsubscribe"]["uri"] == "a:1"
    else:
        assert "logging/setLevel" not in seen
        assert seen["tools/call"]["_meta"][PREFIX + "logLevel"] == "error"


# Calls


@ERAS
async def test_a_result_passes_whole(era: str):
    result = {
        "content": [{"type": "hologram", "new": {"x": None}}, {"type": "text", "text": "t", "annotations": {"a": 1}}],
        "structuredContent": None,
        "isError": True,
        "_meta": {"a/b": [1]},
    }
    async with opened(era) as upstream:
        reply = await upstream.call(Call(tool="give", arguments={"result": result}))
    assert reply == Reply(
        content=tuple(result["content"]), structured=Structured(None), is_error=True, meta={"a/b": [1]}
    )


@ERAS
async def test_an_error_of_the_protocol_keeps_its_number_and_data(era: str):
    async with opened(era) as upstream:
        with pytest.raises(ProtocolError, match="Unknown tool: nope") as caught:
            await call(upstream, "nope")
    assert (caught.value.number, caught.value.data) == (-32602, {"tool": "nope"})


@pytest.mark.requirement("U:bounded")
async def test_an_error_too_large_to_pass_on_is_cut_and_keeps_its_number():
    error = json.dumps({"code": -32000, "message": "no " * 20_000, "data": [1] * 5_000})
    async with opened("legacy") as upstream:
        with pytest.raises(ProtocolError) as caught:
            await call(upstream, "say", lines=[f'{{"id": NUMBER, "error": {error}}}'])
    assert caught.value.message.endswith("… (60,000 characters in all)")
    assert len(caught.value.message) < 20_100
    assert (caught.value.number, caught.value.data) == (-32000, None)


async def test_an_answer_that_is_none_is_the_servers_failure():
    async with opened("legacy") as upstream:
        with pytest.raises(SourceFailed, match="no result"):
            await call(upstream, "say", lines=['{"id": NUMBER, "result": 7}'])
        with pytest.raises(ProtocolError, match="odd") as caught:
            await call(
                upstream,
                "say",
                lines=['{"id": "NUMBER", "error": "odd"}', '{"id": 9, "result": {}}', '{"id": null, "error": {}}'],
            )
        assert caught.value.number == -32603
        assert await call(upstream, "echo", text="x") == "x"


async def test_arguments_that_are_not_json_are_refused_before_they_are_sent():
    async with opened() as upstream:
        with pytest.raises(InvalidArguments, match="cannot be written as JSON"):
            await call(upstream, "echo", text=float("nan"))
        assert await call(upstream, "echo", text="x") == "x"


async def test_what_a_modern_server_needs_is_asked_for_and_its_answers_are_carried_back():
    async with opened() as upstream:
        reply = await upstream.call(Call(tool="needs"))
        assert reply.needs is not None
        assert reply.needs.requests["who"] == {"method": "elicitation/create", "params": {"message": "who?"}}
        again = Call(tool="needs", answers={"who": {"action": "accept"}}, state=reply.needs.state)
        assert said(await upstream.call(again)) == {"answers": {"who": {"action": "accept"}}, "state": "sealed"}


@ERAS
async def test_progress_is_told_in_order_and_before_the_answer(era: str):
    told: list[Any] = []

    async def progress(done: float, total: float | None, word: str | None) -> None:
        await anyio.sleep(0.01)
        told.append((done, total, word))

    async with opened(era) as upstream:
        await upstream.call(Call(tool="progress", progress=progress))
        assert told == [(0, 3, "step 0"), (1, 3, "step 1"), (2, 3, "step 2")]
        assert said(await upstream.call(Call(tool="progress"))) == "done"


async def test_a_client_that_fails_at_hearing_of_progress_still_gets_its_answer():
    async def progress(*_: object) -> None:
        raise RuntimeError

    async with opened() as upstream:
        assert said(await upstream.call(Call(tool="progress", progress=progress))) == "done"


async def test_a_silent_call_is_given_up_and_the_server_is_told():
    async with opened(call_timeout=1) as upstream:
        with pytest.raises(DeadlinePassed, match=r"no sign of life for 1 s"):
            await call(upstream, "silent")
        assert len(await call(upstream, "cancelled")) == 1


async def test_a_call_that_reports_progress_is_not_silent():
    async with opened(call_timeout=1.2) as upstream:
        assert await call(upstream, "progress", steps=5, pause=0.3) == "done"


async def test_a_deadline_is_kept_whatever_the_server_reports():
    async with opened() as upstream:
        arguments: JsonObject = {"steps": 100, "pause": 0.05}
        late = Call(tool="progress", arguments=arguments, deadline=anyio.current_time() + 0.3)
        with pytest.raises(DeadlinePassed, match="its deadline passed"):
            await upstream.call(late)


@ERAS
async def test_a_cancelled_call_is_cancelled_at_the_server(era: str):
    async with opened(era) as upstream:
        with anyio.move_on_after(0.1):
            await call(upstream, "silent")
        assert len(await call(upstream, "cancelled")) == 1


@ERAS
async def test_a_server_killed_in_a_call_fails_that_call_at_once_and_says_why(era: str):
    async with opened(era) as upstream:
        with (
            anyio.fail_after(20),
            pytest.raises(SourceFailed, match="`toy` was killed by signal 9; it last said: about to die"),
        ):
            await call(upstream, "die")
        assert await upstream.ended() == "was killed by signal 9"
        with pytest.raises(SourceFailed, match="killed"):
            await call(upstream, "echo")


async def test_a_killed_server_fails_every_call_that_waits():
    async with opened() as upstream:
        failed: list[str] = []

        async def wait() -> None:
            with pytest.raises(SourceFailed):
                await call(upstream, "silent")
            failed.append("yes")

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(wait)
            await anyio.sleep(0.1)
            os.kill(upstream.process_id or 0, signal.SIGKILL)
        assert len(failed) == 5


async def test_what_a_killed_server_had_started_ends_with_the_connection():
    async with opened() as upstream:
        child = int(await call(upstream, "breed"))
        with pytest.raises(SourceFailed):
            await call(upstream, "die")
    await until(lambda: not is_running(child))


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_an_answer_given_with_the_last_breath_counts():
    async with opened() as upstream:
        assert await call(upstream, "leave") == "goodbye"
        assert await upstream.ended() == "ended with exit status 4"


async def test_closing_a_connection_fails_what_still_waits_on_it():
    reasons: list[str] = []
    async with anyio.create_task_group() as tasks, opened() as upstream:

        async def wait() -> None:
            with pytest.raises(SourceFailed, match="was closed"):
                await call(upstream, "silent")
            reasons.append(await upstream.ended())

        tasks.start_soon(wait)
        await anyio.sleep(0.1)
    assert reasons == ["was closed"]


@pytest.mark.parametrize(("to", "end"), [("stdout", "\n"), ("stderr", "\n"), ("stderr", "x")])
async def test_a_flood_harms_nothing(to: str, end: str):
    async with opened() as upstream:
        assert await call(upstream, "flood", to=to, megabytes=20, end=end) == "flooded"
        assert await call(upstream, "echo", text="x") == "x"
        assert len(upstream.stderr_tail()) <= 65_536


async def test_calls_run_side_by_side():
    async with opened() as upstream, anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(call, upstream, "silent")
        with anyio.fail_after(20):
            while sum(one["params"].get("name") == "silent" for one in await call(upstream, "seen")) < 20:
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


# What the server asks, tells and announces


class Client:
    """Answers every question alike and keeps what it was told."""

    def __init__(self, answer: JsonObject | Exception, *, pause: float = 0) -> None:
        self.answer = answer
        self.pause = pause
        self.asked: list[tuple[str, JsonObject]] = []
        self.told: list[tuple[str, JsonObject]] = []
        self.cancelled = 0

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        self.asked.append((method, params))
        try:
            await anyio.sleep(self.pause)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def tell(self, method: str, params: JsonObject) -> None:
        self.told.append((method, params))


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
async def test_a_question_in_a_call_is_put_to_that_calls_client(method: str):
    client = Client({"action": "accept", "content": {"a": 1}})
    async with opened("legacy") as upstream:
        asking = Call(
            tool="ask", arguments={"method": method, "params": {"message": "sure?", "new": 1}}, ask=client.ask
        )
        assert said(await upstream.call(asking)) == {"result": {"action": "accept", "content": {"a": 1}}}
    assert client.asked == [(method, {"message": "sure?", "new": 1})]


@pytest.mark.parametrize(
    ("ask", "number", "words"),
    [
        (None, -32601, "`elicitation/create` is refused: the client cannot be asked"),
        (Client(ClientCannot("no elicitation")).ask, -32601, "`elicitation/create` is refused: no elicitation"),
        (Client(ProtocolError("not now", number=-1, data=7)).ask, -1, "not now"),
        (Client(RuntimeError("secret")).ask, -32603, "`elicitation/create` failed: RuntimeError"),
    ],
)
async def test_a_question_that_nobody_can_answer_is_refused_by_name(ask, number: int, words: str):
    async with opened("legacy") as upstream:
        error = said(await upstream.call(Call(tool="ask", ask=ask)))["error"]
    assert error["code"] == number
    assert error["message"].startswith(words)


async def test_a_request_that_is_not_known_is_refused_and_a_ping_answered():
    client = Client({})
    async with opened("legacy") as upstream:
        unknown = Call(tool="ask", arguments={"method": "no/such"}, ask=client.ask)
        assert said(await upstream.call(unknown))["error"]["code"] == -32601
        assert said(await upstream.call(Call(tool="ask", arguments={"method": "ping"}))) == {"result": {}}
    assert client.asked == []


async def test_a_call_is_not_silent_while_the_user_thinks():
    client = Client({"action": "decline"}, pause=1.8)
    async with opened("legacy", call_timeout=1.0) as upstream:
        assert said(await upstream.call(Call(tool="ask", ask=client.ask))) == {"result": {"action": "decline"}}


@pytest.mark.parametrize("tool", ["withdraw", "abandon"])
async def test_a_question_taken_back_is_taken_back_from_the_client(tool: str):
    client = Client({}, pause=60)
    async with opened("legacy") as upstream:
        assert said(await upstream.call(Call(tool=tool, ask=client.ask))) == "never mind"
        await until(lambda: client.cancelled == 1)


async def test_among_calls_of_one_session_the_newest_is_asked():
    old, new = Client({"who": "old"}), Client({"who": "new"})
    async with opened("legacy") as upstream, anyio.create_task_group() as tasks:
        tasks.start_soon(upstream.call, Call(tool="silent", caller=ALICE, ask=old.ask))
        await anyio.sleep(0.05)
        assert said(await upstream.call(Call(tool="ask", caller=ALICE, ask=new.ask))) == {"result": {"who": "new"}}
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("other", [BOB, Caller(principal="another", session="alice")])
async def test_a_question_is_refused_where_it_might_be_anothers(other: Caller):
    alice, bob = Client({}), Client({})
    async with opened("legacy") as upstream, anyio.create_task_group() as tasks:
        tasks.start_soon(upstream.call, Call(tool="silent", caller=ALICE, ask=alice.ask))
        await anyio.sleep(0.05)
        error = said(await upstream.call(Call(tool="ask", caller=other, ask=bob.ask, tell=bob.tell)))["error"]
        assert "no single client's call" in error["message"]
        await upstream.call(Call(tool="log", caller=other, ask=bob.ask, tell=bob.tell))
        tasks.cancel_scope.cancel()
    assert alice.asked == bob.asked == bob.told == []


async def test_more_questions_than_can_be_answered_at_once_are_refused():
    client = Client({}, pause=60)
    lines = [json.dumps({"jsonrpc": "2.0", "id": f"m{one}", "method": "roots/list"}) for one in range(40)]
    async with opened("legacy") as upstream:
        script: Any = [*lines, '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "m0"}}']
        answers = Call(tool="say", arguments={"lines": script}, ask=client.ask)
        with anyio.move_on_after(1):
            await upstream.call(answers)
        assert len(client.asked) <= 32


ROOTS: JsonObject = {"roots": [{"uri": "file:///here"}]}
GREETED = "notifications/initialized"


def folders(client: Client, **more) -> Call:
    return Call(tool="folders", ask=client.ask, capabilities={"roots": {}}, **more)


@pytest.mark.parametrize("listed_first", [True, False])
async def test_a_server_that_asks_for_folders_when_it_is_greeted_knows_them_at_the_first_call(listed_first):
    client = Client(ROOTS)
    async with opened("legacy", {"asks_roots_at": [GREETED]}) as upstream:
        if listed_first:
            await upstream.tools()
        assert said(await upstream.call(folders(client))) == {"result": ROOTS}
        assert said(await upstream.call(folders(client))) == {"result": ROOTS}
    assert client.asked == [("roots/list", {})]


async def test_first_calls_side_by_side_all_wait_for_the_folders():
    client, known = Client(ROOTS, pause=0.05), list[Any]()
    async with opened("legacy", {"asks_roots_at": [GREETED]}) as upstream:

        async def ask() -> None:
            known.append(said(await upstream.call(folders(client))))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
    assert known == [{"result": ROOTS}] * 3


async def test_a_server_that_gave_up_asking_for_folders_is_told_to_ask_again():
    client = Client(ROOTS)
    script = {"asks_roots_at": [GREETED, "notifications/roots/list_changed"], "roots_patience": 0.02}
    async with opened("legacy", script) as upstream:
        await upstream.tools()
        await anyio.sleep(0.3)
        assert said(await upstream.call(folders(client))) == {"result": ROOTS}


@pytest.mark.parametrize("client", [Client(ClientCannot("no roots")), None])
async def test_a_server_goes_without_folders_where_the_client_has_none_to_tell(client: Client | None):
    async with opened("legacy", {"asks_roots_at": [GREETED]}) as upstream:
        await upstream.tools()
        call = Call(tool="folders", ask=None if client is None else client.ask)
        known = said(await upstream.call(call))
    assert known == {"nobody": "told"} if client is None else "no roots" in known["error"]["message"]


async def test_a_server_that_lists_nothing_before_it_knows_folders_is_told_that_there_are_none():
    async with opened("legacy", {"lists_by_roots": True}) as upstream:
        with anyio.fail_after(20):
            assert (await upstream.tools()).tools
        assert "no client has called" in said(await upstream.call(Call(tool="folders")))["error"]["message"]


async def test_a_client_asked_for_folders_is_heard_though_the_call_has_ended():
    client = Client(ROOTS, pause=0.3)
    async with opened("legacy") as upstream:
        await upstream.call(Call(tool="abandon", arguments={"method": "roots/list"}, ask=client.ask))
        await anyio.sleep(0.4)
    assert (len(client.asked), client.cancelled) == (1, 0)


async def test_log_messages_are_told_to_the_client_of_the_call_and_not_without_end():
    client = Client({})
    async with opened("legacy") as upstream:
        await upstream.call(Call(tool="log", arguments={"count": 3}, tell=client.tell))
        assert [params["data"] for _, params in client.told] == ["line 0", "line 1", "line 2"]
        await upstream.call(Call(tool="log", arguments={"count": 3}))
        assert len(client.told) == 3


CHANGES: list[dict[str, Any]] = [
    {"method": "notifications/tools/list_changed"},
    {"method": "notifications/tools/list_changed"},
    {"method": "notifications/resources/list_changed"},
    {"method": "notifications/prompts/list_changed"},
    {"method": "notifications/resources/updated", "params": {"uri": "a:1"}},
    {"method": "notifications/resources/updated", "params": {}},
    {"method": "notifications/unheard/of"},
]


@ERAS
async def test_changes_are_announced_to_whoever_watches(era: str):
    heard: list[Change] = []
    async with opened(era) as upstream:
        stop = upstream.watch(heard.append)
        await call(upstream, "change", notifications=CHANGES)
        expected = {Change("tools"), Change("resources"), Change("prompts"), Change("resource", "a:1")}
        await until(lambda: set(heard) == expected)
        stop()
        heard.clear()
        await call(upstream, "change", notifications=CHANGES)
        await call(upstream, "echo", text="x")
        assert heard == []


DECLARED = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"subscribe": True}}


async def test_a_modern_server_is_asked_to_announce_what_it_says_it_can():
    async with opened("modern", {"capabilities": DECLARED}) as upstream:
        await call(upstream, "echo", text="x")
        assert await call(upstream, "listening") == [{"toolsListChanged": True, "promptsListChanged": True}]
        await upstream.subscribe("a:1")
        await upstream.subscribe("a:2")
        await upstream.unsubscribe("a:1")
        everything = await call(upstream, "listening")
        assert everything[-2]["resourceSubscriptions"] == ["a:1", "a:2"]
        assert everything[-1] == {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourceSubscriptions": ["a:2"],
        }
        await until_cancelled(upstream, 3)


async def until_cancelled(upstream: Upstream, count: int) -> None:
    with anyio.fail_after(20):
        while len(await call(upstream, "cancelled")) < count:
            await anyio.sleep(0.02)


async def test_a_server_that_stops_announcing_is_asked_again():
    heard: list[Change] = []
    ending = {"capabilities": DECLARED, "results": {"subscriptions/listen": {"resultType": "complete"}}}
    async with opened("modern", ending) as upstream:
        upstream.watch(heard.append)
        await until(lambda: set(heard) == {Change("tools"), Change("prompts")})


async def test_a_server_that_cannot_announce_is_noted():
    refusing = {"capabilities": DECLARED, "errors": {"subscriptions/listen": [-32601, "no such thing"]}}
    async with opened("modern", refusing) as upstream:
        await until(lambda: bool(upstream.notes))
        assert upstream.notes == ("does not announce changes: no such thing",)
        await upstream.subscribe("a:1")
        assert await call(upstream, "echo", text="x") == "x"


async def test_secrets_do_not_come_back_in_errors():
    async with opened(environment={"API_TOKEN": "hush-hush"}) as upstream:
        await call(upstream, "complain", text="token hush-hush is bad")
        await until(lambda: bool(upstream.stderr_tail()))
        assert upstream.stderr_tail() == "token [secret] is bad\n"
        os.kill(upstream.process_id or 0, signal.SIGKILL)
        await upstream.ended()
        with pytest.raises(SourceFailed) as caught:
            await call(upstream, "echo")
    assert "hush" not in str(caught.value.wire())
