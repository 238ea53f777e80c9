"""Which JSON Schemas providers hold a model to."""

from collections.abc import Iterator

from ullage.tool import Json, JsonObject

__all__ = ["is_strict", "tables_of"]


def is_strict(schema: JsonObject) -> bool:
    """Whether providers that hold a model to a schema take it: every object closed, and every property required."""
    objects = [table for table in tables_of(dict(schema)) if "properties" in table or table.get("type") == "object"]
    return bool(objects) and all(_is_closed(table) for table in objects)


def _is_closed(table: dict[str, Json]) -> bool:
    properties, required = table.get("properties", {}), table.get("required", [])
    names = set(properties) if isinstance(properties, dict) else set[str]()
    return table.get("additionalProperties") is False and isinstance(required, list) and names == set(required)


def tables_of(value: Json) -> Iterator[dict[str, Json]]:
    """Every table in it, its own first."""
    waiting: list[Json] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
