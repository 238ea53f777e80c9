"""How does anyone's loop get a context?

`Context`, `get_context_usage` and `compact`, with the meter of this process bound in. What is imported here is waited
for by whoever imports it; `ullage count` does not.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Unpack

from ullage.context import Context as Unbound
from ullage.context import ContextUsage, OptionsGiven, Prepared, Session, Summarizer, read_options
from ullage.messages import Format

from .counting import format_of, meter

__all__ = ["Context", "compact", "get_context_usage"]


class Context(Unbound):
    """The history of one conversation: `add` what is said, send what `prepare` gives, `observe` what came back."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        model: str,
        session: Session | str | Path | None = None,
        summarizer: Summarizer | None = None,
        system: object = None,
        tools: Sequence[object] = (),
        format: Format | str | None = None,  # noqa: A002
        **options: Unpack[OptionsGiven],
    ) -> None:
        """`session` is a file's path, or an open session. Without a summarizer, what is let go is put into a digest.
        Options are those of `Options`, in either spelling."""
        written = None if format is None else format_of(format)
        opened = Session.open(session, format=written, model=model) if isinstance(session, str | Path) else session
        super().__init__(
            model=model,
            meter=meter(),
            format=written,
            system=system,
            tools=tools,
            options=read_options(options),
            session=opened,
            summarizer=summarizer,
        )


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
    summarizer: Summarizer | None = None,
    pinned: Collection[int] = (),
    **options: Unpack[OptionsGiven],
) -> Prepared:
    """These messages with as much let go as can be, now. Nothing given is changed; `pinned` are places that stay."""
    context = Context(model=model, system=system, tools=tools, format=format, summarizer=summarizer, **options)
    for place, message in enumerate(messages):
        context.add(message, pinned=place in pinned)
    return await context.compact()
