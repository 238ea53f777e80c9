"""Would Anthropic take these messages?

Its rules, as it names them when it refuses a request. Neighbours of one role are one turn to it, so calls and results
are held against turns. What a request says beside its messages (whether thinking is on, which tools there are) is not
looked at.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from .lenient import text_of
from .valid_turns import Item, Turn, objects_of, turns_of

__all__ = ["altered", "refused", "speaker"]

_THINKING = frozenset({"thinking", "redacted_thinking"})
_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_NOTHING = Turn("", ())


def speaker(message: Item) -> str | None:
    """The system may say something among the turns, which parts none."""
    role = text_of(message.get("role"))
    return None if role == "system" else role


def refused(messages: Sequence[Item]) -> Iterator[str]:
    for place, message in enumerate(messages):
        yield from _empty(message, last=place == len(messages) - 1)
    turns = _turns(messages)
    for before, turn in pairwise((_NOTHING, *turns, _NOTHING)):
        yield from _unpaired(before, turn)
    yield from _unpaired_on_server(turns)
    if any(turn.parts and turn.parts[-1].get("type") in _THINKING for turn in turns):
        yield "a turn of the assistant's ends in thinking"


def altered(messages: Sequence[Item], original: Sequence[Item]) -> Iterator[str]:
    """Thinking is sealed: each stretch is as it was, and since the user spoke last none is missing."""
    sealed = {repr(block) for message in original for block in _thoughts(message)}
    for block in (block for message in messages for block in _thoughts(message)):
        if repr(block) not in sealed:
            yield "a thinking block is not what it was"
    whole = {call: len(_thoughts(message)) for message in original for call in _calls(_blocks(message))}
    for message in _since_the_user(messages):
        for call in _calls(_blocks(message))[:1]:
            if len(_thoughts(message)) < whole.get(call, 0):
                yield f"the thinking before the call `{call}` is missing"


def _turns(messages: Sequence[Item]) -> list[Turn]:
    said = (message for message in messages if speaker(message) is not None)
    return turns_of(said, lambda message: text_of(message.get("role")), _blocks)


def _blocks(message: Item) -> list[Item]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects_of(content)


def _empty(message: Item, *, last: bool) -> Iterator[str]:
    """Only the assistant's last message, with which the model would go on, may be empty."""
    blocks, continued = _blocks(message), last and speaker(message) == "assistant"
    if not blocks and not continued:
        yield f"a message of the role `{message.get('role')}` has no content"
    if any(not text_of(text.get("text")).strip() for text in _texts(blocks)):
        yield f"a message of the role `{message.get('role')}` has an empty text block"
    elif continued and blocks and text_of(blocks[-1].get("text"))[-1:].isspace():
        yield "the assistant's last message ends in white space"


def _texts(blocks: Sequence[Item]) -> Iterator[Item]:
    for block in blocks:
        if block.get("type") == "text":
            yield block
        elif block.get("type") == "tool_result":
            yield from _texts(objects_of(block.get("content")))


def _unpaired(before: Turn, turn: Turn) -> Iterator[str]:
    """Every call of a turn has one result at the beginning of the next, and every result there has its call."""
    calls, results = Counter(_calls(before.parts)), Counter(_results(turn.parts))
    yield from (f"two calls of one turn have the id `{call}`" for call, times in calls.items() if times > 1)
    yield from (f"the call `{call}` has no result in the next turn" for call in calls if call not in results)
    yield from (f"the result of `{call}` has no call in the turn before" for call in results if call not in calls)
    yield from (f"the call `{call}` has {times} results" for call, times in results.items() if times > 1)
    if any(block.get("type") != "tool_result" for block in turn.parts[: results.total()]):
        yield f"something stands before the result of `{_results(turn.parts)[-1]}`"


def _calls(blocks: Sequence[Item]) -> list[str]:
    return [text_of(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


def _results(blocks: Sequence[Item]) -> list[str]:
    return [text_of(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]


def _unpaired_on_server(turns: Sequence[Turn]) -> Iterator[str]:
    """What Anthropic ran itself has its result before the user says something; at the very end it may be running."""
    running = dict[str, None]()
    for turn in turns:
        if turn.speaker == "user" and len(_results(turn.parts)) < len(turn.parts):
            yield from (f"the server's call `{call}` has no result" for call in running)
            running.clear()
        for block in turn.parts:
            call = text_of(block.get("tool_use_id"))
            if block.get("type") in _SERVER_CALLS:
                running[text_of(block.get("id"))] = None
            elif text_of(block.get("type")).endswith("_tool_result") and running.pop(call, call) is not None:
                yield f"the server's result of `{call}` has no call before it"


def _thoughts(message: Item) -> list[Item]:
    return [block for block in _blocks(message) if block.get("type") in _THINKING]


def _since_the_user(messages: Sequence[Item]) -> Sequence[Item]:
    """What follows the last message in which the user says something, and does not only bring results."""
    for place in reversed(range(len(messages))):
        blocks = _blocks(messages[place])
        if speaker(messages[place]) == "user" and len(_results(blocks)) < len(blocks):
            return messages[place + 1 :]
    return messages
