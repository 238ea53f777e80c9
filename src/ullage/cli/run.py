"""Answer a prompt with the model that your policy chooses, then print what it cost and why that model was chosen.

On a terminal the answer is printed as it arrives; a file or pipe receives it when it is complete. See docs/delegate.md
for the policy and the API keys.
"""

import argparse
import os
import sys
from functools import partial

import anyio

from ullage.app.build_delegate import open_delegate
from ullage.app.provider_keys import off
from ullage.config import Settings
from ullage.delegate import Ask, Event, Outcome, TextDelta, report
from ullage.errors import InvalidArguments
from ullage.tool import Json

from .load_settings import add_flags, log_to_stderr, read, say, show_telemetry
from .model_arguments import add_request, ask_of, prompt_of
from .output import emit, emit_json

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", metavar="PROMPT", help="prompt, or - to read it from standard input")
    add_request(parser)
    parser.add_argument("--end-task", action="store_true", help="end the task after this answer")
    parser.add_argument(
        "--json", action="store_true", help="print the answer with decision, usage, cost and attempts as JSON"
    )
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.end_task and arguments.task is None:
        raise InvalidArguments("there is no task to end", suggestion="name it with --task")
    ask = ask_of(arguments, prompt_of(arguments.prompt))
    loaded = read(arguments)
    log_to_stderr()
    show_telemetry(loaded.settings, only_if_said=True)
    is_watched = sys.stdout.isatty() and not arguments.json
    work = partial(_run_ask, loaded.settings, ask, is_watched=is_watched, ends_task=arguments.end_task)
    return _print_outcome(anyio.run(work), arguments, loaded.settings, is_shown=is_watched)


def _print_outcome(outcome: Outcome, arguments: argparse.Namespace, settings: Settings, *, is_shown: bool) -> int:
    if arguments.json:
        said: dict[str, Json] = {"text": outcome.completion.text, **report(outcome)}
        emit_json(said)
        return 0
    if not is_shown:
        emit(outcome.completion.text)
    say(*_off(settings, outcome), *_warning_lines(outcome), _summary(outcome))
    return 0


async def _run_ask(settings: Settings, ask: Ask, *, is_watched: bool, ends_task: bool) -> Outcome:
    shown = list[str]()

    def hear(event: Event) -> None:
        if is_watched and isinstance(event, TextDelta):
            shown.append(event.text)
            print(event.text, end="", flush=True)

    async with open_delegate(settings, environment=os.environ) as delegate:
        try:
            outcome = await delegate.run(ask, hear)
        finally:
            if ends_task and ask.task is not None:
                await delegate.purse.end(ask.caller, ask.task)
    if is_watched:
        print()
        # An aborted attempt has already been shown; the output after it is complete.
        broken = len("".join(shown)) - len(outcome.completion.text)
        if broken > 0:
            say(f"ullage: the first {broken:,} characters are of an answer that broke off; the rest is whole")
    return outcome


def _off(settings: Settings, outcome: Outcome) -> list[str]:
    """Return the providers that the policy needs and that have no key."""
    meant = {f"`{one.provider}`" for one in outcome.attempts if one.kind == "no_key"}
    return [f"ullage: {said}" for said in off(settings, os.environ) if any(name in said for name in meant)]


def _warning_lines(outcome: Outcome) -> list[str]:
    warnings = [f"ullage: {warning}" for warning in outcome.warnings]
    if outcome.completion.finish == "length":
        warnings.append("ullage: the answer was cut off where it became too long; --max-output lets it be longer")
    return warnings


def _summary(outcome: Outcome) -> str:
    """Return one line with the cost and the reason for the choice of the model."""
    entry, usage = outcome.candidate.entry, outcome.usage
    total = None if outcome.cost is None else outcome.cost.total
    money = (
        "price unknown" if outcome.cost is None or total is None else f"{total.normalize():f} {outcome.cost.currency}"
    )
    about = "" if outcome.usage_reported else "about "
    named = f"{entry.id} ({outcome.candidate.alias})" if outcome.candidate.alias else entry.id
    failed = [one for one in outcome.attempts if not one.success]
    tried = f"; before it failed: {', '.join(f'{one.model} ({one.kind})' for one in failed)}" if failed else ""
    tokens = f"{about}{usage.input or 0:,} tokens in, {usage.output or 0:,} out"
    return f"{money}, {tokens}: {named}, by {'; '.join(outcome.route.rationale)}{tried}"
