"""What of a message's content is said alike in several formats?"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from json import dumps

from ullage.tool import Json

from ..parts import Media, Message, Part, Text, ToolResult, Unknown

__all__ = ["DETAILS", "address", "beside", "is_file", "media_type", "ordered", "result_parts", "runs"]

DETAILS = frozenset({"low", "high", "auto", "original"})
"""How closely OpenAI's models look at an image."""
_TYPES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "document": "application/pdf"}
"""Where nobody said."""


def ordered(message: Message) -> tuple[Part, ...]:
    """The parts of a message; before what a user says come the results."""
    if message.role == "assistant":
        return message.parts
    return tuple(sorted(message.parts, key=lambda part: not isinstance(part, ToolResult)))


def runs(message: Message) -> Iterator[tuple[tuple[ToolResult, ...], tuple[Part, ...]]]:
    """The parts of a message in runs: of results, or else of what is none."""
    for _, run in groupby(ordered(message), lambda part: isinstance(part, ToolResult)):
        parts = tuple(run)
        results = tuple(part for part in parts if isinstance(part, ToolResult))
        yield results, () if results else parts


def result_parts(parts: Iterable[Part]) -> Iterator[Text | Media]:
    """What the parts of a result say; what is neither text nor medium, as JSON, so that it is not lost on the model."""
    for part in parts:
        if isinstance(part, Text | Media):
            yield part
        elif isinstance(part, Unknown) and (not isinstance(part.value, dict) or "type" in part.value):
            yield Text(dumps(part.value, ensure_ascii=False, separators=(",", ":")))


def beside(parts: tuple[Part, ...], place: int, key: str) -> Json:
    """What stood beside a part on the wire under a key, for a reader put that behind it."""
    for after in parts[place + 1 :]:
        if not isinstance(after, Unknown):
            break
        if isinstance(after.value, dict) and after.value.keys() == {key}:
            return after.value[key]
    return None


def media_type(media: Media) -> str:
    return media.media_type or _TYPES[media.kind]


def is_file(media: Media) -> bool:
    """Whether it is known by the id of a file that the provider keeps."""
    return media.data is None and media.url is not None and "://" not in media.url


def address(media: Media) -> str | None:
    """As a data URL where the bytes are here, else as an address of the web."""
    if media.data is not None:
        return f"data:{media_type(media)};base64,{media.data}"
    return media.url if media.url is not None and media.url.startswith(("http://", "https://")) else None
