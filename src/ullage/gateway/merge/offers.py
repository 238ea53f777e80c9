"""What may a member offer besides tools, and how is it asked for it?

Told by what its source can do, not by what it is: a source that lacks a method has not that to offer. A server that
answers that it does not know the question offers nothing of the kind, and that is no failure.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeGuard, TypeVar

from ullage.errors import ProtocolError, UllageError
from ullage.tool import (
    CompletionSource,
    Json,
    JsonObject,
    Listing,
    PromptSource,
    ResourceSource,
    Subscribed,
    ToolSource,
    Watched,
)

from .hearing import Question
from .view import Member, peeked

__all__ = [
    "Logging",
    "abilities",
    "completes",
    "has_prompts",
    "has_resources",
    "is_logging",
    "is_subscribed",
    "is_watched",
    "lenient",
    "set_log_level",
    "tools_of",
]

Offered = TypeVar("Offered")
_METHOD_NOT_FOUND = -32601


class Logging(Protocol):
    """A source that can be told how much to log."""

    async def set_log_level(self, level: str) -> None: ...


def has_resources(source: object) -> TypeGuard[ResourceSource]:
    return _can(source, "resources", "templates", "read")


def has_prompts(source: object) -> TypeGuard[PromptSource]:
    return _can(source, "prompts", "prompt")


def completes(source: object) -> TypeGuard[CompletionSource]:
    return _can(source, "complete")


def is_subscribed(source: object) -> TypeGuard[Subscribed]:
    return _can(source, "subscribe", "unsubscribe")


def is_watched(source: object) -> TypeGuard[Watched]:
    return _can(source, "watch")


def is_logging(source: object) -> TypeGuard[Logging]:
    return _can(source, "set_log_level")


def _can(source: object, *methods: str) -> bool:
    return all(callable(getattr(source, method, None)) for method in methods)


class Capable(Protocol):
    """A source that says what its server declared."""

    @property
    def capabilities(self) -> JsonObject | None:
        """None where that is not known yet."""
        ...


def abilities(sources: Iterable[object]) -> dict[str, Json]:
    """What some of the sources can do besides tools, as the protocol writes it."""
    found: dict[str, Json] = {}
    for source in sources:
        found |= {key: value for key, value in _abilities(source).items() if value or key not in found}
    return found


def _abilities(source: object) -> dict[str, Json]:
    """What a source has methods for, less what its server is known not to have."""
    can: dict[str, Json] = {
        **({"resources": {"subscribe": True} if is_subscribed(source) else {}} if has_resources(source) else {}),
        **({"prompts": {}} if has_prompts(source) else {}),
        **({"completions": {}} if completes(source) else {}),
        **({"logging": {}} if is_logging(source) else {}),
    }
    declared = source.capabilities if _is_capable(source) else None
    if declared is None:
        return can
    resources = declared.get("resources")
    subscribes = isinstance(resources, dict) and resources.get("subscribe") is True
    return {key: value if subscribes else {} for key, value in can.items() if key in declared}


def _is_capable(source: object) -> TypeGuard[Capable]:
    return hasattr(source, "capabilities")


def tools_of(member: Member) -> Question[Listing]:
    source: ToolSource = member.source
    return Question(
        source.tools,
        peek=source.peek if peeked(source) else None,
        recall=source.load if _recalls(source) else None,
    )


class Recalled(Protocol):
    """A source that has written down what it offered."""

    async def load(self) -> Listing | None: ...


def _recalls(source: object) -> TypeGuard[Recalled]:
    return _can(source, "load")


async def set_log_level(source: Logging, level: str) -> None:
    """Tells it; one that fails at that goes on logging as it did."""
    try:
        await source.set_log_level(level)
    except UllageError:
        return


def lenient(
    ask: Callable[[], Awaitable[tuple[Offered, ...]]],
) -> Callable[[], Awaitable[tuple[Offered, ...]]]:
    """The same question, to which a server that does not know it answers with nothing."""

    async def asked() -> tuple[Offered, ...]:
        try:
            return await ask()
        except ProtocolError as error:
            if error.number == _METHOD_NOT_FOUND:
                return ()
            raise

    return asked
