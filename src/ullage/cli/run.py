"""Answer a prompt with the model that your policy chooses, then print what it cost and why that model was chosen.

On a terminal the answer is printed as it arrives; a file or pipe receives it when it is complete. See docs/delegate.md
for the policy and the API keys.
"""

import argparse
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio

from ullage.app.build_delegate import DelegateSummarizer, open_delegate
from ullage.config import Flags, Settings, load, providers_off
from ullage.context import Summarizer
from ullage.delegate import Ask, Event, Outcome, RouteRequest, TextDelta, report, route
from ullage.errors import InvalidArguments
from ullage.messages import Message, Text
from ullage.processes import user_name
from ullage.tool import Caller, Json

from .input_files import read_piped
from .load_settings import add_flags, log_to_stderr, read, show_telemetry
from .output import emit, emit_json, say

__all__ = ["add_request", "arguments", "ask_of", "open_summarizer", "prompt_of", "run"]


def add_request(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", metavar="NAME", dest="force_model", help="use this alias or model instead of the policy's choice"
    )
    parser.add_argument("--tier", metavar="NAME", help="tier of the policy, which limits the length of the answer")
    parser.add_argument(
        "--domain",
        choices=("default", "code", "creative"),
        default="default",
        help="kind of task, which sets the temperature",
    )
    parser.add_argument("--language", metavar="CODE", help="language of the prompt, such as pt (default: detected)")
    parser.add_argument("--max-output", metavar="N", type=int, help="maximum number of output tokens")
    parser.add_argument("--task", metavar="NAME", help="label for usage reports and task budgets")
    parser.add_argument(
        "--cut", action="store_true", help="truncate a prompt that fits no context window instead of failing"
    )


def prompt_of(word: str) -> str:
    prompt = read_piped() if word == "-" else word
    if not prompt.strip():
        raise InvalidArguments("the prompt is empty", suggestion='write a prompt: ullage run "Say hello"')
    return prompt


def ask_of(arguments: argparse.Namespace, prompt: str) -> Ask:
    if arguments.max_output is not None and arguments.max_output < 1:
        raise InvalidArguments("there is no answer of less than one token", suggestion="give --max-output 1 or more")
    return Ask(
        messages=(Message(role="user", parts=(Text(prompt),)),),
        force_model=arguments.force_model,
        language=None if arguments.language is None else arguments.language.lower()[:2],
        tier=arguments.tier,
        domain=arguments.domain,
        max_output_tokens=arguments.max_output,
        cut=arguments.cut,
        caller=Caller(principal=user_name(), session="command line", client=arguments.client),
        task=arguments.task,
        tool="run",
    )


@asynccontextmanager
async def open_summarizer(model: str, config: Path | None) -> AsyncGenerator[Summarizer]:
    """Open a summarizer with the policy and budgets of the settings, which records its costs there. A model that the
    policy does not know is refused."""
    loaded = load(Flags(config=config), os.environ, Path.cwd())
    say(*(f"ullage: {issue.sentence()}" for issue in loaded.pending_issues))
    async with open_delegate(loaded.settings, environment=os.environ) as delegate:
        summarizer = DelegateSummarizer(delegate=delegate, model=model)
        route(RouteRequest(prompt_tokens=0, force_model=model), delegate.policy, delegate.models)
        yield summarizer


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
    outcome = anyio.run(work)
    if arguments.json:
        said: dict[str, Json] = {"text": outcome.completion.text, **report(outcome)}
        emit_json(said)
        return 0
    if not is_watched:
        emit(outcome.completion.text)
    meant = {f"`{one.provider}`" for one in outcome.attempts if one.kind == "no_key"}
    warnings = [f"ullage: {warning}" for warning in outcome.warnings]
    if outcome.completion.finish == "length":
        warnings.append("ullage: the answer was cut off where it became too long; --max-output lets it be longer")
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
    say(
        *[
            f"ullage: {said}"
            for said in providers_off(loaded.settings, os.environ)
            if any(name in said for name in meant)
        ],
        *warnings,
        f"{money}, {tokens}: {named}, by {'; '.join(outcome.route.rationale)}{tried}",
    )
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
