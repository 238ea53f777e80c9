import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ullage.errors import Denied, InvalidArguments, SourceFailed, UllageError, Unavailable, UnknownTool
from ullage.gateway.access_rules import Guarded
from ullage.gateway.find.call_tool import HEALED, UNCHECKED
from ullage.gateway.find.find_reply import LEAST_BUDGET, TokenMetrics
from ullage.gateway.find.find_settings import FindSettings, Remembered, Surroundings
from ullage.gateway.find.find_source import SAVINGS, Find
from ullage.gateway.find.search_tools import Scope, read_query, scope_of
from ullage.gateway.find.tool_forms import NAMES, find_tools
from ullage.gateway.find.tool_index import Hashes
from ullage.gateway.merge.merge import Merge
from ullage.gateway.merge.tool_view import Member, RememberedSource, View
from ullage.gateway.reply_metadata import References
from ullage.gateway.tool_source import definition_text
from ullage.models import shipped
from ullage.options import Rules
from ullage.testing import FakeRecorder, FakeSource, check_source, check_watched
from ullage.tokens import Meter
from ullage.tool import Call, Caller, Change, Introduction, Listing, Needs, Reply, Structured, Tool

Value = Any
"""Any JSON, and whatever else a test hands on."""

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:find")]

METER = Meter(shipped())
READS = {"readOnlyHint": True}
CLAUDE = Caller(principal="ann", session="two", model="claude-sonnet-4-5")


def tool(name: str, description: str = "", *, reads: bool = False, **properties: Value) -> Tool:
    needed: list[Value] = [key for key in properties if not key.endswith("_")]
    schema = {key.rstrip("_"): value for key, value in properties.items()}
    return Tool(
        name=name,
        description=description or None,
        input_schema={"type": "object", "properties": schema, "required": needed, "additionalProperties": False},
        annotations=READS if reads else {},
    )


STRING = {"type": "string"}
ISSUES = (
    tool("create_issue", "Create a new issue in a repository.", owner=STRING, title=STRING, labels_={"type": "array"}),
    tool("get_issue", "Get one issue by its number.", reads=True, owner=STRING, issue_number={"type": "integer"}),
    tool("list_commits", "List commits of a branch.", reads=True, owner=STRING),
)
WEATHER = (
    tool("forecast", "Weather forecast for a city, for up to ten days.", reads=True, city=STRING),
    tool("create_issue", "Report a fault of a weather station.", station=STRING),
)
BOOKS = tuple(
    tool(f"book_{number}", f"Order book number {number} of the catalogue. " + "Long words follow. " * 20, copies=STRING)
    for number in range(60)
)


class Slow(FakeSource):
    """Says what it offers only when let."""

    __slots__ = ("let",)

    def __init__(self, offered: tuple[Tool, ...]) -> None:
        super().__init__(offered=offered)
        self.let = anyio.Event()

    async def tools(self) -> Listing:
        await self.let.wait()
        return await super().tools()


def member(name: str, tools: tuple[Tool, ...], **changes: Value) -> Member:
    return replace(Member(name=name, source=FakeSource(offered=tools), prefix=name), **changes)


def merged(*members: Member) -> Guarded:
    return Guarded(Merge(members, reserved=NAMES, patience=0.02))


def finding(*members: Member, around: Surroundings | None = None, **changes: Value) -> Find:
    inner = merged(*(members or (member("github", ISSUES), member("weather", WEATHER), member("shop", BOOKS))))
    return Find(inner, METER, FindSettings(**{"mode": "search", "start_wait": 0.05} | changes), around)


async def find(source: Find, description: str, **arguments: Value) -> dict[str, Value]:
    return said(await source.call(Call(tool="find_tool", arguments={"tool_description": description, **arguments})))


def said(reply: Reply) -> dict[str, Value]:
    return json.loads(text_of(reply))


def text_of(reply: Reply) -> str:
    return str(reply.content[0]["text"])


def tokens(text: str, model: str = "gpt-4o") -> int:
    return METER.count(text, model).high


async def run(source: Find, tool: str, parameters: Value = None, door: str = "call_tool", **more: Value) -> Reply:
    return await source.call(Call(tool=door, arguments={"tool_name": tool, "parameters": parameters or {}, **more}))


async def refused(
    source: Find, tool: str, parameters: Value = None, door: str = "call_tool", **more: Value
) -> UllageError:
    with pytest.raises(UllageError) as caught:
        await run(source, tool, parameters, door, **more)
    return caught.value


def calls(source: Find, server: str) -> list[Call]:
    found: Any = next(each.source for each in source.members if each.name == server)
    return found.calls


# What is listed


@pytest.mark.requirement("S1:surface")
def test_the_model_carries_at_most_three_hundred_tokens_of_ours():
    # read_result, which is to come, then has 100 of the 400.
    for join_calls in (False, True):
        assert sum(tokens(definition_text(each)) for each in find_tools(join_calls=join_calls)) <= 300


async def test_our_own_definitions_ask_not_to_be_deferred_and_the_model_carries_nothing_of_that():
    for join_calls in (False, True):
        for each in (await finding(join_calls=join_calls).tools()).tools:
            assert each.extra == {"_meta": {"anthropic/alwaysLoad": True}}
            assert "alwaysLoad" not in definition_text(each)


@pytest.mark.requirement("S1:surface", "S1:find", "S1:call")
async def test_three_tools_stand_for_all_in_a_fixed_order():
    source = finding()
    listing = await source.tools()
    assert [each.name for each in listing.tools] == ["find_tool", "call_tool", "call_tool_write"]
    schemas: dict[str, Value] = {each.name: each.input_schema for each in listing.tools}
    assert list(schemas["find_tool"]["properties"]) == ["tool_description", "tool_keywords", "max_tokens"]
    assert schemas["find_tool"]["required"] == ["tool_description"]
    assert list(schemas["call_tool"]["properties"]) == ["server_name", "tool_name", "parameters"]
    assert schemas["call_tool"] == schemas["call_tool_write"]
    assert (await source.tools()) == listing


@pytest.mark.requirement("S1:call")
async def test_the_doors_say_truly_what_goes_through_them():
    hints = {each.name: each.annotations for each in (await finding().tools()).tools}
    assert hints["find_tool"]["readOnlyHint"] is hints["call_tool"]["readOnlyHint"] is True
    assert hints["call_tool_write"]["readOnlyHint"] is False
    assert hints["call_tool_write"]["destructiveHint"] is True
    joined = {each.name: each.annotations for each in (await finding(join_calls=True).tools()).tools}
    assert list(joined) == ["find_tool", "call_tool"]
    assert joined["call_tool"]["readOnlyHint"] is False


@pytest.mark.requirement("S1:surface", "U:own")
async def test_pinned_tools_are_always_shown_as_they_are():
    count = tool("count-tokens", "Count tokens.", reads=True, text=STRING)
    own = member("ullage", (count, tool("other")), prefix="", own=True, rules=Rules(pinned=("count-tokens",)))
    source = finding(member("github", ISSUES, rules=Rules(pinned=("get_*",))), own)
    listed = (await source.tools()).tools
    assert [each.name for each in listed[3:]] == ["github__get_issue", "count-tokens"]
    assert listed[4] == count
    assert (await source.call(Call(tool="other"))).origin is not None, "what is not listed answers to its name"
    assert (await find(source, "other"))["tools"][0]["name"] == "other", "and is found"


@pytest.mark.requirement("S1:surface")
async def test_a_small_catalogue_is_shown_directly_and_nothing_of_ours_beside_it():
    source = finding(member("github", ISSUES), mode="auto")
    listed = (await source.tools()).tools
    assert [each.name for each in listed] == ["github__create_issue", "github__get_issue", "github__list_commits"]
    assert [each.input_schema for each in listed] == [each.input_schema for each in ISSUES]
    assert source.surface == "direct"


@pytest.mark.requirement("S1:surface")
async def test_a_large_catalogue_is_searched():
    source = finding(mode="auto", direct_below=0.001)
    assert [each.name for each in (await source.tools()).tools] == list(NAMES)


