"""What can be made of a JSON value that may be of any kind?

Bodies come from anywhere, and a reader must not fail on a number where a text should be.
"""

from ullage.tool import Json

__all__ = ["items_of", "text_of", "text_or_none"]


def items_of(value: Json) -> list[Json]:
    """A list as it is, nothing as no item, anything else as the only one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Json) -> str:
    return value if isinstance(value, str) else ""


def text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None
