"""How long is a search's reply, and does stopping early lose a needed tool?

Every query of every set goes through `Find` twice: as a client's search, and with the whole default budget used.
Printed are median and 90th percentile of the reply's tokens (by the meter, for gpt-4o) and the share of needed tools
that a reply shows in any form. Floors: over all queries a median of 400 tokens, and 0.5 points of needed tools lost.
Run by `make bench-search`, alone with `ONLY=brief`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import fmean, median, quantiles

import anyio
from search_sets import Set
from search_shape_replies import WHOLE, Behind, behind, weigh

from ullage.gateway.find.find_settings import FindSettings

__all__ = ["Brief", "Briefs", "measure", "report", "sizes"]

MOST_MEDIAN = 400
MOST_LOST = 0.5
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
            *([f"{every.lost:.2f} points lost, at most {MOST_LOST}"] if every.lost > MOST_LOST else []),
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


def measure(sets: Sequence[Set]) -> Briefs:
    queries = {each.name: anyio.run(partial(_measure_set, each)) for each in sets}
    every = [query for some in queries.values() for query in some]
    return Briefs(sets=[_summary(name, some) for name, some in queries.items()], every=_summary("all queries", every))


async def _measure_set(each: Set) -> list[_Query]:
    there = await behind(each.tools)
    stopping = replace(there.find.settings, stop_early=True)
    found = list[_Query]()
    for query in each.queries:
        needed = frozenset(there.entries[id_].listed for id_ in query.needed)
        there.find.settings = stopping
        brief = await _answer(there, query.text, needed)
        there.find.settings = replace(stopping, stop_early=False)
        full = await _answer(there, query.text, needed)
        found.append(_Query(brief[0], full[0], brief[1], full[1], brief[2]))
    return found


async def _answer(there: Behind, words: str, needed: frozenset[str]) -> tuple[int, float, bool]:
    reply = await there.reply(words, BUDGET)
    share = 100 * len(needed & reply.shown.keys()) / len(needed)
    return weigh(reply.text).tokens, share, WHOLE in reply.shown.values()


def _summary(name: str, queries: Sequence[_Query]) -> Brief:
    middle, p90 = sizes([query.tokens for query in queries])
    return Brief(
        name=name,
        queries=len(queries),
        median=middle,
        p90=p90,
        full_median=median(query.full_tokens for query in queries),
        found=fmean(query.found for query in queries),
        full_found=fmean(query.full_found for query in queries),
        first_whole=100 * fmean(query.has_definition for query in queries),
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
