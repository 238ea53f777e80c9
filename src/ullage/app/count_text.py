"""The counting functions of the public API: `count`, `count_request` and `find_model`.

`ullage count` waits for everything imported here, so the MCP SDK and the database are not imported.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from json import dumps
from typing import TYPE_CHECKING, Any

from ullage.errors import InvalidArguments, UnreadableRequest
from ullage.models import DEFAULT_MODEL, ModelCard, shipped
from ullage.tokens import Count, Meter, default_engine

if TYPE_CHECKING:
    from ullage.messages import Format
    from ullage.tokens import Weight
    from ullage.tool import Tool

__all__ = [
    "count",
    "count_request",
    "counting_in_worker",
    "find_model",
    "format_of",
    "meter",
    "meter_for",
    "write_request_texts",
]

_MUCH = 500_000
"""Bytes of text from which loading the engine at once is cheaper than counting the first texts without it."""


_engine = cache(default_engine)


@cache
def meter() -> Meter:
    """Return the meter that this process shares."""
    return Meter(shipped(), engine=_engine())


@contextmanager
def counting_in_worker() -> Generator[None]:
    """Count long texts in a separate process while the context is open.

    This is for a gateway, where loading a vocabulary would delay every call of every server. Of overlapping contexts,
    the first owns the process and ends it.
    """
    from ullage.tokens import CountWorker

    engine = _engine()
    before = engine.worker
    worker = engine.worker = before or CountWorker()
    try:
        yield
    finally:
        if before is None:
            engine.worker = None
            worker.close()


def write_request_texts(
    client: str | None, environment: Mapping[str, str], servers: "Iterable[tuple[str, Sequence[Tool], str]]"
) -> Iterable[str] | None:
    """Return what a client's first request has for servers; None if the client is none of the known programs.

    Args:
        client: The client's name in the settings or the flag.
        environment: Variables of this process, which the client started.
        servers: Each server's name, tools and instructions.
    """
    # Imported here because a gateway needs it for the first figures only.
    from ullage.clients.configs import ListedServer, find_program, first_request_texts, is_deferring

    program = None if client is None else find_program(client)
    if program is None:
        return None
    listed = [ListedServer(name, tools, instructions) for name, tools, instructions in servers]
    return first_request_texts(program.name, listed, defers=is_deferring(program, environment))


def meter_for(size: int) -> Meter:
    """Return a meter for a process that counts `size` bytes and ends."""
    return Meter(shipped(), engine=default_engine(begins_short=size <= _MUCH))


def count(text: str, model: str = DEFAULT_MODEL) -> Count:
    """Count the tokens of `text` for `model`.

        count("hello world", "gpt-4o").tokens

    Returns:
        The count with the method used and the band of possible values.
    """
    return meter().count(_string(text, "text"), _string(model, "model"))


def count_request(body: Mapping[str, Any], model: str | None = None, format: "Format | str | None" = None) -> "Weight":  # noqa: A002
    """Count the tokens of a whole request by part, as its provider would.

    Args:
        body: The JSON that would be sent to OpenAI (chat or Responses), Anthropic or Gemini.
        model: The model; the body's own if None.
        format: The provider's format; detected from the body's shape if None.
    """
    from ullage.messages import read_request

    named = None if model is None else _string(model, "model")
    try:
        return meter().weigh(read_request(body, None if format is None else format_of(format)), named)
    except RecursionError as error:
        raise UnreadableRequest(
            "the body is nested too deeply to be read", suggestion="no provider takes it so; flatten it"
        ) from error
    except TypeError:
        try:
            dumps(body)
        except TypeError as error:
            raise UnreadableRequest(
                f"the body is not JSON: {error}", suggestion="give what would be sent to the provider, bytes as base64"
            ) from error
        raise


def _string(value: str, name: str) -> str:
    """Return `value` if it is a string; callers without a type checker may pass anything."""
    if isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return value
    hint = "decode bytes first: data.decode()" if isinstance(value, bytes) else f"give `{name}` as str"
    raise InvalidArguments(f"`{name}` must be a string, not {type(value).__name__}", suggestion=hint)


def format_of(name: str) -> "Format":
    from ullage.messages import Format

    try:
        return Format(name)
    except ValueError as error:
        raise InvalidArguments(
            f"no format is called `{name}`", suggestion="leave it out: it is told from the body", options=tuple(Format)
        ) from error


def find_model(name: str) -> ModelCard:
    """Return the card of a model, by any of its common names."""
    return meter().models.find(_string(name, "name")).card
