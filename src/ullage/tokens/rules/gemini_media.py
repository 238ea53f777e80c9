"""What do a sound, a film, a document and a picture weigh to Gemini?

Pictures follow `image`. Of the others only the size in bytes can be seen here, not the seconds or pages that Google
counts, so those are estimates: of 32 tokens a second of sound and 258 a page before Gemini 3, 25 and 530 since (both as
reported on recorded requests). A document that is text is simply counted as text.
"""

from base64 import b64decode

from ullage.messages import Media

from ..count import Count, Method
from ..weight import CountText
from .image import gemini_image, image_size

__all__ = ["decoded", "weigh_media"]

_BYTES_A_SECOND = 16_000
"""Of sound, in the middle of what was recorded (6,000 to 32,000)."""


def decoded(text: str) -> bytes:
    """The bytes of base64 in either alphabet, padded or not; none where it is no base64."""
    plain = text.replace("-", "+").replace("_", "/")
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        return b""


def weigh_media(media: Media, version: tuple[int, int], resolution: str | None, count: CountText) -> Count:
    """One part that is no text, for the Gemini of that version, at the resolution asked for."""
    if media.kind == "image":
        size = image_size(media.data) if media.data else None
        family = "gemini-3" if version >= (3,) else f"gemini-{version[0]}.{version[1]}"
        return gemini_image(family, size, media.detail or resolution)
    if media.data and (media.media_type or "").startswith("text/"):
        return count(decoded(media.data).decode("utf-8", errors="replace"))
    return _by_length(media, decoded(media.data or ""), new=version >= (3,))


def _by_length(media: Media, data: bytes, *, new: bool) -> Count:
    """By the bytes where the request has them; within what was recorded where it has an address."""
    if media.kind == "video" or not data:
        low, tokens, high = _UNSEEN[media.kind][new]
        return Count(tokens=tokens, method=Method.ESTIMATED, low=low, high=high)
    if media.kind == "audio":
        return Count.within(max(1.0, len(data) / _BYTES_A_SECOND) * (25 if new else 32), 0.8, Method.ESTIMATED)
    pages = max(1, data.count(b"/Type /Page") - data.count(b"/Type /Pages"))
    return Count.within(pages * (530 if new else 258), 0.9, Method.ESTIMATED)


_UNSEEN = {
    "audio": ((15, 90, 1_200), (10, 60, 900)),
    "video": ((200, 1_300, 20_000), (50, 264, 2_000)),
    "document": ((200, 258, 20_000), (400, 526, 6_000)),
}
"""Least, usual and most tokens of a medium whose length is not in the request, before Gemini 3 and since."""
