"""What text do these bytes stand for?

UTF-8, with a mark for what is not; UTF-16 and UTF-32 where they say so at their beginning. Bytes that are no text at
all have no lines. Reads no files.
"""

import codecs

__all__ = ["HEAD", "decode_text", "is_binary", "lines_of"]

HEAD = 8_192
"""Bytes at the beginning of a file that show whether it is text."""
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The longer marks first: one begins like another."""
_UNREADABLE = "\ufffd"
_TOLERATED = 0.3
"""Of a head's characters, that may be no UTF-8 before it is taken for no text."""


def is_binary(head: bytes) -> bool:
    """By the first `HEAD` bytes of a file."""
    if _wide(head) is not None:
        return False
    text = head.decode("utf-8", "replace")
    return b"\0" in head or text.count(_UNREADABLE) > _TOLERATED * len(text)


def decode_text(content: bytes) -> str | None:
    """The whole text, with its line breaks and a mark at its beginning as they are, so that a patch of it applies; None
    where some of it stands for no character."""
    try:
        return content.decode(_wide(content) or "utf-8")
    except UnicodeDecodeError:
        return None


def lines_of(content: bytes) -> list[str]:
    """The lines of a text as editors count them, without their breaks; never raises."""
    text = content.decode(_wide(content) or "utf-8-sig", "replace")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _wide(content: bytes) -> str | None:
    return next((name for mark, name in _WIDE if content.startswith(mark)), None)
