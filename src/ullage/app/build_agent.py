"""`run_agent` with the keys, policy and budgets of the settings in the working directory."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Unpack

from ullage.agent import Event, ToolsGiven
from ullage.agent import run_agent as run_assembled
from ullage.config import Settings
from ullage.context import OptionsGiven, Session
from ullage.messages import Format, Message

from .build_context import Context, SummarizerGiven
from .build_delegate import DelegateSummarizer, open_delegate_and_ledger, with_model

__all__ = ["run_agent"]


async def run_agent(  # noqa: PLR0913
    prompt: str | Message | None,
    *,
    model: str,
    tools: ToolsGiven = None,
    session: Session | str | Path | None = None,
    system: str | None = None,
    summarizer: SummarizerGiven = None,
    settings: Settings | None = None,
    client: str | None = None,
    max_steps: int = 50,
    **options: Unpack[OptionsGiven],
) -> AsyncGenerator[Event, None]:
    """Run a model with tools until it requests no more tool calls.

        def add(a: int, b: int) -> int:
            "Add two numbers."
            return a + b

        async for event in run_agent("What is 2 + 3?", model="gpt-5.6-sol", tools=[add]):
            print(event.to_json())

    Args:
        prompt: The user's message. None continues a session that was interrupted.
        model: An alias or id of the policy, or any model of a provider whose key is set: `openai:gpt-4o`, `gpt-4o`.
        tools: Python functions, `ToolSource`s (a server, a gateway, a database), or a list of both.
        session: A path or an open session. With one, nothing that was said is lost when the run ends early.
        system: The system prompt.
        summarizer: Writes the summary when the window is full, as for `Context`; the model itself if None.
        settings: Those of the working directory if None.
        client: The name of your program in the ledger, where model calls and histories are recorded by session.
        max_steps: Calls of the model at most.
        **options: Those of `Context`, such as `context_window` and `compact_threshold`.

    Yields:
        A `ContextStatus` before each call of the model, then `Said`, `Thought`, `Used`, `Called` and `Returned` as they
        happen, and one `End`. Closing the generator ends the run.

    Raises:
        InvalidArguments: A tool is neither a source nor a function that a model can call.
        ProviderFailed: No model answered.
    """
    async with open_delegate_and_ledger(settings) as (opened, recorder):
        delegate, entry = with_model(opened, model)
        if entry.window is not None:
            options.setdefault("context_window", entry.window)
        context = Context(
            model=entry.model,
            session=session,
            system=system,
            summarizer=summarizer,
            format=Format.ULLAGE,
            ledger=recorder,
            client=client,
            **options,
        )
        if context.summarizer is None:
            context.summarizer = DelegateSummarizer(delegate=delegate, model=entry.id, caller=context.caller)
        events = run_assembled(
            prompt,
            delegate=delegate,
            context=context,
            tools=tools,
            model=entry.id,
            caller=context.caller,
            max_steps=max_steps,
        )
        async with aclosing(events):
            async for event in events:
                yield event
