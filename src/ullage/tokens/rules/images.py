"""Token counts of images.

The size is read from the first bytes of the image itself; no pixel is decoded. The rules are those of OpenAI's,
Anthropic's and Google's documentation (2026-11); figures measured on recorded requests instead are marked as such. The
size of an image given by an address is unknown; it is weighed as one of the usual size, within a wide band.
"""

from binascii import a2b_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, floor, sqrt
from re import compile as pattern

from ullage.messages import Media
from ullage.tool import Json

from ..count import Count, Method

__all__ = ["Size", "anthropic_image", "gemini_image", "image_size", "openai_image", "split_files"]

Size = tuple[int, int]
"""Width and height in pixels."""

_HEAD = 1 << 19
"""Base64 characters that are read; a JPEG may have long metadata before its size."""
_USUAL: Size = (512, 512)
"""Size assumed for an image that is not in the request: the median of those recorded, most of which were tests."""
_LEAST = 8
"""Tokens of the smallest image in a recorded request to Claude."""
_SMALLEST: Size = (32, 32)
_LARGEST: Size = (1536, 4096)
"""An unknown image is between `_SMALLEST` and this: no image costs less, and larger ones are scaled down."""
_GEMINI_3_IMAGE = 1095
"""Tokens of an image. Measured: 1,085 to 1,102 on recorded requests; at most 1,120 by the documentation."""
_MOST_TILES = 14
"""Most tiles of one image in Gemini 2.0, on recorded requests."""
_WHITESPACE = pattern(r"\s+")


