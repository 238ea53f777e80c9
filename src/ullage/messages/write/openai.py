"""Writes neutral messages for OpenAI's Chat Completions and Responses APIs.

Chat: a result is a separate message, and calls follow the text of their message. The format has no place for thinking,
nor for media other than the user's: when a whole history is written, media of results are shown in a user message after
them.

Responses: texts, calls, results and reasoning are separate items, in their order. The API accepts reasoning only
encrypted, or by the id under which it is stored; items of the API's own tools are written as they were read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from re import compile as pattern

from ullage.tool import Json

from ..parts import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown, text_of
from .turns import (
    DETAILS,
    Pairing,
    address,
    beside,
    fitting,
    identity,
    is_file,
    media_type,
    name_openai_calls,
    result_parts,
    runs,
)

__all__ = ["write_all_chat", "write_all_responses", "write_chat", "write_responses"]

_IDS = pattern(r".{1,40}")
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def write_chat(message: Message) -> list[dict[str, Json]]:
    return [
        native for results, said in runs(message) for native in (*_results(results), *_write_message(message, said))
    ]


def write_all_chat(messages: Iterable[Message]) -> list[dict[str, Json]]:
    natives, unseen = list[dict[str, Json]](), list[Part]()
    named = (name_openai_calls(message, keeps_custom=True) for message in messages)
    for is_answer, run in groupby(Pairing().paired(named), lambda message: message.role == "assistant"):
        pieces = list(run)
        if is_answer:
            # The pieces of an answer are one message, because nothing may come between a call and its result.
            pieces = [replace(pieces[0], parts=tuple(part for piece in pieces for part in piece.parts))]
        for message, (results, said) in ((piece, one) for piece in pieces for one in runs(piece)):
            if said:
                natives += _write_media(unseen)
                unseen.clear()
            natives += (*_results(results), *_write_message(message, said))
            unseen += (part for result in results for part in result.parts if isinstance(part, Media))
    return [*natives, *_write_media(unseen)]


def _results(results: Iterable[ToolResult]) -> Iterator[dict[str, Json]]:
    for result in results:
        texts = [part for part in result_parts(result.parts) if isinstance(part, Text)]
        native: dict[str, Json] = {
            "role": "tool",
            "tool_call_id": fitting(identity(result), _IDS),
            "content": _content([_text(text) for text in texts] or [_text(Text(""))]),
        }
        yield native if result.name is None else {**native, "name": result.name}


def _write_media(media: list[Part]) -> Iterator[dict[str, Json]]:
    return _write_message(Message(role="user", parts=()), tuple(media))


def _write_message(message: Message, parts: tuple[Part, ...]) -> Iterator[dict[str, Json]]:
    role = "user" if message.role == "tool" else message.role
    said = list[Json]()
    for place, part in enumerate(parts):
        if isinstance(part, Text):
            said.append(_text(part))
        elif isinstance(part, Media) and role == "user":
            said += _medium(part, beside(parts, place, "filename"))
    calls = [call for part in parts for call in _call(part)] if role == "assistant" else []
    # An answer that the API stores as audio is given by its id.
    heard = (part.value.get("audio") for part in parts if isinstance(part, Unknown) and isinstance(part.value, dict))
    audio = next((one for one in heard if isinstance(one, dict) and "id" in one), None)
    spoken: Json = {"id": audio["id"]} if audio and role == "assistant" else None
    if said or calls or spoken:
        native: dict[str, Json] = {"role": role, "content": _content(said)}
        if spoken:
            native["audio"] = spoken
        if message.name is not None:
            native["name"] = message.name
        if calls:
            native["tool_calls"] = calls
        yield native


def _content(parts: list[Json]) -> Json:
    """Return a message's content; a single text is written as a string, and a message with only calls has none."""
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, dict) and only.get("type") == "text":
        return only["text"]
    return parts or None


def _text(part: Text) -> Json:
    return {"type": "text", "text": part.text}


def _medium(media: Media, name: Json) -> Iterator[Json]:
    url, sound = address(media), _SOUNDS.get(media_type(media))
    if media.kind == "image" and url is not None:
        image: dict[str, Json] = {"url": url}
        yield {"type": "image_url", "image_url": image | ({"detail": media.detail} if media.detail in DETAILS else {})}
    elif media.kind == "audio" and media.data is not None and sound is not None:
        yield {"type": "input_audio", "input_audio": {"data": media.data, "format": sound}}
    elif media.kind == "document" and media.data is not None:
        yield {"type": "file", "file": {"filename": name or "document.pdf", "file_data": url}}
    elif media.kind == "document" and is_file(media):
        yield {"type": "file", "file": {"file_id": media.url}}


def _call(part: Part) -> Iterator[Json]:
    if isinstance(part, ToolCall):
        function: dict[str, Json] = {"name": part.name, "arguments": part.arguments}
        yield {"id": fitting(identity(part), _IDS), "type": "function", "function": function}
    elif isinstance(part, Unknown) and isinstance(part.value, dict) and part.value.get("type") == "custom":
        yield part.value


_OPENAI_RESPONSES_IDS = pattern(r".{1,64}")
_OWN = frozenset(
    {
        *("compaction", "item_reference", "additional_tools"),
        *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
    }
)
_OWN_OUTPUTS = frozenset({"local_shell_call", "computer_call", "custom_tool_call"})
"""Calls of the API's own tools whose outputs are read into results."""
_OWN_ENDINGS = ("_call", "_call_output", "_search_output")
"""Endings of the types of items that the API makes, other than those read into parts."""


