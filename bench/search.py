"""How well are tools found, what does that cost, and does it work anywhere?

Run by `make bench-search`. `DATA` names a folder of sets: a folder each, with `tools.jsonl` and `queries.jsonl`. Each
part is a file of its own and prints its tables; `ONLY=quality,cost` runs some of them, and `PEERS=no` leaves peers out.
Prints what missed a floor, what was not measured and one line of figures. Fails where a floor is missed, and where a
part that `ONLY` names could not be measured.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import search_brief
import search_cost
import search_languages
import search_offline
import search_quality
import search_shape
import search_unseen
import search_uses
from search_sets import NothingMeasured, Set, data_folder, read_sets


class Figures(Protocol):
    """What a part found."""

    def missed(self) -> list[str]: ...

    def to_json(self) -> Mapping[str, object]: ...


Part = Callable[[Sequence[Set]], Figures]
"""Measures over the sets, and prints its tables."""
Found = TypeVar("Found", bound=Figures)


def _shown(measure: Callable[[Sequence[Set]], Found], report: Callable[[Found], None]) -> Part:
    def part(sets: Sequence[Set]) -> Figures:
        found = measure(sets)
        report(found)
        return found

    return part


PARTS: Mapping[str, Part] = {
    "quality": _shown(search_quality.measure, search_quality.report),
    "unseen": _shown(search_unseen.measure, search_unseen.report),
    "shipped": _shown(search_unseen.measure_shipped, search_unseen.report_shipped),
    "languages": _shown(search_languages.measure, search_languages.report),
    "brief": _shown(search_brief.measure, search_brief.report),
    "shape": _shown(search_shape.measure, search_shape.report),
    "uses": _shown(search_uses.measure, search_uses.report),
    "cost": _shown(search_cost.measure, search_cost.report),
    "offline": _shown(search_offline.measure, search_offline.report),
}


def _measured(name: str, sets: Sequence[Set]) -> Figures:
    begin = time.monotonic()
    print(f"\n{name}", flush=True)
    found = PARTS[name](sets)
    print(f"({time.monotonic() - begin:.0f} s)", flush=True)
    return found


def main() -> int:
    folder = data_folder()
    sets = read_sets(folder)
    if not sets:
        print(f"no data: `{folder}` has no set of tools and queries; name another with DATA=path", file=sys.stderr)
        return 2
    wanted = [name for name in os.environ.get("ONLY", "").split(",") if name] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        print(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    figures, not_measured = dict[str, Figures](), dict[str, str]()
    for name in wanted:
        try:
            figures[name] = _measured(name, sets)
        except NothingMeasured as why:
            not_measured[name] = str(why)
    missed = [f"{name}: {line}" for name, found in figures.items() for line in found.missed()]
    print("\n" + "\n".join(f"BELOW THE FLOOR  {line}" for line in missed))
    print("\n".join(f"NOT MEASURED  {name}: {why}" for name, why in not_measured.items()))
    summary = {name: found.to_json() for name, found in figures.items()}
    print(json.dumps(summary | {"missed": len(missed), "not measured": not_measured}))
    return 1 if missed or (not_measured and os.environ.get("ONLY")) else 0


if __name__ == "__main__":
    sys.exit(main())
