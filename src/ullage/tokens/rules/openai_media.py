"""What do images, sounds and documents weigh to OpenAI?

Images by the published rules (see `image`). Sound is ten tokens a second (measured: 2 to 100 tokens on nine recorded
requests). A document is weighed by its bytes, which tells little: chats add a picture of every page, and the text of a
page is not known from outside.
"""

from binascii import a2b_base64

from ullage.messages import Media

from ..count import Count, Method
from .image import image_size, openai_image

__all__ = ["weigh_media"]

_BYTES_A_SECOND = 12_000
"""Of an MP3 of speech, where nothing says better."""
_BYTES_A_TOKEN = 60
"""Of a PDF: measured on few, between 20 and 400."""


def weigh_media(media: Media, model: str) -> Count:
    if media.kind == "image":
        return openai_image(model, image_size(media.data) if media.data else None, media.detail)
    data = _decoded(media.data)
    if media.kind == "audio":
        if not data:
            return Count(tokens=60, method=Method.ESTIMATED, low=3, high=1200)
        return Count.within(4 + 10 * _seconds(data), 0.6, Method.ESTIMATED)
    if not data:
        return Count(tokens=220, method=Method.ESTIMATED, low=4, high=20_000)
    tokens = 220 + len(data) // _BYTES_A_TOKEN
    return Count(tokens=tokens, method=Method.ESTIMATED, low=4, high=tokens * 12)


def _decoded(data: str | None) -> bytes:
    """The bytes of a medium; none where the request has only its address, or something else in their place."""
    try:
        return a2b_base64(data, strict_mode=True) if data else b""
    except ValueError:
        return b""


def _seconds(data: bytes) -> float:
    rate = int.from_bytes(data[28:32], "little") if data.startswith(b"RIFF") else 0
    return len(data) / (rate or _BYTES_A_SECOND)
