"""Where may a history be parted?

A seam is a place between two messages where what lies before can be let go and what lies behind still makes sense to
the provider. Each rule below names messages that hold together, first and last; a seam is where none of them would be
torn. The rules look at neutral messages and are the same for every format; where only one format has such a thing, the
rule says so. What must stay of the messages before a seam is not decided here.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, groupby, pairwise

from ullage.messages import Media, Message, Text, Thinking, ToolCall, ToolResult, Unknown

from .pairing import Answered, Pairing

__all__ = ["groups", "is_instruction", "is_picture", "leading", "speaks"]

Span = tuple[int, int]
"""The places of the first and the last of some messages that hold together."""
Rule = Callable[[Sequence[Message]], Iterator[Span]]


def groups(messages: Sequence[Message], pairing: Pairing, results: Sequence[Answered] = ()) -> tuple[range, ...]:
    """The places of what is only let go together, in order; `results` are those that arrive as text."""
    return tuple(range(first, end) for first, end in pairwise(_seams(messages, pairing, results)))


def _seams(messages: Sequence[Message], pairing: Pairing, results: Sequence[Answered]) -> list[int]:
    inside = [0] * (len(messages) + 1)
    as_text = ((one.call.place, one.place) for one in results if one.call is not None)
    for first, last in chain(_answers(pairing), as_text, *(rule(messages) for rule in _RULES)):
        inside[first + 1] += 1
        inside[last + 1] -= 1
    return [place for place, spans in enumerate(accumulate(inside)) if not spans]


def _answers(pairing: Pairing) -> Iterator[Span]:
    """A call and its result, and so all the calls of a turn and all their results, those of a provider's own tools too.
    A result without a call stays behind what it stood behind: no tail begins with one."""
    for one in pairing.answered:
        if one.call is not None:
            yield one.call.place, one.place
        elif one.place:
            yield one.place - 1, one.place


def _items(messages: Sequence[Message]) -> Iterator[Span]:
    """Responses: what the model says at once stands in items of their own. All that follow reasoning need it, and calls
    that were made together are answered together."""
    for role, places in groupby(range(len(messages)), key=lambda place: messages[place].role):
        said = list(places)
        if role == "assistant" and len(said) > 1 and any(_leads(messages[place]) for place in said):
            yield said[0], said[-1]


def _captions(messages: Sequence[Message]) -> Iterator[Span]:
    """A picture and what the user says of it; or a result that could only be shown as the user's picture."""
    for place, message in enumerate(messages):
        if not is_picture(message):
            continue
        if place + 1 < len(messages) and speaks(messages[place + 1]):
            yield place, place + 1
        elif place and messages[place - 1].role in ("user", "tool"):
            yield place - 1, place


def _instructions(messages: Sequence[Message]) -> Iterator[Span]:
    """What the system says on the way stands behind a turn; Anthropic takes it nowhere else."""
    for place in range(leading(messages) + 1, len(messages)):
        if is_instruction(messages[place]):
            yield place - 1, place


_RULES: tuple[Rule, ...] = (_items, _captions, _instructions)


def leading(messages: Sequence[Message]) -> int:
    """How many messages of the system's stand before all others (OpenAI)."""
    return next((place for place, one in enumerate(messages) if not is_instruction(one)), len(messages))


def is_instruction(message: Message) -> bool:
    return message.role in ("system", "developer")


def speaks(message: Message) -> bool:
    """Whether it is a turn of the user's own, and brings no results."""
    return message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts)


def is_picture(message: Message) -> bool:
    """Whether the user shows something and says nothing."""
    if not speaks(message) or not any(isinstance(part, Media) for part in message.parts):
        return False
    return not any(isinstance(part, Text) and part.text.strip() for part in message.parts)


def _leads(message: Message) -> bool:
    """Whether it is reasoning alone, or calls."""
    kinds = {type(part) for part in message.parts}
    return ToolCall in kinds or (Thinking in kinds and kinds <= {Thinking, Unknown})