@pytest.mark.requirement("S1:surface")
async def test_a_catalogue_not_yet_known_is_searched_and_that_is_not_remembered():
    memory, slow = Remembered(), Slow(ISSUES)
    around = Surroundings(memory=memory)
    source = finding(member("github", (), source=slow), around=around, mode="auto")
    assert (await source.tools()).tools[0].name == "find_tool"
    assert memory.decisions == {}
    slow.let.set()
    assert (await find(source, "create issue"))["tools"]
    assert (await source.tools()).tools[0].name == "find_tool", "the list stays as it is while the client is there"
    later = Find(source.inner, METER, FindSettings(mode="auto"), around)
    assert (await later.tools()).tools[0].name == "github__create_issue"
    assert memory.decisions["default"].surface == "direct"


@pytest.mark.requirement("S1:surface")
async def test_the_choice_is_kept_until_the_configuration_changes():
    memory = Remembered()
    around = Surroundings(memory=memory)
    first = finding(member("github", ISSUES), around=around, mode="auto", direct_below=0.0001, configuration="a")
    await first.tools()
    assert first.surface == "search"
    again = finding(member("github", ISSUES), around=around, mode="auto", configuration="a")
    await again.tools()
    assert again.surface == "search"
    again.replace(replace(again.settings, configuration="b"))
    await again.tools()
    assert again.surface == "direct"
    assert finding(member("github", ISSUES), around=around, mode="auto").surface == "direct", "as remembered"


@pytest.mark.requirement("S1:surface")
async def test_what_the_settings_force_is_done_at_once_and_not_remembered():
    memory = Remembered()
    around = Surroundings(memory=memory)
    source = finding(member("github", ISSUES), around=around, mode="auto")
    await source.tools()
    remembered = dict(memory.decisions)
    forced = finding(member("github", ISSUES), around=around, mode="search")
    assert [each.name for each in (await forced.tools()).tools] == list(NAMES)
    source.replace(replace(source.settings, mode="search"))
    assert [each.name for each in (await source.tools()).tools] == list(NAMES)
    assert memory.decisions == remembered
    source.replace(replace(source.settings, mode="auto"))
    assert (await source.tools()).tools[0].name == "github__create_issue"


@pytest.mark.requirement("S1:surface")
async def test_a_catalogue_shown_directly_is_searched_when_it_has_grown_far_beyond():
    source = finding(member("github", ISSUES), mode="auto", direct_below=0.002)
    await source.tools()
    assert source.surface == "direct"
    source.inner.inner.replace([member("github", ISSUES), member("shop", BOOKS)])  # type: ignore[attr-defined]
    assert [each.name for each in (await source.tools()).tools] == list(NAMES)


@pytest.mark.requirement("S1:surface")
async def test_what_clients_were_told_of_the_list_stands_until_the_settings_change():
    slow = Slow(ISSUES)
    source = finding(member("github", (), source=slow), mode="auto", configuration="a")
    assert "found with find_tool" in source.instructions(await source.inner.view())
    slow.let.set()
    assert (await source.inner.view(1.0)).missing == ()
    assert (await source.tools()).tools[0].name == "find_tool", "though by now it is known to be a small catalogue"
    source.replace(replace(source.settings, configuration="b"))
    assert (await source.tools()).tools[0].name == "github__create_issue"
    assert source.instructions(await source.inner.view()).startswith("Tools of these servers:")


@pytest.mark.requirement("S1:surface")
async def test_what_clients_were_told_is_shown_directly_stays_so_however_it_grows():
    source = finding(member("github", ISSUES), mode="auto", direct_below=0.002)
    await source.tools()
    assert source.instructions(await source.inner.view()).startswith("Tools of these servers:")
    source.inner.inner.replace([member("github", ISSUES), member("shop", BOOKS)])  # type: ignore[attr-defined]
    assert len((await source.tools()).tools) == len(ISSUES) + len(BOOKS)
    later = Find(source.inner, METER, source.settings)
    assert (await later.tools()).tools[0].name == "find_tool", "the next start decides anew"


async def test_direct_mode_waits_for_servers_because_its_list_is_all_there_is():
    slow = Slow(ISSUES)
    source = finding(member("github", (), source=slow), mode="direct", start_wait=60.0)
    async with anyio.create_task_group() as group:
        group.start_soon(_later, slow.let.set)
        assert len((await source.tools()).tools) == 3


@pytest.mark.parametrize("delay", [0.02, 1.3])
async def test_an_introduction_in_direct_mode_waits_for_the_first_server(delay: float):
    slow = Slow(ISSUES)
    source = finding(member("github", (), source=slow), mode="direct", start_wait=60.0)
    async with anyio.create_task_group() as group:
        group.start_soon(_later, slow.let.set, delay)
        await source.meet_servers()
        assert len((await source.inner.view()).entries) == 3


async def _later(work: Callable[[], object], seconds: float = 0.02) -> None:
    await anyio.sleep(seconds)
    work()


# What the model is told of the servers


@pytest.mark.requirement("S1:surface")
async def test_instructions_name_each_server_in_a_line():
    class Told(FakeSource):
        def introduction(self) -> Introduction:
            return Introduction(name="w", instructions="Forecasts for every city. Use them well.\n\nMore.")

    told = Told(offered=WEATHER)
    slow = Slow(ISSUES)
    source = finding(
        member("github", ISSUES, description="Repositories and issues"),
        member("weather", (), source=told),
        member("shop", BOOKS[:2]),
        member("late", (), source=slow),
        member("ullage", BOOKS[:1], own=True),
    )
    assert source.instructions(await source.inner.view()).splitlines() == [
        "The tools of these servers are found with find_tool:",
        "- github (3 tools): Repositories and issues",
        "- weather (2 tools): Forecasts for every city",
        "- shop (2 tools): book_0, book_1",
        "- late",
    ]


@pytest.mark.requirement("S1:surface")
@pytest.mark.parametrize("number", [0, 1, 5, 12, 40, 150, 600])
async def test_instructions_stay_within_their_budget_however_many_servers_there_are(number: int):
    members = [
        member(f"server-{at}", ISSUES[:1], description="Does a great many things for everyone. " * 5)
        for at in range(number)
    ]
    inner = merged(*members)
    source = Find(inner, METER, FindSettings(mode="search"))
    text = source.instructions(await inner.view())
    assert tokens(text) <= 300
    assert (not text) == (number == 0)
    if number > 100:
        assert "more" in text
    elif number:
        assert f"server-{number - 1}" in text


async def test_instructions_too_small_for_any_name_give_the_number():
    inner = merged(*(member(f"a-very-long-name-of-a-server-{'x' * 60}-{at}", ISSUES[:1]) for at in range(30)))
    source = Find(inner, METER, FindSettings(mode="search", instructions_budget=16))
    assert source.instructions(await inner.view()).endswith("30 in all")


async def test_in_direct_mode_instructions_do_not_speak_of_finding():
    source = finding(member("github", ISSUES), mode="direct")
    await source.tools()
    assert source.instructions(await source.inner.view()).startswith("Tools of these servers:")


# Finding


@pytest.mark.requirement("S1:find", "S1:metrics")
async def test_a_search_gives_definitions_lines_and_figures():
    found = await find(finding(), "create an issue in a repository")
    first = found["tools"][0]
    assert first == {
        "name": "github__create_issue",
        "description": "Create a new issue in a repository.",
        "inputSchema": ISSUES[0].input_schema,
        "call": "call_tool_write",
    }
    figures = TokenMetrics(**found["token_metrics"])
    every = [*ISSUES, *WEATHER, *BOOKS]
    assert figures.baseline_tokens >= sum(tokens(definition_text(each)) for each in every)
    returned = [*(json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in found["tools"])]
    returned += [json.dumps(each, ensure_ascii=False) for each in found["more"]]
    assert figures.returned_tokens == sum(map(tokens, returned))


@pytest.mark.requirement("S1:find")
async def test_a_tool_that_may_change_something_says_which_door_it_takes():
    found = await find(finding(), "issue", max_tokens=400)
    doors = {each["name"]: each.get("call") for each in found["tools"]}
    assert doors["github__get_issue"] is None
    writes = [line for line in found["more"] if "create_issue" in line]
    assert doors.get("github__create_issue") == "call_tool_write" or writes[0].endswith(" [write]")
    joined = await find(finding(join_calls=True), "issue", max_tokens=400)
    assert "call_tool_write" not in json.dumps(joined)
    assert "[write]" not in json.dumps(joined)


