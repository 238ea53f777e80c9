"""Where in a document does a table stand?

Keys parted by dots, places in brackets: `data.pages[0].items`. A key that is not a plain word is a JSON string.
"""

import json
import re

from ullage.errors import BadInput

from .writing import quoted

__all__ = ["Path", "read_path", "write_path"]

Path = tuple[str | int, ...]

_PLAIN = re.compile(r"[^\W\d][\w$-]*\Z")
_STEP = re.compile(r"\[([0-9]+)\]|(\.?)(?:([^\W\d][\w$-]*)|(?=\"))")
_scan_value = json.JSONDecoder().raw_decode


def write_path(path: Path) -> str:
    text = "".join(_step(step) for step in path)
    return text.removeprefix(".")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step if _PLAIN.match(step) else quoted(step)}"


def read_path(text: str) -> Path:
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match[2] is not None and bool(match[2]) != bool(steps)):
            raise BadInput(f"`{text[:80]}` is no path", suggestion="write it as in `data.items`")
        at = match.end()
        step: str | int = int(match[1]) if match[1] else match[3]
        if match[3] is None and match[1] is None:
            step, at = _scan_value(text, at)
        steps.append(step)
    return tuple(steps)
