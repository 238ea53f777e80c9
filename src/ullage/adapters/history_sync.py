"""Mirrors a framework's message history in a `Context`, and writes back what a compaction changed.

The framework passes its whole history before each call of its model. Messages that were passed or returned before are
recognised: only new ones are weighed, and the provider's earlier reports stay valid. Any number of conversations may
run at a time. A conversation is identified by the beginning of its history, so that no id is needed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from threading import Lock
from typing import Any, Protocol

from ullage.context import Context, Prepared
from ullage.errors import BadConfiguration, InvalidArguments
from ullage.messages import Message, Part
from ullage.models import Usage

__all__ = ["Begin", "Conversion", "Following", "Mirrored", "Shown", "begins", "find_unchanged_origin", "load"]

Begin = Callable[[], Context]
"""Makes the context of a new conversation. The context must not have a session, since the framework stores the
history."""

_FOLLOWED = 64
"""Most conversations at a time. The one that was inactive longest is dropped, and starts anew when it continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored(Message):
    """A framework's message in neutral parts, or a piece of it, with the message itself."""

    origin: object = field(default=None, compare=False)
    pieces: int = field(default=1, compare=False)
    """Number of pieces that the origin was divided into, since a message may contain what others put into several."""
    own: tuple[object, ...] = field(default=(), compare=False)
    """The elements of the origin that this piece consists of, if there are several pieces."""
    whole: tuple[Part, ...] = field(default=(), compare=False)
    """The parts as they were read. A context that changed the message has other parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A framework's message as a context takes it."""

    natives: tuple[object, ...]
    """`Mirrored` messages, or the message itself if a context reads it as it is."""
    usage: Usage | None = None
    """Usage that the provider reported with the message, if it is an answer."""
    pinned: frozenset[int] = frozenset()
    """Indexes of the natives that must not be compacted."""


class Conversion(Protocol):
    """Converts between a framework's messages and a context's."""

    def read(self, message: object) -> Shown: ...

    def write(self, natives: Sequence[object]) -> object:
        """Return the framework's message for pieces of one origin, or for a message that the context made, which is
        plain text of the user or the assistant."""
        ...


@dataclass(slots=True, kw_only=True)
class _Followed:
    context: Context
    shown: list[object] = field(default_factory=list[object])
    """The history that was passed last."""
    given: list[object] = field(default_factory=list[object])
    """The history that was returned last."""
    _written: dict[tuple[int, ...], tuple[Sequence[object], object]] = field(
        default_factory=dict[tuple[int, ...], tuple[Sequence[object], object]]
    )
    """Messages that were returned, by the ids of their pieces. The same pieces give the same object."""

    def known(self, history: Sequence[object]) -> int:
        """Return how many messages of a history are known; 0 if it is another conversation."""
        return max(len(one) if begins(history, one) else 0 for one in (self.shown, self.given))

    def write(self, natives: Sequence[object], conversion: Conversion) -> list[object]:
        before, self._written = self._written, {}
        # Adjacent pieces become one message again.
        groups = list[list[object]]()
        for native in natives:
            last = groups[-1][-1] if groups else None
            if isinstance(native, Mirrored) and isinstance(last, Mirrored) and native.origin is last.origin:
                groups[-1].append(native)
            else:
                groups.append([native])
        for group in groups:
            key = tuple(map(id, group))
            self._written[key] = before.get(key) or (group, conversion.write(group))
        return [given for _, given in self._written.values()]


def find_unchanged_origin(natives: Sequence[object]) -> object | None:
    """Return the origin if these are all its pieces, unchanged; otherwise None."""
    pieces = [one for one in natives if isinstance(one, Mirrored)]
    is_whole = bool(pieces) and len(pieces) == pieces[0].pieces and all(one.parts is one.whole for one in pieces)
    return pieces[0].origin if is_whole else None


def begins(history: Sequence[object], beginning: Sequence[object]) -> bool:
    """Return whether a history begins with these messages."""
    return len(beginning) <= len(history) and all(
        one is other or one == other for one, other in zip(history, beginning, strict=False)
    )


@dataclass(slots=True, kw_only=True)
class Following:
    """Follows the conversations of a framework, each with a `Context`. Thread-safe list of at most 64."""

    begin: Begin
    conversion: Conversion
    _followed: list[_Followed] = field(default_factory=list[_Followed])
    _lock: Lock = field(default_factory=Lock)

    async def prepare(
        self, history: Sequence[object], tell: Callable[[Context], None] = lambda _: None
    ) -> tuple[list[object], Prepared]:
        """Return the history to send and its status. `tell` can set the system prompt and the tools of the context
        first."""
        followed = self._take_followed(history)
        tell(followed.context)
        known = followed.known(history)
        for place, shown in enumerate(map(self.conversion.read, history[known:])):
            # A report counts what was sent, which is known only for the last call.
            if known and place == 0 and shown.usage is not None:
                followed.context.observe(usage=shown.usage, answer=shown.natives)
                continue
            for number, native in enumerate(shown.natives):
                followed.context.add(native, pinned=number in shown.pinned)
        prepared = await followed.context.prepare()
        given = followed.write(prepared.messages, self.conversion)
        followed.shown, followed.given = list(history), given
        with self._lock:
            self._followed = [*self._followed, followed][-_FOLLOWED:]
        return list(given), prepared

    def _take_followed(self, history: Sequence[object]) -> _Followed:
        """Return the conversation with most messages in common, removed from the list until `prepare` has finished, or
        a new one."""
        with self._lock:
            nearest = max(self._followed, key=lambda one: one.known(history), default=None)
            if nearest is not None and nearest.known(history):
                self._followed.remove(nearest)
                return nearest
        context = self.begin()
        if context.session is not None:
            raise InvalidArguments(
                "the context has a session, and the history is kept elsewhere", suggestion="leave `session` out"
            )
        return _Followed(context=context)


def load(module: str, extra: str) -> Any:  # noqa: ANN401 - a module whose types are not there where it is not
    """Import a module. Raises `BadConfiguration`, with the command that installs it, if it is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise BadConfiguration(f"`{module}` is not installed", suggestion=f"pip install 'ullage[{extra}]'") from error