@pytest.mark.requirement("S1:find")
@pytest.mark.parametrize(
    "query",
    [
        "github__create_issue",
        "github.createIssue",
        "mcp__github__create_issue",
        "github create_issue",
        "github create issue",
    ],
)
async def test_asked_by_name_it_gives_that_tool_first(query: str):
    found = await find(finding(), query)
    assert found["tools"][0]["name"] == "github__create_issue"


@pytest.mark.requirement("S1:find")
async def test_a_name_of_two_servers_gives_both_and_nothing_else():
    found = await find(finding(), "create_issue")
    assert {each["name"] for each in found["tools"]} == {"github__create_issue", "weather__create_issue"}
    assert found["more"] == []
    assert (await find(finding(), "weather create_issue"))["tools"][0]["name"] == "weather__create_issue"


async def test_a_name_is_known_beside_keywords():
    found = await find(finding(), "list_commits", tool_keywords="issue number city forecast")
    assert found["tools"][0]["name"] == "github__list_commits"


async def test_a_servers_name_gives_that_servers_tools():
    found = await find(finding(), "GitHub")
    assert [each["name"] for each in found["tools"]] == [f"github__{each.name}" for each in ISSUES]


# Keeping to a server


TOOLS_OF_GITHUB = [f"github__{each.name}" for each in ISSUES]


def shown(found: dict[str, Value]) -> list[str]:
    """The names of a reply's tools, in its order."""
    return [each["name"] for each in found["tools"]] + [re.split(r"[ (]", line)[0] for line in found["more"]]


@pytest.mark.requirement("S1:find")
@pytest.mark.parametrize(
    "asked",
    [
        {"tool_description": "github: report a new issue"},
        {"tool_description": "GitHub : report a new issue"},
        {"tool_description": "report a new issue @github"},
        {"tool_description": "@GitHub, report a new issue"},
        {"tool_description": "report a new issue", "server_name": "github"},
        {"tool_description": "report a new issue", "server_name": "GitHub"},
        {"tool_description": "report a new issue", "server_name": ["github"]},
        {"tool_description": "report a new issue", "server_name": "mcp-github"},
        {"tool_keywords": "report new issue", "server": "github"},
        {"tool_description": "github", "tool_keywords": "report new issue"},
    ],
)
async def test_a_search_that_names_a_server_keeps_to_its_tools_nearest_first(asked: dict[str, Value]):
    found = said(await finding().call(Call(tool="find_tool", arguments=asked)))
    assert sorted(shown(found)) == sorted(TOOLS_OF_GITHUB)
    assert shown(found)[0] == "github__create_issue"


async def test_without_a_server_all_are_searched():
    everywhere = shown(await find(finding(), "report a new issue of github"))
    assert "weather__create_issue" in everywhere, "a server's name among other words is a word like them"


@pytest.mark.parametrize("servers", ["github, weather", ["github", "weather"]])
async def test_a_search_may_keep_to_several_servers(servers: Value):
    found = shown(await find(finding(), "create issue", server_name=servers))
    assert sorted(found) == sorted([*TOOLS_OF_GITHUB, "weather__forecast", "weather__create_issue"])
    found = shown(await find(finding(), "create issue @github @weather"))
    assert not any(name.startswith("shop") for name in found)


async def test_named_as_for_a_call_a_tool_is_given_alone():
    arguments = {"server_name": "weather", "tool_name": "create_issue"}
    reply = await finding().call(Call(tool="find_tool", arguments=arguments))
    assert shown(said(reply)) == ["weather__create_issue"]


@pytest.mark.parametrize(
    "query",
    ["GitHub", "github tools", "all tools of github", "List the tools available in the GitHub server", "github:"],
)
async def test_nothing_but_a_servers_name_gives_all_of_its_tools(query: str):
    assert shown(await find(finding(), query)) == TOOLS_OF_GITHUB


async def test_a_servers_name_alone_names_all_tools_before_it_says_more_of_any():
    found = await find(finding(), "shop", max_tokens=600)
    assert shown(found) == [f"shop__book_{number}" for number in range(60)]


@pytest.mark.parametrize(
    "query", ["time: 12 o'clock", "mail @ann about an issue", "see https://github.com/a/b", "note: x"]
)
async def test_what_names_no_server_is_words(query: str):
    source = finding()
    view = await source.inner.view()
    assert scope_of(query, (), view) == Scope(query)
    await find(source, query)


@pytest.mark.requirement("U:errors")
async def test_a_server_that_is_not_there_is_refused_with_the_nearest_names():
    with pytest.raises(InvalidArguments) as caught:
        await find(finding(), "create an issue", server_name="gitbub")
    assert caught.value.wire() == {
        "error_code": "INVALID_ARGUMENTS",
        "message": "no server is called `gitbub`",
        "suggestion": "Leave the server out, or name one of the options.",
        "available_options": ["github"],
    }


@pytest.mark.parametrize("query", ["gitbub: create an issue", "create an issue @gitbub"])
async def test_whoever_seems_to_name_a_server_that_is_not_there_is_told_that_all_were_searched(query: str):
    assert (await find(finding(), query))["hint"] == "No server is called `gitbub`; all were searched."


@pytest.mark.parametrize(
    "query", ["github: create an issue", "create an issue", "order a book: https://x.y", "order a book at 10:30"]
)
async def test_whoever_names_no_strange_server_is_told_nothing(query: str):
    assert "hint" not in await find(finding(), query)


@pytest.mark.parametrize("query", ["list_commits", "listCommits", "github.list_commits", "github__list_commits"])
async def test_a_name_in_whatever_spelling_brings_that_tool_alone(query: str):
    assert shown(await find(finding(), query)) == ["github__list_commits"]


async def test_a_server_that_is_still_starting_can_be_named():
    source = finding(member("github", ISSUES), member("late", (), source=Slow(WEATHER)), start_wait=0.0)
    found = await find(source, "weather forecast", server_name="late")
    assert shown(found) == []
    assert found["missing"]


async def test_a_tool_called_like_a_server_comes_before_that_servers_tools():
    source = finding(member("search", ISSUES), member("web", (tool("search", "Search the web.", reads=True),)))
    assert shown(await find(source, "search"))[:2] == ["web__search", "search__create_issue"]


# Tools that do the same


FORGE = (
    tool("create_issue", "Create a new issue in a repository.", owner=STRING, title=STRING, labels_={"type": "array"}),
    tool("get_issue", "Get one issue by its number.", reads=True, owner=STRING, issue_number={"type": "integer"}),
)
BOTH = (member("github", FORGE), member("github-work", FORGE), member("weather", WEATHER))


@pytest.mark.requirement("S1:budget")
async def test_of_tools_that_do_the_same_one_is_shown_and_names_the_others():
    found = await find(finding(*BOTH), "create an issue in a repository")
    first, *others = found["tools"]
    assert list(first) == ["name", "description", "inputSchema", "also", "call"]
    assert {first["name"], *first["also"]} == {"github__create_issue", "github-work__create_issue"}
    assert not {first["name"], *first["also"]}.intersection(each["name"] for each in others)
    assert "weather__create_issue" in shown(found), "the same name, and another tool"
    brief = await find(finding(*BOTH), "create an issue in a repository", max_tokens=120)
    line = next(line for line in brief["more"] if "create_issue" in line)
    assert line.startswith(first["name"])
    assert line.endswith(f" (also: {first['also'][0]}) [write]")


async def test_the_tool_whose_server_is_asked_for_stands_for_the_others():
    for query in ("create an issue at github-work", "github-work create_issue", "github-work__create_issue"):
        first = (await find(finding(*reversed(BOTH)), query))["tools"][0]
        assert first["name"] == "github-work__create_issue"
    alone = await find(finding(*BOTH), "create an issue", server_name="github-work")
    assert alone["tools"][0]["name"] == "github-work__create_issue"
    assert "also" not in alone["tools"][0]


async def test_a_name_that_twins_share_gives_one_definition_and_the_others_names():
    found = await find(finding(*BOTH), "get_issue")
    assert {*shown(found), *found["tools"][0]["also"]} == {"github__get_issue", "github-work__get_issue"}
    assert len(shown(found)) == 1


async def test_a_line_with_others_in_it_can_be_copied_whole_as_a_name():
    source = finding(*BOTH, *(member(f"github-{name}", FORGE) for name in ("home", "dev", "test", "local", "main")))
    found = await find(source, "get one issue by its number")
    assert found["tools"][0]["also"][-1] == "…1 more"
    brief = await find(source, "get one issue by its number", max_tokens=130)
    line = next(line for line in brief["more"] if "(also: " in line)
    reply = await run(source, line, {"owner": "ann", "issue_number": 3})
    assert reply.origin is not None


