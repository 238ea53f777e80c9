"""Does any spelling of an attack pass the guard, or any spelling of a question fail it, in a million tries?

Run by `make fuzz-sql`. `N` says how many mutants (default 1,000,000), `SEED` which ones (default the day's date),
`DATA` names another file of cases. Two processes share the work; progress goes to stderr. An attack that was let
through after its meaning may have been spoilt is run on the real engine, as its owner and with no lock, and counts only
where it does something; those of engines that are not here are counted apart and shown. Prints each failure with its
seed, its chain of mutators and its text, then one line of figures; fails where there is one.
"""

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "sql"))

from fuzz.cases import ADVERSARY, CASES, EVERYDAY, MORE, Case, read_cases
from fuzz.effects import Unguarded
from fuzz.judging import Finding, rounds

PROCESSES = 2
BATCH = 5_000
TOGETHER = 40
"""Statements that are run before somebody looks for changes; only where there are some, one by one."""


@dataclass(slots=True)
class Batch:
    mutants: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])


def main() -> int:
    path = Path(os.environ.get("DATA") or CASES)
    number = int((os.environ.get("N") or "1000000").replace("_", "").replace(",", ""))
    seed = os.environ.get("SEED") or datetime.now(UTC).date().isoformat()
    cases = [case for case in read_cases(path, MORE, EVERYDAY, ADVERSARY) if case.layer == "static"]
    findings, mutants = list[Finding](), 0
    for batch in batches(cases, seed, number):
        mutants += batch.mutants
        findings += batch.findings
        print(f"\r{mutants:,} mutants, {len(findings):,} to look at", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return conclude(seed, mutants, findings)


def batches(cases: Sequence[Case], seed: str, number: int) -> Iterator[Batch]:
    """Until as many mutants were made as asked for; some rounds make none."""
    starts, made = iter(range(0, 100 * number, BATCH)), 0
    with ProcessPoolExecutor(PROCESSES) as pool:
        while made < number:
            for batch in pool.map(run, *zip(*((cases, seed, next(starts)) for _ in range(PROCESSES)), strict=True)):
                made += batch.mutants
                yield batch


def run(cases: Sequence[Case], seed: str, start: int) -> Batch:
    batch = Batch()
    for finding in rounds(cases, seed, range(start, start + BATCH)):
        batch.mutants += 1
        if finding is not None:
            batch.findings.append(finding)
    return batch


def conclude(seed: str, mutants: int, findings: Sequence[Finding]) -> int:
    started, unknown, harmless = time.monotonic(), Counter[str](), 0
    failures = [str(finding) for finding in findings if not finding.bent]
    for finding, effect in effects([finding for finding in findings if finding.bent]):
        harmless += effect is None
        if effect == "cannot tell":
            unknown[finding.case.engine] += 1
            print(f"UNKNOWN  {finding}")
        elif effect is not None:
            failures.append(f"{effect}: {finding}")
    for failure in failures[:200]:
        print(f"FAIL  {failure}")
    figures = {
        "seed": seed,
        "mutants": mutants,
        "failures": len(failures),
        "spoilt, allowed, harmless on the engine": harmless,
        "spoilt, allowed, engine not here": dict(unknown),
        "seconds on engines": round(time.monotonic() - started),
    }
    print(json.dumps(figures))
    return int(bool(failures))


def effects(findings: Sequence[Finding]) -> Iterator[tuple[Finding, str | None]]:
    """Of each, the same text being run once."""
    texts = dict.fromkeys((finding.case.engine, finding.mutant.text) for finding in findings)
    seen = dict[tuple[str, str], str | None]()
    with tempfile.TemporaryDirectory(prefix="ullage_fuzz_") as folder:
        engines = Unguarded(Path(folder))
        try:
            for engine, some in chunks(list(texts)):
                seen.update(zip(((engine, text) for text in some), engines.effects(engine, some), strict=True))
                print(f"\r{len(seen):,} of {len(texts):,} run unguarded", end="", file=sys.stderr, flush=True)
        finally:
            engines.close()
            print(file=sys.stderr)
    yield from ((finding, seen[finding.case.engine, finding.mutant.text]) for finding in findings)


def chunks(texts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    for engine in sorted({engine for engine, _ in texts}):
        those = [text for each, text in texts if each == engine]
        yield from ((engine, those[start : start + TOGETHER]) for start in range(0, len(those), TOGETHER))


if __name__ == "__main__":
    sys.exit(main())
