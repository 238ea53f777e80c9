"""Do the SQL locks hold, and do they let questions through?

Run by `make bench-sql`. `DATA` names another file of cases (one JSON object a line, as tests/sql/guard/cases.jsonl),
`POSTGRESQL` and `MARIADB` other servers to play on, as somebody who may make databases and roles there. Prints, for
each dialect, how many attacks the parser's lock refuses and how many questions it allows; then, for each engine that
answers, with the role that its probe advises, what the cases of the other locks come to, and what every attack comes
to with the parser's lock open. Fails where an attack is allowed, a question refused, something changed, was left
behind in a session, or was late.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "sql"))

from fuzz.cases import ADVERSARY, CASES, EVERYDAY, MORE, Case, read_cases
from fuzz.stage import ENGINES, LOOT, staged
from sql_engines import Outcome, attack
from sql_static import Tally, judge_cases, judge_suites


def main() -> int:
    path = Path(os.environ.get("DATA") or CASES)
    if not path.is_file():
        print(f"no data: `{path}` is not a file; name one with DATA=path", file=sys.stderr)
        return 2
    given, own = list(read_cases(path)), list(read_cases(ADVERSARY))
    guard = list(read_cases(MORE, EVERYDAY))
    static = {"given": judge_cases(given), "the guard's": judge_cases(guard), "adversary's": judge_cases(own)}
    report_static(static)
    suites = judge_suites()
    report_suites(suites)
    with loot_folder():
        outcomes = anyio.run(attack_all, given + own)
    report_engines(outcomes)
    return conclude(static, suites, outcomes)


@contextmanager
def loot_folder() -> Iterator[None]:
    """Cases write here; anybody may, so that what keeps them from it is a lock of ours."""
    LOOT.mkdir(exist_ok=True)
    LOOT.chmod(0o777)
    try:
        yield
    finally:
        for path in LOOT.iterdir():
            path.unlink()
        LOOT.rmdir()


async def attack_all(cases: Sequence[Case]) -> dict[str, list[Outcome]]:
    """For the whole path and for the engine alone, an outcome for each engine that answers."""
    outcomes: dict[str, list[Outcome]] = {"every lock": [], "without the parser's": []}
    with tempfile.TemporaryDirectory(prefix="ullage_bench_") as folder:
        for engine in ENGINES:
            attacks = [case for case in cases if case.attack and case.engine == engine]
            for name, guarded in (("every lock", True), ("without the parser's", False)):
                chosen = [case for case in attacks if case.layer != "static"] if guarded else attacks
                with staged(engine, Path(folder) / ("on" if guarded else "off")) as stage:
                    if stage is None:
                        print(f"{engine}: no server answers, left out", file=sys.stderr)
                    else:
                        outcomes[name].append(await attack(stage, chosen, guarded=guarded))
    return outcomes


def report_static(static: dict[str, list[tuple[str, Tally, Tally]]]) -> None:
    print(f"The parser's lock\n{'cases':16}{'dialect':12}{'attacks':>9}{'refused':>9}{'questions':>11}{'allowed':>9}")
    for name, rows in static.items():
        for dialect, attacks, questions in rows:
            print(f"{name:16}{dialect:12}{attacks.total:>9}{attacks.due:>9}{questions.total:>11}{questions.due:>9}")
            for miss in attacks.misses + questions.misses:
                print(f"  MISS  {miss}")


def report_suites(suites: dict[str, list[Tally]]) -> None:
    for suite, tallies in suites.items():
        print(f"{suite:16}" + ", ".join(f"{tally.name} {tally.due}/{tally.total}" for tally in tallies))
        for miss in [miss for tally in tallies for miss in tally.misses][:20]:
            print(f"  MISS  {miss}")


def report_engines(outcomes: dict[str, list[Outcome]]) -> None:
    ends = ("refused", "failed", "answered", "deadline", "lost")
    print(
        f"\n{'locks':24}{'engine':12}" + "".join(f"{end:>10}" for end in ends) + f"{'changed':>9}{'left':>6}{'told':>6}"
    )
    for name, rows in outcomes.items():
        for row in rows:
            counts = "".join(f"{row.ends[end]:>10}" for end in ends)
            print(f"{name:24}{row.engine:12}{counts}{len(row.changed):>9}{len(row.left):>6}{len(row.told):>6}")
            for line in row.failures + [f"{row.engine} told: {each}" for each in row.told]:
                print(f"  {line[:300]}")
            for excuse, times in row.excused.items():
                print(f"  {row.engine} excused {times}: {excuse}")


def conclude(
    static: dict[str, list[tuple[str, Tally, Tally]]],
    suites: dict[str, list[Tally]],
    outcomes: dict[str, list[Outcome]],
) -> int:
    rows = [row for each in static.values() for row in each]
    missed = sum(len(tally.misses) for _, *tallies in rows for tally in tallies)
    missed_suites = sum(len(tally.misses) for tallies in suites.values() for tally in tallies)
    engines = [outcome for each in outcomes.values() for outcome in each]
    told = [each for outcome in outcomes["every lock"] for each in outcome.told]
    harm = [line for outcome in engines for line in outcome.failures] + told
    figures = {
        "attacks": sum(attacks.total for _, attacks, _ in rows),
        "refused": sum(attacks.due for _, attacks, _ in rows),
        "questions": sum(questions.total for _, _, questions in rows),
        "allowed": sum(questions.due for _, _, questions in rows),
        "suites": {name: [sum(t.due for t in each), sum(t.total for t in each)] for name, each in suites.items()},
        "engines": sorted({outcome.engine for outcome in engines}),
        "run with the parser's lock open": sum(each.ends.total() for each in outcomes["without the parser's"]),
        "harm": len(harm),
    }
    print(json.dumps(figures))
    return int(bool(missed or missed_suites or harm))


if __name__ == "__main__":
    sys.exit(main())