@pytest.mark.requirement("S1:budget")
@given(st.integers(2, 9), st.integers(100, 700))
@settings(max_examples=30)
def test_however_many_do_the_same_the_budget_holds(number: int, budget: int):
    async def ask() -> None:
        source = finding(*(member(f"github-{at}", FORGE) for at in range(number)))
        for query in ("create an issue", "get_issue", "github-1: issue"):
            arguments = {"tool_description": query, "max_tokens": budget}
            reply = await source.call(Call(tool="find_tool", arguments=arguments))
            assert tokens(text_of(reply)) <= budget
            TokenMetrics(**said(reply)["token_metrics"])

    anyio.run(ask)


@pytest.mark.parametrize("keywords", ["city days", ["city", "days", 3]])
async def test_keywords_are_taken_as_a_text_or_a_list(keywords: Value):
    source = finding()
    found = await source.call(Call(tool="find_tool", arguments={"tool_keywords": keywords}))
    assert said(found)["tools"][0]["name"] == "weather__forecast"


async def test_other_words_for_the_description_are_understood_and_said():
    reply = await finding().call(Call(tool="find_tool", arguments={"query": "weather forecast", "limit": 3}))
    assert said(reply)["tools"][0]["name"] == "weather__forecast"
    assert reply.meta[HEALED] == ["`query` read as `tool_description`", "find_tool has no argument `limit`; left aside"]


async def test_a_document_in_place_of_a_query_is_read_from_its_beginning_and_that_is_said():
    text = "weather forecast " + "and much besides " * 10_000
    reply = await finding().call(Call(tool="find_tool", arguments={"tool_description": text}))
    assert said(reply)["tools"][0]["name"] == "weather__forecast"
    assert reply.meta[HEALED] == ["only the first 10,000 letters were read"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"tool_description": "  "},
        {"tool_description": 3},
        {"tool_description": "x", "max_tokens": 99},
        {"tool_description": "x", "max_tokens": 0},
        {"tool_description": "x", "max_tokens": -5},
        {"tool_description": "x", "max_tokens": -(10**5_000)},
        {"tool_description": "x", "max_tokens": float("nan")},
        {"tool_description": "x", "max_tokens": "1e999"},
        {"tool_description": "x", "max_tokens": True},
        {"tool_description": "x", "max_tokens": "many"},
        {"tool_description": "x", "max_tokens": []},
    ],
)
async def test_a_search_that_cannot_be_answered_is_refused_with_a_hint(arguments: Value):
    with pytest.raises(InvalidArguments) as caught:
        await finding().call(Call(tool="find_tool", arguments=arguments))
    assert caught.value.suggestion


@pytest.mark.parametrize(
    "most", ["500", 500.0, 10**12, 10**400, float("inf")], ids=["text", "float", "large", "larger", "infinite"]
)
async def test_a_budget_is_taken_in_any_spelling(most: Value):
    assert (await find(finding(), "issue", max_tokens=most))["tools"]


async def test_a_budget_of_the_settings_is_never_less_than_a_reply_takes():
    assert read_query({"tool_description": "x"}, 10).budget == LEAST_BUDGET
    assert read_query({"tool_description": "x"}, 900).budget == 900


async def test_nothing_found_says_which_servers_there_are():
    found = await find(finding(), "zzzz qqqq")
    assert (found["tools"], found["more"]) == ([], [])
    assert "github, weather, shop" in found["hint"]
    assert found["token_metrics"] == TokenMetrics.of(0, 0).to_json(), "nothing was saved"


async def test_a_reply_to_gemini_cli_stays_below_what_it_shows_whole():
    forms = tuple(
        tool(
            f"form_{number}",
            f"Fill in form {number}.",
            reads=False,
            **{f"field_{number}_{at}": STRING for at in range(300)},
        )
        for number in range(12)
    )
    source = finding(member("forms", forms))
    for client, is_limited in (("gemini", True), ("gemini-cli", True), (None, False)):
        caller = Caller(principal="p", session="s", client=client)
        arguments = {"server_name": "forms", "max_tokens": 10**9}
        reply = await source.call(Call(tool="find_tool", arguments=arguments, caller=caller))
        assert (len(text_of(reply)) < 40_000) is is_limited
        assert reply.structured is not None
        assert len(text_of(reply)) > 20_000


@pytest.mark.requirement("S1:metrics")
async def test_an_empty_catalogue_has_figures_too():
    found = await find(Find(merged(), METER, FindSettings(mode="search")), "anything")
    assert found["token_metrics"] == TokenMetrics.of(0, 0).to_json()
    assert "No server is connected" in found["hint"]


@pytest.mark.requirement("S1:metrics")
async def test_what_is_withheld_or_hidden_is_neither_found_nor_counted():
    rules = Rules(deny=("create_*",), hidden=("get_*",))
    source = finding(member("github", ISSUES, rules=rules))
    found = await find(source, "issue create get list commits")
    assert [each["name"] for each in found["tools"]] == ["github__list_commits"]
    named = replace(ISSUES[2], name="github__list_commits")
    assert found["token_metrics"]["baseline_tokens"] == tokens(definition_text(named))


@pytest.mark.requirement("S1:call")
async def test_a_tool_that_runs_only_as_a_task_is_not_offered_and_says_why_when_called():
    tasked, may = (
        replace(ISSUES[2], name=name, extra={"execution": {"taskSupport": support}})
        for name, support in (("research", "required"), ("report", "optional"))
    )
    for mode in ("direct", "search"):
        source = finding(member("github", (*ISSUES, tasked, may)), mode=mode)
        shown = [each["name"] for each in (await find(source, "list commits of a branch"))["tools"]]
        shown += [each.name for each in (await source.tools()).tools]
        assert "github__report" in shown
        assert "github__research" not in shown
        error = await refused(source, "github__research", {"owner": "ann"})
        assert isinstance(error, Unavailable)
        assert "only as a task" in error.message
        assert "github" in error.suggestion
    assert calls(source, "github") == []


@pytest.mark.requirement("S1:metrics")
async def test_no_reply_returns_more_than_there_is():
    tiny = Tool(name="go", title="A title that is longer than the whole of the definition", input_schema={})
    found = await find(finding(member("a", (tiny,), prefix=""), join_calls=False), "title definition")
    figures = TokenMetrics(**found["token_metrics"])
    assert figures.returned_tokens <= figures.baseline_tokens


@pytest.mark.requirement("S1:budget")
@pytest.mark.parametrize("caller", [Caller(principal="ann", session="one"), CLAUDE])
async def test_a_reply_never_exceeds_its_budget(caller: Caller):
    giant = tool("giant_order", "Order everything. " + "Words without end. " * 3_000, what=STRING)
    around = Surroundings(reference=References(shipped()))
    slow = member("late", (), source=Slow(ISSUES))
    source = finding(member("github", ISSUES), member("shop", (*BOOKS, giant)), slow, around=around, start_wait=0.0)
    model = caller.model or "gpt-4o"
    for query in ("order a book", "giant_order", "create an issue", "shop", "zzz", "commits of a branch", "书"):
        for budget in (100, 101, 130, 200, 317, 500, 1_000, 2_000, 5_000):
            arguments: dict[str, Value] = {"tool_description": query, "max_tokens": budget}
            reply = await source.call(Call(tool="find_tool", arguments=arguments, caller=caller))
            assert tokens(text_of(reply), model) <= budget
            TokenMetrics(**said(reply)["token_metrics"])


@pytest.mark.requirement("S1:budget")
async def test_a_definition_too_large_for_the_budget_becomes_a_signature_then_a_line_then_a_name():
    many: dict[str, Value] = {f"parameter_{number}_": STRING for number in range(15)}
    giant = tool("order", "Order everything there is to be had in this shop, at once. " + "Words. " * 2_000, **many)
    source = finding(member("shop", (giant, *BOOKS)))
    whole, short = [(await find(source, "shop__order", max_tokens=budget))["more"] for budget in (300, 100)]
    assert whole[0].startswith("shop__order(parameter_0?: string")
    assert short[0].startswith("shop__order — Order everything")
    assert (await find(source, "shop__order", max_tokens=100_000))["tools"][0]["name"] == "shop__order"


