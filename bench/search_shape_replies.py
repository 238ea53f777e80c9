"""What does a reply of find_tool show of which tools?

A set's tools stand behind one `Find`, as a client would have them; what is shown is read from the reply that a model
gets.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from search_sets import Row

from ullage.gateway.find.find_settings import FindSettings, Surroundings
from ullage.gateway.find.find_source import Find
from ullage.gateway.find.tool_forms import NAMES
from ullage.gateway.merge.merge import Merge
from ullage.gateway.merge.tool_view import Entry, Member
from ullage.gateway.results import ShapeMemory
from ullage.models import shipped
from ullage.testing import FakeSource
from ullage.tokens import Count, Meter
from ullage.tool import Call, JsonObject, Tool

__all__ = ["ALSO", "LINE", "NAME", "SIGNATURE", "WHOLE", "Behind", "Reply", "Shown", "behind", "shown_in", "weigh"]

MODEL = "gpt-4o"
WHOLE, SIGNATURE, LINE, NAME, ALSO = range(5)
"""How a tool is shown, fullest first."""
_LINE = re.compile(r"([^\s(]+)(\(?)(.*)", re.DOTALL)
_OTHERS = re.compile(r" \(also: ([^)]*)\)")
_NOBODY = "tools"
"""The server of tools that have none."""

Shown = dict[str, int]
"""The form of each tool that a reply shows, by its listed name, in the reply's order."""


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    shown: Shown


@dataclass(frozen=True, slots=True)
class Behind:
    """Tools behind a `Find`."""

    find: Find
    entries: Mapping[str, Entry]
    """By their ids in the set."""
    listed: Mapping[str, Entry]
    """By their names."""

    async def reply(self, words: str, budget: int) -> Reply:
        arguments = {"tool_description": words, "max_tokens": budget}
        reply = await self.find.call(Call(tool="find_tool", arguments=arguments))
        text = str(reply.content[0]["text"])
        return Reply(text, shown_in(json.loads(text)))


@cache
def _meter() -> Meter:
    return Meter(shipped())


def weigh(text: str) -> Count:
    return _meter().count(text, MODEL)


async def behind(tools: Sequence[Row], *, returns: JsonObject | None = None) -> Behind:
    """Put tools behind one `Find`; with an `outputSchema`, replies show what they return."""
    servers: dict[str, list[Tool]] = {}
    for row in tools:
        servers.setdefault(_server(row), []).append(replace(_tool(row), output_schema=returns))
    members = [
        Member(name=name, source=FakeSource(offered=tuple(offered)), prefix=name) for name, offered in servers.items()
    ]
    merge = Merge(members, reserved=NAMES)
    around = Surroundings(shapes=None if returns is None else ShapeMemory())
    find = Find(merge, _meter(), FindSettings(mode="search", stop_early=False), around)
    await find.prepare()
    entries = {(entry.server, entry.original): entry for entry in (await merge.view()).entries}
    return Behind(
        find,
        {row["id"]: entries[_server(row), row["name"]] for row in tools},
        {entry.listed: entry for entry in entries.values()},
    )


def _server(row: Row) -> str:
    return row.get("server") or _NOBODY


def _tool(row: Row) -> Tool:
    schema = row.get("inputSchema")
    return Tool(
        name=row["name"], description=row.get("description"), input_schema=schema if isinstance(schema, dict) else {}
    )


def shown_in(said: Row) -> Shown:
    found = {tool["name"]: WHOLE for tool in said["tools"]}
    others = [name for tool in said["tools"] for name in tool.get("also", ())]
    for line in said["more"]:
        name, opened, rest = _LINE.findall(line)[0]
        found[name] = SIGNATURE if opened else LINE if rest else NAME
        others += [name for names in _OTHERS.findall(line) for name in names.split(", ")]
    return found | {name: ALSO for name in others if name not in found}
