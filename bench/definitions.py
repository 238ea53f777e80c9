"""How often does a server that nobody changed look as if its definitions had changed?

Run by `make bench-definitions`. Starts every server of `bench/definitions_servers.py` three times (`STARTS`), each time
in another folder, home and temporary folder, one round after another so that time passes between two starts of a
server, and judges what it offers as the gateway does: the first start is the baseline, and anything withheld at a later
one is a false alarm. `DATA` names another folder of catalogues, `ONLY` a registry (`pypi` or `npm`) or a part of
packages' names, and `RECORDED=yes` judges what the last run recorded instead of starting anything.

Prints a table of the servers, then which parts changed of those that raised an alarm, then one line of figures; fails
where more than 2 % of the servers that started raise one.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from definitions_servers import FOLDER, Package, install, read_packages, record

from ullage.gateway import Baselines, DefinitionChange, Places, Server, changed_parts
from ullage.gateway.accepted_definitions import Kind
from ullage.store import Database
from ullage.tool import JsonObject

DEFAULT_DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "catalogues"
MOST_ALARMS = 0.02
"""Of the servers that started."""


@dataclass(slots=True)
class Result:
    package: Package
    problem: str | None = None
    starts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    alarms: list[DefinitionChange] = field(default_factory=list[DefinitionChange])
    letters_differ: bool = False
    """Whether any start differs from the first to the letter, so that only normalising kept it from an alarm."""


def main() -> int:
    data = Path(os.environ.get("DATA") or DEFAULT_DATA)
    if not data.is_dir():
        print(f"no data: `{data}` is not a folder; name one with DATA=path", file=sys.stderr)
        return 2
    only = os.environ.get("ONLY") or ""
    wanted = [one for one in read_packages(data) if only in ("", one.registry) or only in one.name]
    results = [Result(one) for one in wanted]
    if os.environ.get("RECORDED"):
        for result in results:
            paths = sorted(result.package.folder.glob("start-*.json"))
            result.starts = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
            result.problem = None if result.starts else _remembered(result.package)
    else:
        start_all(results, int(os.environ.get("STARTS") or 3))
    for result in results:
        judge(result)
    return report(results)


def _remembered(package: Package) -> str:
    failed = package.folder / ".failed"
    return failed.read_text(encoding="utf-8") if failed.exists() else "did not start"


def start_all(results: Sequence[Result], starts: int) -> None:
    for result in results:
        result.problem = install(result.package)
        for path in result.package.folder.glob("start-*.json"):
            path.unlink()
    for number in range(1, starts + 1):
        for result in results:
            if result.problem is not None:
                continue
            print(f"start {number} of {result.package.name} …", file=sys.stderr)
            try:
                started = record(result.package, number)
            except Exception as error:  # noqa: BLE001 - a server of anyone's making; one that fails is counted out
                result.problem = f"start {number}: {type(error).__name__}: {error}"[:160].replace("\n", " ")
                continue
            result.starts.append(started)
            path = result.package.folder / f"start-{number}.json"
            path.write_text(json.dumps(started), encoding="utf-8")


def judge(result: Result) -> None:
    """Judges the starts one after the other, each as a process of its own with the same store."""
    if not result.starts:
        return
    path = FOLDER / "judged.db"
    path.unlink(missing_ok=True)
    database = Database.open(path)
    try:
        for number, started in enumerate(result.starts):
            withheld = _judged(result.package, started, database)
            result.alarms += withheld if number else []
    finally:
        database.close()
        path.unlink(missing_ok=True)
    said = [_offered(started) for started in result.starts]
    result.letters_differ = any(one != said[0] for one in said[1:])


def _judged(package: Package, started: dict[str, Any], database: Database) -> list[DefinitionChange]:
    places = started["places"]
    server = Server(name=package.name, transport="stdio", command="server", directory=places["project"], launch="same")
    baselines = Baselines(database, places=Places(home=places["home"], temporary=places["tmp"]))
    era = "stateless" if started["protocol"] >= "2026" else "handshake"
    found = list[DefinitionChange]()
    for kind, definitions in _offered(started).items():
        offered = baselines.offer(server, kind, definitions)
        found += baselines.judge(server, era, offered).withheld.values()
    return found


def _offered(started: dict[str, Any]) -> dict[Kind, list[tuple[str, JsonObject]]]:
    said = {key: started[key] for key in ("instructions", "title") if started[key] is not None}
    return {
        "tool": [(one["name"], one) for one in started["tools"]],
        "prompt": [(str(one.get("name")), one) for one in started["prompts"]],
        "instructions": [("", said)],
    }


def report(results: Sequence[Result]) -> int:
    started = [one for one in results if len(one.starts) > 1]
    alarmed = [one for one in started if one.alarms]
    width = max(len(one.package.name) for one in results)
    for one in results:
        if len(one.starts) < 2:
            print(f"{one.package.name:{width}}  left out: {one.problem}")
            continue
        first = one.starts[0]
        what = f"{len(one.starts)} starts, {len(first['tools'])} tools, {len(first['prompts'])} prompts"
        verdict = (
            f"{len(one.alarms)} withheld" if one.alarms else "quiet, normalised" if one.letters_differ else "quiet"
        )
        print(f"{one.package.name:{width}}  {what}: {verdict}")
    for one in alarmed:
        for change in one.alarms[:10]:
            name = change.name or "instructions"
            print(f"  {one.package.name} {name}: {'; '.join(changed_parts(change))}")
    share = len(alarmed) / max(1, len(started))
    normalised = sum(one.letters_differ and not one.alarms for one in started)
    print(
        f"servers={len(results)} started={len(started)} alarmed={len(alarmed)} share={share:.3f} "
        f"normalised={normalised} tools={sum(len(one.starts[0]['tools']) for one in started)}"
    )
    if not started or share > MOST_ALARMS:
        print(f"FAILED: more than {MOST_ALARMS:.0%} of the servers raise a false alarm", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
