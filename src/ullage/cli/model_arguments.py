"""Command-line arguments of the verbs that call a model or route to one.

The policy decides whether a tier or model exists.
"""

import argparse
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from ullage.app.build_delegate import open_delegate
from ullage.app.model_summarizer import DelegateSummarizer
from ullage.config import Flags, load
from ullage.context import Summarizer
from ullage.delegate import Ask, RouteRequest, route
from ullage.errors import InvalidArguments
from ullage.messages import Message, Text
from ullage.processes import user_name
from ullage.tool import Caller

from .input_files import read_piped
from .output import say

__all__ = ["add_request", "ask_of", "open_summarizer", "prompt_of"]


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
        raise InvalidArguments("there is nothing to ask", suggestion='write a prompt: ullage run "Say hello"')
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
