"""What of a reply does a client show to its model?

Its content: texts, the texts of resources, and the JSON of every other block, less what is for the client alone. Images
and sounds are shown as such and never as the base64 they travel in; other binary contents are not shown at all. Clients
differ over structured content (some show only that, some never), but it says what the text says, so it is looked at
only where there is no content. Nothing is counted here.
"""

import json
from collections.abc import Iterator
from typing import Literal

from ullage.messages import Media
from ullage.tool import Block, Json, JsonObject, Reply

__all__ = ["shown"]

_FOR_THE_CLIENT = frozenset({"_meta", "annotations", "icons"})
_BINARY = ("data", "blob")


def shown(reply: Reply) -> Iterator[str | Media]:
    if not reply.content and reply.structured is not None:
        yield _json(reply.structured.value)
    for block in reply.content:
        yield from _shown_block(block)


def _shown_block(block: Block) -> Iterator[str | Media]:
    kind, text, resource = block.get("type"), block.get("text"), block.get("resource")
    if kind == "text" and isinstance(text, str):
        yield text
    elif kind in ("image", "audio"):
        yield _media("image" if kind == "image" else "audio", block, "data")
    elif kind == "resource" and isinstance(resource, dict):
        yield from _shown_resource(resource)
    else:
        yield _json(_without_binary(block))


def _shown_resource(resource: JsonObject) -> Iterator[str | Media]:
    text, media_type = resource.get("text"), str(resource.get("mimeType"))
    yield str(resource.get("uri", ""))
    if isinstance(text, str):
        yield text
    elif media_type.startswith("image/"):
        yield _media("image", resource, "blob")


def _media(kind: Literal["image", "audio"], holder: JsonObject, key: str) -> Media:
    data, media_type = holder.get(key), holder.get("mimeType")
    return Media(
        kind=kind,
        media_type=media_type if isinstance(media_type, str) else None,
        data=data if isinstance(data, str) else None,
    )


def _without_binary(block: Block) -> dict[str, Json]:
    left_out = _FOR_THE_CLIENT.union(_BINARY if "mimeType" in block else ())
    return {key: value for key, value in block.items() if key not in left_out}


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
