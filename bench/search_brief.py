"""How long is a search's reply, and does stopping early lose a needed tool?

Every query of every set goes through `Find` twice: as a client's search, and with the whole default budget used.
Printed are median and 90th percentile of the reply's tokens (by the meter, for gpt-4o) and the share of needed tools
that a reply shows in any form. Every fourth query is searched once more among tools that all have an `outputSchema`, so
that replies show what tools return. Floors, over all queries: a median of 400 tokens, and 410 with what tools return;
a 90th percentile within the budget; 92.5 % of needed tools found, at most 0.5 points fewer than with the whole budget.
Run by `make bench-search`, alone with `ONLY=brief`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import fmean, median, quantiles
from typing import Any

import anyio
from search_sets import Set
from search_shape_replies import WHOLE, Behind, behind, weigh

from ullage.gateway.find.find_settings import FindSettings

__all__ = ["Brief", "Briefs", "measure", "report", "sizes"]

MOST_MEDIAN = 400
MOST_WITH_SHAPES = 410
MOST_LOST = 0.5
LEAST_FOUND = 92.5
_EACH = 4
"""One query of so many is searched with what tools return."""
_RETURNS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "total": {"type": "integer"},
        "items": {
            "type": "array",
            "items": {"properties": {key: {} for key in ("id", "number", "title", "state", "author", "labels", "url")}},
        },
    },
}
BUDGET = FindSettings().find_budget


def sizes(tokens: Sequence[int]) -> tuple[float, float]:
    """Median and 90th percentile."""
    return median(tokens), quantiles(tokens, n=10, method="inclusive")[-1] if len(tokens) > 1 else tokens[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """Of one set, or of all queries; shares are in points."""

    name: str
    queries: int
    median: float
    p90: float
    full_median: float
    found: float
    full_found: float
    first_whole: float
    """Replies that show a definition."""
    of_some: tuple[float, float]
    """Of every fourth query: median tokens without what tools return, and with it."""
    found_of_some: tuple[float, float]

    @property
    def lost(self) -> float:
        return self.full_found - self.found


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefs:
    sets: Sequence[Brief]
    every: Brief

    def missed(self) -> list[str]:
        every = self.every
        return [
            *([f"median reply {every.median:.0f} tokens, at most {MOST_MEDIAN}"] if every.median > MOST_MEDIAN else []),
            *([f"90th percentile {every.p90:.0f} tokens, at most {BUDGET}"] if every.p90 > BUDGET else []),
            *([f"{every.lost:.2f} points lost, at most {MOST_LOST}"] if every.lost > MOST_LOST else []),
            *([f"{every.found:.2f} % found, at least {LEAST_FOUND}"] if every.found < LEAST_FOUND else []),
            *(
                [f"median reply with shapes {every.of_some[1]:.0f} tokens, at most {MOST_WITH_SHAPES}"]
                if every.of_some[1] > MOST_WITH_SHAPES
                else []
            ),
        ]

    def to_json(self) -> Mapping[str, object]:
        return {one.name: asdict(one) | {"lost": round(one.lost, 2)} for one in (*self.sets, self.every)}


@dataclass(frozen=True, slots=True)
class _Query:
    tokens: int
    full_tokens: int
    found: float
    full_found: float
    has_definition: bool
    with_shapes: tuple[int, float] | None
    """Tokens and share found with what tools return; None where that was not searched."""


def measure(sets: Sequence[Set]) -> Briefs:
    queries = {each.name: anyio.run(partial(_measure_set, each)) for each in sets}
    every = [query for some in queries.values() for query in some]
    return Briefs(sets=[_summary(name, some) for name, some in queries.items()], every=_summary("all queries", every))


async def _measure_set(each: Set) -> list[_Query]:
    there, typed = await behind(each.tools), await behind(each.tools, returns=_RETURNS)
    stopping = replace(there.find.settings, stop_early=True)
    typed.find.settings = stopping
    found = list[_Query]()
    for number, query in enumerate(each.queries):
        needed = frozenset(there.entries[id_].listed for id_ in query.needed)
        there.find.settings = stopping
        brief = await _answer(there, query.text, needed)
        there.find.settings = replace(stopping, stop_early=False)
        full = await _answer(there, query.text, needed)
        shaped = None if number % _EACH else (await _answer(typed, query.text, needed))[:2]
        found.append(_Query(brief[0], full[0], brief[1], full[1], brief[2], shaped))
    return found


async def _answer(there: Behind, words: str, needed: frozenset[str]) -> tuple[int, float, bool]:
    reply = await there.reply(words, BUDGET)
    share = 100 * len(needed & reply.shown.keys()) / len(needed)
    return weigh(reply.text).tokens, share, WHOLE in reply.shown.values()


def _summary(name: str, queries: Sequence[_Query]) -> Brief:
    middle, p90 = sizes([query.tokens for query in queries])
    some = [(query, query.with_shapes) for query in queries if query.with_shapes is not None]
    return Brief(
        name=name,
        queries=len(queries),
        median=middle,
        p90=p90,
        full_median=median(query.full_tokens for query in queries),
        found=fmean(query.found for query in queries),
        full_found=fmean(query.full_found for query in queries),
        first_whole=100 * fmean(query.has_definition for query in queries),
        of_some=(median(query.tokens for query, _ in some), median(shaped[0] for _, shaped in some)),
        found_of_some=(fmean(query.found for query, _ in some), fmean(shaped[1] for _, shaped in some)),
    )


def report(briefs: Briefs) -> None:
    titles = ("queries", "median", "p90", "all used", "found", "all used", "lost", "whole")
    print(f"{'replies of find_tool':24}" + "".join(f"{title:>10}" for title in titles))
    for one in (*briefs.sets, briefs.every):
        whole = (one.queries, one.median, one.p90, one.full_median)
        shares = (one.found, one.full_found, one.lost, one.first_whole)
        print(
            f"{one.name:24}"
            + "".join(f"{value:>10,.0f}" for value in whole)
            + "".join(f"{value:>10.2f}" for value in shares)
        )
    for one in (*briefs.sets, briefs.every):
        (without, shaped), (found, found_shaped) = one.of_some, one.found_of_some
        print(
            f"{one.name:24} every fourth query: median {without:,.0f}, with what tools return {shaped:,.0f}; "
            f"found {found:.2f}, with it {found_shaped:.2f}"
        )
