"""Which elements has an array that PostgreSQL wrote down?

`{1,NULL,"a,b",{…}}` becomes a list of lists. An array that does not begin at one stays text: a list could not say so.
"""

import re
from collections.abc import Callable

from ullage.tool import Json

__all__ = ["array"]

_TOKEN = re.compile(r'[{},]|"((?:[^"\\]|\\.)*)"|[^{},"]+', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def array(text: str, element: Callable[[str], Json]) -> Json:
    if not text.startswith("{"):
        return text
    open_lists: list[list[Json]] = [[]]
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{":
                inner: list[Json] = []
                open_lists[-1].append(inner)
                open_lists.append(inner)
            case "}":
                open_lists.pop()
            case ",":
                pass
            case word:
                open_lists[-1].append(_value(word, token[1], element))
    return open_lists[0][0]


def _value(word: str, quoted: str | None, element: Callable[[str], Json]) -> Json:
    if quoted is not None:
        return element(_ESCAPED.sub(r"\1", quoted))
    return None if word == "NULL" else element(word)
