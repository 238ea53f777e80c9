"""Replaces texts in messages, and leaves everything else unchanged.

The texts of tool results, plain texts and the texts within a call's arguments can be replaced; ids, names, order, cache
marks and all other keys stay. Thinking, signed texts, and the calls and results of a provider's own tools are never
changed, because their providers would reject them. The input message is not changed; the result may share parts with
it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from json import dumps, loads
from typing import Any, cast

from ullage.tool import Json

from .anthropic import read_block as read_block_anthropic
from .gemini import read_part as read_part_gemini
from .message_formats import plain, read_message
from .parts import Format, Message, Part, Text, ToolCall, ToolResult, items_of, text_of
from .write.gemini import UNSIGNED

__all__ = ["results_of", "with_arguments", "with_results", "with_texts"]

Item = dict[str, Json]
Change = Callable[[Json], Json]
"""Returns one item of a list changed, or the same object."""

_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
"""Items of the Responses API whose output can be a text."""
_RESULTS = frozenset({"tool_result", "mcp_tool_result"})
"""Anthropic blocks whose content can be a text."""
_RESPONSES = ("functionResponse", "function_response")
_FUNCTION_CALLS = ("functionCall", "function_call")
_SIGNATURES = frozenset({"thoughtSignature", "thought_signature"})
_TEXTS: Mapping[Format, frozenset[str]] = {
    Format.OPENAI_CHAT: frozenset({"text"}),
    Format.OPENAI_RESPONSES: frozenset({"input_text", "output_text"}),
    Format.ANTHROPIC: frozenset({"text"}),
    Format.GEMINI: frozenset(),
    Format.ULLAGE: frozenset({"text"}),
}


def results_of(native: object, format: Format) -> tuple[ToolResult, ...]:  # noqa: A002
    """Return the results in a message, in the order in which `with_results` numbers them."""
    return tuple(part for part in read_message(native, format).parts if isinstance(part, ToolResult))


def with_results(native: object, format: Format, texts: Mapping[int, str]) -> object:  # noqa: A002
    """Return the message with the content of some of its results replaced by a text.

    The same object is returned where nothing changes. An SDK's object that changes becomes a dict.

    Args:
        native: The message, in its provider's format.
        format: That format.
        texts: By the number of the result, from 0: its new text.
    """
    if isinstance(native, Message):
        places = count()
        numbers = [next(places) if isinstance(part, ToolResult) else -1 for part in native.parts]
        parts = (
            replace(part, parts=(Text(texts[number]),)) if isinstance(part, ToolResult) and number in texts else part
            for part, number in zip(native.parts, numbers, strict=True)
        )
        return _with_parts(native, parts)
    if isinstance(native, str):
        return native
    item = plain(native)
    match format:
        case Format.OPENAI_CHAT:
            made = _put(item, "content", texts.get(0)) if item.get("role") in ("tool", "function") else item
        case Format.OPENAI_RESPONSES:
            made = _put(item, "output", texts.get(0)) if text_of(item.get("type")) in _OUTPUTS else item
        case Format.ANTHROPIC:
            made = _anthropic_results(item, texts)
        case Format.GEMINI:
            made = _gemini_results(item, texts)
        case Format.ULLAGE:
            made = _neutral_results(item, texts)
    return native if made is item else made


def with_texts(native: object, format: Format, change: Callable[[str], str]) -> object:  # noqa: A002
    """Return the message with `change` applied to its plain texts, except results; the same object where nothing
    changes."""
    if isinstance(native, Message):
        parts = (
            Text(text) if isinstance(part, Text) and (text := change(part.text)) != part.text else part
            for part in native.parts
        )
        return _with_parts(native, parts)
    if isinstance(native, str):
        return change(native) if format in (Format.OPENAI_RESPONSES, Format.GEMINI) else native
    item = plain(native)
    made = _rewrite_plain_texts(item, format, change)
    return native if made is item else made


def with_arguments(native: object, format: Format, change: Callable[[str], str]) -> object:  # noqa: A002
    """Return the message with `change` applied to the texts within the arguments of its calls.

    The same object is returned where nothing changes. Calls of a provider's own tools, and arguments that are not JSON,
    are left unchanged. A changed call of Gemini's that was signed gets the signature that Google accepts for calls not
    made by its model.
    """
    if isinstance(native, Message):
        parts = (
            replace(part, arguments=_in_json(part.arguments, change)) if isinstance(part, ToolCall) else part
            for part in native.parts
        )
        made = replace(native, parts=tuple(parts))
        return native if made == native else made
    if isinstance(native, str):
        return native
    item = plain(native)
    if format is Format.OPENAI_RESPONSES or (format is Format.GEMINI and "parts" not in item):
        made = _call_item(item, change)
    else:
        key = {Format.OPENAI_CHAT: "tool_calls", Format.ANTHROPIC: "content"}.get(format, "parts")
        made = _within(item, key, lambda one: _call_item(one, change) if isinstance(one, dict) else one)
    return native if made == item else made


def _call_item(item: Item, change: Callable[[str], str]) -> Item:
    """Return a call (an item, block or part) with other arguments; anything else unchanged."""
    function = item.get("function")
    if isinstance(function, dict):
        return {**item, "function": _put(function, "arguments", _in_json(function.get("arguments"), change))}
    if item.get("type") in ("function_call", "tool_call"):
        return _put(item, "arguments", _in_json(item.get("arguments"), change))
    if item.get("type") == "tool_use":
        return _put(item, "input", _leaves(item.get("input"), change))
    key = next((name for name in _FUNCTION_CALLS if isinstance(item.get(name), dict)), None)
    if key is None:
        return item
    call = cast("Item", item[key])
    made = _put(call, "args", _leaves(call.get("args"), change))
    return item if made is call else {**item, key: made, **dict.fromkeys(_SIGNATURES & item.keys(), UNSIGNED)}


def _in_json(arguments: Json, change: Callable[[str], str]) -> Any:  # noqa: ANN401
    """Return JSON text with its texts changed; the input where it is not JSON or nothing changes."""
    if not isinstance(arguments, str):
        return arguments
    try:
        held = loads(arguments)
        made = _leaves(held, change)
    except (ValueError, RecursionError):
        return arguments
    return arguments if made == held else dumps(made, ensure_ascii=False)


def _leaves(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _leaves(inner, change) for name, inner in value.items()}
    return [_leaves(inner, change) for inner in value] if isinstance(value, list) else value


def _with_parts(message: Message, parts: Iterable[Part]) -> Message:
    made = tuple(parts)
    same = all(new is old for new, old in zip(made, message.parts, strict=True))
    return message if same else replace(message, parts=made)


def _anthropic_results(item: Item, texts: Mapping[int, str]) -> Item:
    places = count()

    def change(block: Json) -> Json:
        found = [next(places) for part in read_block_anthropic(block) if isinstance(part, ToolResult)]
        if not isinstance(block, dict) or text_of(block.get("type")) not in _RESULTS:
            return block
        return _put(block, "content", texts.get(found[0]))

    return _within(item, "content", change)


def _gemini_results(item: Item, texts: Mapping[int, str]) -> Item:
    places = count()

    def change(part: Json) -> Json:
        for read in read_part_gemini(part):
            text = texts.get(next(places)) if isinstance(read, ToolResult) else None
            if isinstance(part, dict) and text is not None:
                return _rewrite_function_response(part, text)
        return part

    if "parts" in item:
        return _within(item, "parts", change)
    made = change(item)
    return made if isinstance(made, dict) else item


def _rewrite_function_response(part: Item, text: str) -> Json:
    """Return a function response with another text, without media that it may have contained."""
    key = next(name for name in _RESPONSES if isinstance(part.get(name), dict))
    response = cast("Item", part[key])
    kept = {name: value for name, value in response.items() if name != "parts"}
    made = _put(kept, "response", {"output": text})
    return part if made == response else {**part, key: made}


def _neutral_results(item: Item, texts: Mapping[int, str]) -> Item:
    places = count()

    def change(part: Json) -> Json:
        if not isinstance(part, dict) or part.get("type") != "tool_result":
            return part
        text = texts.get(next(places))
        return part if text is None else _put(part, "parts", [{"type": "text", "text": text}])

    return _within(item, "parts", change)


def _rewrite_plain_texts(item: Item, format: Format, change: Callable[[str], str]) -> Item:  # noqa: A002
    def leaf(one: Json) -> Json:
        if isinstance(one, str):
            return change(one)
        if not isinstance(one, dict) or not isinstance(one.get("text"), str):
            return one
        # A thought or a signed text of Gemini's is no plain text.
        sealed = one.get("thought") is True or any(isinstance(one.get(key), str) for key in _SIGNATURES)
        is_plain = not sealed if format is Format.GEMINI else text_of(one.get("type")) in _TEXTS[format]
        return _put(one, "text", change(text_of(one["text"]))) if is_plain else one

    if format is Format.GEMINI and "parts" not in item:
        made = leaf(item)
        return made if isinstance(made, dict) else item
    if format in (Format.GEMINI, Format.ULLAGE):
        return _within(item, "parts", leaf)
    is_result = item.get("role") in ("tool", "function")
    return item if is_result or item.get("type", "message") != "message" else _within(item, "content", leaf)


def _within(item: Item, key: str, change: Change) -> Item:
    """Return the item with `change` applied to the value under a key, or to each element if that is a list."""
    inner = item.get(key)
    before = items_of(inner)
    after = [change(one) for one in before]
    if all(new is old or new == old for new, old in zip(after, before, strict=True)):
        return item
    return {**item, key: after if isinstance(inner, list) else after[0]}


def _put(item: Item, key: str, value: Json) -> Item:
    """Return the item with another value under a key, in the same place; the item itself where there is nothing to
    replace."""
    return item if value is None or item.get(key) == value else {**item, key: value}
