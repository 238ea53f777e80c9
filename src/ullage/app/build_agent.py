"""`run_agent`, built from the settings of the working directory.

By the settings of the working directory: its keys, its policy, its budgets. The model that works is the one that
summarises, unless another is given.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from ullage.agent import Event
from ullage.agent import run_agent as run_assembled
from ullage.config import Settings
from ullage.context import OptionsGiven, Session, Summarizer
from ullage.errors import UnknownTool
from ullage.messages import Format, Message
from ullage.tool import Call, Listing, Reply, ToolSource

from .build_context import Context
from .build_delegate import open_delegate, with_model
from .model_summarizer import DelegateSummarizer

__all__ = ["run_agent"]


async def run_agent(  # noqa: PLR0913
    prompt: str | Message | None,
    *,
    model: str,
    tools: ToolSource | None = None,
    session: Session | str | Path | None = None,
    system: str | None = None,
    summarizer: Summarizer | None = None,
    settings: Settings | None = None,
    max_steps: int = 50,
    **options: Unpack[OptionsGiven],
) -> AsyncGenerator[Event, None]:
    """Works with tools until the model has nothing more to call; before each call of the model comes a
    `context_status`.

    `model` is an alias or id of the policy, or any model of a provider whose key is set, as `openai:gpt-4o` or
    `gpt-4o`. Without a prompt, what the session holds is gone on with. Closing the generator ends the run; nothing that
    was said is lost with a session.
    """
    async with open_delegate(settings) as opened:
        delegate, entry = with_model(opened, model)
        if entry.window is not None:
            options.setdefault("context_window", entry.window)
        context = Context(
            model=entry.model,
            session=session,
            system=system,
            summarizer=summarizer or DelegateSummarizer(delegate=delegate, model=entry.id),
            format=Format.ULLAGE,
            **options,
        )
        events = run_assembled(
            prompt,
            delegate=delegate,
            context=context,
            tools=tools or _NoTools(),
            model=entry.id,
            max_steps=max_steps,
        )
        async with aclosing(events):
            async for event in events:
                yield event


@dataclass(frozen=True, slots=True)
class _NoTools:
    async def tools(self) -> Listing:
        return Listing((), revision="none")

    async def call(self, call: Call) -> Reply:
        raise UnknownTool(f"no tool is called `{call.tool}`")
