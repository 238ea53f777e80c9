"""Fit how far the counts of whole requests are off, by host, maker and kind, and write `tokens/fitted_bands.py`.

    python scripts/fit_bands.py USAGE_FOLDER

Reads recorded requests with the provider's own counts (one .jsonl a provider), weighs each by its rule alone and finds,
for every class of requests with enough rows, the narrowest band that holds 97 of 100 of them, and whether counts that a
rule calls exact are. `bench/accuracy.py` uses the same functions to fit without one repository at a time, and judges
that repository's rows by the outcome. Rows of one repository resemble one another, so each counts for less the more it
has. Only the standard library is needed.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ullage.tokens.count import FLOOR, RESELLERS, Count, Method, Reach, keys_of

TARGET = Path(__file__).parent.parent / "src" / "ullage" / "tokens" / "fitted_bands.py"
COVERED = 0.97
"""Of the rows that a band is fitted to; of rows elsewhere it then holds a little less."""
COVERED_NARROWER = 0.985
"""The same where bands are drawn in."""
RIGHT = 0.98
"""Of the exact counts of a class that stays exact."""
ALMOST_RIGHT = 0.9
DOUBT = 1.5
"""The least stretch of counts that are exact no more: a token either way."""
ENOUGH = 0.955
"""Of the rows in their bands as the rules have them, for those to stay no wider."""
LEAST_ROWS, LEAST_EXACT, LEAST_EXACT_OF_MAKER = 12, 5, 20
HIDDEN_PROMPTS = frozenset({"openrouter", "perplexity", "venice", "cohere", "writer", "snowflake"})
"""Hosts that put a prompt of their own before everybody's, or pass requests on to hosts that are not named: nobody
outside can count for them, and their rows say nothing of other hosts."""
NARROWEST = 0.5
"""No band is drawn in further: what no recording shows may still be."""
FURTHEST = 10.0
"""A class that would have to be stretched further is not understood, and stays as it is beyond that."""
LEAST_REPOSITORIES = 10
"""For drawing a band in; with fewer, the next repository may well lie outside."""
_KIN = ("* ", "resellers ")
"""What the classes begin with that hold for hosts other than those they were fitted to."""
TAMED = 0.5
"""A repository with n rows weighs as much as n to this power."""
HEAD = '''"""Reaches of bands by class, as `scripts/fit_bands.py` found them; written by that script, not by hand.

A key is a host, the maker of the model (or `*` for any), the kind of a request and the method of its count; a value is
how many times the band below and above the count, and whether a count that is exact by its rule stays so.
"""

from collections.abc import Mapping

from .count import Reach

__all__ = ["REACHES"]

REACHES: Mapping[str, Reach] = {
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A recorded request as its rule weighs it, with what its provider reported."""

    host: str
    maker: str
    kind: str
    repository: str
    count: Count
    reported: int

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(keys_of(self.host, self.maker, self.kind, self.count.method))


def fit(samples: Iterable[Sample]) -> dict[str, Reach]:
    """A reach for each class with enough rows; the class of all always has one."""
    classes: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        for key in sample.keys:
            if sample.host not in HIDDEN_PROMPTS or not key.startswith("*"):
                classes[key].append(sample)
    found: dict[str, Reach] = {f"resellers * {kind} exact": Reach(DOUBT, DOUBT) for kind in ("plain", "tools", "other")}
    for key, members in classes.items():
        exact = key.endswith(Method.EXACT)
        if len(members) < _least(key, exact=exact) and not key.startswith("* *"):
            continue
        reach = _stay_exact(members) if exact else _fit_band(members)
        if key.partition(" ")[0] in RESELLERS and exact:
            found[key] = Reach(max(DOUBT, reach.below), max(DOUBT, reach.above))
            continue
        if not key.startswith(_KIN):
            found[key] = reach
            continue
        # A host of which little is known may lie farther off than those that are known, so no narrower band.
        reach = replace(reach, below=max(1.0, reach.below), above=max(1.0, reach.above))
        # Hosts write schemas and media each in their own way, and resellers pass a request on to any of them.
        shared = key.startswith("resellers") or key.endswith("other exact")
        found[key] = Reach(max(DOUBT, reach.below), max(DOUBT, reach.above)) if exact and shared else reach
    return found


def _least(key: str, *, exact: bool) -> int:
    """How many rows a class must have: for a single maker on a single host to be told from the others, more."""
    if not exact:
        return LEAST_ROWS
    return LEAST_EXACT if "* " in key else LEAST_EXACT_OF_MAKER


