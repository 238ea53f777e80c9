"""Writes neutral messages for Anthropic.

Results come first in the user's turn; those of tools that Anthropic ran itself stay in the assistant's turn, and are
recognised by the ids of their calls. Anthropic accepts thinking only with its own signature, and a text only if it is
not empty.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from re import compile as pattern

from ullage.tool import Json

from ..parts import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown, text_of
from .turns import (
    Pairing,
    Turn,
    arguments_of,
    beside,
    conversation,
    fitting,
    identity,
    is_file,
    media_type,
    merge_turns,
    name_openai_calls,
    order_parts,
    result_parts,
)

__all__ = ["write", "write_all"]

Block = dict[str, Json]

_IDS = pattern(r"[a-zA-Z0-9_-]+")
_SERVER, _REMOTE = "srvtoolu_", "mcptoolu_"
"""Prefixes of the ids of calls that Anthropic carried out: its own tools' and those of MCP servers."""
_OWN = frozenset({"search_result", "tool_reference", "container_upload", "compaction"})
"""Blocks that only Anthropic has, and that have no neutral part."""
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_THINKING = frozenset({"thinking", "redacted_thinking"})


def write(message: Message) -> list[Block]:
    return [_native(role, blocks) for role, blocks in _turns(message) if blocks]


def write_all(messages: Iterable[Message]) -> list[Block]:
    turns = (
        turn for message in Pairing().paired(conversation(map(name_openai_calls, messages))) for turn in _turns(message)
    )
    complete = ((role, _not_ending_in_thought(blocks)) for role, blocks in merge_turns(turns, _is_result))
    *before, last = merge_turns(complete, _is_result) or [("user", [])]
    return [_native(role, blocks) for role, blocks in (*before, _strip_trailing_blank(*last)) if blocks]


def _native(role: str, blocks: list[Block]) -> Block:
    """Return a message; a single text is written as a string."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return {"role": role, "content": blocks[0]["text"]}
    return {"role": role, "content": list[Json](blocks)}


def _is_result(block: Block) -> bool:
    return block.get("type") == "tool_result"


def _not_ending_in_thought(blocks: list[Block]) -> list[Block]:
    last = next((place for place in reversed(range(len(blocks))) if blocks[place].get("type") not in _THINKING), -1)
    return blocks[: last + 1]


def _strip_trailing_blank(role: str, blocks: list[Block]) -> Turn:
    """Return the last turn. Where it is the assistant's, the model continues it, and it must not end in white space."""
    *before, last = blocks or [{}]
    if role != "assistant" or last.get("type") != "text":
        return role, blocks
    return role, [*before, {**last, "text": text_of(last["text"]).rstrip()}]


def _turns(message: Message) -> Iterator[Turn]:
    for role, parts in groupby(order_parts(message), lambda part: _role(part, message)):
        run = tuple(parts)
        yield role, [block for place in range(len(run)) for block in _blocks(run, place, role)]


def _role(part: Part, message: Message) -> str:
    if message.role == "assistant":
        return (
            "user"
            if isinstance(part, ToolResult)
            and not (
                text_of(part.call_id).startswith((_SERVER, _REMOTE)) and text_of(part.name).endswith("_tool_result")
            )
            else "assistant"
        )
    return "system" if message.role in ("system", "developer") else "user"


def _blocks(parts: tuple[Part, ...], place: int, role: str) -> Iterator[Block]:
    part, about = parts[place], beside(parts, place, "document")
    match part:
        case Text():
            block = _text(part, about if isinstance(about, dict) else {})
            citations = beside(parts, place, "citations")
            yield from (one | ({"citations": citations} if isinstance(citations, list) else {}) for one in block)
        case Media() if role == "user":
            yield from _medium(part, about if isinstance(about, dict) else {})
        case ToolResult():
            yield _server_result(part) if role == "assistant" else _result(part)
        case Thinking() if role == "assistant":
            yield from _thinking(part)
        case ToolCall() if role == "assistant":
            yield _call(part, beside(parts, place, "server_name"))
        case Unknown() if isinstance(part.value, dict) and _is_own(part):
            yield part.value
        case _:
            pass


def _text(part: Text, about: Mapping[str, Json]) -> Iterator[Block]:
    """Write a text, or a text document with its other fields."""
    if "media_type" in about:
        source: Json = {"type": "text", "media_type": about["media_type"], "data": part.text}
        rest = {key: value for key, value in about.items() if key != "media_type"}
        yield {"type": "document", "source": source, **rest}
    elif part.text.strip():
        yield {"type": "text", "text": part.text}


def _medium(media: Media, about: Mapping[str, Json]) -> Iterator[Block]:
    source, kind = _source(media), media_type(media)
    if source is not None and media.kind == "image" and (media.data is None or kind in _IMAGES):
        yield {"type": "image", "source": source}
    elif source is not None and media.kind == "document" and (media.data is None or kind == "application/pdf"):
        yield {"type": "document", "source": source, **about}


def _source(media: Media) -> Json:
    if media.data is not None:
        return {"type": "base64", "media_type": media_type(media), "data": media.data}
    if is_file(media):
        return {"type": "file", "file_id": media.url}
    return {"type": "url", "url": media.url} if text_of(media.url).startswith("http") else None


def _thinking(thinking: Thinking) -> Iterator[Block]:
    if thinking.sealed_as == "redacted":
        yield {"type": "redacted_thinking", "data": thinking.signature}
    elif thinking.signature is not None and thinking.sealed_as in (None, "signature"):
        yield {"type": "thinking", "thinking": thinking.text, "signature": thinking.signature}


def _call(call: ToolCall, server: Json) -> Block:
    known = identity(call)
    block: Block = {"id": fitting(known, _IDS), "name": call.name, "input": arguments_of(call)}
    if known.startswith(_REMOTE):
        return {"type": "mcp_tool_use", **block, "server_name": server}
    return {"type": "server_tool_use" if known.startswith(_SERVER) else "tool_use", **block}


def _result(result: ToolResult) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": fitting(identity(result), _IDS)}
    inner = (part for one in result.parts for part in ((one,) if _is_own(one) else result_parts([one])))
    content = [block for part in inner for block in _blocks((part,), 0, "user")]
    if result.parts == (Text(""),):
        block["content"] = ""
    elif content:
        block["content"] = _native("user", content)["content"]
    return block | ({"is_error": True} if result.is_error else {})


def _is_own(part: Part) -> bool:
    value = part.value if isinstance(part, Unknown) else None
    return isinstance(value, dict) and text_of(value.get("type")) in _OWN


def _server_result(result: ToolResult) -> Block:
    """Write the result of a tool that ran on a server, in the form in which it was read: a list for a search or a
    remote tool."""
    raw: list[Json] = [part.value for part in result.parts if isinstance(part, Unknown)]
    said: list[Json] = [{"type": "text", "text": part.text} for part in result.parts if isinstance(part, Text)]
    failed = len(raw) == 1 and isinstance(raw[0], dict) and text_of(raw[0].get("type")).endswith("_error")
    several = result.name in ("web_search_tool_result", "mcp_tool_result") and not failed
    content: Json = [*said, *raw] if several else raw[0] if raw else None
    block: Block = {"type": result.name, "tool_use_id": result.call_id, "content": content}
    return block | ({"is_error": True} if result.is_error else {})
