"""Mirrors a framework's message history in a `Context`, and writes back what a compaction changed.

Before each call of its model the program shows the whole history. What was shown before, or given back, is known
already: only what is new is weighed, and what the provider reported still holds. Any number of conversations may be
followed at a time, and nobody needs to say which one it is: it is the one that begins like this.
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

__all__ = ["Begin", "Conversion", "Following", "Mirrored", "Shown", "begins", "load", "untouched"]

Begin = Callable[[], Context]
"""Makes the context of a conversation that is new. It has no session: the history is kept by the other program."""

_FOLLOWED = 64
"""Conversations; the one that was not heard of for the longest is forgotten, and known anew when it goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored(Message):
    """Another program's message in neutral parts, or a piece of it, with the message itself."""

    origin: object = field(default=None, compare=False)
    pieces: int = field(default=1, compare=False)
    """Into how many the origin was taken apart, for it may hold what others put into several messages."""
    own: tuple[object, ...] = field(default=(), compare=False)
    """What of the origin this piece is, where there are several."""
    whole: tuple[Part, ...] = field(default=(), compare=False)
    """The parts as they were read; what is changed by a context has others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a context is to know of a message."""

    natives: tuple[object, ...]
    """Mirrored ones; or the message itself, where a context reads it as it is."""
    usage: Usage | None = None
    """What the provider reported with it, where it is an answer."""
    pinned: frozenset[int] = frozenset()
    """Which of them are never let go."""


class Conversion(Protocol):
    """What is known of another program's messages."""

    def read(self, message: object) -> Shown: ...

    def write(self, natives: Sequence[object]) -> object:
        """A message for what a context has of one: for pieces of the same origin, or for one that it made itself, which
        is plain text of the user's or the assistant's."""
        ...


@dataclass(slots=True, kw_only=True)
class _Followed:
    context: Context
    shown: list[object] = field(default_factory=list[object])
    """The history as it was shown the last time."""
    given: list[object] = field(default_factory=list[object])
    """And as it was given back."""
    _written: dict[tuple[int, ...], tuple[Sequence[object], object]] = field(
        default_factory=dict[tuple[int, ...], tuple[Sequence[object], object]]
    )
    """What was given back for what: the same is given for the same."""

    def known(self, history: Sequence[object]) -> int:
        """How many messages of a history this is the beginning of; 0 where it is not."""
        return max(len(one) if begins(history, one) else 0 for one in (self.shown, self.given))

    def write(self, natives: Sequence[object], conversion: Conversion) -> list[object]:
        before, self._written = self._written, {}
        # Pieces that stand side by side are one message again.
        groups = list[list[object]]()
        for native in natives:
            last = groups[-1][-1] if groups else None
            if isinstance(native, Mirrored) and isinstance(last, Mirrored) and native.origin is last.origin:
                groups[-1].append(native)
            else:
                groups.append([native])
        of_one_origin = groups
        for group in of_one_origin:
            key = tuple(map(id, group))
            self._written[key] = before.get(key) or (group, conversion.write(group))
        return [given for _, given in self._written.values()]


def untouched(natives: Sequence[object]) -> object | None:
    """The message that these are all the pieces of, each as it was read; None where it is not that any more."""
    pieces = [one for one in natives if isinstance(one, Mirrored)]
    is_whole = bool(pieces) and len(pieces) == pieces[0].pieces and all(one.parts is one.whole for one in pieces)
    return pieces[0].origin if is_whole else None


def begins(history: Sequence[object], beginning: Sequence[object]) -> bool:
    return len(beginning) <= len(history) and all(
        one is other or one == other for one, other in zip(history, beginning, strict=False)
    )


@dataclass(slots=True, kw_only=True)
class Following:
    begin: Begin
    conversion: Conversion
    _followed: list[_Followed] = field(default_factory=list[_Followed])
    _lock: Lock = field(default_factory=Lock)

    async def prepare(
        self, history: Sequence[object], tell: Callable[[Context], None] = lambda _: None
    ) -> tuple[list[object], Prepared]:
        """What to send in place of a history, and what there is to say of it; `tell` may tell the context more."""
        followed = self._found(history)
        tell(followed.context)
        known = followed.known(history)
        for place, shown in enumerate(map(self.conversion.read, history[known:])):
            # A report is of what was sent, and only of the last call do we know that.
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

    def _found(self, history: Sequence[object]) -> _Followed:
        """The conversation of which most is known, taken out from among the others until it is in step again."""
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
        begun = context
        return _Followed(context=begun)


def load(module: str, extra: str) -> Any:  # noqa: ANN401 - a module whose types are not there where it is not
    """Raises `BadConfiguration` with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise BadConfiguration(f"`{module}` is not installed", suggestion=f"pip install 'ullage[{extra}]'") from error