async def test_tools_that_no_budget_so_small_can_name_are_at_least_announced():
    wordy = tool("x" * 60 + " y" * 100, "Order everything there is to be had in this shop, at once.")
    found = await find(finding(member("shop", (wordy, wordy), prefix="")), "order everything", max_tokens=100)
    assert (found["tools"], found["more"]) == ([], [])
    assert found["hint"] == "1 found, none fits; give more max_tokens"


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=200)


@pytest.mark.requirement("S1:budget")
@given(st.lists(st.tuples(words, words), min_size=1, max_size=6), words, st.integers(100, 600))
@settings(max_examples=40)
def test_whatever_servers_write_the_budget_holds_and_the_reply_is_json(
    texts: list[tuple[str, str]], query: str, budget: int
):
    offered = tuple(
        Tool(name=f"t{at} {name[:20]}", description=text, input_schema={"type": "object", "description": name})
        for at, (name, text) in enumerate(texts)
    )

    async def ask() -> None:
        source = finding(member("s", offered), member("s-2", offered))
        for asked in (f"t {query}", f"s: {query}", "s"):
            arguments = {"tool_description": asked, "max_tokens": budget}
            reply = await source.call(Call(tool="find_tool", arguments=arguments))
            assert tokens(text_of(reply)) <= budget
            TokenMetrics(**said(reply)["token_metrics"])

    anyio.run(ask)


async def test_a_search_waits_once_for_servers_still_starting_and_names_those_missing():
    slow = Slow(ISSUES)
    source = finding(member("weather", WEATHER), member("github", (), source=slow), start_wait=0.03)
    found = await find(source, "create an issue in a repository")
    assert [line.split(":")[0] for line in found["missing"]] == ["github"]
    with anyio.fail_after(20):
        source.replace(replace(source.settings, start_wait=60.0))
        source._waited_longest_for.add("github")
        assert (await find(source, "create an issue"))["missing"], "a second search does not wait for it again"
        source.replace(replace(source.settings, start_wait=60.0))
        async with anyio.create_task_group() as group:
            group.start_soon(_later, slow.let.set)
            found = await find(source, "commits")
    assert found["tools"][0]["name"] == "github__list_commits"
    assert "missing" not in found


async def test_structured_content_is_the_same_json_as_the_text():
    reply = await finding().call(Call(tool="find_tool", arguments={"tool_description": "create an issue"}))
    assert reply.structured is not None
    assert reply.structured.value == json.loads(text_of(reply))


async def test_a_silent_server_holds_up_no_search_that_another_server_answers():
    slow = Slow(ISSUES)
    source = finding(member("weather", WEATHER), member("github", (), source=slow), start_wait=60.0)
    with anyio.fail_after(20):
        found = await find(source, "what is the weather forecast")
        assert found["tools"][0]["name"].startswith("weather__")
        assert [line.split(":")[0] for line in found["missing"]] == ["github"]
        async with anyio.create_task_group() as group:
            group.start_soon(_later, slow.let.set)
            found = await find(source, "what github knows of the weather forecast")
        assert "missing" not in found, "a server that is named is waited for"


async def test_a_silent_server_does_not_prolong_the_wait_for_a_server_that_answers():
    slow, silent = Slow(ISSUES), Slow(())
    members = member("weather", WEATHER), member("github", (), source=slow), member("silent", (), source=silent)
    source = finding(*members, start_wait=3_600.0)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(_later, slow.let.set)
            found = await find(source, "list commits of a branch")
            assert found["tools"][0]["name"] == "github__list_commits"
            assert [line.split(":")[0] for line in found["missing"]] == ["silent"]


async def test_a_search_that_matches_asks_no_server_to_hurry():
    waits = list[float]()

    class Noting(Merge):
        async def view(self, wait: float = 0.0) -> View:
            waits.append(wait)
            return await super().view(wait)

    silent = member("silent", (), source=Slow(()))
    source = Find(Noting([member("weather", WEATHER), silent]), METER, FindSettings(mode="search"))
    assert (await find(source, "what is the weather forecast"))["tools"]
    assert set(waits) == {0.0}


async def test_a_missing_server_is_named_once_with_a_whole_reason():
    class Broken(FakeSource):
        async def tools(self) -> Listing:
            raise SourceFailed(
                "server `gone` failed 3 times in a row and is left alone for 12 s more; last: server `gone` cannot be "
                "started: there is no program of that name"
            )

    source = finding(member("weather", WEATHER), member("gone", (), source=Broken()))
    found = await find(source, "weather")
    assert found["missing"] == ["gone: failed 3 times in a row and is left alone for 12 s more"]


async def test_many_missing_servers_leave_room_for_what_was_found():
    late = [member(f"late-{number}", (), source=Slow(())) for number in range(40)]
    source = finding(member("github", ISSUES), *late, start_wait=0.0)
    assert len((await find(source, "issue", max_tokens=2_000))["missing"]) == 40
    few = await find(source, "issue", max_tokens=200)
    assert few["missing"][-1] == "and 35 more"
    assert few["tools"] or few["more"]
    late = [member(f"a-server-with-a-name-of-some-length-{number}", (), source=Slow(())) for number in range(40)]
    source = finding(member("github", ISSUES), *late, start_wait=0.0)
    assert (await find(source, "issue", max_tokens=100))["missing"] == ["40 servers"]


async def test_an_index_follows_the_catalogue():
    source = finding(member("github", ISSUES))
    assert (await find(source, "weather forecast"))["tools"] == []
    source.inner.inner.replace([member("weather", WEATHER)])  # type: ignore[attr-defined]
    assert (await find(source, "weather forecast"))["tools"][0]["name"] == "weather__forecast"


# Calling


@pytest.mark.requirement("S1:call")
async def test_a_call_passes_through_whole():
    whole = Reply(
        content=({"type": "new-kind", "x": 1},),
        structured=Structured(None),
        meta={"theirs": 1},
        is_error=True,
        needs=Needs({"ask": {}}, "state"),
    )

    async def answer(call: Call) -> Reply:
        return whole

    source = finding(member("github", (), source=FakeSource(offered=ISSUES, answer=answer)))
    asked = Call(
        tool="call_tool",
        arguments={"tool_name": "github__get_issue", "parameters": {"owner": "ann", "issue_number": 3}},
        caller=CLAUDE,
        meta={"traceparent": "x"},
        state="state",
        answers={"ask": 1},
    )
    reply = await source.call(asked)
    assert replace(reply, origin=None) == whole
    assert reply.origin is not None
    assert (reply.origin.server, reply.origin.tool) == ("github", "get_issue")
    (heard,) = calls(source, "github")
    assert heard == replace(asked, tool="get_issue", arguments={"owner": "ann", "issue_number": 3})


@pytest.mark.requirement("S1:call")
async def test_what_may_change_something_does_not_go_through_the_door_for_reading():
    source = finding()
    arguments = {"owner": "ann", "title": "Leak"}
    error = await refused(source, "github__create_issue", arguments)
    assert "call_tool_write" in error.suggestion
    assert error.options == ("call_tool_write",)
    assert calls(source, "github") == []
    await run(source, "github__create_issue", arguments, "call_tool_write")
    assert calls(source, "github")[0].arguments == arguments


@pytest.mark.requirement("S1:call")
async def test_what_only_reads_goes_through_either_door():
    source = finding()
    for door in ("call_tool", "call_tool_write"):
        await run(source, "github__list_commits", {"owner": "ann"}, door)
    assert len(calls(source, "github")) == 2


@pytest.mark.requirement("S1:call")
async def test_settings_decide_over_annotations_which_door_a_tool_takes():
    rules = Rules(read_only=("create_issue",), writing=("list_commits",))
    source = finding(member("github", ISSUES, rules=rules))
    await run(source, "github__create_issue", {"owner": "a", "title": "b"})
    assert "call_tool_write" in (await refused(source, "github__list_commits", {"owner": "a"})).suggestion


@pytest.mark.requirement("S1:call")
async def test_joined_calls_take_everything():
    source = finding(join_calls=True)
    await run(source, "github__create_issue", {"owner": "a", "title": "b"})
    await run(source, "github__create_issue", {"owner": "a", "title": "b"}, "call_tool_write")
    assert len(calls(source, "github")) == 2


