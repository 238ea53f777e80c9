"""Show which model a prompt would be sent to, with which parameters and why. No model is called.

`ullage route eval FILE` evaluates the policy on recorded outcomes, a CSV or JSONL table (see docs/delegate.md), and
compares it with the best single model, a random choice and an oracle. `ullage route lint` reports mistakes in the
policy.
"""

import argparse
import csv
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2

from ullage.app import meter
from ullage.app.build_delegate import build, policy_shown
from ullage.config import Issue, Settings, providers_on
from ullage.delegate import (
    Ask,
    Candidate,
    Case,
    MeanResult,
    Policy,
    RecordedOutcome,
    Route,
    RouteRequest,
    detect_language,
    evaluate,
    route,
)
from ullage.errors import InvalidArguments, UllageError
from ullage.tool import Json

from .input_files import read_text
from .load_settings import add_flags, read, say
from .output import bold, columns, dim, emit, emit_json, emit_wrapped, fitted_columns, how_many
from .run import add_request, ask_of, prompt_of

__all__ = ["arguments", "print_evaluation", "read_cases", "run"]

_COUNTED_AS = "gpt-4o"
_ABOUT = ("prompt", "prompt_tokens", "language", "domain", "tier")
"""Columns that describe the case of a row."""


def print_evaluation(settings: Settings, file: Path, *, as_json: bool) -> int:
    """Evaluate the policy and print the result; return 1 if nothing could be judged."""
    cases = read_cases(read_text(file), str(file))
    policy = policy_shown(settings, os.environ)
    found = evaluate(cases, lambda case: _chosen_names(case, policy))
    if found is None:
        taken = dict.fromkeys(names[0] for case in cases if (names := _chosen_names(case, policy)))
        recorded = dict.fromkeys(model for case in cases for model in case.outcomes)
        say(
            f"ullage: none of {how_many(len(cases), 'case')} has an outcome for the model that the policy chooses",
            f"  the policy chooses {', '.join(taken) or 'no model'}; the table has {', '.join(recorded) or 'no model'}",
        )
        return 1
    if as_json:
        emit_json(
            {
                "policy": _result_json(found.policy),
                "singles": [_result_json(one) for one in found.singles],
                "random": _result_json(found.chance),
                "oracle": _result_json(found.oracle),
                "cases": found.cases,
                "left_out": found.left_out,
                "dominant": found.dominant,
                "chosen": dict(found.chosen),
                "verdict": found.verdict,
            }
        )
    else:
        standings = [found.policy, *found.singles, found.chance, found.oracle]
        titles, *lines = columns([("", "score", "cost"), *map(_evaluation_row, standings)], right=frozenset({1, 2}))
        emit(dim(titles))
        for line in lines:
            emit(line)
        emit()
        emit(bold(found.verdict))
        taken = ", ".join(f"{model} {times}" for model, times in found.chosen.items() if times)
        left_out = f"; {found.left_out} left out" if found.left_out else ""
        say(f"{how_many(found.cases, 'case')}{left_out}; the policy chose {taken}")
    return 0


def _chosen_names(case: Case, policy: Policy) -> tuple[str, ...]:
    """Return the names under which an outcome of the policy's choice may be recorded."""
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
    """Read cases from JSONL, or from CSV with a heading.

    Raises:
        InvalidArguments: A line is invalid; the error names the line.
    """
    if text.lstrip().startswith("{"):
        rows = _lines(text, name)
    else:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        if not {"model", "score"} <= set(reader.fieldnames or ()):
            raise InvalidArguments(
                f"`{name}` has no columns `model` and `score`",
                suggestion="write a heading: case,prompt,model,score,cost",
                options=("case", *_ABOUT, "model", "score", "cost"),
            )
        rows = (
            (
                reader.line_num,
                cast("Mapping[str, Any]", {key: value for key, value in row.items() if value not in ("", None)}),
            )
            for row in reader
        )
    grouped: dict[str, dict[str, Any]] = {}
    for number, row in rows:
        try:
            case = grouped.setdefault(str(row.get("case") or row.get("prompt") or number), {"outcomes": {}})
            case |= {key: row[key] for key in _ABOUT if key in row}
            outcomes: Mapping[str, Any] = row["outcomes"] if "outcomes" in row else {row["model"]: row}
            for model, said in outcomes.items():
                cost = said.get("cost")
                case["outcomes"][str(model)] = RecordedOutcome(
                    score=float(said["score"]), cost=None if cost is None else float(cost)
                )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArguments(
                f"`{name}`, line {number}: no outcome can be read from it",
                suggestion="each line needs a `model` and a `score`, or `outcomes`: see docs/delegate.md",
            ) from error
    cases: list[Case] = []
    for one in grouped.values():
        tokens = one.get("prompt_tokens")
        cases.append(
            Case(
                prompt=str(one.get("prompt", "")),
                prompt_tokens=None if tokens is None else int(tokens),
                language=one.get("language"),
                domain=one.get("domain"),
                tier=one.get("tier"),
                outcomes=cast("dict[str, RecordedOutcome]", one["outcomes"]),
            )
        )
    return cases


