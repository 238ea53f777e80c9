"""Show which model a prompt would be sent to, with which parameters and why. No model is called.

`ullage route eval FILE` evaluates the policy on recorded outcomes, a CSV or JSONL table (see docs/delegate.md), beside
the best single model, chance and an oracle. `ullage route lint` reports mistakes in the policy.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import httpx2

from ullage.app.delegates import build, policy_shown
from ullage.app.keys import names_on
from ullage.config import Issue, Loaded, Settings
from ullage.delegate import Ask, Candidate, Route
from ullage.errors import InvalidArguments
from ullage.tool import Json

from .configured import add_flags, read, say
from .evaluating import evaluated
from .output import columns, dim, emit, emit_json
from .prompting import add_request, ask_of, prompt_of
from .wording import how_many

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words", nargs="+", metavar="PROMPT", help="a prompt, or - to read it; or `eval FILE`, or `lint`"
    )
    add_request(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    match arguments.words:
        case ["lint"]:
            return _lint(read(arguments), as_json=arguments.json)
        case ["eval", file]:
            return evaluated(read(arguments).settings, Path(file), as_json=arguments.json)
        case [prompt]:
            return _route(read(arguments).settings, ask_of(arguments, prompt_of(prompt)), as_json=arguments.json)
        case _:
            raise InvalidArguments("these are several prompts", suggestion="put the prompt in quotes")


def _route(settings: Settings, ask: Ask, *, as_json: bool) -> int:
    route, tokens = anyio.run(partial(_plan, settings, ask))
    present = names_on(settings, os.environ)
    if as_json:
        emit_json(
            {
                "prompt_tokens": tokens,
                "candidates": [_candidate_json(one, present) for one in route.candidates],
                "rationale": list(route.rationale),
            }
        )
        return 0
    header = ("", "alias", "model", "provider", "output", "temperature", "window")
    rows = [_row(number, one, present) for number, one in enumerate(route.candidates, 1)]
    titles, *lines = columns([header, *rows], right=frozenset({0, 4, 5, 6}))
    emit(dim(titles))
    for line in lines:
        emit(line)
    emit()
    for reason in route.rationale:
        emit(f"  {reason}")
    say(f"{how_many(tokens, 'token')} in the prompt; nobody was asked")
    return 0


async def _plan(settings: Settings, ask: Ask) -> tuple[Route, int]:
    policy = policy_shown(settings, os.environ)
    shown = replace(settings, delegate=replace(settings.delegate, policy=policy))
    async with httpx2.AsyncClient() as client:
        return await build(shown, os.environ, client=client).plan(ask)


def _row(number: int, one: Candidate, present: tuple[str, ...]) -> tuple[str, ...]:
    provider = one.entry.provider if one.entry.provider in present else f"{one.entry.provider} (off)"
    temperature = one.parameters.temperature
    return (
        str(number),
        one.alias or "-",
        one.entry.id,
        provider,
        _number(one.parameters.max_output_tokens),
        "-" if temperature is None else f"{temperature:g}",
        _number(one.window),
    )


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


def _lint(loaded: Loaded, *, as_json: bool) -> int:
    """Ends with 1 where something is to be said."""
    noted = [issue for issue in loaded.issues if issue.severity == "note" and _is_of_policy(issue)]
    found = [*noted, *_unknown_providers(loaded.settings)]
    if as_json:
        emit_json([{"file": one.file, "line": one.line, "key": one.key, "message": one.message} for one in found])
    else:
        for issue in found:
            emit(issue.sentence())
        say(_verdict(loaded, len(found)))
    return 1 if found else 0


def _unknown_providers(settings: Settings) -> Iterator[Issue]:
    policy, known = settings.delegate.policy, tuple(one.name for one in settings.providers)
    if policy is None:
        return
    for identity, entry in policy.models.items():
        if entry.provider not in known:
            file, _, line = policy.places.get(f"models.{identity}", "").rpartition(":")
            yield Issue(
                severity="note",
                message=f"`{identity}` is asked of `{entry.provider}`, which is neither built in nor configured",
                file=file or None,
                line=int(line) if line else None,
                key=f"delegate.models.{identity}",
                suggestion=f"write a table `[providers.{entry.provider}]`",
            )


def _is_of_policy(issue: Issue) -> bool:
    return (issue.key or "").startswith("delegate.")


def _verdict(loaded: Loaded, warnings: int) -> str:
    if loaded.settings.delegate.policy is None:
        return "no policy is configured; the one that stands in for it has nothing to mend"
    return how_many(warnings, "warning") if warnings else "nothing to mend in the policy"
