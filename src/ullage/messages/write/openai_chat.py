"""How is a message said to OpenAI's chat completions?

A result is a message of its own, and calls follow the words of theirs. Thinking has no place there, nor have media but
the user's own: those of results are shown by a message of the user's behind them, where a whole history is written.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from re import compile as pattern

from ullage.tool import Json

from ..parts import Media, Message, Part, Text, ToolCall, ToolResult, Unknown
from .calls import Pairing, fitting, identity
from .content import DETAILS, address, beside, is_file, media_type, result_parts, runs

__all__ = ["write", "write_all"]

_IDS = pattern(r".{1,40}")
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def write(message: Message) -> list[dict[str, Json]]:
    return [native for results, said in runs(message) for native in (*_results(results), *_spoken(message, said))]


def write_all(messages: Iterable[Message]) -> list[dict[str, Json]]:
    natives, unseen = list[dict[str, Json]](), list[Part]()
    for message in _whole(Pairing().paired(messages)):
        for results, said in runs(message):
            if said:
                natives += _shown(unseen)
                unseen.clear()
            natives += (*_results(results), *_spoken(message, said))
            unseen += (part for result in results for part in result.parts if isinstance(part, Media))
    return [*natives, *_shown(unseen)]


def _whole(messages: Iterable[Message]) -> Iterator[Message]:
    """An answer in pieces as one message, for nothing may stand between a call and its result."""
    for is_answer, run in groupby(messages, lambda message: message.role == "assistant"):
        pieces = list(run)
        if is_answer:
            yield replace(pieces[0], parts=tuple(part for piece in pieces for part in piece.parts))
        else:
            yield from pieces


def _results(results: Iterable[ToolResult]) -> Iterator[dict[str, Json]]:
    for result in results:
        texts = [part for part in result_parts(result.parts) if isinstance(part, Text)]
        native: dict[str, Json] = {
            "role": "tool",
            "tool_call_id": fitting(identity(result), _IDS),
            "content": _content([_text(text) for text in texts] or [_text(Text(""))]),
        }
        yield native if result.name is None else {**native, "name": result.name}


def _shown(media: list[Part]) -> Iterator[dict[str, Json]]:
    return _spoken(Message(role="user", parts=()), tuple(media))


def _spoken(message: Message, parts: tuple[Part, ...]) -> Iterator[dict[str, Json]]:
    role = "user" if message.role == "tool" else message.role
    said = [part for place in range(len(parts)) for part in _part(parts, place, role)]
    calls = [call for part in parts for call in _call(part)] if role == "assistant" else []
    if said or calls:
        native: dict[str, Json] = {"role": role, "content": _content(said)}
        if message.name is not None:
            native["name"] = message.name
        if calls:
            native["tool_calls"] = calls
        yield native


def _content(parts: list[Json]) -> Json:
    """A single text stands alone; what only calls has no content."""
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, dict) and only.get("type") == "text":
        return only["text"]
    return parts or None


def _part(parts: tuple[Part, ...], place: int, role: str) -> Iterator[Json]:
    part = parts[place]
    if isinstance(part, Text):
        yield _text(part)
    elif isinstance(part, Media) and role == "user":
        yield from _medium(part, beside(parts, place, "filename"))


def _text(part: Text) -> Json:
    return {"type": "text", "text": part.text}


def _medium(media: Media, name: Json) -> Iterator[Json]:
    url, sound = address(media), _SOUNDS.get(media_type(media))
    if media.kind == "image" and url is not None:
        image: dict[str, Json] = {"url": url}
        yield {"type": "image_url", "image_url": image | ({"detail": media.detail} if media.detail in DETAILS else {})}
    elif media.kind == "audio" and media.data is not None and sound is not None:
        yield {"type": "input_audio", "input_audio": {"data": media.data, "format": sound}}
    elif media.kind == "document" and media.data is not None:
        yield {"type": "file", "file": {"filename": name or "document.pdf", "file_data": url}}
    elif media.kind == "document" and is_file(media):
        yield {"type": "file", "file": {"file_id": media.url}}


def _call(part: Part) -> Iterator[Json]:
    if isinstance(part, ToolCall):
        function: dict[str, Json] = {"name": part.name, "arguments": part.arguments}
        yield {"id": fitting(identity(part), _IDS), "type": "function", "function": function}
    elif isinstance(part, Unknown) and isinstance(part.value, dict) and part.value.get("type") == "custom":
        yield part.value