def _lines(text: str, name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InvalidArguments(f"`{name}`, line {number} is not JSON") from error


def _evaluation_row(one: MeanResult) -> tuple[str, str, str]:
    return one.name, f"{one.score:.3f}", "-" if one.cost is None else f"{one.cost:.6f}"


def _result_json(one: MeanResult) -> dict[str, Json]:
    return {"name": one.name, "score": one.score, "cost": one.cost}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="+",
        metavar="PROMPT",
        help="prompt, or - to read it from standard input; or `eval FILE`, or `lint`",
    )
    add_request(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    match arguments.words:
        case ["lint"]:
            loaded = read(arguments)
            noted = [
                issue
                for issue in loaded.issues
                if issue.severity == "note" and (issue.key or "").startswith("delegate.")
            ]
            found = [*noted, *_unknown_providers(loaded.settings)]
            if arguments.json:
                emit_json(
                    [{"file": one.file, "line": one.line, "key": one.key, "message": one.message} for one in found]
                )
            else:
                for issue in found:
                    emit(issue.sentence())
                verdict = how_many(len(found), "warning") if found else "the policy has no mistakes"
                if loaded.settings.delegate.policy is None:
                    verdict = "no policy is configured; the default policy has no mistakes"
                say(verdict)
            return 1 if found else 0
        case ["eval", file]:
            return print_evaluation(read(arguments).settings, Path(file), as_json=arguments.json)
        case [prompt]:
            return _route(read(arguments).settings, ask_of(arguments, prompt_of(prompt)), as_json=arguments.json)
        case _:
            raise InvalidArguments("more than one prompt was given", suggestion="put the prompt in quotes")


def _route(settings: Settings, ask: Ask, *, as_json: bool) -> int:
    route, tokens = anyio.run(partial(_plan, settings, ask))
    present = providers_on(settings, os.environ)
    if as_json:
        emit_json(
            {
                "prompt_tokens": tokens,
                "candidates": [_candidate_json(one, present) for one in route.candidates],
                "rationale": list(route.rationale),
            }
        )
        return 0
    header = ("", "alias", "model", "output", "temp", "window", "")
    rows: list[tuple[str, ...]] = []
    for number, one in enumerate(route.candidates, 1):
        notes = [] if one.entry.id.startswith(f"{one.entry.provider}:") else [f"at {one.entry.provider}"]
        notes += [] if one.entry.provider in present else ["no key"]
        temperature = one.parameters.temperature
        rows.append(
            (
                str(number),
                one.alias or "-",
                one.entry.id,
                _number(one.parameters.max_output_tokens),
                "-" if temperature is None else f"{temperature:g}",
                _number(one.window),
                ", ".join(notes),
            )
        )
    right = frozenset({0, 3, 4, 5})
    titles, *lines = fitted_columns([header, *rows], right=right) or columns([header, *rows], right=right)
    emit(dim(titles))
    for line in lines:
        emit(line)
    emit()
    for reason in route.rationale:
        emit_wrapped(f"  {reason}")
    say(f"{how_many(tokens, 'token')} in the prompt; no model was called")
    return 0


async def _plan(settings: Settings, ask: Ask) -> tuple[Route, int]:
    policy = policy_shown(settings, os.environ)
    shown = replace(settings, delegate=replace(settings.delegate, policy=policy))
    async with httpx2.AsyncClient() as client:
        return await build(shown, os.environ, client=client).plan(ask)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _candidate_json(one: Candidate, present: tuple[str, ...]) -> dict[str, Json]:
    return {
        "alias": one.alias,
        "id": one.entry.id,
        "provider": one.entry.provider,
        "model": one.entry.model,
        "provider_on": one.entry.provider in present,
        "parameters": {
            "max_output_tokens": one.parameters.max_output_tokens,
            "temperature": one.parameters.temperature,
        },
        "window": one.window,
    }


def _unknown_providers(settings: Settings) -> Iterator[Issue]:
    policy, known = settings.delegate.policy, tuple(one.name for one in settings.providers)
    if policy is None:
        return
    for identity, entry in policy.models.items():
        if entry.provider not in known:
            file, _, line = policy.places.get(f"models.{identity}", "").rpartition(":")
            yield Issue(
                severity="note",
                message=f"`{identity}` uses provider `{entry.provider}`, which is neither built in nor configured",
                file=file or None,
                line=int(line) if line else None,
                key=f"delegate.models.{identity}",
                suggestion=f"write a table `[providers.{entry.provider}]`",
            )
