"""`Context`, `get_context_usage` and `compact`, with the meter of this process bound in. What is imported here is
waited for by whoever imports it; `ullage count` does not.
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
"""What a summary may be asked of."""


class Context(Unbound):
    """The history of one conversation: `add` what is said, send what `prepare` gives, `observe` what came back."""

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
        """Makes the context of one conversation.

        Args:
            model: The model that works.
            session: The path of a file, or an open session, in which the history outlives the process.
            summarizer: Who puts the oldest messages into a summary: a model's name, a client of OpenAI's, Anthropic's
                or Google's SDK (which is asked for `model`), a function that takes a prompt and returns a text, or a
                `Summarizer`. Without one, a digest is made without any model.
            system: The system prompt, as the provider takes it.
            tools: The tools that are sent along.
            format: Told from the messages where it is not given.
            **options: Those of `Options`, in either spelling.
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
    """A model's name as a summarizer; what asks models is imported where it is needed."""
    if not isinstance(given, str) or not given.strip():
        return given
    from .model_summarizer import NamedSummarizer

    return NamedSummarizer(given)


def _open(path: str | Path, written: Format | None, model: str, options: Options) -> Session:
    """The session under a path; a new one notes the window that it begins in, where that is known."""
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
    """How full the window of a model is with these messages, as they would be sent."""
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
    """These messages with as much let go as can be, now. Nothing given is changed; `pinned` are places that stay."""
    context = Context(model=model, system=system, tools=tools, format=format, summarizer=summarizer, **options)
    for place, message in enumerate(messages):
        context.add(message, pinned=place in pinned)
    return await context.compact()
