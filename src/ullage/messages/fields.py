"""What stands under a key of someone else's JSON, if it is of the kind expected?

Whatever is not is taken as absent: providers add fields and leave them out, and no answer is lost over one.
"""

from ullage.tool import JsonObject

__all__ = ["table_at", "tables_at", "text_at", "tokens_at"]


def text_at(holder: JsonObject, key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) else None


_MOST_TOKENS = 1_000_000_000
"""Far beyond any window: a larger figure is no count, and would not fit into a database either."""


def tokens_at(holder: JsonObject, key: str) -> int | None:
    """A count of tokens; None where there is none, or what is there cannot be one. `39.0` is 39."""
    value = holder.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def table_at(holder: JsonObject, key: str) -> JsonObject:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def tables_at(holder: JsonObject, key: str) -> list[JsonObject]:
    value = holder.get(key)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