@pytest.mark.requirement("S1:call")
@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("github__list_commits", None),
        ("list_commits", None),
        ("list_commits", "github"),
        ("github__list_commits", "github"),
        ("github__list_commits", "GitHub-MCP"),
        ("github.listCommits", None),
        ("list_commits", "github-mcp"),
        ("list_commits", "mcp-server-github"),
        ("functions.github__list_commits", None),
        ("default_api.list_commits", None),
        ("mcp_github_list_commits", None),
        ("ullage__github__list_commits", None),
        ("github__list_commits(owner: string) — List commits", None),
    ],
)
async def test_a_tool_is_called_by_any_name_with_or_without_its_server(name: str, server: str | None):
    source = finding()
    await run(source, name, {"owner": "ann"}, **({"server_name": server} if server else {}))
    assert calls(source, "github")[0].tool == "list_commits"


async def test_a_tool_whose_name_reads_like_a_line_is_called_and_not_the_one_that_the_line_begins_with():
    names = ("get", "get(all)", "get [old]", "'q'")
    source = finding(member("a", tuple(tool(name, reads=True) for name in names)))
    for name in names:
        for server in ({}, {"server_name": "a"}):
            await run(source, name, {}, **server)
            assert calls(source, "a")[-1].tool == name
    await run(source, "get() — Gets it", {})
    assert calls(source, "a")[-1].tool == "get"
    assert "`got`" in (await refused(source, "got() — Gets it")).message


@pytest.mark.requirement("S1:heal")
async def test_an_unknown_tool_is_a_failed_result_with_the_nearest_names():
    source = finding()
    for more in ({}, {"server_name": "github"}):
        error = await refused(source, "list_comits", **more)
        assert isinstance(error, InvalidArguments)
        assert "github__list_commits" in error.options
    assert (await refused(source, "list_commits", server_name="gitlab")).options[0] == "github"
    assert len((await refused(source, "create_issue")).options) == 2, "two servers have it"
    with pytest.raises(UnknownTool):
        await source.call(Call(tool="list_comits"))


async def test_a_tool_of_a_server_that_is_still_starting_is_waited_for():
    slow = Slow(ISSUES)
    source = finding(member("github", (), source=slow), start_wait=60.0)
    async with anyio.create_task_group() as group:
        group.start_soon(_later, slow.let.set)
        await run(source, "github__list_commits", {"owner": "ann"})
    assert len(slow.calls) == 1
    missing = finding(member("github", (), source=Slow(ISSUES)), start_wait=0.0)
    assert isinstance(await refused(missing, "github__list_commits"), InvalidArguments)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"tool_name": "github__list_comits"}, "no tool is called"),
        ({"tool_name": "list_comits", "server_name": "github"}, "no tool of server `github`"),
        ({"tool_name": "list_commits", "server_name": "nowhere"}, "no server is called"),
        ({"tool_name": "list_commits"}, "may mean 2 tools"),
    ],
)
async def test_a_name_that_no_late_server_can_have_is_refused_at_once(named: Value, message: str):
    late = member("gitlab", (), source=Slow(ISSUES))
    source = finding(member("github", ISSUES), member("codeberg", ISSUES), late, start_wait=60.0)
    with anyio.fail_after(5), pytest.raises(InvalidArguments, match=message):
        await source.call(Call(tool="call_tool", arguments=named))


async def test_a_server_that_stays_silent_is_waited_for_once():
    source = finding(member("github", ISSUES), member("gitlab", (), source=Slow(ISSUES)), start_wait=0.05)
    assert isinstance(await refused(source, "count_stars"), InvalidArguments)
    source.settings = replace(source.settings, start_wait=60.0)
    with anyio.fail_after(5):
        assert isinstance(await refused(source, "count_moons"), InvalidArguments)
        assert isinstance(await refused(source, "gitlab__list_commits"), InvalidArguments)


async def test_a_denied_tool_stays_denied():
    source = finding(member("github", ISSUES, rules=Rules(deny=("create_issue",))))
    assert isinstance(await refused(source, "github__create_issue", {}, "call_tool_write"), Denied)


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    "arguments",
    [
        {"tool_name": "get_issue", "parameters": {"parameters": {"owner": "ann", "issue_number": 3}}},
        {"tool_name": "get_issue", "parameters": '{"owner": "ann", "issue_number": 3}'},
        {"tool_name": "get_issue", "parameters": {"owner": "ann", "issue_number": "3"}},
        {"tool_name": "get_issue", "owner": "ann", "issue_number": 3},
        {"tool_name": "get_issue", "parameters": {"owner": "ann"}, "issueNumber": 3},
        {"tool_name": "get_issue", "parameters": '{"owner": "ann"}', "issue_number": 3},
        {"parameters": {"tool_name": "get_issue", "owner": "ann", "issue_number": 3}},
        {"server_name": "github__get_issue", "parameters": {"owner": "ann", "issueNumber": 3}},
    ],
)
async def test_arguments_nested_stringified_or_misplaced_reach_the_tool_and_are_reported(arguments: Value):
    source = finding()
    reply = await source.call(Call(tool="call_tool", arguments=arguments))
    assert calls(source, "github")[0].arguments == {"owner": "ann", "issue_number": 3}
    notes: Value = reply.meta[HEALED]
    assert notes
    assert all(isinstance(note, str) for note in notes)


@pytest.mark.requirement("S1:heal")
async def test_arguments_that_fit_go_out_as_they_are_and_nothing_is_said():
    source = finding()
    reply = await run(source, "github__get_issue", {"owner": "3", "issue_number": 3})
    assert calls(source, "github")[0].arguments == {"owner": "3", "issue_number": 3}
    assert HEALED not in reply.meta


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    ("parameters", "more", "problem"),
    [
        ({"owner": "ann"}, {}, "`issue_number` is missing"),
        ({"owner": "ann", "issue_number": "three"}, {}, "`issue_number` must be integer"),
        ({"owner": "ann", "issue_number": 3, "x": 1}, {}, "`x` is not a parameter"),
        ({"owner": "ann", "issue_number": 3}, {"x": 1}, "`x` is not a parameter"),
        ({"owner": "ann", "issue_number": 3}, {"owner": "bob"}, "`owner` stands inside `parameters` and beside it"),
        ("no json", {}, "`parameters` must be an object"),
        ("no json", {"owner": 1}, "`parameters` must be an object"),
        (["ann", 3], {}, "`parameters` must be an object"),
    ],
)
async def test_what_does_not_fit_is_refused_before_the_call(parameters: Value, more: dict[str, Value], problem: str):
    source = finding()
    error = await refused(source, "github__get_issue", parameters, **more)
    assert isinstance(error, InvalidArguments)
    assert problem in error.message
    assert calls(source, "github") == []


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"input": {"a": 1}, "q": "x"}, {"input": {"a": 1}, "q": "x"}),
        ({"input": {"a": 1}}, {"input": {"a": 1}}),
        ({"args": {"input": {}, "q": "x"}}, {"input": {}, "q": "x"}),
        ({"parameters": {"input": {}}, "params": ["-l"]}, {"input": {}, "params": ["-l"]}),
        ({"parameters": 3, "input": {}}, {"parameters": 3, "input": {}}),
    ],
)
async def test_a_tools_own_parameter_is_not_taken_for_a_word_of_ours(said: Value, meant: Value):
    properties: Value = {"q_": STRING, "params_": {"type": "array"}, "parameters_": {"type": "integer"}}
    source = finding(member("a", (tool("go", reads=True, input={"type": "object"}, **properties),)))
    await source.call(Call(tool="call_tool", arguments={"tool_name": "go", **said}))
    assert calls(source, "a")[0].arguments == meant


@pytest.mark.requirement("S1:heal")
async def test_a_tool_that_takes_only_parameters_is_called_with_them():
    source = finding(member("a", (tool("go", reads=True, parameters={"type": "object"}),)))
    for parameters in ({"x": 1}, {"parameters": {"x": 1}}):
        await run(source, "go", parameters)
        assert calls(source, "a")[-1].arguments == {"parameters": {"x": 1}}
    assert "`parameters` must be object" in (await refused(source, "go", {"parameters": 3})).message


async def test_a_schema_that_cannot_be_read_lets_the_call_through_with_a_note():
    broken = Tool(name="go", input_schema={"type": "strange"}, annotations=READS)
    source = finding(member("a", (broken,)))
    reply = await run(source, "a__go", '{"x": 1}')
    assert calls(source, "a")[0].arguments == {"x": 1}
    assert "type" in str(reply.meta[UNCHECKED])
    assert isinstance(await refused(source, "a__go", "no json"), InvalidArguments)


