"""How many of the needed tools does a reply of find_tool hold, for how many tokens, beside other shapes of a reply?

Every query of every set goes through `Find` at each of seven budgets, as a client's search would, with the set's
servers behind it. A needed tool is found in whatever form it is shown, also where it is named beside another that does
the same. Told apart are those shown whole, and those of which there is at least a signature, from which most tools can
be called; and of how many queries the nearest needed tool is so. All tokens are those of whole replies, by the meter,
for gpt-4o.

Beside them stand replies of other shapes (`search_shape_others`), and what it gains to show one for all tools that do
the same (`search_shape_twins`). Run by `make bench-search`, or alone by `python bench/search_shape.py`; `PEERS=no`
leaves the peers out.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from statistics import fmean

import anyio
from search_minilm import have_minilm
from search_sets import Set, catalogue_file, data_folder, read_sets
from search_shape_others import EIGHT, our_others, peer_replies
from search_shape_replies import SIGNATURE, WHOLE, Reply, behind, weigh
from search_shape_twins import Twins, measure_twins, report_twins

from ullage.gateway.find.find_settings import FindSettings

__all__ = ["BUDGETS", "Shape", "Shapes", "measure", "report"]

BUDGETS = (300, 500, 800, 1_000, 1_500, 2_000, 3_000)
DEFAULT = FindSettings().find_budget
AMONG_MANY = "livemcp_steps"
"""The set that is searched once more among the tools of a large catalogue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a way to answer came to, as a mean over queries or over sets; shares are in points."""

    tokens: float
    most: float
    """Tokens of the largest reply."""
    found: float
    """Needed tools that are shown at all."""
    ready: float
    """Needed tools shown whole or as a signature."""
    whole: float
    first_ready: float
    """Queries whose nearest needed tool is."""
    first_whole: float
    tools: float
    """In a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    sets: Sequence[Set]
    of_sets: Mapping[str, Sequence[Shape]]
    """By the name of the shape, one a set."""
    twins: Twins | None
    left_out: Sequence[str]

    def mean(self, name: str) -> Shape:
        return _mean(self.of_sets[name])

    def missed(self) -> list[str]:
        exceeded = [
            f"{each.name}: a reply of {shape.most:,.0f} tokens within {budget:,}"
            for budget in BUDGETS
            for each, shape in zip(self.sets, self.of_sets[within(budget)], strict=True)
            if shape.most > budget
        ]
        ours, eight = self.mean(within(DEFAULT)), self.mean(EIGHT)
        return exceeded + ([] if ours.found > eight.found else [f"{within(DEFAULT)} finds no more than {EIGHT}"])

    def to_json(self) -> Mapping[str, object]:
        return {
            "mean of sets": {name: _rounded(self.mean(name)) for name in self.of_sets},
            "found by set": {
                name: {each.name: round(shape.found, 1) for each, shape in zip(self.sets, shapes, strict=True)}
                for name, shapes in self.of_sets.items()
            },
            "twins": asdict(self.twins) if self.twins else None,
            "left out": list(self.left_out),
        }


def within(budget: int) -> str:
    return f"ours within {budget:,}"


def measure(sets: Sequence[Set]) -> Shapes:
    with_peers = os.environ.get("PEERS") != "no" and have_minilm()
    of_sets: dict[str, list[Shape]] = {}
    for each in sets:
        for name, shape in anyio.run(partial(_measure_set, each, with_peers=with_peers)).items():
            of_sets.setdefault(name, []).append(shape)
    left_out = [] if with_peers else ["no peer is asked, or their encoder cannot be had: their shapes are LEFT OUT"]
    return Shapes(sets=sets, of_sets=of_sets, twins=_twins(sets, left_out), left_out=left_out)


def _twins(sets: Sequence[Set], left_out: list[str]) -> Twins | None:
    among = next((each for each in sets if each.name == AMONG_MANY), None)
    if among is None or not catalogue_file().exists():
        left_out.append(f"no set `{AMONG_MANY}` or no large catalogue: tools that do the same are LEFT OUT")
        return None
    return anyio.run(measure_twins, among)


async def _measure_set(each: Set, *, with_peers: bool) -> dict[str, Shape]:
    there = await behind(each.tools)
    peers = peer_replies(each, there) if with_peers else {}
    judged: dict[str, list[Shape]] = {}
    for query in each.queries:
        needed = frozenset(there.entries[id_].listed for id_ in query.needed)
        replies = {name: answer(query.text) for name, answer in peers.items()} | await our_others(there, query.text)
        replies |= {within(budget): await there.reply(query.text, budget) for budget in BUDGETS}
        for name, reply in replies.items():
            judged.setdefault(name, []).append(_judge(reply, needed))
    return {name: _mean(shapes) for name, shapes in judged.items()}


def _judge(reply: Reply, needed: frozenset[str]) -> Shape:
    forms = [form for name, form in reply.shown.items() if name in needed]
    tokens = weigh(reply.text).tokens
    return Shape(
        tokens=tokens,
        most=tokens,
        found=100 * len(forms) / len(needed),
        ready=100 * sum(form <= SIGNATURE for form in forms) / len(needed),
        whole=100 * sum(form == WHOLE for form in forms) / len(needed),
        first_ready=100.0 * (forms[:1] in ([WHOLE], [SIGNATURE])),
        first_whole=100.0 * (forms[:1] == [WHOLE]),
        tools=len(reply.shown),
    )


def _mean(shapes: Sequence[Shape]) -> Shape:
    means = {field.name: fmean(getattr(shape, field.name) for shape in shapes) for field in fields(Shape)}
    return Shape(**means | {"most": max(shape.most for shape in shapes)})


def _rounded(shape: Shape) -> dict[str, float]:
    return {key: round(value, 1) for key, value in asdict(shape).items()}


def report(shapes: Shapes) -> None:
    for line in shapes.left_out:
        print(f"!! {line}")
    titles = ("tokens", "most", "found", "ready", "whole", "1st ready", "1st whole", "tools")
    print(f"{'a reply, mean of sets':34}" + "".join(f"{title:>11}" for title in titles) + "   found in each set")
    for name, every in shapes.of_sets.items():
        values = list(asdict(shapes.mean(name)).values())
        cells = "".join(f"{value:>11,.0f}" for value in values[:2]) + "".join(f"{value:>11.1f}" for value in values[2:])
        mark = "*" if name == within(DEFAULT) else ""
        print(f"{name + mark:34}{cells}   " + " ".join(f"{shape.found:5.1f}" for shape in every))
    print(f"sets: {', '.join(each.name for each in shapes.sets)}; * what a search gets that names no budget")
    if shapes.twins:
        report_twins(shapes.twins)


def main() -> int:
    sets = read_sets(data_folder())
    if not sets:
        print(
            f"no data: `{data_folder()}` has no set of tools and queries; name another with DATA=path", file=sys.stderr
        )
        return 2
    shapes = measure(sets)
    report(shapes)
    missed = shapes.missed()
    for line in missed:
        print(f"MISSED  {line}")
    print(json.dumps(shapes.to_json()))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
