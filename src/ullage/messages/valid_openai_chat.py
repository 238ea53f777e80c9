"""Would a provider that speaks OpenAI's chat format take these messages?

OpenAI's rules, as it names them when it refuses a request; others that speak the format are laxer in this or that.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from ullage.tool import Json

from .lenient import text_of
from .valid_turns import Item, objects_of

__all__ = ["refused", "speaker"]

_SYSTEM = frozenset({"system", "developer"})
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")


def speaker(message: Item) -> str | None:
    """The system may say something among the turns, which parts none."""
    role = text_of(message.get("role"))
    return None if role in _SYSTEM else role


def refused(messages: Sequence[Item]) -> Iterator[str]:
    for message in messages:
        yield from _empty(message)
    yield from _unpaired(messages)


def _empty(message: Item) -> Iterator[str]:
    content = message.get("content")
    if content == [] or message.get("tool_calls") == []:
        yield f"a message of the role `{message.get('role')}` has an empty list"
    if content is None and not any(message.get(key) for key in _INSTEAD_OF_CONTENT):
        yield f"a message of the role `{message.get('role')}` has no content"


def _unpaired(messages: Sequence[Item]) -> Iterator[str]:
    """The calls of a message are answered by the tool messages directly behind it, each once."""
    waiting, end = Counter[str](), dict[str, Json]()
    for message in (*messages, end):
        if message.get("role") == "tool":
            call = text_of(message.get("tool_call_id"))
            if not waiting[call]:
                yield f"the result of `{call}` has no call before it"
            waiting[call] = max(0, waiting[call] - 1)
            continue
        yield from (f"the call `{call}` has no result before the next message" for call in +waiting)
        calls = (text_of(call.get("id")) for call in objects_of(message.get("tool_calls")))
        waiting = Counter(calls)
        yield from (f"two calls of one message have the id `{call}`" for call, n in waiting.items() if n > 1 and call)
