"""What does JSON say that was written for people: with comments, and with commas before a closing bracket?

Both are blanked out, never moved, so that a line number in an error is the line in the file. Anything else that JSON
does not allow is still refused.
"""

import json
import re

__all__ = ["blanked", "parse_relaxed"]

_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


def parse_relaxed(text: str) -> object:
    """Raises `json.JSONDecodeError` where it is not even that."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(blanked(text))


def blanked(text: str) -> str:
    """Plain JSON of the same length, line by line."""
    return _COMMA.sub(_blank, _COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    return found if found.startswith('"') else re.sub(r"[^\r\n]", " ", found)
