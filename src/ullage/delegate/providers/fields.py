"""What stands under a key of someone else's JSON, if it is of the kind expected?

Whatever is not is taken as absent: providers add fields and leave them out, and no answer is lost over one.
"""

import json
from typing import cast

from ullage.tool import Json, JsonObject

from ..failure import ProviderFailed

__all__ = ["parsed", "table", "tables", "text", "tokens"]


def parsed(data: str) -> JsonObject:
    """An event's data; raises `ProviderFailed` where it is no JSON object."""
    try:
        value = cast("Json", json.loads(data))
    except (ValueError, RecursionError) as error:
        raise ProviderFailed("an event of the stream is not JSON", kind="malformed") from error
    if not isinstance(value, dict):
        raise ProviderFailed("an event of the stream is not an object", kind="malformed")
    return value


def text(holder: JsonObject, key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) else None


def tokens(holder: JsonObject, key: str) -> int | None:
    value = holder.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def table(holder: JsonObject, key: str) -> JsonObject:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def tables(holder: JsonObject, key: str) -> list[JsonObject]:
    value = holder.get(key)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