def write_responses(message: Message) -> list[dict[str, Json]]:
    items = list[dict[str, Json]]()
    for results, said in runs(message):
        for result in results:
            shown = tuple(result_parts(result.parts))
            parts = [one for place in range(len(shown)) for one in _responses_part(shown, place, "user")]
            call_id = fitting(identity(result), _OPENAI_RESPONSES_IDS)
            items.append({"type": "function_call_output", "call_id": call_id, "output": _responses_content(parts)})
        items += _items(message, said)
    return items


def write_all_responses(messages: Iterable[Message]) -> list[dict[str, Json]]:
    """Write a history, without reasoning that no item follows, which the API rejects."""
    items = [item for message in Pairing().paired(messages) for item in write_responses(message)]
    kinds = {text_of(item.get("call_id")): text_of(item["type"]) for item in items if item.get("type") in _OWN_OUTPUTS}
    items = [_as_own_output(item, kinds.get(text_of(item.get("call_id")))) for item in items]
    kept: list[dict[str, Json]] = []
    for item in reversed(items):
        after = kept[-1] if kept else {"role": "user"}
        from_others = text_of(after.get("type")).endswith(("_output", "_response"))
        by_model = after.get("role") == "assistant" or ("role" not in after and not from_others)
        if item.get("type") != "reasoning" or by_model:
            kept.append(item)
    return kept[::-1]


def _as_own_output(item: dict[str, Json], kind: str | None) -> dict[str, Json]:
    """Return the output of a call in the form of the call: readers make every output a plain result."""
    if item.get("type") != "function_call_output" or kind is None:
        return item
    output = item["output"]
    first = output[0] if isinstance(output, list) and output else None
    if kind == "computer_call" and isinstance(first, dict):
        kept = {key: value for key, value in first.items() if key in ("image_url", "file_id")}
        output = {"type": "computer_screenshot", **kept}
    return {**item, "type": f"{kind}_output", "output": output}


def _items(message: Message, parts: tuple[Part, ...]) -> Iterator[dict[str, Json]]:
    """Yield the items of the parts: content between two items of other kinds is one message."""
    role = "user" if message.role == "tool" else message.role
    said: list[Json] = []
    for place in range(len(parts) + 1):
        is_end = place == len(parts)
        item = _item(parts, place) if role == "assistant" and not is_end else None
        if item is None and not is_end:
            said += _responses_part(parts, place, role)
            continue
        if said:
            yield {"type": "message", "role": role, "content": _responses_content(said)}
            said = []
        if item is not None:
            yield item


def _responses_content(parts: list[Json]) -> Json:
    """Return an item's content; a single text is written as a string, and so is empty content."""
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, dict) and "text" in only:
        return only["text"]
    return parts or ""


def _item(parts: tuple[Part, ...], place: int) -> dict[str, Json] | None:
    part, known = parts[place], text_of(beside(parts, place, "id"))
    if isinstance(part, Thinking):
        return _reasoning(part, known)
    if isinstance(part, ToolCall):
        identifier = fitting(identity(part), _OPENAI_RESPONSES_IDS)
        space = beside(parts, place, "namespace")
        kept: dict[str, Json] = {"id": known} if known.startswith("fc") else {}
        kept |= {} if space is None else {"namespace": space}
        return {"type": "function_call", **kept, "call_id": identifier, "name": part.name, "arguments": part.arguments}
    value = part.value if isinstance(part, Unknown) else None
    kind = text_of(value.get("type")) if isinstance(value, dict) else ""
    custom = value.get("custom") if isinstance(value, dict) and kind == "custom" else None
    if isinstance(value, dict) and isinstance(custom, dict):
        return {"type": "custom_tool_call", "call_id": value.get("id"), **custom}
    return value if isinstance(value, dict) and (kind in _OWN or kind.endswith(_OWN_ENDINGS)) else None


def _reasoning(thinking: Thinking, known: str) -> dict[str, Json] | None:
    seal = thinking.signature if thinking.sealed_as in (None, "encrypted") else None
    kept: dict[str, Json] = {"id": known} if known.startswith("rs") else {}
    if seal is None and not kept:
        return None
    summary: list[Json] = [{"type": "summary_text", "text": thinking.text}] if thinking.text else []
    sealed: dict[str, Json] = {} if seal is None else {"encrypted_content": seal}
    return {"type": "reasoning", **kept, "summary": summary, **sealed}


def _responses_part(parts: tuple[Part, ...], place: int, role: str) -> Iterator[Json]:
    part = parts[place]
    if isinstance(part, Text) and role == "assistant":
        yield {"type": "output_text", "text": part.text, "annotations": []}
    elif isinstance(part, Text):
        yield {"type": "input_text", "text": part.text}
    elif isinstance(part, Media) and role != "assistant":
        yield from _responses_medium(part, beside(parts, place, "filename"))


def _responses_medium(media: Media, name: Json) -> Iterator[Json]:
    url = address(media)
    place: dict[str, Json] = {"file_id": media.url} if is_file(media) else {}
    if media.kind == "image" and (place or url is not None):
        detail: Json = media.detail if media.detail in DETAILS else "auto"
        yield {"type": "input_image", **(place or {"image_url": url}), "detail": detail}
    elif media.kind == "document" and media.data is not None:
        yield {"type": "input_file", "filename": name or "document.pdf", "file_data": url}
    elif media.kind == "document" and (place or url is not None):
        yield {"type": "input_file", **(place or {"file_url": url})}
