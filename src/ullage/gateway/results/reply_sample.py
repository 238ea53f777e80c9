"""The sample of a reply that is read for the shape of what its tool returns. Taking it costs the same for any reply."""

from dataclasses import dataclass
from typing import Literal

from ullage.tool import Block, Json, Reply

__all__ = ["Kind", "Sample", "sample_of"]

Kind = Literal["null", "boolean", "number", "string", "list", "object", "text", "media"]
"""`text` and `media` are replies that are not JSON."""

_HEAD = 12_000
"""Characters of a text that are parsed."""
_MOST_BLOCKS = 12
"""Blocks of a reply that are looked at."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What is needed of a reply to find its shape: a value, or the beginning of its text."""

    value: Json = None
    head: str | None = None
    """The beginning of a text that looks like JSON."""
    is_whole: bool = True
    """Whether `head` is the whole text."""
    kinds: frozenset[Kind] = frozenset()
    """Of the blocks of a reply that is not JSON."""


def sample_of(reply: Reply) -> Sample | None:
    """Return the sample of a reply, at a cost that does not grow with it; None if it has nothing."""
    if reply.structured is not None:
        return Sample(value=reply.structured.value)
    if not reply.content:
        return None
    blocks = reply.content[:_MOST_BLOCKS]
    texts = [text for block in blocks if (text := _text_of(block)) is not None]
    if any(block.get("type") != "text" for block in blocks):
        return Sample(kinds=frozenset({"text", "media"} if texts else {"media"}))
    if not texts:
        return None
    if len(reply.content) > 1 and all(_looks_like(text, "{", "}") for text in texts):
        # Many servers send a list as a block for each element.
        heads = [text for text in texts if len(text) <= _HEAD // _MOST_BLOCKS]
        return Sample(head=f"[{','.join(heads)}]")
    text = texts[0]
    if len(texts) > 1 or not (_looks_like(text, "{", "}") or _looks_like(text, "[", "]")):
        return Sample(kinds=frozenset({"text"}))
    return Sample(head=text[:_HEAD], is_whole=len(text) <= _HEAD)


def _text_of(block: Block) -> str | None:
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) and text else None


def _looks_like(text: str, opening: str, closing: str) -> bool:
    return text[:100].lstrip()[:1] == opening and text[-100:].rstrip()[-1:] == closing
