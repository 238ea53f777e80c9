"""What stands under a key of someone else's JSON, if it is of the kind expected?

Whatever is not is taken as absent: providers add fields and leave them out, and no answer is lost over one.
"""

from ullage.tool import JsonObject

__all__ = ["table_at", "tables_at", "text_at", "tokens_at"]


def text_at(holder: JsonObject, key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) else None


def tokens_at(holder: JsonObject, key: str) -> int | None:
    value = holder.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def table_at(holder: JsonObject, key: str) -> JsonObject:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def tables_at(holder: JsonObject, key: str) -> list[JsonObject]:
    value = holder.get(key)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