@pytest.mark.requirement("U:own")
async def test_every_tool_can_be_called_by_its_own_name_untouched():
    source = finding()
    reply = await source.call(Call(tool="github__get_issue", arguments={"anything": "goes"}))
    assert calls(source, "github")[0].arguments == {"anything": "goes"}
    assert reply.origin is not None


# What it saved


@pytest.mark.requirement("S1:net")
async def test_a_search_says_what_was_saved_net_of_all_that_is_ours():
    source = finding()
    listing = await source.tools()
    surface = sum(tokens(definition_text(each)) for each in listing.tools)
    instructions = tokens(source.instructions(await source.inner.view()))
    first = await source.call(Call(tool="find_tool", arguments={"tool_description": "issue"}))
    await run(source, "github__list_commits", {"owner": "ann"})
    second = await source.call(Call(tool="find_tool", arguments={"tool_description": "weather"}))
    net: Value = second.meta[SAVINGS]
    without = said(first)["token_metrics"]["baseline_tokens"]
    saved = without - surface - instructions
    assert net["first_request"] == {
        "without": without,
        "surface": surface,
        "instructions": instructions,
        "net_tokens": saved,
    }
    carried = 3 * tokens(text_of(first)) + tokens(text_of(second))
    assert net["session"]["turns"] == 4
    assert net["session"]["replies_carried"] == carried
    assert net["session"]["net_tokens"] == 4 * saved - carried


@pytest.mark.requirement("S1:net")
async def test_the_net_figure_of_a_known_program_is_of_the_texts_that_it_sends():
    asked: list[dict[str, list[str]]] = []

    def write(servers: Iterable[tuple[str, Sequence[Tool], str]]) -> list[str]:
        seen = [(name, [each.name for each in tools], said) for name, tools, said in servers]
        asked.append({name: names for name, names, _ in seen})
        return [f"{name} {names} {said}" for name, names, said in seen]

    source = finding(around=Surroundings(request_texts=write))
    reply = await source.call(Call(tool="find_tool", arguments={"tool_description": "issue"}))
    first = cast("Value", reply.meta[SAVINGS])["first_request"]
    await source.call(Call(tool="find_tool", arguments={"tool_description": "weather"}))
    without, surface, whole = asked
    assert "get_issue" in without["github"], "under the server's own names"
    assert "ullage" not in without
    assert list(surface) == list(whole) == ["ullage"]
    assert first["without"] == tokens("".join(f"{name} {names} " for name, names in without.items()))
    assert first["surface"] == tokens(f"ullage {surface['ullage']} ")
    assert (
        first["instructions"]
        == tokens(f"ullage {whole['ullage']} {source.instructions(await source.inner.view())}") - first["surface"]
    )
    assert first["net_tokens"] == first["without"] - first["surface"] - first["instructions"]


@pytest.mark.requirement("S1:net")
async def test_on_a_tiny_catalogue_the_net_figure_is_negative_and_refusals_are_charged():
    source = finding(member("github", ISSUES))
    await source.tools()
    await refused(source, "nothing like it")
    reply = await source.call(Call(tool="find_tool", arguments={"tool_description": "issue"}))
    net: Value = reply.meta[SAVINGS]
    assert net["first_request"]["net_tokens"] < 0
    assert net["session"]["net_tokens"] < 3 * net["first_request"]["net_tokens"]
    assert net["session"]["replies_carried"] > tokens(text_of(reply))


async def test_figures_are_counted_for_the_model_named_for_the_caller():
    source = finding(around=Surroundings(reference=References(shipped())))
    replies = [
        await source.call(Call(tool="find_tool", arguments={"tool_description": "issue"}, caller=caller))
        for caller in (Caller(principal="ann", session="one"), CLAUDE)
    ]
    plain, claude = (said(reply)["token_metrics"]["baseline_tokens"] for reply in replies)
    assert plain != claude


async def test_figures_are_kept_for_a_few_models_only():
    source = finding(around=Surroundings(reference=References(shipped())))
    for card in list(shipped().cards())[:25]:
        caller = Caller(principal="ann", session="one", model=card.id)
        await source.call(Call(tool="find_tool", arguments={"tool_description": "issue"}, caller=caller))
    assert len(source._figures._carried) <= 20


async def test_searches_are_written_down_and_what_their_session_carries():
    ledger, now = FakeRecorder(), datetime(2026, 11, 15, tzinfo=UTC)
    me = Caller(principal="ann", session="one", client="cursor")
    source = finding(around=Surroundings(recorder=ledger, now=lambda: now))
    await source.tools()
    await source.tools()
    assert ledger.entries == [], "a list is asked for by nobody in particular"
    reply = await source.call(Call(tool="find_tool", arguments={"tool_description": "issue"}, caller=me))
    search, definitions = ledger.entries
    assert (definitions.kind, definitions.client, definitions.time) == ("definitions", "cursor", now)
    assert (definitions.principal, definitions.session) == ("ann", "one")
    assert definitions.baseline_tokens is not None
    assert definitions.saved_tokens == definitions.baseline_tokens - definitions.tokens
    assert (search.kind, search.tool, search.tokens) == ("search", "find_tool", tokens(text_of(reply)))
    assert search.saved_tokens == -search.tokens, "a reply is a cost; what it saved, definitions say"
    savings: Any = reply.meta[SAVINGS]
    assert search.saved_tokens is not None
    assert definitions.saved_tokens is not None
    assert definitions.saved_tokens + search.saved_tokens == savings["session"]["net_tokens"]
    assert search.milliseconds is not None


@pytest.mark.parametrize("is_spawned", [False, True])
async def test_definitions_are_recorded_for_every_request_of_a_session_whatever_it_calls_first(*, is_spawned: bool):
    ledger = FakeRecorder()
    async with anyio.create_task_group() as tasks:
        spawn = tasks.start_soon if is_spawned else None
        source = finding(around=Surroundings(recorder=ledger, spawn=spawn))
        await source.call(Call(tool="github__list_commits", arguments={"owner": "ann"}))
        await source.tools()
        for session in ("one", "two"):
            me = Caller(principal="ann", session=session)
            with pytest.raises(InvalidArguments):
                await source.call(Call(tool="find_tool", arguments={}, caller=me))
            await source.call(Call(tool="github__list_commits", arguments={"owner": "ann"}, caller=me))
    requests = {"one": 0, "two": 0}
    for entry in ledger.entries:
        assert entry.kind == "definitions"
        requests[entry.session] += int(entry.detail["requests"] or 0)
    assert requests == {"one": 3, "two": 3}, "calls + 1"


async def test_definitions_of_many_requests_are_one_entry_for_each_session_with_the_same_totals():
    written: dict[bool, list[tuple[int, int, int]]] = {}
    for is_spawned in (False, True):
        ledger = FakeRecorder()
        async with anyio.create_task_group() as tasks:
            source = finding(around=Surroundings(recorder=ledger, spawn=tasks.start_soon if is_spawned else None))
            await source.tools()
            for _ in range(5):
                for session in ("one", "two"):
                    me = Caller(principal="ann", session=session)
                    await source.call(Call(tool="find_tool", arguments={"tool_description": "issue"}, caller=me))
                    await source.call(Call(tool="github__list_commits", arguments={"owner": "ann"}, caller=me))
        entries = [entry for entry in ledger.entries if entry.kind == "definitions"]
        assert len(entries) == (2 if is_spawned else 20)
        written[is_spawned] = [
            (
                sum(int(entry.detail["requests"] or 0) for entry in entries if entry.session == session),
                sum(entry.tokens for entry in entries if entry.session == session),
                sum(entry.saved_tokens or 0 for entry in entries if entry.session == session),
            )
            for session in ("one", "two")
        ]
    assert written[True] == written[False]
    assert written[True][0][0] == 11


