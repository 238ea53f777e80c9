"""`Context`, `get_context_usage` and `compact`, bound to the meter of this process, and `run_agent` with the settings.

Imports in this module slow down every importer; `ullage count` does not import it.
"""

import atexit
import logging
import os
import uuid
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Unpack

from ullage import ledger as ledgers
from ullage.context import Context as Unbound
from ullage.context import (
    ContextUsage,
    OptionsGiven,
    Prepared,
    Session,
    Summarizer,
    SummaryFunction,
    read_options,
)
from ullage.errors import UllageError
from ullage.messages import Format
from ullage.tool import ANONYMOUS, Caller

from .count_text import format_of, meter

if TYPE_CHECKING:
    from ullage.agent import Event, ToolsGiven
    from ullage.config import Settings
    from ullage.messages import Message

__all__ = ["Context", "LedgerGiven", "SummarizerGiven", "compact", "get_context_usage", "open_ledger", "run_agent"]

_log = logging.getLogger(__name__)

SummarizerGiven = Summarizer | SummaryFunction | str | object | None
"""The accepted kinds of summarizer: see `Context`."""
LedgerGiven: TypeAlias = "ledgers.Recorder | str | Path | bool | None"  # a text, so that the ledger is imported on use
"""The accepted kinds of ledger: see `Context`."""


def open_ledger(given: LedgerGiven, *, config: Path | None = None) -> "ledgers.Recorder | None":
    """Return the recorder of a store.

    All contexts of this process share one recorder per store. It writes in a thread of its own, and at the end of the
    process it writes what is queued. A store that cannot be opened costs the entries and a warning, never a call.

    Args:
        given: The path or URL of a store, True for the store of the settings in the working directory, or a recorder.
            None and False record nothing.
        config: The `ullage.toml` whose store True means, instead of those of the user and of the working directory.
    """
    if given is None or given is False:
        return None
    if not isinstance(given, str | Path | bool):
        return given
    try:
        if given is True:
            from ullage.config import Flags, load

            given = load(Flags(config=config), os.environ, Path.cwd()).settings.store
        return _shared_recorder(str(given))
    except UllageError as error:
        _log.warning("histories are not recorded: %s", error.message)
        return None


@lru_cache
def _shared_recorder(store: str) -> "ledgers.Recorder":
    from ullage.store import Database

    database = Database.open(store)
    recording = ledgers.Recording(database, keep_days=ledgers.KEEP_DAYS)

    def close() -> None:
        recording.stop()
        database.close()

    atexit.register(close)
    return recording


class Context(Unbound):
    """The message history of one conversation, compacted to fit the model's context window.

    `add` messages as they occur, send what `prepare` returns, and pass the provider's response to `observe`:

        context = Context(model="claude-sonnet-5", system=SYSTEM, tools=TOOLS, session="runs/42.jsonl")
        context.add({"role": "user", "content": "Mend the export."})
        ready = await context.prepare()
        response = await client.create(system=ready.system, tools=ready.tools, messages=list(ready.messages))
        context.observe(response)
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        model: str,
        session: Session | str | Path | None = None,
        summarizer: SummarizerGiven = None,
        system: object = None,
        tools: Sequence[object] = (),
        format: Format | str | None = None,  # noqa: A002
        ledger: LedgerGiven = None,
        client: str | None = None,
        caller: Caller | None = None,
        **options: Unpack[OptionsGiven],
    ) -> None:
        """Create the context of one conversation.

        Args:
            model: The model that answers the conversation.
            session: The path of a file, or an open session, that stores the history after the process ends.
            summarizer: Summarizes the oldest messages: a model's name, a client of the OpenAI, Anthropic or Google SDK
                (which is called with `model`), a function that takes a prompt and returns a text, or a `Summarizer`.
                Without one, a digest is made without any model.
            system: The system prompt, as the provider takes it.
            tools: The tools that are sent with each request.
            format: The provider's message format; detected from the messages if None.
            ledger: Records what each request carries of the history, what compactions save, and the usage and cost of
                each answer, for `ullage usage`: the path or URL of a store, or True for the store of your settings.
                None records nothing.
            client: The name of your program in these records.
            caller: Principal, session and client of these records, instead of your user name, the session's id and
                `client`.
            **options: The fields of `Options`, in either spelling.
        """
        written = None if format is None else format_of(format)
        given = read_options(options)
        if isinstance(session, str | Path):
            # A new session records its initial context window, where that is known.
            window = meter().models.window(model, given.context_window)
            opened = Session.open(
                session, format=written, model=model, window=window.tokens if window.resolved else None
            )
        else:
            opened = session
        recorder = open_ledger(ledger)
        if caller is None and (recorder is not None or isinstance(summarizer, str)):
            # Imported late: it takes time, and only records need the name.
            from ullage.processes import user_name

            name = uuid.uuid4().hex[:16] if opened is None else opened.id
            caller = Caller(principal=user_name(), session=name, client=client, model=model)
        super().__init__(
            model=model,
            meter=meter(),
            format=written,
            system=system,
            tools=tools,
            options=given,
            session=opened,
            summarizer=_summarizer_for_name(summarizer, caller),
            recorder=recorder,
            caller=caller,
        )


def _summarizer_for_name(given: SummarizerGiven, caller: Caller | None) -> SummarizerGiven:
    """Return a summarizer for a model's name; anything else is returned as given.

    The modules that call models are imported only here.
    """
    if not isinstance(given, str) or not given.strip():
        return given
    from .build_delegate import NamedSummarizer

    return NamedSummarizer(given, caller or ANONYMOUS)


def get_context_usage(
    messages: Sequence[object],
    *,
    model: str,
    system: object = None,
    tools: Sequence[object] = (),
    format: Format | str | None = None,  # noqa: A002
    **options: Unpack[OptionsGiven],
) -> ContextUsage:
    """Return how full a model's context window is with these messages, as they would be sent."""
    context = Context(model=model, system=system, tools=tools, format=format, **options)
    context.add(*messages)
    return context.status()


async def compact(  # noqa: PLR0913
    messages: Sequence[object],
    *,
    model: str,
    system: object = None,
    tools: Sequence[object] = (),
    format: Format | str | None = None,  # noqa: A002
    summarizer: SummarizerGiven = None,
    pinned: Collection[int] = (),
    ledger: LedgerGiven = None,
    client: str | None = None,
    **options: Unpack[OptionsGiven],
) -> Prepared:
    """Compact these messages now, as far as possible.

    The given messages are not changed. `pinned` are the indexes of messages that must be kept; `ledger` and `client`
    are those of `Context`.
    """
    context = Context(
        model=model,
        system=system,
        tools=tools,
        format=format,
        summarizer=summarizer,
        ledger=ledger,
        client=client,
        **options,
    )
    for place, message in enumerate(messages):
        context.add(message, pinned=place in pinned)
    return await context.compact()


async def run_agent(  # noqa: PLR0913
    prompt: "str | Message | None",
    *,
    model: str,
    tools: "ToolsGiven" = None,
    session: Session | str | Path | None = None,
    system: str | None = None,
    summarizer: SummarizerGiven = None,
    settings: "Settings | None" = None,
    client: str | None = None,
    max_steps: int = 50,
    **options: Unpack[OptionsGiven],
) -> "AsyncGenerator[Event, None]":
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
    from ullage.agent import run_agent as run_assembled

    from .build_delegate import DelegateSummarizer, open_delegate_and_ledger, with_model

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
