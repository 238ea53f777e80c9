"""What of a tool's reply does the model get to see?

Its content as parts: texts and pictures as they are, everything else in words. What is meant for the client stays out.
"""

import json
from collections.abc import Iterator, Mapping
from typing import cast

from ullage.messages import Media, Part, Text
from ullage.tool import Block, Json, JsonObject, Needs, Reply

__all__ = ["parts_of", "text_in"]

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""That every provider takes; one of another kind would have the whole request refused."""
_NOTHING = "(no output)"
"""Some providers refuse a result without any text."""


def parts_of(reply: Reply) -> tuple[Part, ...]:
    if reply.needs is not None:
        return (Text(_unanswerable(reply.needs)),)
    found = tuple(part for block in reply.content for part in _block(block))
    if not found and reply.structured is not None:
        return (Text(_json(reply.structured.value)),)
    return found or (Text(_NOTHING),)


def text_in(parts: tuple[Part, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _block(block: Block) -> Iterator[Part]:
    match block:
        case {"type": "text", "text": str(text)}:
            if text:
                yield Text(text)
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(kind)}:
            yield _bytes(data, kind)
        case {"type": "resource", "resource": Mapping() as resource}:
            yield _resource(cast("JsonObject", resource))
        case {"type": "resource_link", "uri": str(uri)}:
            yield Text(f"{block.get('name') or 'resource'}: {uri}")
        case _:
            yield Text(_json(dict(block)))


def _resource(resource: JsonObject) -> Part:
    match resource:
        case {"text": str(text)}:
            return Text(text or _NOTHING)
        case {"blob": str(data)}:
            return _bytes(data, str(resource.get("mimeType", "application/octet-stream")))
        case _:
            return Text(_json(dict(resource)))


def _bytes(data: str, media_type: str) -> Part:
    if media_type in _PICTURES:
        return Media(kind="image", media_type=media_type, data=data)
    return Text(f"[{media_type}, about {len(data) * 3 // 4:,} bytes, which cannot be shown here]")


def _unanswerable(needs: Needs) -> str:
    methods = [one.get("method") for one in needs.requests.values() if isinstance(one, Mapping)]
    asked = ", ".join(f"`{method}`" for method in methods if isinstance(method, str)) or "something"
    return f"Before it goes on the tool asks for {asked}, and nobody can be asked here. It was not carried out."


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
