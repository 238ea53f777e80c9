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
    if media.kind == "audio":
        return Count.within(4 + 10 * _seconds(media.data or ""), 0.6, Method.ESTIMATED)
    tokens = 220 + len(media.data or "") * 3 // 4 // _BYTES_A_TOKEN
    return Count(tokens=tokens, method=Method.ESTIMATED, low=4, high=tokens * 12)


def _seconds(data: str) -> float:
    size = len(data) * 3 / 4
    try:
        head = a2b_base64(data[:64])
    except ValueError:
        return size / _BYTES_A_SECOND
    rate = int.from_bytes(head[28:32], "little") if head.startswith(b"RIFF") else 0
    return size / (rate or _BYTES_A_SECOND)
