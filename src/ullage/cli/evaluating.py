"""Would the policy have paid, on what models once answered?

Reads a table of recorded outcomes, has the policy choose for each case, and says how that did. How it is judged is
`delegate`'s affair.
"""

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ullage.app import meter
from ullage.app.delegates import policy_shown
from ullage.config import Settings
from ullage.delegate import Case, Evaluation, Policy, Recorded, RouteRequest, Standing, detect_language, evaluate, route
from ullage.errors import InvalidArguments, UllageError
from ullage.tool import Json

from .configured import say
from .files import read_text
from .output import bold, columns, dim, emit, emit_json
from .wording import how_many

__all__ = ["evaluated", "read_cases"]

_COUNTED_AS = "gpt-4o"
_ABOUT = ("prompt", "prompt_tokens", "language", "domain", "tier")
"""What a row says of its case."""


def evaluated(settings: Settings, file: Path, *, as_json: bool) -> int:
    """Ends with 1 where nothing could be judged."""
    cases = read_cases(read_text(file), str(file))
    policy = policy_shown(settings, os.environ)
    found = evaluate(cases, lambda case: _chosen(case, policy))
    if found is None:
        say(*_unjudged(cases, policy))
        return 1
    if as_json:
        emit_json(_json(found))
    else:
        _print(found)
    return 0


def _unjudged(cases: Sequence[Case], policy: Policy) -> list[str]:
    taken = dict.fromkeys(names[0] for case in cases if (names := _chosen(case, policy)))
    recorded = dict.fromkeys(model for case in cases for model in case.outcomes)
    return [
        f"ullage: none of {how_many(len(cases), 'case')} has an outcome of the model that the policy takes",
        f"  the policy takes {', '.join(taken) or 'no model'}; the table has {', '.join(recorded) or 'no model'}",
    ]


def _chosen(case: Case, policy: Policy) -> tuple[str, ...]:
    """The names under which an outcome of the policy's choice may be recorded."""
    tokens = case.prompt_tokens
    if tokens is None:
        tokens = meter().count(case.prompt, _COUNTED_AS).high
    try:
        found = route(
            RouteRequest(
                prompt_tokens=tokens,
                language=case.language or detect_language(case.prompt),
                domain=case.domain or "default",
                tier=case.tier,
            ),
            policy,
            meter().models,
        ).candidates[0]
    except UllageError:
        return ()
    return tuple(name for name in (found.entry.id, found.alias, found.entry.model) if name is not None)


def read_cases(text: str, name: str) -> list[Case]:
    """One object a line, or CSV with a heading; raises `InvalidArguments` that names the line."""
    rows = _lines(text, name) if text.lstrip().startswith("{") else _records(text, name)
    grouped: dict[str, dict[str, Any]] = {}
    for number, row in rows:
        try:
            _add(grouped, row, str(number))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArguments(
                f"`{name}`, line {number}: no outcome can be read from it",
                suggestion="each line needs a `model` and a `score`, or `outcomes`: see docs/delegate.md",
            ) from error
    return [_case(one) for one in grouped.values()]


def _lines(text: str, name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InvalidArguments(f"`{name}`, line {number} is not JSON") from error


def _records(text: str, name: str) -> Iterable[tuple[int, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if not {"model", "score"} <= set(reader.fieldnames or ()):
        raise InvalidArguments(
            f"`{name}` has no columns `model` and `score`",
            suggestion="write a heading: case,prompt,model,score,cost",
            options=("case", *_ABOUT, "model", "score", "cost"),
        )
    return ((reader.line_num, {key: value for key, value in row.items() if value not in ("", None)}) for row in reader)


def _add(grouped: dict[str, dict[str, Any]], row: Mapping[str, Any], number: str) -> None:
    """Rows of one case are told by their `case`, else by their prompt."""
    case = grouped.setdefault(str(row.get("case") or row.get("prompt") or number), {"outcomes": {}})
    case |= {key: row[key] for key in _ABOUT if key in row}
    outcomes: Mapping[str, Any] = row["outcomes"] if "outcomes" in row else {row["model"]: row}
    for model, said in outcomes.items():
        cost = said.get("cost")
        case["outcomes"][str(model)] = Recorded(score=float(said["score"]), cost=None if cost is None else float(cost))


def _case(said: Mapping[str, Any]) -> Case:
    tokens = said.get("prompt_tokens")
    return Case(
        prompt=str(said.get("prompt", "")),
        prompt_tokens=None if tokens is None else int(tokens),
        language=said.get("language"),
        domain=said.get("domain"),
        tier=said.get("tier"),
        outcomes=cast("dict[str, Recorded]", said["outcomes"]),
    )


def _print(found: Evaluation) -> None:
    standings = [found.policy, *found.singles, found.chance, found.oracle]
    titles, *lines = columns([("", "score", "cost"), *map(_row, standings)], right=frozenset({1, 2}))
    emit(dim(titles))
    for line in lines:
        emit(line)
    emit()
    emit(bold(found.verdict))
    taken = ", ".join(f"{model} {times}" for model, times in found.chosen.items() if times)
    left_out = f"; {found.left_out} left out" if found.left_out else ""
    say(f"{how_many(found.cases, 'case')}{left_out}; the policy took {taken}")


def _row(one: Standing) -> tuple[str, str, str]:
    return one.name, f"{one.score:.3f}", "-" if one.cost is None else f"{one.cost:.6f}"


def _json(found: Evaluation) -> dict[str, Json]:
    return {
        "policy": _standing(found.policy),
        "singles": [_standing(one) for one in found.singles],
        "random": _standing(found.chance),
        "oracle": _standing(found.oracle),
        "cases": found.cases,
        "left_out": found.left_out,
        "dominant": found.dominant,
        "chosen": dict(found.chosen),
        "verdict": found.verdict,
    }


def _standing(one: Standing) -> dict[str, Json]:
    return {"name": one.name, "score": one.score, "cost": one.cost}
