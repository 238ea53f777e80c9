"""What does it gain to show one for all tools that do the same?

A set's queries are asked of its tools among those of thousands of other servers, forks and copies of its own among
them. The same ranking is written twice: each tool in a place of its own, and one place for those that do the same, with
the others' names in it. A needed tool is found where it is shown or named.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from search_sets import Row, Set, catalogue_file, read_rows
from search_shape_replies import behind, shown_in, weigh

from ullage.gateway.find.find_reply import About, Beside, candidate, compose
from ullage.gateway.find.search_tools import Ranked, grouped, rank, read_query
from ullage.gateway.find.tool_forms import forms_of
from ullage.gateway.find.tool_index import Embedders, Indexing
from ullage.gateway.merge.tool_view import Entry
from ullage.search import Named

__all__ = ["Twins", "measure_twins", "report_twins"]

BUDGETS = (500, 1_000, 1_500)
_APART, _TOGETHER = WAYS = ("each in its place", "one for all")
_MOST = 40
_BASELINE = 10_000_000
"""Above every reply."""

Values = Mapping[str, Mapping[int, float]]
"""By way and budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
    name: str
    tools: int
    groups: int
    """Of two tools and more."""
    grouped: int
    """Tools in them."""
    largest: int
    found: Values
    """Needed tools, in points."""
    tokens: Values


async def measure_twins(each: Set) -> Twins:
    names = {row.get("server") for row in each.tools}
    there = await behind([*each.tools, *(_apart(row, names) for row in read_rows(catalogue_file()))])
    view = await there.find.inner.view()
    search = Indexing(Embedders()).make(view.entries, "static", None).index.search
    found = {way: {budget: list[float]() for budget in BUDGETS} for way in WAYS}
    tokens = {way: {budget: list[float]() for budget in BUDGETS} for way in WAYS}
    for query in each.queries:
        needed = {there.entries[id_].listed for id_ in query.needed}
        for budget in BUDGETS:
            asked = read_query({"tool_description": query.text}, budget)
            ranked = {
                _APART: [
                    Ranked(listed=hit.document.id, named=hit.named >= Named.AMONG_OTHERS)
                    for hit in search(query.text, _MOST)
                ],
                _TOGETHER: rank(search, view, asked, there.listed),
            }
            for way, tools in ranked.items():
                text = _written(tools, there.listed, budget)
                found[way][budget].append(100 * len(needed & shown_in(json.loads(text)).keys()) / len(needed))
                tokens[way][budget].append(weigh(text).tokens)
    groups = [group for group in grouped(view.entries) if group.others]
    return Twins(
        name=each.name,
        tools=len(view.entries),
        groups=len(groups),
        grouped=sum(1 + len(group.others) for group in groups),
        largest=max((1 + len(group.others) for group in groups), default=0),
        found=_means(found),
        tokens=_means(tokens),
    )


def _apart(row: Row, names: set[str | None]) -> Row:
    """The tool of another server, though that has the name of one of the set's."""
    server = row.get("server") or "tools"
    return row | {"id": f"catalogue {row['id']}", "server": f"{server}-2" if server in names else server}


def _written(tools: Sequence[Ranked], entries: Mapping[str, Entry], budget: int) -> str:
    candidates = [
        candidate(
            forms_of(entries[each.listed].tool),
            About(named=each.named, near=each.near, writes=True, also=each.also),
            weigh,
            baseline=_BASELINE,
        )
        for each in tools
    ]
    return compose(candidates, baseline=_BASELINE, budget=budget, weigh=weigh, beside=Beside()).text


def _means(values: Mapping[str, Mapping[int, Sequence[float]]]) -> Values:
    return {way: {budget: fmean(each) for budget, each in of_way.items()} for way, of_way in values.items()}


def report_twins(twins: Twins) -> None:
    print(
        f"\nTools that do the same: {twins.grouped:,} of {twins.tools:,} in {twins.groups:,} groups, the largest of "
        f"{twins.largest}\n{twins.name} among them: found, tokens"
        + "".join(f"{f'within {budget:,}':>18}" for budget in BUDGETS)
    )
    for way in WAYS:
        cells = "".join(f"{twins.found[way][budget]:>10.1f}{twins.tokens[way][budget]:>8,.0f}" for budget in BUDGETS)
        print(f"  {way:37}{cells}")
