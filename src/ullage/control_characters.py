"""Escaping of characters that would control a terminal, forge a line or reverse text.

Text of models, servers and files may contain them. Escaped are the control characters C0 and C1 and DEL, bidirectional
controls, the separators of lines and paragraphs, and halves of surrogate pairs. Line feed and tab are kept by default.
"""

import re

__all__ = ["escape_controls", "escape_json_controls"]

_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff" + _BIDIRECTIONAL
_CONTROL = re.compile(f"[{_UNSAFE}]")
_CONTROL_OR_BREAK = re.compile(f"[{_UNSAFE}\t\n]")


def escape_controls(text: str, *, keep_lines: bool = True) -> str:
    r"""Escape such characters in text, as `\x1b`.

    A line that ends in a carriage return and a line feed ends in the line feed alone.

    Args:
        text: The text to show.
        keep_lines: Whether line feeds and tabs are kept; without them the text is one line.
    """
    if text.isascii() and text.isprintable():
        return text
    if keep_lines:
        return _CONTROL.sub(_spell_out, text.replace("\r\n", "\n"))
    return _CONTROL_OR_BREAK.sub(_spell_out, text)


def _spell_out(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode("ascii")


def escape_json_controls(text: str) -> str:
    r"""Escape such characters in JSON text, as `\u009b`, which a parser reads as the original character."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