def _stay_exact(members: Sequence[Sample]) -> Reach:
    """Whether a class is as exact as its rule says; one miss among few says nothing, two do."""
    wrong = sum(sample.count.tokens != sample.reported for sample in members)
    right = 1 - wrong / len(members)
    if right >= RIGHT or (wrong <= 1 and right >= ALMOST_RIGHT):
        return Reach(1.0, 1.0, exact=True)
    found = _narrowest(*_stretches(members), COVERED_NARROWER)
    return Reach(max(DOUBT, found.below), max(DOUBT, found.above))


def _fit_band(members: Sequence[Sample]) -> Reach:
    """One to one where the bands hold as they are; else the narrowest that do."""
    size = Counter(sample.repository for sample in members)
    inside = sum(sample.count.low <= sample.reported <= sample.count.high for sample in members)
    if inside >= ENOUGH * len(members) and len(size) < LEAST_REPOSITORIES:
        return Reach(1.0, 1.0)
    below, above, weights = _stretches(members)
    if inside >= ENOUGH * len(members):
        found = _narrowest(below, above, weights, COVERED_NARROWER)
        lower, upper = (min(1.0, max(NARROWEST, side)) for side in (found.below, found.above))
        return Reach(lower, upper)
    found = _narrowest(below, above, weights, COVERED)
    if len(size) >= LEAST_REPOSITORIES:
        return Reach(max(NARROWEST, found.below), max(NARROWEST, found.above))
    return Reach(max(1.0, found.below), max(1.0, found.above))


def _stretches(members: Sequence[Sample]) -> tuple[list[float], list[float], list[float]]:
    """How far each row's band must be stretched below and above, and what the row weighs."""
    size = Counter(sample.repository for sample in members)
    return (
        [_needed(s.count.tokens - s.reported, s.count.tokens - s.count.low) for s in members],
        [_needed(s.reported - s.count.tokens, s.count.high - s.count.tokens) for s in members],
        [size[sample.repository] ** (TAMED - 1) for sample in members],
    )


def _needed(distance: int, own: int) -> float:
    """By how much a side must be stretched to reach the reported count (the inverse of `stretch`)."""
    if distance <= own:
        return distance / own if distance > 0 else 0.0
    return 1 + (distance - own) / (own + FLOOR)


def _narrowest(below: Sequence[float], above: Sequence[float], weights: Sequence[float], covered: float) -> Reach:
    """The pair of stretches of the least sum that leaves out no more than its share of the weight."""
    allowed = (1 - covered) * sum(weights)
    best = (float("inf"), 0.0, 0.0)
    order = sorted(range(len(below)), key=lambda at: -below[at])
    left_out: set[int] = set()
    lost = 0.0
    for at in [None, *order]:
        if at is not None:
            left_out.add(at)
            lost += weights[at]
            if lost > allowed:
                break
        low = max((below[i] for i in range(len(below)) if i not in left_out), default=0.0)
        room, high = allowed - lost, 0.0
        for i in sorted((i for i in range(len(above)) if i not in left_out), key=lambda i: -above[i]):
            room -= weights[i]
            if room < 0:
                high = above[i]
                break
        best = min(best, (low + high, low, high))
    below_most, above_most = (min(FURTHEST, round(side + 0.005, 2)) for side in best[1:])
    return Reach(below_most, above_most)


def write(reaches: Mapping[str, Reach], path: Path) -> None:
    lines = []
    for key, reach in sorted(reaches.items()):
        exact = ", exact=True" if reach.exact else ""
        lines.append(f'    "{key}": Reach({reach.below}, {reach.above}{exact}),\n')
    path.write_text(HEAD + "".join(lines) + "}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("usage", type=Path)
    folder = parser.parse_args().usage
    sys.path.append(str(Path(__file__).parent.parent / "bench"))
    from rows import Skipped, read_rows, samples_of

    from ullage.models import shipped
    from ullage.tokens import Meter

    meter = Meter(shipped(), reaches={})
    rows = [row for row in read_rows(folder, shipped(), Skipped({})) if not row.redacted]
    samples = samples_of(rows, lambda _: meter)
    reaches = fit(samples)
    write(reaches, TARGET)
    print(f"{len(samples)} rows of {len({s.repository for s in samples})} repositories, {len(reaches)} classes")


if __name__ == "__main__":
    main()
