"""Writes neutral messages for Gemini.

Results come first in the user's turn, with the names of their calls. A signature without a thought is attached to the
part after it.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from ullage.tool import Json

from ..parts import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown
from .turns import (
    Pairing,
    Turn,
    arguments_of,
    beside,
    conversation,
    is_file,
    media_type,
    merge_turns,
    name_openai_calls,
    object_of,
    order_parts,
    result_parts,
)

__all__ = ["write", "write_all"]

Piece = dict[str, Json]

UNSIGNED = "skip_thought_signature_validator"
"""The signature that Google accepts on a call made by another model. Since Gemini 3 the first call of a turn must have
one."""
_OWN = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})


def write(message: Message) -> list[Piece]:
    return [_native(role, parts) for role, parts in _turns(message) if parts]


def write_all(messages: Iterable[Message]) -> list[Piece]:
    paired = Pairing(by_name=True).paired(conversation(map(name_openai_calls, messages)))
    turns = merge_turns(
        (turn for message in paired for turn in _turns(message)), lambda part: "functionResponse" in part
    )
    for role, parts in turns:
        first = next((place for place, part in enumerate(parts) if "functionCall" in part), None)
        if role == "model" and first is not None and "thoughtSignature" not in parts[first]:
            parts[first] = {**parts[first], "thoughtSignature": UNSIGNED}
    return [_native(role, parts) for role, parts in turns]


def _native(role: str, parts: list[Piece]) -> Piece:
    return {"role": role, "parts": list[Json](parts)}


def _turns(message: Message) -> Iterator[Turn]:
    role = {"assistant": "model", "system": "system", "developer": "system"}.get(message.role, "user")
    for by_other, parts in groupby(order_parts(message), lambda part: role == "model" and isinstance(part, ToolResult)):
        speaker = "user" if by_other else role
        yield speaker, list(_pieces(parts, speaker))


def _pieces(parts: Iterable[Part], role: str) -> Iterator[Piece]:
    signature: str | None = None
    given = tuple(parts)
    for place, part in enumerate(given):
        if isinstance(part, Thinking) and part.sealed_as not in (None, "thought_signature"):
            continue
        if isinstance(part, Thinking) and not part.text:
            yield from _riding({"text": ""}, signature)
            signature = part.signature if role == "model" else None
            continue
        for piece in _piece(part, role):
            # The part of a video to look at, and how often, which a reader puts after the video.
            video = beside(given, place, "videoMetadata") if isinstance(part, Media) else None
            settings: Piece = {} if video is None else {"videoMetadata": video}
            yield {**piece, **settings, **({} if signature is None else {"thoughtSignature": signature})}
            signature = None
    yield from _riding({"text": ""}, signature)


def _riding(piece: Piece, signature: str | None) -> Iterator[Piece]:
    """Attach a signature to a part. A signature with no part after it is written with an empty one."""
    if signature is not None:
        yield {**piece, "thoughtSignature": signature}


def _piece(part: Part, role: str) -> Iterator[Piece]:
    match part:
        case Text():
            yield {"text": part.text}
        case Thinking() if role == "model":
            thought: Piece = {"text": part.text, "thought": True}
            yield thought if part.signature is None else {**thought, "thoughtSignature": part.signature}
        case ToolCall() if role == "model":
            known: Piece = {} if part.id is None else {"id": part.id}
            yield {"functionCall": {**known, "name": part.name, "args": arguments_of(part)}}
        case ToolResult():
            yield {"functionResponse": _response(part)}
        case Media() if role != "system":
            yield from _medium(part)
        case Unknown() if isinstance(part.value, dict) and part.value.keys() & _OWN:
            yield part.value
        case _:
            pass


def _response(result: ToolResult) -> Piece:
    said = tuple(result_parts(result.parts))
    text = "\n".join(part.text for part in said if isinstance(part, Text))
    media: list[Json] = [piece for part in said if isinstance(part, Media) for piece in _medium(part)]
    response: Json = {"error": text} if result.is_error else object_of(text)
    known: Piece = {} if result.call_id is None else {"id": result.call_id}
    made: Piece = {
        **known,
        "name": result.name or "tool",
        "response": {"output": text} if response is None else response,
    }
    return {**made, "parts": media} if media else made


def _medium(media: Media) -> Iterator[Piece]:
    looked: Piece = {}
    if media.detail is not None and media.detail.startswith("MEDIA_RESOLUTION"):
        looked["mediaResolution"] = {"level": media.detail}
    if media.data is not None:
        yield {"inlineData": {"mimeType": media_type(media), "data": media.data}, **looked}
    elif media.url is not None and not is_file(media):
        kind: Piece = {} if media.media_type is None else {"mimeType": media.media_type}
        yield {"fileData": {"fileUri": media.url, **kind}, **looked}
