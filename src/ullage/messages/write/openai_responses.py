"""How is a message said to OpenAI's Responses API?

Words, calls, results and stretches of reasoning are items of their own, in their order. Reasoning is taken back only
sealed, or by the id under which it is kept; what the API itself did is written as it was read.
"""

from collections.abc import Iterable, Iterator
from re import compile as pattern

from ullage.tool import Json

from ..lenient import text_of
from ..parts import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown
from .calls import Pairing, fitting, identity
from .content import DETAILS, address, beside, is_file, result_parts, runs

__all__ = ["write", "write_all"]

_IDS = pattern(r".{1,64}")
_OWN = frozenset(
    {
        *("compaction", "item_reference", "additional_tools"),
        *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
    }
)
_OWN_ENDINGS = ("_call", "_call_output", "_search_output")
"""What kinds of items the API makes beside those that are read into parts."""


def write(message: Message) -> list[dict[str, Json]]:
    return [item for results, said in runs(message) for item in (*_outputs(results), *_items(message, said))]


def write_all(messages: Iterable[Message]) -> list[dict[str, Json]]:
    """Without reasoning that led to nothing, which the API does not take."""
    items = [item for message in Pairing().paired(messages) for item in write(message)]
    kept: list[dict[str, Json]] = []
    for item in reversed(items):
        if item.get("type") != "reasoning" or (kept and _is_models(kept[-1])):
            kept.append(item)
    return kept[::-1]


def _is_models(item: dict[str, Json]) -> bool:
    others = text_of(item.get("type")).endswith(("_output", "_response"))
    return item.get("role") == "assistant" or ("role" not in item and not others)


def _outputs(results: Iterable[ToolResult]) -> Iterator[dict[str, Json]]:
    for result in results:
        said = tuple(result_parts(result.parts))
        output = _content([one for place in range(len(said)) for one in _part(said, place, "user")])
        identifier = fitting(identity(result), _IDS)
        yield {"type": "function_call_output", "call_id": identifier, "output": output}


def _items(message: Message, parts: tuple[Part, ...]) -> Iterator[dict[str, Json]]:
    role = "user" if message.role == "tool" else message.role
    said: list[Json] = []
    for place in range(len(parts)):
        item = _item(parts, place) if role == "assistant" else None
        if item is None:
            said += _part(parts, place, role)
            continue
        yield from _spoken(role, said)
        said = []
        yield item
    yield from _spoken(role, said)


def _spoken(role: str, said: list[Json]) -> Iterator[dict[str, Json]]:
    if said:
        yield {"type": "message", "role": role, "content": _content(said)}


def _content(parts: list[Json]) -> Json:
    """A single text stands alone, and so does nothing at all."""
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, dict) and "text" in only:
        return only["text"]
    return parts or ""


def _item(parts: tuple[Part, ...], place: int) -> dict[str, Json] | None:
    part, known = parts[place], text_of(beside(parts, place, "id"))
    if isinstance(part, Thinking):
        return _reasoning(part, known)
    if isinstance(part, ToolCall):
        identifier = fitting(identity(part), _IDS)
        space = beside(parts, place, "namespace")
        kept: dict[str, Json] = {"id": known} if known.startswith("fc") else {}
        kept |= {} if space is None else {"namespace": space}
        return {"type": "function_call", **kept, "call_id": identifier, "name": part.name, "arguments": part.arguments}
    value = part.value if isinstance(part, Unknown) else None
    kind = text_of(value.get("type")) if isinstance(value, dict) else ""
    return value if isinstance(value, dict) and (kind in _OWN or kind.endswith(_OWN_ENDINGS)) else None


def _reasoning(thinking: Thinking, known: str) -> dict[str, Json] | None:
    seal = thinking.signature if thinking.sealed_as in (None, "encrypted") else None
    kept: dict[str, Json] = {"id": known} if known.startswith("rs") else {}
    if seal is None and not kept:
        return None
    summary: list[Json] = [{"type": "summary_text", "text": thinking.text}] if thinking.text else []
    sealed: dict[str, Json] = {} if seal is None else {"encrypted_content": seal}
    return {"type": "reasoning", **kept, "summary": summary, **sealed}


def _part(parts: tuple[Part, ...], place: int, role: str) -> Iterator[Json]:
    part = parts[place]
    if isinstance(part, Text) and role == "assistant":
        yield {"type": "output_text", "text": part.text, "annotations": []}
    elif isinstance(part, Text):
        yield {"type": "input_text", "text": part.text}
    elif isinstance(part, Media) and role != "assistant":
        yield from _medium(part, beside(parts, place, "filename"))


def _medium(media: Media, name: Json) -> Iterator[Json]:
    url = address(media)
    place: dict[str, Json] = {"file_id": media.url} if is_file(media) else {}
    if media.kind == "image" and (place or url is not None):
        detail: Json = media.detail if media.detail in DETAILS else "auto"
        yield {"type": "input_image", **(place or {"image_url": url}), "detail": detail}
    elif media.kind == "document" and media.data is not None:
        yield {"type": "input_file", "filename": name or "document.pdf", "file_data": url}
    elif media.kind == "document" and (place or url is not None):
        yield {"type": "input_file", **(place or {"file_url": url})}
