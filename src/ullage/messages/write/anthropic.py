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
    complete = list[Turn]()
    for role, blocks in merge_turns(turns, _is_result):
        # A turn must not end in thinking.
        ends = [place for place, block in enumerate(blocks, 1) if block.get("type") not in _THINKING]
        complete.append((role, blocks[: ends[-1] if ends else 0]))
    merged = merge_turns(complete, _is_result)
    if merged and merged[-1][0] == "assistant" and merged[-1][1][-1].get("type") == "text":
        # The model continues this turn, which must not end in white space.
        *before, last = merged[-1][1]
        merged[-1] = ("assistant", [*before, {**last, "text": text_of(last["text"]).rstrip()}])
    return [_native(role, blocks) for role, blocks in merged if blocks]


def _native(role: str, blocks: list[Block]) -> Block:
    """Return a message; a single text is written as a string."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return {"role": role, "content": blocks[0]["text"]}
    return {"role": role, "content": list[Json](blocks)}


def _is_result(block: Block) -> bool:
    return block.get("type") == "tool_result"


def _turns(message: Message) -> Iterator[Turn]:
    for role, parts in groupby(order_parts(message), lambda part: _role(part, message)):
        run = tuple(parts)
        yield role, [block for place in range(len(run)) for block in _blocks(run, place, role)]


def _role(part: Part, message: Message) -> str:
    if message.role == "assistant":
        if not isinstance(part, ToolResult):
            return "assistant"
        ran_on_server = text_of(part.call_id).startswith((_SERVER, _REMOTE))
        return "assistant" if ran_on_server and text_of(part.name).endswith("_tool_result") else "user"
    return "system" if message.role in ("system", "developer") else "user"


def _blocks(parts: tuple[Part, ...], place: int, role: str) -> Iterator[Block]:
    part, about = parts[place], beside(parts, place, "document")
    match part:
        case Text() if isinstance(about, dict) and "media_type" in about:
            source: Json = {"type": "text", "media_type": about["media_type"], "data": part.text}
            yield {"type": "document", "source": source, **{key: about[key] for key in about if key != "media_type"}}
        case Text():
            citations = beside(parts, place, "citations")
            cited: Block = {"citations": citations} if isinstance(citations, list) else {}
            if part.text.strip():
                yield {"type": "text", "text": part.text, **cited}
        case Media() if role == "user":
            yield from _medium(part, about if isinstance(about, dict) else {})
        case ToolResult():
            yield _server_result(part) if role == "assistant" else _result(part)
        case Thinking(sealed_as="redacted") if role == "assistant":
            yield {"type": "redacted_thinking", "data": part.signature}
        case Thinking(signature=str(), sealed_as=None | "signature") if role == "assistant":
            yield {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case ToolCall() if role == "assistant":
            known = identity(part)
            call: Block = {"id": fitting(known, _IDS), "name": part.name, "input": arguments_of(part)}
            server = {"server_name": beside(parts, place, "server_name")} if known.startswith(_REMOTE) else {}
            own = "server_tool_use" if known.startswith(_SERVER) else "tool_use"
            yield {"type": "mcp_tool_use" if server else own, **call, **server}
        case Unknown() if isinstance(part.value, dict) and _is_own(part):
            yield part.value
        case _:
            pass


def _medium(media: Media, about: Mapping[str, Json]) -> Iterator[Block]:
    kind = media_type(media)
    source: Json = {"type": "url", "url": media.url} if text_of(media.url).startswith("http") else None
    if media.data is not None:
        source = {"type": "base64", "media_type": kind, "data": media.data}
    elif is_file(media):
        source = {"type": "file", "file_id": media.url}
    if source is not None and media.kind == "image" and (media.data is None or kind in _IMAGES):
        yield {"type": "image", "source": source}
    elif source is not None and media.kind == "document" and (media.data is None or kind == "application/pdf"):
        yield {"type": "document", "source": source, **about}


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
