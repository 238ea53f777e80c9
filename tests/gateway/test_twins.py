from dataclasses import replace
from typing import Any

import pytest

from ullage.gateway.find.search_tools import are_twins, grouped, server_words
from ullage.gateway.merge.tool_view import Entry, Member
from ullage.testing import FakeSource
from ullage.tool import Tool

pytestmark = pytest.mark.requirement("S1:find")

Value = Any

STRING = {"type": "string"}
REPOSITORY = {"owner": STRING, "repo": STRING, "title": STRING, "body": STRING, "labels": {"type": "array"}}
CREATE = "Create a new issue in a repository, with labels and a milestone."


def entry(
    server: str, name: str, description: str = "", properties: dict[str, Value] | None = None, **changes: Value
) -> Entry:
    schema: Value = {"type": "object", "properties": properties or {}, "required": changes.pop("required", [])}
    tool = Tool(name=f"{server}__{name}", description=description, input_schema=schema, **changes)
    member = Member(name=server, source=FakeSource(), prefix=server)
    return Entry(listed=tool.name, tool=tool, member=member, original=name)


def listed(entries: list[Entry], *wanted: str) -> list[list[str]]:
    return [[group.first.listed, *(other.listed for other in group.others)] for group in grouped(entries, wanted)]


WORK = entry("github-work", "create_issue", CREATE, REPOSITORY)
HOME = entry("github", "create_issue", CREATE, REPOSITORY)
LAB = entry("gitlab", "create_issue", CREATE, REPOSITORY)


def test_the_same_tool_of_two_servers_of_a_kind_is_a_twin():
    assert are_twins(WORK, HOME)
    assert are_twins(
        entry("postgres_prod", "query", "Run SQL", {"sql": STRING}),
        entry("postgres-dev", "query", "Run SQL", {"sql": STRING}),
    )
    assert are_twins(entry("@one/notes-mcp", "add", "Add a note"), entry("@two/mcp-server-notes", "add", "Add a note."))


@pytest.mark.parametrize(
    ("one", "other"),
    [("create_issue", "createIssue"), ("create_issue", "issue-create"), ("github_create_issue", "create_issue")],
)
def test_the_same_name_may_be_spelt_otherwise_or_begin_with_the_servers(one: str, other: str):
    assert are_twins(entry("github", one, CREATE, REPOSITORY), entry("github-work", other, CREATE, REPOSITORY))


def test_words_enough_are_evidence_where_the_servers_names_are_none():
    assert are_twins(HOME, LAB)
    for servers in (("github", "gitlab"), ("mcp-server", "server"), ("my-tools", "my-tools-2")):
        assert not are_twins(*(entry(server, "get_issue", "Get an issue.") for server in servers))


@pytest.mark.parametrize(
    ("name", "description", "properties"),
    [
        ("search", "Search", {"query": STRING, "limit": {"type": "integer"}}),
        ("search", "Search for pages by their title or content", {"query": STRING}),
        ("list_tables", "List all tables in the database", {}),
        ("get_user", "", {"id": STRING}),
        ("status", "Returns the status of the service", {}),
    ],
)
def test_what_many_services_say_of_themselves_is_no_evidence(name: str, description: str, properties: Value):
    assert not are_twins(entry("notion", name, description, properties), entry("slack", name, description, properties))


def test_tools_that_name_their_own_service_are_not_the_same():
    said = "Delete a ticket in {} with all its replies, attachments, worklogs and invoices."
    desk, service = (entry(name.lower(), "delete_ticket", said.format(name)) for name in ("Freshdesk", "Freshservice"))
    assert not are_twins(desk, service)
    assert are_twins(desk, replace(service, tool=replace(service.tool, description=desk.tool.description)))
    fields = {"author": STRING, "abstract": STRING, "section": STRING, "journal": STRING, "volume": STRING}
    assert not are_twins(entry("biorxiv", "search_biorxiv", "", fields), entry("medrxiv", "search_medrxiv", "", fields))


