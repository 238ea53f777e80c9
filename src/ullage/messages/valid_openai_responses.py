"""Would OpenAI's Responses API take these items?

Its rules for a history that is sent whole, as it names them when it refuses a request. What it keeps itself, behind
`previous_response_id` or a conversation, is not seen here.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from .lenient import text_of
from .valid_turns import Item

__all__ = ["altered", "refused", "speaker"]

_SEARCH = "tool_search_call"
"""Its output may be missing, but where there is one it has its call."""
_CALLS = frozenset(
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
)
_OUTPUTS = frozenset({"tool_search_output", *(f"{call}_output" for call in _CALLS)})
_OTHERS = frozenset({*_OUTPUTS, "mcp_approval_response", "additional_tools"})
"""Items that the model did not make, beside the messages of others."""


def speaker(item: Item) -> str | None:
    """The model's items stand in rows, so they are no turns that could stand side by side."""
    if _is_models(item):
        return "model"
    return "user" if item.get("role") == "user" else "tool" if _kind(item) in _OTHERS else None


def refused(items: Sequence[Item]) -> Iterator[str]:
    yield from _unpaired(items)
    yield from _unfollowed(items)
    again = Counter(text_of(item.get("id")) for item in items if item.get("id"))
    yield from (f"two items have the id `{identity}`" for identity, times in again.items() if times > 1)
    if any(item.get("content") == [] for item in items if _kind(item) == "message"):
        yield "a message has an empty list"


def altered(items: Sequence[Item], original: Sequence[Item]) -> Iterator[str]:
    """Reasoning is sealed, and an item that the API knows by its id stands behind the reasoning that led to it."""
    sealed = {repr(item) for item in original if _kind(item) == "reasoning"}
    if any(repr(item) not in sealed for item in items if _kind(item) == "reasoning"):
        yield "an item of reasoning is not what it was"
    wanted, there = _led_to(original), _led_to(items)
    for identity, reasoning in there.items():
        if reasoning is None and wanted.get(identity) is not None:
            yield f"the reasoning before the item `{identity}` is missing"


def _kind(item: Item) -> str:
    return text_of(item.get("type", "message"))


def _is_models(item: Item) -> bool:
    kind = _kind(item)
    return item.get("role") == "assistant" if kind == "message" else kind not in _OTHERS


def _unpaired(items: Sequence[Item]) -> Iterator[str]:
    """What OpenAI runs itself has no `call_id`."""
    waiting, searches = Counter[str](), set[str]()
    for item in (item for item in items if item.get("call_id")):
        call, kind = text_of(item["call_id"]), _kind(item)
        if kind in _CALLS:
            waiting[call] += 1
        elif kind == _SEARCH:
            searches.add(call)
        elif kind in _OUTPUTS and waiting[call]:
            waiting[call] -= 1
        elif kind in _OUTPUTS and call not in searches:
            yield f"the output of `{call}` has no call before it"
    yield from (f"the call `{call}` has no output" for call in +waiting)


def _unfollowed(items: Sequence[Item]) -> Iterator[str]:
    for item, after in pairwise((*items, {"role": "user"})):
        if _kind(item) == "reasoning" and not _is_models(after):
            yield f"the reasoning `{text_of(item.get('id'))}` has not the item that followed it"


def _led_to(items: Sequence[Item]) -> dict[str, str | None]:
    """By the id of an item: the reasoning before it in the same answer."""
    found, reasoning = dict[str, str | None](), None
    for item in items:
        if not _is_models(item):
            reasoning = None
        elif _kind(item) == "reasoning":
            reasoning = text_of(item.get("id"))
        elif item.get("id"):
            found[text_of(item["id"])] = reasoning
    return found
