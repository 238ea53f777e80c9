"""`Context`, `get_context_usage` and `compact`, bound to the meter of this process.

Imports in this module slow down every importer; `ullage count` does not import it.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Unpack

from ullage.context import Context as Unbound
from ullage.context import (
    ContextUsage,
    Options,
    OptionsGiven,
    Prepared,
    Session,
    Summarizer,
    SummaryFunction,
    read_options,
)
from ullage.messages import Format

from .count_text import format_of, meter

__all__ = ["Context", "compact", "get_context_usage"]

SummarizerGiven = Summarizer | SummaryFunction | str | object | None
"""The accepted kinds of summarizer: see `Context`."""


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
            **options: The fields of `Options`, in either spelling.
        """
        written = None if format is None else format_of(format)
        given = read_options(options)
        opened = _open(session, written, model, given) if isinstance(session, str | Path) else session
        super().__init__(
            model=model,
            meter=meter(),
            format=written,
            system=system,
            tools=tools,
            options=given,
            session=opened,
            summarizer=_named(summarizer),
        )


def _named(given: SummarizerGiven) -> SummarizerGiven:
    """Return a summarizer for a model's name; anything else is returned as given.

    The modules that call models are imported only here.
    """
    if not isinstance(given, str) or not given.strip():
        return given
    from .model_summarizer import NamedSummarizer

    return NamedSummarizer(given)


def _open(path: str | Path, written: Format | None, model: str, options: Options) -> Session:
    """Open the session at a path. A new session records its initial context window, where that is known."""
    window = meter().models.window(model, options.context_window)
    return Session.open(path, format=written, model=model, window=window.tokens if window.resolved else None)


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
    **options: Unpack[OptionsGiven],
) -> Prepared:
    """Compact these messages now, as far as possible.

    The given messages are not changed. `pinned` are the indexes of messages that must be kept.
    """
    context = Context(model=model, system=system, tools=tools, format=format, summarizer=summarizer, **options)
    for place, message in enumerate(messages):
        context.add(message, pinned=place in pinned)
    return await context.compact()
