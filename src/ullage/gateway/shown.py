"""What of a reply does a client show to its model?

Its content: texts, the texts of resources, and the JSON of every other block, less what is for the client alone. Images
and sounds are shown as such and never as the base64 they travel in; other binary contents are not shown at all. Clients
differ over structured content (some show only that, some never), but it says what the text says, so it is looked at
only where there is no content. Nothing is counted here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ullage.messages import Media
from ullage.tokens import Steps
from ullage.tool import Block, Json, JsonObject, Reply

__all__ = ["Unwritten", "shown"]

_FOR_THE_CLIENT = frozenset({"_meta", "annotations", "icons"})
_BINARY = ("data", "blob")
_VALUES = 1_000
"""That are written in one go."""
_PORTION = 100
"""Members of a long list that are looked at together."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A value that is shown as JSON; it may be large."""

    value: Json

    def text(self) -> Steps[str]:
        written: list[str] = []
        for piece in _pieces(self.value):
            written.append(piece)
            yield
        return "".join(written)


def _pieces(value: Json) -> Iterator[str]:
    """The JSON of a value, in pieces that are each soon written."""
    if isinstance(value, dict | list) and not _is_small(value):
        yield from _object(value) if isinstance(value, dict) else _array(value)
    else:
        yield _encode(value)


def _object(value: dict[str, Json]) -> Iterator[str]:
    opening = "{"
    for key, inner in value.items():
        yield f"{opening}{_encode(key)}:"
        yield from _pieces(inner)
        opening = ","
    yield "}"


def _array(value: list[Json]) -> Iterator[str]:
    opening = "["
    for start in range(0, len(value), _PORTION):
        portion = value[start : start + _PORTION]
        if _is_small(portion):
            yield f"{opening}{_encode(portion)[1:-1]}"
            opening = ","
            continue
        for inner in portion:
            yield opening
            yield from _pieces(inner)
            opening = ","
    yield "]"


def _is_small(value: Json) -> bool:
    left, todo = _VALUES, [value]
    while todo and left >= 0:
        outer = todo.pop()
        if isinstance(outer, dict | list):
            left -= len(outer)
            # Not looked into where that alone decides it.
            todo.extend((outer.values() if isinstance(outer, dict) else outer) if left >= 0 else ())
    return left >= 0


def shown(reply: Reply) -> Iterator[str | Media | Unwritten]:
    if not reply.content and reply.structured is not None:
        yield Unwritten(reply.structured.value)
    for block in reply.content:
        yield from _shown_block(block)


def _shown_block(block: Block) -> Iterator[str | Media | Unwritten]:
    kind, text, resource = block.get("type"), block.get("text"), block.get("resource")
    if kind == "text" and isinstance(text, str):
        yield text
    elif kind in ("image", "audio"):
        yield _media("image" if kind == "image" else "audio", block, "data")
    elif kind == "resource" and isinstance(resource, dict):
        yield from _shown_resource(resource)
    else:
        yield Unwritten(_without_binary(block))


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