@pytest.mark.parametrize(
    "other",
    [
        entry("github", "create_issue", CREATE, {**REPOSITORY, "title": {"type": "integer"}}),
        entry("github", "create_issue", CREATE, {"project": STRING, "title": STRING, "text": STRING}),
        entry("github", "create_issue", CREATE, REPOSITORY, required=["owner"]),
        entry("github", "create_issue", "Report a fault of a weather station.", REPOSITORY),
        entry("github", "create_issue", "", REPOSITORY),
        entry("github", "create_issues", CREATE, REPOSITORY),
        entry("github", "create_issue", CREATE, REPOSITORY, annotations={"readOnlyHint": True}),
    ],
    ids=["a type", "parameters", "required ones", "description", "none", "name", "door"],
)
def test_tools_that_differ_in_what_matters_are_no_twins(other: Entry):
    assert are_twins(WORK, HOME)
    assert not are_twins(WORK, other)
    assert not are_twins(other, WORK)


def test_a_newer_version_with_one_more_parameter_and_a_full_stop_is_a_twin():
    newer = entry("github", "create_issue", CREATE.rstrip("."), {**REPOSITORY, "milestone": {"type": "integer"}})
    assert are_twins(WORK, newer)


def test_tools_of_one_server_are_twins_only_where_nothing_differs():
    again = replace(HOME, listed="github__create_issue_2")
    assert are_twins(HOME, again)
    assert not are_twins(HOME, entry("github", "create_issue", CREATE + " Fast.", REPOSITORY))
    assert not are_twins(HOME, replace(HOME, original="issue_create"))


def test_the_best_of_a_group_takes_its_place_and_the_order_stays():
    other = entry("github", "list_commits", "List commits")
    assert listed([WORK, other, HOME]) == [
        ["github-work__create_issue", "github__create_issue"],
        ["github__list_commits"],
    ]
    assert listed([]) == []


def test_the_one_whose_server_is_asked_for_stands_for_the_group():
    assert listed([LAB, HOME], "create", "issue", "github")[0][0] == "github__create_issue"
    assert listed([LAB, HOME], "create", "issue", "gitlab")[0][0] == "gitlab__create_issue"
    assert listed([LAB, HOME], "create", "issue")[0][0] == "gitlab__create_issue"
    assert listed([LAB, HOME], "github", "gitlab")[0][0] == "gitlab__create_issue", "of both the better"


def test_a_tool_is_held_against_the_one_that_stands_for_the_group_and_not_against_the_others():
    words = [f"word{number}" for number in range(14)]
    chain = [entry(f"s{at}", "go", " ".join(words[at : at + 10])) for at in range(3)]
    assert are_twins(chain[0], chain[1])
    assert are_twins(chain[1], chain[2])
    assert not are_twins(chain[0], chain[2])
    assert listed(chain) == [["s0__go", "s1__go"], ["s2__go"]]


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("github", {"github"}),
        ("mcp-server-github", {"github"}),
        ("@owner/GitHub-MCP", {"github"}),
        ("io.github.owner/google_calendar", {"google", "calendar"}),
        ("github-work2", {"github"}),
        ("mcp-server", {"mcp", "server"}),
        ("42", {"42"}),
        ("天気", {"天気"}),
    ],
)
def test_a_servers_telling_words_are_those_that_say_what_it_serves(server: str, words: set[str]):
    assert server_words(server) == words


@pytest.mark.parametrize(
    "schema", [{}, {"properties": []}, {"properties": {"a": 1}, "required": 3}, {"required": [1, {}]}]
)
def test_broken_schemas_are_compared_all_the_same(schema: Value):
    one, other = (replace(each, tool=replace(each.tool, input_schema=schema)) for each in (WORK, HOME))
    assert are_twins(one, other)


def test_however_many_tools_have_one_name_few_of_them_are_compared():
    asked = 0

    class Counting(dict[str, Value]):
        def get(self, key: str, default: Value = None) -> Value:
            nonlocal asked
            asked += 1
            return dict.get(self, key, default)

    def one(number: int) -> Entry:
        made = entry(f"service{chr(97 + number // 26)}{chr(97 + number % 26)}", "search", "Searches.")
        schema = Counting(type="object", properties={}, required=[f"p{number}"])
        return replace(made, tool=replace(made.tool, input_schema=schema))

    def comparing(number: int) -> int:
        nonlocal asked
        asked = 0
        assert len(grouped([*map(one, range(number))])) == number
        return asked

    assert comparing(600) < 3 * comparing(300), "by the number of tools, and not by its square"
