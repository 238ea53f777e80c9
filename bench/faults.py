"""Who still gives a whole answer when a provider fails, after how long, and at whose door?

Run by `make bench-faults`. llmock plays an ill provider and a well one (`faults_cases`); Ullage on three wires,
litellm's Router and pydantic-ai's FallbackModel are asked through each fault, all with two retries and five seconds of
patience. `PEERS=no` leaves the peers out. Peers stream where the fault is one of streams; Ullage always does. Prints a
table of who answered after how many seconds and how often each provider was asked, and one line of figures; fails where
a floor is missed: the four faults of streams answered by the other provider, never half an answer, a long Retry-After
left within half a second and remembered by the next call, a wrong request sent to nobody else.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from delegate_peers import install, present, python_of
from faults_cases import BACKUP, CASES, LONG_WAIT, PRIMARY, STREAMS, WRONG, Case, Providers, playing

HERE = Path(__file__).parent
Answered = Literal["first", "second", "error", "HALF"]
AT_ONCE = 0.5
"""Seconds within which a model that asks for a long wait is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """Someone who is measured."""

    name: str
    command: tuple[str, ...]
    ill: str = "openai"
    """llmock's name of the provider that it asks first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    outcome: Answered
    """Who answered, or that nobody did, or that a part was taken for the whole."""
    seconds: float
    asked: Counter[str]

    def __str__(self) -> str:
        return f"{self.outcome} {self.seconds:.1f} ({self.asked['first']}+{self.asked['second']})"


Calls = dict[str, list[Call]]
"""By the case's name; the next call after the first, where there was one."""

OURS = tuple(
    Party(name=f"ullage, {wire}", command=(sys.executable, str(HERE / "faults_ours.py"), wire), ill=ill)
    for wire, ill in (("chat", "openai"), ("responses", "openai"), ("gemini", "gemini"))
)
PEERS = {
    "litellm": Party(name="litellm Router", command=(str(python_of("litellm")), str(HERE / "faults_litellm.py"))),
    "pydantic-ai": Party(
        name="pydantic-ai Fallback", command=(str(python_of("pydantic-ai")), str(HERE / "faults_pydantic_ai.py"))
    ),
}


def measure(party: Party) -> Calls:
    with playing() as providers, _started(party) as process:
        return {case.name: _case(case, party, providers, process) for case in CASES}


def _case(case: Case, party: Party, providers: Providers, process: "subprocess.Popen[str]") -> list[Call]:
    providers.play(case, party.ill)
    orders = [{"address": providers.address, "streamed": case.streamed, "fresh": True}]
    orders += [{**orders[0], "fresh": False}] if case.again else []
    return [_call(_ordered(process, order), providers.asked()) for order in orders]


@contextmanager
def _started(party: Party) -> Generator["subprocess.Popen[str]"]:
    """Once it has imported what it needs."""
    quiet = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "CRITICAL"}
    process = subprocess.Popen(
        party.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env=quiet,
    )
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            sys.exit(f"{party.name} does not start")
        yield process
    finally:
        process.kill()
        process.wait()


def _ordered(process: "subprocess.Popen[str]", order: Mapping[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def _call(answer: Mapping[str, Any], asked: Counter[str]) -> Call:
    whole: dict[str, Answered] = {PRIMARY: "first", BACKUP: "second"}
    outcome: Answered = "error" if answer["error"] else whole.get(answer["text"], "HALF")
    return Call(outcome=outcome, seconds=answer["seconds"], asked=asked)


def missed(party: Party, calls: Calls) -> list[str]:
    found = [f"{case.name}: {calls[case.name][0]}" for case in STREAMS if calls[case.name][0].outcome != "second"]
    found += [f"{name}: half an answer" for name, made in calls.items() if any(one.outcome == "HALF" for one in made)]
    left, after = calls[LONG_WAIT.name]
    if left.outcome != "second" or left.seconds > AT_ONCE:
        found.append(f"{LONG_WAIT.name}: {left}, over {AT_ONCE} s")
    if after.asked["first"]:
        found.append(f"{LONG_WAIT.name}: the next call asked it again")
    wrong = calls[WRONG.name][0]
    if wrong.outcome != "error" or wrong.asked != {"first": 1}:
        found.append(f"{WRONG.name}: {wrong}, sent {wrong.asked.total()} times")
    return [f"{party.name}: {line}" for line in found]


def show(parties: Sequence[Party], measured: Mapping[str, Calls]) -> None:
    print("\nwho answered, after how many seconds (and how often the first and the second were asked)")
    print(f"{'':30}" + "".join(f"{party.name:>22}" for party in parties))
    for case in CASES:
        for number in range(2 if case.again else 1):
            row = [measured[party.name][case.name][number] for party in parties]
            name = "  the next call" if number else case.name
            print(f"{name:30}" + "".join(f"{call!s:>22}" for call in row))


def main() -> int:
    if install("llmock") is None:
        print("llmock cannot be installed here", file=sys.stderr)
        return 2
    others = [PEERS[name] for name in present(tuple(PEERS), wanted=os.environ.get("PEERS") != "no")]
    # Ours one by one, for half a second is a floor; peers wait for minutes, so together.
    measured = {party.name: measure(party) for party in OURS}
    with ThreadPoolExecutor(max(1, len(others))) as pool:
        measured |= dict(zip([party.name for party in others], pool.map(measure, others), strict=True))
    show((*OURS, *others), measured)
    fell_short = [line for party in OURS for line in missed(party, measured[party.name])]
    print("\n" + "\n".join(f"MISSED {line}" for line in fell_short))
    figures = {
        name: {case: [[call.outcome, round(call.seconds, 2)] for call in made] for case, made in calls.items()}
        for name, calls in measured.items()
    }
    print(json.dumps({**figures, "missed": len(fell_short)}))
    return 1 if fell_short else 0


if __name__ == "__main__":
    sys.exit(main())
