"""Which parts has a reply, and what do they say?

One part a block: its text where it has one, else the block itself as JSON. Blocks that are a JSON object each, as many
servers answer with a list, are one part with a record a block. Structured content is a part of its own only where it
says what the blocks do not. How parts are laid out and kept is decided elsewhere.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ullage.table import Path, scan
from ullage.tokens import Steps
from ullage.tool import Block, Json, Reply, Structured

from ..shown import Unwritten
from .held import Part
from .layout import one_unit, survey

__all__ = [
    "LONGEST",
    "Content",
    "are_objects",
    "contents",
    "is_recodable",
    "is_repeated",
    "is_worth_recoding",
    "joined",
    "text_of",
]

_SHORTEST = 200
"""Characters of JSON below which writing it otherwise is not worth the trouble."""
LONGEST = 1_000_000
"""Characters above which it is not tried: reading them would hold others up."""

_AT_ONCE = 200_000
"""Characters of JSON that are read by one call of the parser."""
_STRIDE = 500
"""Records compared before others are let in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A part of a reply, with the blocks that show it whole."""

    part: Part
    blocks: tuple[Block, ...]


def text_of(block: Block) -> str | None:
    """The text that a block is, or that the resource within it is."""
    holder = block.get("resource") if block.get("type") == "resource" else block
    if not isinstance(holder, dict) or block.get("type") not in ("text", "resource"):
        return None
    text = holder.get("text")
    return text if isinstance(text, str) else None


def contents(reply: Reply) -> Steps[tuple[Content, ...]]:
    """Every part, laid out."""
    found = list[Content]()
    together = yield from _together(reply.content)
    if together is not None:
        found.append(together)
    for block in reply.content if together is None else ():
        found.append(Content(part=(yield from _part(block)), blocks=(block,)))
    if reply.structured is not None and not (yield from is_repeated(reply)):
        text = yield from Unwritten(reply.structured.value).text()
        label = "structuredContent" if reply.content else ""
        part = Part(text=text, layout=(yield from survey(text)), label=label)
        found.append(Content(part=part, blocks=() if reply.content else ({"type": "text", "text": text},)))
    return tuple(found)


def _part(block: Block) -> Steps[Part]:
    text = text_of(block)
    if text is None:
        written = yield from Unwritten(dict(block)).text()
        return Part(text=written, layout=one_unit(written))
    resource = block.get("resource")
    label = str(resource.get("uri", "")) if isinstance(resource, dict) else ""
    return Part(text=text, layout=(yield from survey(text)), label=label)


def _together(content: Sequence[Block]) -> Steps[Content | None]:
    text = joined(content)
    layout = None if text is None else (yield from survey(text))
    if text is None or layout is None or len(layout) != len(content) or layout.kind != "records":
        return None
    return Content(part=Part(text=text, layout=layout), blocks=tuple(content))


def are_objects(content: Sequence[Block]) -> bool:
    """Whether these blocks are an object each, by their looks; `survey` then reads them."""
    return len(content) > 1 and all(block.get("type") == "text" and _is_object(text_of(block)) for block in content)


def joined(content: Sequence[Block]) -> str | None:
    """Blocks that are an object each, as one array."""
    return f"[{','.join(text_of(block) or '' for block in content)}]" if are_objects(content) else None


def _is_object(text: str | None) -> bool:
    return text is not None and text[:20].lstrip()[:1] == "{" and text[-20:].rstrip()[-1:] == "}"


def is_repeated(reply: Reply) -> Steps[bool]:
    """Whether the blocks say all that the structured content does."""
    if reply.structured is None:
        return True
    text = joined(reply.content) or (text_of(reply.content[0]) if len(reply.content) == 1 else None)
    if text is None:
        return False
    for value in _unwrapped(reply.structured):
        if (yield from _is_same(text, value)):
            return True
    return False


def _unwrapped(structured: Structured) -> Iterable[Json]:
    """Structured content must be an object, so that some servers put what they have to say under a key of it."""
    yield structured.value
    if isinstance(structured.value, dict) and set(structured.value) == {"result"}:
        yield structured.value["result"]


def _is_same(text: str, value: Json) -> Steps[bool]:
    yield
    if text == value:
        return True
    if len(text) <= _AT_ONCE:
        try:
            return json.loads(text) == value
        except (ValueError, RecursionError):
            return False
    scanned = yield from scan(text)
    if scanned is None or scanned.end - scanned.start < len(text) - _AT_ONCE:
        return False
    records, rest = _taken_out(value, scanned.path)
    if not isinstance(records, list) or len(records) != scanned.count or json.loads(scanned.rest(text)) != rest:
        return False
    for number, (record, other) in enumerate(zip(scanned.records(text), records, strict=True)):
        if record.value != other:
            return False
        if number % _STRIDE == 0:
            yield
    return True


def _taken_out(value: Json, path: Path) -> tuple[Json, Json]:
    """What stands at a path, and the value with an empty list there instead."""
    if not path:
        return value, []
    key = path[0]
    if not isinstance(value, dict) or not isinstance(key, str):
        return None, value
    taken, rest = _taken_out(value.get(key), path[1:])
    return taken, {**value, key: rest}


def is_recodable(reply: Reply) -> bool:
    """Whether there may be something to be said shorter."""
    texts = (text for block in reply.content if (text := text_of(block)) is not None)
    return not reply.content or are_objects(reply.content) or any(map(is_worth_recoding, texts))


def is_worth_recoding(text: str) -> bool:
    return _SHORTEST <= len(text) <= LONGEST and text[:20].lstrip()[:1] in ("[", "{")
