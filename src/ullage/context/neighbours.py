"""Which messages does a new one weigh otherwise, and which must be seen to weigh it?

Most messages weigh the same wherever they stand. A result bears its call's name with some providers; results of calls
made at once are one list with some; calls side by side weigh less than apart; and thinking of a turn may be shown no
more once the user speaks again. How much each is, the meter's rules know: here is only how far they look.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from ullage.messages import Media, Message, Part, Text, Thinking, ToolCall, ToolResult

__all__ = ["behind", "beside", "seam", "unsettled"]


def unsettled(messages: Sequence[Message], since: int) -> int:
    """The first message that may weigh otherwise, now that those from `since` on are there too."""
    return min(_batch(messages, since), _turn(messages, since))


def beside(messages: Sequence[Message], start: int) -> tuple[Message, ...]:
    """What must stand before those from `start` on for them to weigh what they weigh in the whole: the message before
    them, and the calls that they answer."""
    near = max(0, start - 1)
    wanted = set(_answered(messages[start:])) - set(_called(messages[near:]))
    found: list[Message] = []
    for at in range(near - 1, -1, -1):
        if not wanted:
            break
        if made := wanted & set(_called(messages[at : at + 1])):
            wanted -= made
            found.append(messages[at])
    return (*reversed(found), *messages[near:start])


def behind(messages: Sequence[Message], end: int) -> tuple[Message, ...]:
    """What must stand after those before `end`, where there is a seam, for them to weigh what they weigh in the whole:
    the message after them, and the last by which a provider may tell that the user has spoken since."""
    near, told = messages[end : end + 1], list[int]()
    for speaks in (_is_user, _brings_nothing, _says):
        latest = (at for at in range(len(messages) - 1, end, -1) if _is_user(messages[at]) and speaks(messages[at]))
        told += islice(latest, 1)
    return (*near, *(messages[at] for at in sorted(set(told))))


def seam(messages: Sequence[Message], start: int) -> int:
    """The first place from `start` on where no calls and results go on that began before it."""
    return next((at for at in range(start, len(messages)) if _batch(messages, at) == at), len(messages))


def _batch(messages: Sequence[Message], since: int) -> int:
    """Where calls and results begin that the new message goes on with."""
    parts = messages[since].parts if since < len(messages) else ()
    at = since
    if _holds(parts, ToolResult):
        at = _before(messages, at, ToolResult)
    if _holds(parts, ToolResult) or _holds(parts, ToolCall):
        at = _before(messages, at, ToolCall)
    return at


def _before(messages: Sequence[Message], at: int, kind: type[ToolCall] | type[ToolResult]) -> int:
    while at and _holds(messages[at - 1].parts, kind):
        at -= 1
    return at


def _turn(messages: Sequence[Message], since: int) -> int:
    """The first thinking of the turn that the new messages end, where they are the user's.

    To some providers a result that the user's role carries ends nothing, to others it does; then the stretch since the
    role's last message is all that can change.
    """
    new = [message for message in messages[since:] if message.role == "user"]
    if not new:
        return since
    asked, first = any(map(_may_ask, new)), since
    for at in range(since - 1, -1, -1):
        message = messages[at]
        if message.role == "user" and (not asked or _asks(message)):
            break
        if _holds(message.parts, Thinking):
            first = at
    return first


def _is_user(message: Message) -> bool:
    return message.role == "user"


def _brings_nothing(message: Message) -> bool:
    return not _holds(message.parts, ToolResult)


def _may_ask(message: Message) -> bool:
    return not _holds(message.parts, ToolResult) or _says(message)


def _asks(message: Message) -> bool:
    return not _holds(message.parts, ToolResult) and _says(message)


def _says(message: Message) -> bool:
    return _holds(message.parts, Text) or _holds(message.parts, Media)


def _holds(parts: Sequence[Part], kind: type[Part]) -> bool:
    return any(isinstance(part, kind) for part in parts)


def _called(messages: Sequence[Message]) -> Iterator[str]:
    return (part.id for message in messages for part in message.parts if isinstance(part, ToolCall) and part.id)


def _answered(messages: Sequence[Message]) -> Iterator[str]:
    return (
        part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult) and part.call_id
    )