def image_size(data: str) -> Size | None:
    """Return the size of a PNG, JPEG, GIF or WebP given in base64; None where it cannot be read."""
    head = _WHITESPACE.sub("", data[:_HEAD])
    try:
        content = a2b_base64(head[: len(head) // 4 * 4])
    except ValueError:
        return None
    for magic, reader in _READERS.items():
        if content.startswith(magic):
            size = reader(content)
            return size if size and all(size) else None
    return None


_FILE_TYPES = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "audio/wav",
    "SUQz": "audio/mpeg",
    "T2dnUw": "audio/ogg",
    "ZkxhQw": "audio/flac",
    "JVBERi0": "application/pdf",
}
"""Media types by the first characters of a file in base64."""
_SHORTEST_FILE = 64
"""Characters of the shortest text that is taken for a file."""


def split_files(value: Json) -> tuple[Json, list[Media]]:
    """Return a JSON value with the files in it replaced by empty texts, and these files.

    A file is a data URL or base64 that begins as a known type of file does. Such a value is a part of unknown kind (a
    generated image, a fetched document): counted as text, its base64 would weigh a hundred times what the model sees.
    """
    files = list[Media]()

    def without_files(inner: Json) -> Json:
        if isinstance(inner, dict):
            data, kinds = inner.get("data"), [inner.get("media_type"), inner.get("mimeType")]
            kind = next((kind for kind in kinds if isinstance(kind, str) and not kind.startswith("text/")), None)
            if isinstance(data, str) and kind is not None:
                files.append(_file(kind, data))
                return {key: "" if key == "data" else item for key, item in inner.items()}
            return {key: without_files(item) for key, item in inner.items()}
        if isinstance(inner, list):
            return [without_files(item) for item in inner]
        file = _read_file(inner) if isinstance(inner, str) and len(inner) >= _SHORTEST_FILE else None
        if file is None:
            return inner
        files.append(file)
        return ""

    return without_files(value), files


def _read_file(text: str) -> Media | None:
    head, comma, data = text[:_SHORTEST_FILE].partition(",")
    if comma and head.startswith("data:") and ";base64" in head:
        media_type, data = head.removeprefix("data:").partition(";")[0], text[len(head) + 1 :]
    else:
        media_type = next((kind for start, kind in _FILE_TYPES.items() if text.startswith(start)), "")
        data = text
    if not media_type or " " in data[:_SHORTEST_FILE]:
        return None
    if media_type == "audio/wav" and image_size(data) is not None:
        media_type = "image/webp"  # both begin as RIFF files do
    return _file(media_type, data)


def _file(media_type: str, data: str) -> Media:
    match media_type.partition("/")[0]:
        case "image" | "audio" | "video" as kind:
            return Media(kind=kind, media_type=media_type, data=data)
        case _:
            return Media(kind="document", media_type=media_type, data=data)


def openai_image(model: str, size: Size | None, detail: str | None) -> Count:
    """Return the tokens of an image for an OpenAI model, by the model's tiles or patches."""
    for name, rule in _OPENAI_RULES.items():
        if model.startswith(name):
            return _weigh(rule, size, detail, sure=not rule.measured)
    return _weigh(_Tiles(base=70, tile=140), size, detail, sure=False)


def anthropic_image(size: Size | None, *, long_edge: int = 1568, most: int = 1600) -> Count:
    """Return the tokens of an image for Claude: its area over 750, after it is shrunk to the longest edge and to the
    most tokens allowed."""
    width, height = size or _USUAL
    scale = min(1.0, long_edge / max(width, height))
    tokens = min(most, width * height * scale * scale / 750)
    if size is None:
        return Count(tokens=round(tokens), method=Method.ESTIMATED, low=_LEAST, high=most)
    return Count.within(tokens, 0.05)


def gemini_image(family: str, size: Size | None, resolution: str | None = None) -> Count:
    """Return the tokens of an image for Gemini: a fixed number since Gemini 3, else 258 tokens; in 2.0 for each tile of
    768 pixels."""
    if family.startswith("gemini-3"):
        shares = {"low": 0.25, "medium": 0.5, "high": 1.0}
        share = next((value for key, value in shares.items() if key in (resolution or "").lower()), 1.0)
        return Count.within(_GEMINI_3_IMAGE * share, 0.05)
    if not family.startswith("gemini-2.0"):
        return Count.within(258, 0.02)
    width, height = size or _USUAL
    unit = max(256, min(768, floor(min(width, height) / 1.5)))
    tiles = 1 if max(width, height) <= 384 else ceil(width / unit) * ceil(height / unit)
    if size is None:
        return Count(tokens=258 * tiles, method=Method.ESTIMATED, low=258, high=258 * _MOST_TILES)
    return Count.within(258 * tiles, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tiles:
    """Tokens an image and tokens a tile of 512 pixels, after fitting to 2048 square and 768 on the short side."""

    base: int
    tile: int
    measured: bool = False

    def tokens(self, size: Size, detail: str | None) -> float:
        if detail == "low":
            return self.base
        width, height = size
        scale = min(1.0, 2048 / max(width, height))
        scale *= min(1.0, 768 / (min(width, height) * scale))
        return self.base + self.tile * ceil(width * scale / 512) * ceil(height * scale / 512)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patches:
    """Tokens a patch of 32 pixels, after the image is shrunk until it has at most `most` of them."""

    factor: float
    most: int = 1536
    measured: bool = False

    def tokens(self, size: Size, detail: str | None) -> float:
        most = 256 if detail == "low" else self.most
        return min(most, _patches(size, most)) * self.factor + 1


def _patches(size: Size, most: int) -> int:
    width, height = size
    whole = ceil(width / 32) * ceil(height / 32)
    if whole <= most:
        return whole
    scale = sqrt(32 * 32 * most / (width * height))
    across, down = width * scale / 32, height * scale / 32
    scale *= min(max(1, floor(across)) / across, max(1, floor(down)) / down)
    return ceil(width * scale / 32) * ceil(height * scale / 32)


_OPENAI_RULES: Mapping[str, _Tiles | _Patches] = {
    "gpt-4o-mini": _Tiles(base=2833, tile=5667),
    "gpt-4.1-mini": _Patches(factor=1.62),
    "gpt-4.1-nano": _Patches(factor=2.46),
    "gpt-4": _Tiles(base=85, tile=170),
    "o4-mini": _Patches(factor=1.72),
    "o1": _Tiles(base=75, tile=150),
    "o3": _Tiles(base=75, tile=150),
    "computer-use": _Tiles(base=65, tile=129),
    "gpt-image": _Tiles(base=65, tile=129),
    "gpt-5-mini": _Patches(factor=1.2, measured=True),
    "gpt-5-nano": _Patches(factor=1.5, measured=True),
    "gpt-5.6": _Patches(factor=1.32, most=2500, measured=True),
    "gpt-5": _Tiles(base=70, tile=140),
}
"""Rules by the beginning of the model's name, the longer before the shorter."""


def _weigh(rule: _Tiles | _Patches, size: Size | None, detail: str | None, *, sure: bool) -> Count:
    tokens = rule.tokens(size or _USUAL, detail)
    if size is None and (detail != "low" or isinstance(rule, _Patches)):
        low, high = (rule.tokens(size, detail) for size in (_SMALLEST, _LARGEST))
        return Count(tokens=round(tokens), method=Method.ESTIMATED, low=int(low), high=ceil(max(tokens, high)))
    return Count.within(tokens, 0.02 if sure else 0.3)


def _webp(content: bytes) -> Size | None:
    """Read the size from any of the three kinds of WebP: extended, lossless and lossy."""
    kind = content[12:16]
    if kind == b"VP8X":
        return int.from_bytes(content[24:27], "little") + 1, int.from_bytes(content[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(content[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        mask = 0x3FFF
        return int.from_bytes(content[26:28], "little") & mask, int.from_bytes(content[28:30], "little") & mask
    return None


def _jpeg(content: bytes) -> Size | None:
    """Read the size from the segment that starts the frame (0xC0 to 0xCF, except three with other meanings)."""
    place = 2
    while place + 9 <= len(content) and content[place] == 0xFF:
        marker = content[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = content[place + 5 : place + 7], content[place + 7 : place + 9]
            return int.from_bytes(width, "big"), int.from_bytes(height, "big")
        filler = marker == 0xFF or 0xD0 <= marker <= 0xD8
        place += 1 if filler else 2 + int.from_bytes(content[place + 2 : place + 4], "big")
    return None


_READERS: Mapping[bytes, Callable[[bytes], Size | None]] = {
    b"\x89PNG\r\n\x1a\n": lambda content: (
        int.from_bytes(content[16:20], "big"),
        int.from_bytes(content[20:24], "big"),
    ),
    b"\xff\xd8": _jpeg,
    b"GIF8": lambda content: (int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little")),
    b"RIFF": _webp,
}
