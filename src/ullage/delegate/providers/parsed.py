"""What is in one event of a stream?"""

import json
from typing import cast

from ullage.tool import Json, JsonObject

from ..failure import ProviderFailed

__all__ = ["parsed"]


def parsed(data: str) -> JsonObject:
    """An event's data; raises `ProviderFailed` where it is no JSON object."""
    try:
        value = _read(data)
    except (ValueError, RecursionError) as error:
        raise ProviderFailed("an event of the stream is not JSON", kind="malformed") from error
    if not isinstance(value, dict):
        raise ProviderFailed("an event of the stream is not an object", kind="malformed")
    return value


def _read(data: str) -> Json:
    try:
        return cast("Json", json.loads(data))
    except ValueError:
        # Python refuses whole numbers of more than 4,300 digits, which are JSON all the same: no answer is lost over
        # one. As floats they are infinite, which no reader takes for a count.
        return cast("Json", json.loads(data, parse_int=float))
