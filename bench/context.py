"""How full is the window said to be, what is let go, and what of it is needed again?

Run by `make bench-context` over recorded sessions (`context_traces`; `DATA=path` for others of the same shapes). Each
part is a file of its own and prints a table; `ONLY=validity,crash` runs some of them, `PEERS=no` leaves peers out, and
`N=100` kills fewer processes. Prints what missed a floor and one line of figures; fails where a floor is missed.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import context_alone
import context_cases
import context_continuity
import context_crash
import context_dialogues
import context_money
import context_others
import context_relations
import context_validity
import context_weighing
from context_traces import data_folder

SEED = 7


class Figures(context_alone.Figures, Protocol):
    """What a part found."""

    def to_json(self) -> Mapping[str, object]: ...


Part = Callable[[Path], Figures]
"""Measures over the sessions of a folder, and prints its table."""
Found = TypeVar("Found", bound=Figures)


def _shown(run: Callable[[Path], Found], report: Callable[[Found], None]) -> Part:
    def part(data: Path) -> Figures:
        found = run(data)
        report(found)
        return found

    return part


@dataclass(frozen=True, slots=True)
class Nothing:
    """Where a part has no data: its floors are missed."""

    reason: str

    def missed(self) -> list[str]:
        return [self.reason]

    def to_json(self) -> dict[str, object]:
        return {}


def _weighing(data: Path) -> Figures:
    if any((data / "pi").glob("*.jsonl")):
        return _shown(context_weighing.run, context_weighing.report)(data)
    return Nothing("no session of `pi` is there, whose answers bear what the provider reported")


def _crash(_data: Path) -> Figures:
    found = context_crash.measure(int(os.environ.get("N") or context_crash.KILLS), SEED)
    print(f"{found.kills} kills, {found.acknowledged} messages acknowledged, {found.compactions} compactions: ", end="")
    print(f"{found.lost} messages lost, {len(found.faults)} faults, {found.restored} times restored")
    return found


PARTS: Mapping[str, Part] = {
    "validity": _shown(context_validity.run, context_validity.report),
    "cases": _shown(context_cases.run, context_cases.report),
    "others": _shown(context_others.run, context_others.report),
    "continuity": _shown(context_continuity.run, context_continuity.report),
    "relations": _shown(context_relations.run, context_relations.report),
    "dialogues": _shown(context_dialogues.run, context_dialogues.report),
    "money": _shown(context_money.run, context_money.report),
    "weighing": _weighing,
    "crash": _crash,
}


def _measured(name: str, folder: Path) -> Figures:
    begin = time.monotonic()
    print(f"\n{name}", flush=True)
    found = PARTS[name](folder)
    print(f"({time.monotonic() - begin:.0f} s)", flush=True)
    return found


def main() -> int:
    folder = data_folder()
    if not folder.is_dir():
        print(f"no data: `{folder}` is no folder; name one with DATA=path", file=sys.stderr)
        return 2
    wanted = [name for name in os.environ.get("ONLY", "").split(",") if name] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        print(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    figures = {name: _measured(name, folder) for name in wanted}
    missed = [f"{name}: {line}" for name, found in figures.items() for line in found.missed()]
    print("\n" + "\n".join(f"BELOW THE FLOOR  {line}" for line in missed))
    print(json.dumps({name: found.to_json() for name, found in figures.items()} | {"missed": len(missed)}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
