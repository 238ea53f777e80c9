import base64
import json
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import anyio
import pytest

from ullage.errors import (
    Denied,
    InvalidArguments,
    OverBudget,
    ProtocolError,
    Refused,
    SourceFailed,
    ToolChanged,
    UllageError,
    UnknownTool,
)
from ullage.gateway.reply_metadata import (
    ACCOUNT,
    ASSUMED,
    META,
    Metered,
    Reference,
    References,
    Unwritten,
    character_limit,
    characters,
    shown,
)
from ullage.ledger import AuditEvent, Entry
from ullage.messages import Media
from ullage.models import shipped
from ullage.testing import FakeRecorder, FakeSource
from ullage.tokens import Meter, Method, drain
from ullage.tool import Block, Call, Caller, Listing, Needs, Origin, Reply, Structured, Tool, ToolSource

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:meta", "S0:meta:error", "S0:meta:tokens")]

METER = Meter(shipped())
REFERENCES = References(METER.models)
TOOL = Tool(name="toy", description="a toy", input_schema={"type": "object"})
WHEN = datetime(2026, 11, 15, tzinfo=UTC)
ADA = Caller(principal="ada", session="s", client="editor")


class Clock:
    """A quarter of a second passes with every look at it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 0.25
        return self.seconds


def metered(answer: Callable[[Call], Awaitable[Reply]], book: FakeRecorder | None = None) -> Metered:
    return Metered(
        inner=FakeSource(offered=(TOOL,), answer=answer),
        meter=METER,
        recorder=book or FakeRecorder(),
        clock=Clock(),
        reference=REFERENCES,
        now=lambda: WHEN,
    )


async def meta_of(reply: Reply, caller: Caller = ADA) -> Any:  # noqa: ANN401
    async def answer(_: Call) -> Reply:
        return reply

    return (await metered(answer).call(Call(tool="toy", caller=caller))).meta[META]


async def tokens_of(reply: Reply, caller: Caller = ADA) -> int:
    return (await meta_of(reply, caller))["tokens"]["estimated"]


@pytest.mark.requirement("U:reference", "S0:meta", "S0:meta:tokens", "S0:meta:performance")
async def test_a_reply_says_its_tokens_and_its_time():
    assert await meta_of(Reply.text("Hello, world!")) == {
        "tokens": {
            "estimated": 4,
            "approximationMethod": "o200k_base",
            "warning": "Actual tokens may vary by LLM tokenizer",
        },
        "performance": {"executionTimeMs": 250, "cachedResult": False},
    }


@pytest.mark.requirement("U:reference", "S0:meta:tokens")
async def test_the_model_the_user_named_for_the_client_is_counted_for():
    exact = await meta_of(Reply.text("Hello, world!"), Caller(principal="a", session="s", model="openai/gpt-4"))
    assert exact["tokens"] == {"estimated": 4, "approximationMethod": "gpt-4"}
    claude = await meta_of(Reply.text("Hello, world!"), Caller(principal="a", session="s", model="claude-sonnet-4-5"))
    assert claude["tokens"]["approximationMethod"].startswith("claude-sonnet-4-5")
    assert "warning" in claude["tokens"]


@pytest.mark.requirement("U:reference")
def test_a_reference_has_the_models_window_or_the_assumed_one():
    assert REFERENCES(ADA) == ASSUMED
    assert ASSUMED.window == 200_000
    named = REFERENCES(Caller(principal="a", session="s", model="gpt-4o"))
    assert (named.model, named.label, named.window, named.exact) == ("gpt-4o", "gpt-4o", 128_000, True)
    assert named is REFERENCES(Caller(principal="b", session="t", model="gpt-4o"))
    assert REFERENCES(Caller(principal="a", session="s", model="no such model")) == ASSUMED
    chosen = References(METER.models, window=32_000)
    assert [chosen(one).window for one in (ADA, Caller(principal="a", session="s", model="gpt-4o"))] == [32_000] * 2


@pytest.mark.requirement("S0:meta:error")
async def test_a_failed_call_carries_both_too():
    async def answer(_: Call) -> Reply:
        raise InvalidArguments("no", suggestion="yes", options=("a",))

    book = FakeRecorder()
    reply = await metered(answer, book).call(Call(tool="toy", caller=ADA))
    assert reply.is_error
    text = str(reply.content[0]["text"])
    assert json.loads(text) == {
        "error_code": "INVALID_ARGUMENTS",
        "message": "no",
        "suggestion": "yes",
        "available_options": ["a"],
    }
    meta: Any = reply.meta[META]
    assert meta["tokens"]["estimated"] == METER.count(text, "gpt-4o").tokens
    assert meta["performance"]["executionTimeMs"] == 250
    assert book.entries[0].is_error


@pytest.mark.requirement("S0:meta:error")
async def test_a_tool_that_ran_and_failed_carries_both_too():
    meta = await meta_of(Reply.text("it broke", is_error=True))
    assert (meta["tokens"]["estimated"], meta["performance"]["cachedResult"]) == (2, False)


@pytest.mark.parametrize("error", [UnknownTool("none"), ProtocolError("odd", number=-32000)])
async def test_errors_of_the_protocol_pass_as_they_are(error: Exception):
    async def answer(_: Call) -> Reply:
        raise error

    book = FakeRecorder()
    with pytest.raises(type(error)) as caught:
        await metered(answer, book).call(Call(tool="toy"))
    assert caught.value is error
    assert book.entries == []


@pytest.mark.requirement("S0:meta:tokens")
async def test_a_reply_that_needs_something_passes_uncounted():
    needy, book = Reply(needs=Needs({"a": {}})), FakeRecorder()

    async def answer(_: Call) -> Reply:
        return needy

    assert await metered(answer, book).call(Call(tool="toy")) is needy
    assert book.entries == []


async def test_what_a_source_put_into_the_metadata_stays():
    inner = {"data": {"rowCount": 3}, "performance": {"cachedResult": True, "executionTimeMs": 1}, "tokens": None}

    async def answer(_: Call) -> Reply:
        return Reply.text("a", meta={"com.example/its": 1, META: inner})

    book = FakeRecorder()
    reply = await metered(answer, book).call(Call(tool="toy"))
    meta: Any = reply.meta[META]
    assert reply.meta["com.example/its"] == 1
    assert meta["data"] == {"rowCount": 3}
    assert meta["performance"] == {"executionTimeMs": 250, "cachedResult": True}
    assert meta["tokens"]["estimated"] == 1
    assert book.entries[0].cached
    assert (await meta_of(Reply.text("a", meta={META: "nonsense"})))["tokens"]["estimated"] == 1


ROWS: list[Any] = [{"id": number, "name": f"item {number}", "price": 2.5} for number in range(40)]
TABLE = {"rowCount": 40, "columnCount": 3, "truncated": False}


@pytest.mark.requirement("S0:meta:data", "S0:meta")
@pytest.mark.parametrize(
    ("reply", "data"),
    [
        (Reply.text(json.dumps(ROWS)), TABLE),
        (Reply.text(json.dumps({"query": "x", "data": ROWS}, indent=2)), TABLE),
        (Reply.text(json.dumps(ROWS * 100)), {**TABLE, "rowCount": 4_000}),
        (Reply.text(json.dumps({"next": None, "data": ROWS * 100})), {**TABLE, "rowCount": 4_000}),
        (Reply(structured=Structured(ROWS)), TABLE),
        (Reply(structured=Structured({"rows": ROWS * 100})), {**TABLE, "rowCount": 4_000}),
        (Reply.text("id,name\n1,a\n2,b\n3,c"), {"rowCount": 3, "columnCount": 2, "truncated": False}),
    ],
)
async def test_a_table_of_any_tool_says_its_rows_and_columns(reply: Reply, data: dict[str, Any]):
    assert (await meta_of(reply))["data"] == data


@pytest.mark.requirement("S0:meta:data")
@pytest.mark.parametrize(
    "reply",
    [
        Reply.text("Hello, world!"),
        Reply.text(""),
        Reply.text("[1, 2, 3"),
        Reply.text(json.dumps({"name": "one thing", "size": 3})),
        Reply.text(json.dumps(ROWS), is_error=True),
        Reply.text(json.dumps({"text": "prose " * 20_000, "notes": ROWS[:2]})),
        Reply.text(json.dumps([f"word {number}" for number in range(20_000)])),
        Reply.text("[" + "prose " * 20_000),
        Reply.text("prose, of no consequence\n" * 20_000),
        Reply(content=({"type": "text", "text": json.dumps(ROWS)},) * 2),
        Reply(content=({"type": "text", "text": None},)),
        Reply(content=({"type": "image", "data": "QUJD", "mimeType": "image/png"},)),
        Reply(structured=Structured("a text")),
        Reply(structured=Structured({"text": "prose"})),
        Reply(),
    ],
)
async def test_what_is_no_table_says_nothing_of_rows(reply: Reply):
    assert "data" not in await meta_of(reply)


@pytest.mark.requirement("S0:meta:data")
async def test_what_a_source_says_of_its_rows_is_not_looked_for_again():
    said = {"rowCount": 40, "columnCount": 3, "truncated": True, "maxRowsLimit": 40}
    reply = Reply.text(json.dumps(ROWS), meta={META: {"data": said}})
    assert (await meta_of(reply))["data"] == said


@pytest.mark.requirement("S0:meta:tokens")
@pytest.mark.parametrize(("each", "tokens"), [(4, 3), (3, 4)])
async def test_a_plain_rule_counts_where_the_user_asks_for_it_by_name(each: int, tokens: int):
    rule = f"character_count_div_{each}"
    plain = Reference(model=None, counted_as=rule, label=rule, window=200_000, exact=False)

    async def answer(_: Call) -> Reply:
        return Reply.text("Olá, mundo")

    source = replace(metered(answer), reference=lambda _: plain)
    meta: Any = (await source.call(Call(tool="toy"))).meta[META]
    assert meta["tokens"] == {
        "estimated": tokens,
        "approximationMethod": rule,
        "warning": "Actual tokens may vary by LLM tokenizer",
    }
    count = METER.count("Olá, mundo", rule)
    assert (count.tokens, count.method) == (tokens, Method.ESTIMATED)
    assert count.low < METER.count("Olá, mundo", "gpt-4o").tokens < count.high
    assert METER.count("", rule).tokens == 0
    assert METER.count("x" * 100_001, rule).tokens == -(-100_001 // each)


async def test_the_ledger_is_told_who_called_what_and_what_came_of_it():
    async def answer(_: Call) -> Reply:
        return Reply(content=({"type": "text", "text": "Hello, world!"},), origin=Origin("github", "search"))

    book = FakeRecorder()
    await metered(answer, book).call(Call(tool="toy", caller=ADA))
    assert book.entries == [
        Entry(
            time=WHEN,
            kind="result",
            principal="ada",
            session="s",
            client="editor",
            server="github",
            tool="search",
            tokens=4,
            method=Method.EXACT,
            milliseconds=250.0,
        )
    ]


async def test_what_is_written_down_elsewhere_is_not_written_down_twice():
    async def answer(_: Call) -> Reply:
        return Reply.text("a")

    book = FakeRecorder()
    source = metered(answer, book)
    find = Metered(
        inner=FakeSource(offered=(Tool(name="find_tool", input_schema={}),), answer=answer),
        meter=METER,
        recorder=book,
        clock=Clock(),
        reference=REFERENCES,
    )
    assert META in (await find.call(Call(tool="find_tool"))).meta
    assert book.entries == []
    await source.call(Call(tool="toy"))
    assert book.entries[0].tool == "toy"


async def test_a_search_that_failed_is_written_down_as_any_failure_and_with_its_zone():
    async def answer(_: Call) -> Reply:
        raise InvalidArguments("no")

    book = FakeRecorder()
    find = Metered(
        inner=FakeSource(offered=(Tool(name="find_tool", input_schema={}),), answer=answer),
        meter=METER,
        recorder=book,
        clock=Clock(),
        reference=REFERENCES,
    )
    await find.call(Call(tool="find_tool"))
    assert [(entry.tool, entry.is_error, entry.time.tzinfo) for entry in book.entries] == [("find_tool", True, UTC)]


@pytest.mark.requirement("S0:meta:tokens")
async def test_structured_content_counts_only_where_there_is_no_content():
    value = Structured({"answer": "forty-two"})
    alone = await tokens_of(Reply(structured=value))
    assert alone == METER.count('{"answer":"forty-two"}', "gpt-4o").tokens
    assert await tokens_of(Reply(content=({"type": "text", "text": "42"},), structured=value)) == 1
    assert await tokens_of(Reply()) == 0


def png(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return base64.b64encode(head + b"\0" * 100_000).decode()


@pytest.mark.requirement("S0:meta:tokens")
async def test_an_image_weighs_what_its_models_maker_says_and_not_its_base64():
    reply = Reply(content=({"type": "image", "data": png(512, 512), "mimeType": "image/png"},))
    named = await meta_of(reply, Caller(principal="a", session="s", model="gpt-4o"))
    assert named["tokens"]["estimated"] == 85 + 170
    assert "warning" in named["tokens"]
    embedded = {"type": "resource", "resource": {"uri": "i", "mimeType": "image/png", "blob": png(512, 512)}}
    assert await tokens_of(Reply(content=(embedded,)), Caller(principal="a", session="s", model="gpt-4o")) == 256


@pytest.mark.requirement("S0:meta:tokens")
@pytest.mark.parametrize(
    ("block", "text"),
    [
        (
            {"type": "resource", "resource": {"uri": "a:b", "text": "some text", "_meta": {"x": "y" * 99}}},
            "a:b some text",
        ),
        ({"type": "resource", "resource": {"uri": "a:b", "blob": "QUJD" * 999}}, "a:b"),
        ({"type": "resource_link", "uri": "a:b", "_meta": {"x": 1}}, '{"type":"resource_link","uri":"a:b"}'),
        ({"type": "film", "data": "QUJD" * 999, "mimeType": "video/mp4"}, '{"type":"film","mimeType":"video/mp4"}'),
        ({"type": "chart", "data": "1 2 3", "annotations": {}}, '{"type":"chart","data":"1 2 3"}'),
        ({"type": "text", "text": None}, '{"type":"text","text":null}'),
    ],
)
async def test_other_blocks_count_as_what_of_them_reaches_a_model(block: Block, text: str):
    whole = METER.count(text, "gpt-4o").tokens
    assert abs(await tokens_of(Reply(content=(block,))) - whole) <= 1


@pytest.mark.requirement("S0:meta:tokens")
async def test_sound_is_no_text():
    block = {"type": "audio", "data": "QUJD" * 10_000, "mimeType": "audio/mp3"}
    assert 0 < await tokens_of(Reply(content=(block,))) < 1_000
    assert await tokens_of(Reply(content=({"type": "image", "data": None},))) > 0


@pytest.mark.requirement("S0:meta:tokens")
@pytest.mark.parametrize("count", [1, 3_000])
async def test_counting_a_large_reply_lets_others_in(count: int):
    reply = Reply(content=({"type": "text", "text": "some words of no consequence " * (60_000 // count)},) * count)
    turns = 0

    async def live() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(live)
        await meta_of(reply)
        group.cancel_scope.cancel()
    assert turns > 50


async def test_what_the_inner_source_lacks_is_not_offered():
    class Bare(ToolSource):
        async def tools(self) -> Listing:
            return Listing((), "1")

        async def call(self, call: Call) -> Reply:
            raise SourceFailed("never")

    bare = Metered(inner=Bare(), meter=METER, recorder=FakeRecorder(), clock=Clock(), reference=lambda _: ASSUMED)
    assert not bare.features

    async def answer(_: Call) -> Reply:
        return Reply.text("a")

    rich = metered(answer)
    assert hasattr(rich, "resources")
    assert (await rich.tools()).tools == (TOOL,)
    assert isinstance(rich.reference(ADA), Reference)


@pytest.mark.requirement("U:ledger", "U:budget")
@pytest.mark.parametrize(
    ("account", "written"),
    [
        (
            {"baseline": 100, "method": "exact"},
            {"kind": "result", "baseline_tokens": 100, "saved_tokens": 96, "detail": {"baseline_method": "exact"}},
        ),
        (
            {"server": "github", "tool": "search"},
            {"kind": "page", "saved_tokens": -4, "server": "github", "tool": "search"},
        ),
        ({"method": "exact"}, {"kind": "result"}),
        ("nonsense", {"kind": "result"}),
        (None, {"kind": "result"}),
    ],
)
@pytest.mark.parametrize("is_budgeted", [False, True])
async def test_the_ledger_says_what_the_budget_saved_and_a_client_never_sees_the_account(
    account: Any,  # noqa: ANN401
    written: dict[str, Any],
    *,
    is_budgeted: bool,
):
    async def answer(_: Call) -> Reply:
        return Reply.text("Hello, world!", meta={ACCOUNT: account})

    book = FakeRecorder()
    source = replace(metered(answer, book), is_budgeted=is_budgeted)
    reply = await source.call(Call(tool="toy", caller=ADA))
    assert reply.meta.keys() == {META}
    (entry,) = book.entries
    plain = {"server": None, "tool": "toy", "baseline_tokens": None, "saved_tokens": 0 if is_budgeted else None}
    expected = {**plain, "detail": {}, "tokens": 4, **written}
    assert {name: getattr(entry, name) for name in expected} == expected


@pytest.mark.requirement("S0:meta:data")
async def test_a_cut_result_says_nothing_of_rows_but_what_its_source_says():
    assert "data" not in await meta_of(Reply.text(json.dumps(ROWS), meta={META: {"handle": "r1"}}))


@pytest.mark.requirement("U:ledger", "S0:meta:error")
@pytest.mark.parametrize(
    ("error", "is_audited"),
    [
        (Denied("no"), True),
        (OverBudget("no"), True),
        (Refused("no"), True),
        (ToolChanged("no"), True),
        (InvalidArguments("no"), False),
        (SourceFailed("no"), False),
    ],
)
async def test_a_refusal_is_audited_with_who_what_and_why(error: UllageError, *, is_audited: bool):
    async def answer(_: Call) -> Reply:
        raise error

    book = FakeRecorder()
    await metered(answer, book).call(Call(tool="toy", arguments={"tool_name": "other"}, caller=ADA))
    expected = AuditEvent(
        time=WHEN, kind="refusal", principal="ada", session="s", client="editor", subject="toy", reason=error.code
    )
    assert book.events == ([expected] if is_audited else [])
    assert [entry.is_error for entry in book.entries] == [True]


@pytest.mark.requirement("U:ledger")
@pytest.mark.parametrize(
    ("tool", "arguments", "origin", "server", "subject"),
    [
        ("call_tool", {"tool_name": "notes__drop"}, None, None, "notes__drop"),
        ("call_tool_write", {"tool_name": 3}, None, None, "3"),
        ("find_tool", {}, None, None, "find_tool"),
        ("call_tool", {"tool_name": "notes__drop"}, Origin("notes", "drop"), "notes", "drop"),
    ],
)
async def test_what_was_refused_is_the_tool_that_was_to_be_called(
    tool: str, arguments: dict[str, Any], origin: Origin | None, server: str | None, subject: str
):
    async def answer(_: Call) -> Reply:
        return Reply(content=(), is_error=True, error_code="DENIED", origin=origin)

    book = FakeRecorder()
    source = Metered(
        inner=FakeSource(offered=(Tool(name=tool, input_schema={}),), answer=answer),
        meter=METER,
        recorder=book,
        clock=Clock(),
        reference=REFERENCES,
    )
    await source.call(Call(tool=tool, arguments=arguments, caller=ADA))
    assert [(event.server, event.subject, event.reason) for event in book.events] == [(server, subject, "DENIED")]


@pytest.mark.requirement("U:ledger", "S0:meta:performance")
async def test_an_entry_says_the_model_the_inferred_session_and_whether_a_cache_answered():
    async def answer(_: Call) -> Reply:
        return Reply.text("Hello, world!", meta={META: {"performance": {"cachedResult": True}}})

    book = FakeRecorder()
    caller = Caller(principal="ada", session="s", session_inferred=True, model="openai/gpt-4")
    found: Any = (await metered(answer, book).call(Call(tool="toy", caller=caller))).meta[META]
    assert found["performance"] == {"executionTimeMs": 250, "cachedResult": True}
    (entry,) = book.entries
    assert (entry.cached, entry.session_inferred, entry.model, entry.client) == (True, True, "gpt-4", None)


@pytest.mark.parametrize(
    "said", [{"cachedResult": 1}, {"cachedResult": "true"}, {}, None, "yes", {"cachedResult": False}]
)
async def test_only_true_says_that_a_cache_answered(said: Any):  # noqa: ANN401
    found = await meta_of(Reply.text("x", meta={META: {"performance": said}}))
    assert found["performance"]["cachedResult"] is False


@pytest.mark.requirement("S0:meta")
async def test_other_metadata_of_a_reply_stays_and_odd_metadata_of_ours_does_not():
    async def answer(_: Call) -> Reply:
        return Reply.text("x", meta={"other/key": 1, META: "odd", ACCOUNT: {}})

    reply = await metered(answer).call(Call(tool="toy", caller=ADA))
    assert set(reply.meta) == {"other/key", META}
    assert set(cast("dict[str, Any]", reply.meta[META])) == {"tokens", "performance"}


def parts(*blocks: Block) -> list[Any]:
    def text(part: Any) -> Any:  # noqa: ANN401
        return json.loads(drain(part.text())) if isinstance(part, Unwritten) else part

    return [text(part) for part in shown(Reply(content=blocks))]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "text", "text": "a"}, ["a"]),
        ({"type": "text", "text": 3}, [{"type": "text", "text": 3}]),
        ({"type": "text", "text": "a", "annotations": {}}, ["a"]),
        ({"type": "x", "a": 1, "_meta": {}, "annotations": {}, "icons": []}, [{"type": "x", "a": 1}]),
        ({"type": "x", "data": "d", "blob": "b"}, [{"type": "x", "data": "d", "blob": "b"}]),
        ({"type": "x", "data": "d", "blob": "b", "mimeType": "m"}, [{"type": "x", "mimeType": "m"}]),
        ({"type": "resource", "resource": {"uri": "u", "text": "t"}}, ["u", "t"]),
        ({"type": "resource", "resource": {"text": "t"}}, ["", "t"]),
        ({"type": "resource", "resource": {"uri": "u", "blob": "b"}}, ["u"]),
        (
            {"type": "resource", "resource": {"uri": "u", "blob": "b", "mimeType": "image/png"}},
            ["u", Media(kind="image", media_type="image/png", data="b")],
        ),
        ({"type": "resource", "resource": {"uri": "u", "blob": "b", "mimeType": "audio/wav"}}, ["u"]),
        ({"type": "resource", "resource": 3}, [{"type": "resource", "resource": 3}]),
        ({"type": "image", "data": "d", "mimeType": "m"}, [Media(kind="image", media_type="m", data="d")]),
        ({"type": "audio", "data": 3, "mimeType": 3}, [Media(kind="audio", media_type=None, data=None)]),
    ],
)
def test_of_each_block_what_a_client_shows_is_counted(block: Block, expected: list[Any]):
    assert parts(block) == expected
    assert parts(block, {"type": "text", "text": "z"}) == [*expected, "z"]


@pytest.mark.parametrize(
    "value",
    [
        {"a": list(range(1_500))},
        {f"k{n}": {"x": [n, {"y": "ü"}]} for n in range(700)},
        [[n] * 50 for n in range(150)],
        [{"rows": list(range(1_200))}, *range(150), {}],
        {"a": {}, "b": [], "c": "x" * 5_000, "d": list(range(2_000))},
        [{}] * 1_001,
        "x",
        3,
        {},
        [],
    ],
)
def test_a_large_value_is_written_in_pieces_as_compact_json(value: Any):  # noqa: ANN401
    steps = Unwritten(value).text()
    assert drain(steps) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("abc", 3), ("é", 1), ("🙂", 2), ("a🙂b", 4), ("\ud800", 1), ("日本", 2)]
)
def test_characters_are_counted_as_javascript_counts_them(text: str, length: int):
    assert characters(text) == length


@pytest.mark.parametrize(
    ("client", "limit"),
    [
        ("gemini", 39_000),
        ("Gemini", 39_000),
        ("gemini_cli", 39_000),
        ("gemini-cli", 39_000),
        ("codex", None),
        (None, None),
    ],
)
def test_a_reply_to_gemini_cli_stays_below_its_limit(client: str | None, limit: int | None):
    assert character_limit(Caller(principal="a", session="s", client=client)) == limit


@pytest.mark.requirement("S0:meta:data")
@pytest.mark.parametrize("rows", [900, 4_000])
async def test_a_long_table_has_the_same_figures_as_a_short_one(rows: int):
    value = [{"id": n, "name": "x"} for n in range(rows)]
    expected = {"rowCount": rows, "columnCount": 2, "truncated": False}
    assert (await meta_of(Reply.text(json.dumps(value))))["data"] == expected
    assert (await meta_of(Reply(structured=Structured({"result": value}))))["data"] == expected  # type: ignore[dict-item]
    assert (await meta_of(Reply.text("id,name\n" + "1,x\n" * rows)))["data"]["columnCount"] == 2
    assert "data" not in await meta_of(Reply.text(json.dumps(list(range(rows * 3)))))
    assert "data" not in await meta_of(Reply.text(json.dumps({"text": "x" * 100_000, "rows": value[:5]})))
