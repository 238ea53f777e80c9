"""What is in the content of an OpenAI message, be it chat or Responses?

Both wire formats write content as a text or as a list of typed parts; they differ only in the names. Other vendors'
parts in the same places (Mistral's `thinking`, `video_url`, `document_url`) are read too. What has another shape is
`Unknown`.
"""

from collections.abc import Callable, Mapping
from json import dumps
from typing import Literal

from ullage.tool import Json

from .lenient import extras, text_or_none
from .parts import Media, Part, Text, Thinking, Unknown

__all__ = ["read_arguments", "read_content", "read_thinking"]

Kind = Literal["image", "audio", "video", "document"]
Reader = Callable[[Mapping[str, Json]], tuple[Part, ...] | None]

MARKS = frozenset({"cache_control", "prompt_cache_breakpoint", "type"})
"""Keys of a part that steer caching or name its kind; no model reads them."""


def read_content(content: Json) -> tuple[Part, ...]:
    """The parts of a `content` (or of a Responses `output`): a text, a list of typed parts, or nothing."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list):
        return tuple(part for item in content for part in _read_part(item))
    return (Unknown(content),)


def read_arguments(arguments: Json) -> str:
    """A call's arguments as JSON text: as it stood where it was text, else made compact."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def read_thinking(value: Json) -> tuple[Part, ...]:
    """Reasoning written as a text, or as a list of texts (`summary_text`, `reasoning_text`)."""
    if not value:
        return ()
    if isinstance(value, str):
        return (Thinking(text=value),)
    texts = [_text_of(item) for item in value] if isinstance(value, list) else [None]
    known = [text for text in texts if text is not None]
    return (Thinking(text="\n".join(known)),) if len(known) == len(texts) else (Unknown(value),)


def _read_part(item: Json) -> tuple[Part, ...]:
    if isinstance(item, str):
        return (Text(item),)
    if not isinstance(item, dict):
        return (Unknown(item),)
    kind = item.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    return (reader and reader(item)) or (Unknown(item),)


def _text_of(item: Json) -> str | None:
    text = item.get("text") if isinstance(item, dict) else item
    return text if isinstance(text, str) else None


def _text_at(key: str) -> Reader:
    def read(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
        text = item.get(key)
        known = MARKS | {key, "annotations", "logprobs"}
        return (Text(text), *extras(item, known)) if isinstance(text, str) else None

    return read


def _read_thinking_part(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
    return read_thinking(item.get("thinking")) or None


def _address_at(key: str, kind: Kind) -> Reader:
    """A part whose `key` holds an address, or an object with `url` and perhaps `detail`."""

    def read(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
        place = item.get(key)
        inner = place if isinstance(place, dict) else {"url": place}
        address, detail = inner.get("url"), inner.get("detail", item.get("detail"))
        if not isinstance(address, str):
            return None
        known = MARKS | {key, "detail"}
        return (_media(kind, address, detail), *extras(inner, frozenset({"url", "detail"})), *extras(item, known))

    return read


def _read_input_image(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
    file = item.get("file_id")
    if isinstance(file, str):
        return (Media(kind="image", url=file, detail=text_or_none(item.get("detail"))),)
    return _address_at("image_url", "image")(item)


def _read_audio(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
    """OpenAI has an object with `data` and `format`; Mistral the data alone, or an address."""
    sound = item.get("input_audio")
    if isinstance(sound, str):
        is_address = sound.startswith(("https://", "http://", "data:"))
        return (_media("audio", sound, None) if is_address else Media(kind="audio", data=sound),)
    if not isinstance(sound, dict) or not isinstance(data := sound.get("data"), str):
        return None
    form = sound.get("format")
    return (Media(kind="audio", media_type=f"audio/{form}" if isinstance(form, str) else None, data=data),)


def _read_file(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
    """A chat `file` (its fields one level down) or a Responses `input_file` (its fields beside the type)."""
    inner = item.get("file", item)
    if not isinstance(inner, dict):
        return None
    for key in ("file_data", "file_url", "file_id"):
        address = inner.get(key)
        if isinstance(address, str):
            return (_media("document", address, None), *extras(inner, MARKS | {key}))
    return None


def _media(kind: Kind, address: str, detail: Json) -> Media:
    head, comma, data = address.partition(",")
    if comma and head.startswith("data:"):
        media_type = head.removeprefix("data:").partition(";")[0] or None
        return Media(kind=kind, media_type=media_type, data=data, detail=text_or_none(detail))
    return Media(kind=kind, url=address, detail=text_or_none(detail))


_READERS: Mapping[str, Reader] = {
    "text": _text_at("text"),
    "input_text": _text_at("text"),
    "output_text": _text_at("text"),
    "refusal": _text_at("refusal"),
    "thinking": _read_thinking_part,
    "image_url": _address_at("image_url", "image"),
    "video_url": _address_at("video_url", "video"),
    "document_url": _address_at("document_url", "document"),
    "input_image": _read_input_image,
    "computer_screenshot": _read_input_image,
    "input_audio": _read_audio,
    "file": _read_file,
    "input_file": _read_file,
}
