"""JSON with comments and trailing commas, as many programs accept it in their settings."""

import re

__all__ = ["blank_comments"]

_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


def blank_comments(text: str) -> str:
    """Replace comments and trailing commas with spaces, so that an error of the JSON parser names the right place."""
    return _TRAILING_COMMA.sub(_blank_out, _COMMENT.sub(_blank_out, text))


def _blank_out(match: re.Match[str]) -> str:
    found = match.group()
    return found if found.startswith('"') else re.sub(r"[^\r\n]", " ", found)
