"""What of a provider's words may be handed on?

Its reason, and not what it quotes to give it: some servers repeat the key or the prompt in what they say of them, and
an error goes into logs that neither may be in. Stretches that stand in the request are taken out.
"""

from collections.abc import Iterable, Iterator

from ullage.messages import Message, Part, Text, Thinking, ToolCall, ToolResult

__all__ = ["unquoted"]

_LEAST = 20
"""Characters in a row that are a quotation; shorter ones are words that anyone may use."""
_STEP = _LEAST // 2
"""A quotation has at least one whole piece of so many, counted from the beginning: only those are looked for."""
_SECRET = 6
"""Characters of a secret; what is shorter hides nothing."""


def unquoted(said: str, messages: Iterable[Message], secrets: Iterable[str | None]) -> str:
    for secret in secrets:
        if secret and len(secret) >= _SECRET:
            said = said.replace(secret, "***")
    if len(said) < _LEAST:
        return said
    asked = "\n".join(" ".join(text.split()) for message in messages for text in _texts(message.parts))
    return "".join(_kept(said, asked))


def _kept(said: str, asked: str) -> Iterator[str]:
    done = at = 0
    while at + _STEP <= len(said):
        start, end = _quotation(said, at, asked, done)
        if end - start >= _LEAST:
            yield f"{said[done:start]}…"
            done = end
        at = max(at + _STEP, end)
    yield said[done:]


def _quotation(said: str, at: int, asked: str, least: int) -> tuple[int, int]:
    """The longest stretch around a piece that stands in the request as well; nothing where the piece does not."""
    start, end = at, at + _STEP
    if said[start:end] not in asked:
        return at, at
    while end < len(said) and said[start : end + 1] in asked:
        end += 1
    while start > least and said[start - 1 : end] in asked:
        start -= 1
    return start, end


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Text() | Thinking():
                yield part.text
            case ToolCall():
                yield part.arguments
            case ToolResult():
                yield from _texts(part.parts)
            case _:
                pass
