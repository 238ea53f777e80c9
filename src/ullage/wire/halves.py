r"""What of a line of JSON is half a character, and what is put in its place?

JSON may hold a lone surrogate (`\ud800`), which nobody can write as UTF-8: clients send it, and servers answer it. Two
that make a character are one already when JSON is read; what is left alone becomes U+FFFD, as in every decoder.
"""

import json
import re

__all__ = ["whole"]

_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def whole(line: str) -> str:
    """The line with no half character in it; untouched where there is none, or where it is no JSON."""
    if _HALF.search(line) is None:
        return line
    try:
        written = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return line
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
