"""What does a search through find_tool cost, and is the tool that was wanted in its reply?

Used by `surface.py`. All catalogues stand behind one `Find`; the queries are the first sentences of some tools' own
descriptions, and the tool wanted is the one that a sentence was taken from. Beside it stand sets of searches that
agents and people made, where they are at hand: there the share is of all tools that were needed.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import anyio
from search_brief import sizes
from search_shape_replies import WHOLE, shown_in

from ullage.gateway.find.find_settings import FindSettings
from ullage.gateway.find.find_source import Find
from ullage.gateway.find.tool_forms import NAMES
from ullage.gateway.merge.merge import Merge
from ullage.gateway.merge.tool_view import Member
from ullage.gateway.slim.schema_walk import first_sentence
from ullage.gateway.tool_source import definition_text
from ullage.testing import FakeSource
from ullage.tokens import Meter
from ullage.tool import Call, Tool

__all__ = ["BUDGETS", "Searches", "search_catalogues", "search_set"]

BUDGETS = (500, 1_000, 2_000)
MOST_MEDIAN = 400
"""Tokens of the median reply, whatever the budget."""
MODEL = "gpt-4o"
QUERIES = 300
SENTENCE = 200

Query = tuple[str, frozenset[str]]
"""The words, and the listed names of the tools that are wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searches:
    """What the searches within one budget came to."""

    name: str
    tools: int
    budget: int
    surface: int
    """Tokens that every request carries: our tools and the instructions."""
    queries: int
    mean_tokens: float
    median_tokens: float
    p90_tokens: float
    most_tokens: int
    whole: float
    """Share of the wanted tools whose definition is in the reply."""
    any: float
    """Share of the wanted tools that are in the reply at all."""

    @property
    def exceeded(self) -> bool:
        return self.most_tokens > self.budget

    @property
    def too_long(self) -> bool:
        """Whether searches stop too late on the whole."""
        return self.median_tokens > MOST_MEDIAN


def search_catalogues(catalogues: Sequence[tuple[str, Sequence[Tool]]], meter: Meter) -> list[Searches]:
    """One row a budget, over all catalogues at once."""
    return anyio.run(_search_catalogues, catalogues, meter)


async def _search_catalogues(catalogues: Sequence[tuple[str, Sequence[Tool]]], meter: Meter) -> list[Searches]:
    find, names = await _behind_one(catalogues, meter)
    sentences = [
        (sentence, frozenset({names[server, tool.name]}))
        for server, tools in catalogues
        for tool in tools
        if (sentence := first_sentence(tool.description or "", SENTENCE))
    ]
    return await _rows("catalogues", find, sentences[:: max(1, len(sentences) // QUERIES)], meter)


def search_set(folder: Path, meter: Meter) -> list[Searches]:
    """The same for a folder with `tools.jsonl` and `queries.jsonl`."""
    return anyio.run(_search_set, folder, meter)


async def _search_set(folder: Path, meter: Meter) -> list[Searches]:
    rows = list(_lines(folder / "tools.jsonl"))
    servers: dict[str, list[Tool]] = {}
    for row in rows:
        tool = Tool(name=row["name"], description=row.get("description"), input_schema=row.get("inputSchema") or {})
        servers.setdefault(row.get("server") or "tools", []).append(tool)
    find, names = await _behind_one(list(servers.items()), meter)
    listed = {row["id"]: names[row.get("server") or "tools", row["name"]] for row in rows}
    queries = [
        (row["query"], frozenset(map(listed.__getitem__, row["relevant"]))) for row in _lines(folder / "queries.jsonl")
    ]
    return await _rows(folder.name, find, queries, meter)


def _lines(path: Path) -> Iterator[dict]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


async def _behind_one(
    catalogues: Sequence[tuple[str, Sequence[Tool]]], meter: Meter
) -> tuple[Find, dict[tuple[str, str], str]]:
    members = [Member(name=name, source=FakeSource(offered=tuple(tools)), prefix=name) for name, tools in catalogues]
    merge = Merge(members, reserved=NAMES)
    find = Find(merge, meter, FindSettings(mode="search"))
    await find.prepare()
    return find, {(entry.server, entry.original): entry.listed for entry in (await merge.view()).entries}


async def _rows(name: str, find: Find, queries: Sequence[Query], meter: Meter) -> list[Searches]:
    return [await _row(name, find, queries, meter, budget) for budget in BUDGETS]


async def _row(name: str, find: Find, queries: Sequence[Query], meter: Meter, budget: int) -> Searches:
    view = await find.inner.view()
    carried = [*map(definition_text, (await find.tools()).tools), find.instructions(view)]
    replies = [(await _reply(find, words, budget), wanted) for words, wanted in queries]
    tokens = [meter.count(text, MODEL).tokens for text, _ in replies]
    shares = [_shares(json.loads(text), wanted) for text, wanted in replies]
    return Searches(
        name=name,
        tools=len(view.entries),
        budget=budget,
        surface=sum(meter.count(text, MODEL).tokens for text in carried),
        queries=len(queries),
        mean_tokens=mean(tokens),
        median_tokens=sizes(tokens)[0],
        p90_tokens=sizes(tokens)[1],
        most_tokens=max(tokens),
        whole=mean(whole for whole, _ in shares),
        any=mean(anyhow for _, anyhow in shares),
    )


async def _reply(find: Find, words: str, budget: int) -> str:
    reply = await find.call(Call(tool="find_tool", arguments={"tool_description": words, "max_tokens": budget}))
    return str(reply.content[0]["text"])


def _shares(reply: dict, wanted: frozenset[str]) -> tuple[float, float]:
    shown = shown_in(reply)
    whole = {name for name, form in shown.items() if form == WHOLE}
    return len(whole & wanted) / len(wanted), len(shown.keys() & wanted) / len(wanted)