async def test_what_requests_carried_is_recorded_at_the_price_of_their_time_and_at_the_end():
    ledger = FakeRecorder()
    works: list[Callable[[], Awaitable[None]]] = []
    upstream = FakeSource(offered=ISSUES)
    source = finding(member("github", (), source=upstream), around=Surroundings(recorder=ledger, spawn=works.append))
    source.watch(lambda _: None)
    await source.tools()
    find_issue = Call(tool="find_tool", arguments={"tool_description": "issue"})
    await source.call(find_issue)
    upstream.offered = (*ISSUES, WEATHER[0])
    upstream.change(Change("tools"))
    await source.inner.view(1.0)
    await source.call(find_issue)
    source.record_definitions()
    source.record_definitions()
    first, second = (entry for entry in ledger.entries if entry.kind == "definitions")
    assert first.baseline_tokens is not None
    assert second.baseline_tokens is not None
    assert (first.detail["requests"], second.detail["requests"]) == (2, 1)
    assert first.baseline_tokens / 2 < second.baseline_tokens, "each by the tools that there were"


async def test_only_so_many_sessions_are_remembered():
    ledger = FakeRecorder()
    source = finding(member("github", ISSUES), around=Surroundings(recorder=ledger))
    await source.tools()
    for number in range(1_005):
        caller = Caller(principal="ann", session=str(number))
        await source.call(Call(tool="github__list_commits", arguments={"owner": "ann"}, caller=caller))
    assert len(ledger.entries) == 1_005
    assert len(source._figures._savings._sessions) == 1_000


@pytest.mark.requirement("S1:net", "S1:metrics")
async def test_our_own_tools_are_no_part_of_what_a_client_would_carry_without_us():
    plain = finding(member("github", ISSUES))
    mixed = finding(member("github", ISSUES), member("ullage", BOOKS, own=True, prefix=""))
    replies = [
        await source.call(Call(tool="find_tool", arguments={"tool_description": "issue"})) for source in (plain, mixed)
    ]
    nets: list[Value] = [reply.meta[SAVINGS] for reply in replies]
    assert nets[0]["first_request"]["without"] == nets[1]["first_request"]["without"]
    covered = [said(reply)["token_metrics"]["baseline_tokens"] for reply in replies]
    assert covered[0] == nets[0]["first_request"]["without"]
    assert covered[1] > covered[0], "a search covers them, for it may return them"


# Changes, and what else passes


class Weighed(FakeSource, RememberedSource):
    def token_count(self, tool: str) -> int | None:
        return 0 if tool == "forecast" else 5_000


async def test_counts_of_the_catalogue_are_taken_where_it_has_them():
    source = finding(member("weather", (), source=Weighed(offered=WEATHER)))
    baseline = (await find(source, "weather"))["token_metrics"]["baseline_tokens"]
    assert 5_000 < baseline < 5_200


async def test_a_changed_catalogue_is_announced_only_where_the_list_changes():
    spawned: list[Callable[[], Awaitable[None]]] = []
    for spawn in (None, spawned.append):
        upstream = FakeSource(offered=ISSUES)
        github = member("github", (), source=upstream)
        source = finding(github, around=Surroundings(spawn=spawn))
        heard: list[Change] = []
        unwatch = source.watch(heard.append)
        await source.tools()
        upstream.offered = (*ISSUES, WEATHER[0])
        upstream.change(Change("tools"))
        await source.inner.view(1.0)
        for work in spawned:
            await work()
        upstream.change(Change("resource", "file:///a"))
        assert heard == [Change("resource", "file:///a")]
        unwatch()
        unwatch()
        upstream.change(Change("resource", "file:///a"))
        assert heard == [Change("resource", "file:///a")]


async def test_a_change_to_a_pinned_tool_is_announced_once():
    spawned: list[Callable[[], Awaitable[None]]] = []
    for spawn in (None, spawned.append):
        upstream = FakeSource(offered=ISSUES)
        github = member("github", (), source=upstream, rules=Rules(pinned=("get_issue",)))
        source = finding(github, around=Surroundings(spawn=spawn))
        heard: list[Change] = []
        source.watch(heard.append)
        await source.tools()
        upstream.offered = (replace(ISSUES[1], description="Another."), *ISSUES[2:])
        upstream.change(Change("tools"))
        await source.inner.view(1.0)
        for work in spawned:
            await work()
        assert heard[0] == Change("tools")
        assert len(heard) == 1 or spawn is None, "without a background nobody can look before telling"
        assert (await source.tools()).tools[3].description == "Another."


@pytest.mark.requirement("S1:live")
@pytest.mark.parametrize("lists_in_between", [False, True])
async def test_a_change_is_told_once_to_everybody_whoever_lists_in_between(*, lists_in_between: bool):
    upstream, heard = FakeSource(offered=ISSUES), list[tuple[str, Change]]()
    async with anyio.create_task_group() as tasks:
        merge = Merge([member("github", (), source=upstream)], spawn=tasks.start_soon)
        source = Find(merge, METER, FindSettings(mode="direct"), Surroundings(spawn=tasks.start_soon))
        for name in ("one", "two"):
            source.watch(lambda change, name=name: heard.append((name, change)))
        await source.tools()
        for offered in ((*ISSUES, WEATHER[0]), ISSUES[:1]):
            upstream.offered = offered
            upstream.change(Change("tools"))
            if lists_in_between:
                assert len((await source.tools()).tools) == len(offered)
            with anyio.fail_after(20):
                while len(heard) < 2:
                    await anyio.sleep(0.01)
            await anyio.sleep(0.1)
            assert heard == [("one", Change("tools")), ("two", Change("tools"))]
            heard.clear()


async def test_other_settings_that_change_the_list_are_told_of():
    heard: list[Change] = []
    async with anyio.create_task_group() as tasks:
        merge = Merge([member("github", ISSUES)], spawn=tasks.start_soon)
        source = Find(merge, METER, FindSettings(mode="search"), Surroundings(spawn=tasks.start_soon))
        source.watch(heard.append)
        await source.tools()
        source.replace(replace(source.settings, mode="direct"))
        await anyio.wait_all_tasks_blocked()
        assert heard == [Change("tools")]
        source.replace(replace(source.settings, find_budget=500))
        await anyio.wait_all_tasks_blocked()
    assert heard == [Change("tools")]


@pytest.mark.parametrize("mode", ["search", "direct"])
async def test_it_is_a_source_like_any_other(mode: str):
    source = finding(mode=mode)
    await check_source(source, Call(tool="github__list_commits", arguments={"owner": "ann"}))
    check_watched(source)
    await finding().close()


async def test_hidden_tools_answer_to_their_names():
    source = finding(member("github", ISSUES, rules=Rules(hidden=("list_commits",))))
    await run(source, "github__list_commits", {"owner": "ann"})
    assert len(calls(source, "github")) == 1


def test_hashes_are_found_once_and_bounded():
    hashes = Hashes(most=2)
    found = [hashes.of(each) for each in ISSUES]
    assert len(set(found)) == 3
    assert hashes.of(ISSUES[2]) == found[2]
    assert len(hashes._known) == 1


async def test_everything_else_is_handed_on():
    upstream = FakeSource(offered=ISSUES, texts={"note://a": "A note"}, messages={"greet": "Hello"})
    inner = Merge([member("notes", (), source=upstream)])
    source: Value = Find(inner, METER)
    assert len(await source.resources()) == 1
    assert len(await source.prompts()) == 1
    assert isinstance(await source.view(), View)
    source.watch(lambda change: None)
    await source.close()
    await source.close()


async def test_what_searches_need_is_prepared_beforehand():
    source = finding()
    await source.prepare()
    before = source._shelf._forms._forms.copy()
    assert len(before) == len(ISSUES) + len(WEATHER) + len(BOOKS)
    await find(source, "order a book")
    assert source._shelf._forms._forms == before


async def test_many_searches_at_once_build_one_index():
    source = finding()
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(find, source, "order a book")
    index = source._shelf._index
    await find(source, "order")
    assert source._shelf._index is index


@pytest.mark.requirement("S1:brief")
@pytest.mark.requirement("S1:net")
async def test_a_clear_search_among_many_tools_gets_a_brief_reply_and_is_charged_for_no_more():
    source = finding()
    words = "weather forecast for a city"
    brief = await source.call(Call(tool="find_tool", arguments={"tool_description": words}))
    assert said(brief)["tools"][0]["name"] == "weather__forecast"
    assert tokens(text_of(brief)) <= 400
    metrics = said(brief)["token_metrics"]
    assert metrics["returned_tokens"] < tokens(text_of(brief))
    vague = await source.call(Call(tool="find_tool", arguments={"tool_description": "order a book of the catalogue"}))
    assert tokens(text_of(vague)) > 600, "forty books are as near as one another"
