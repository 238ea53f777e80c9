"""What can be made of a JSON value that may be of any kind?

Bodies come from anywhere, and a reader must not fail on a number where a text should be.
"""

from collections.abc import Iterator, Mapping

from ullage.tool import Json

from .parts import Part, Unknown

__all__ = ["extras", "items_of", "text_of", "text_or_none"]


def items_of(value: Json) -> list[Json]:
    """A list as it is, nothing as no item, anything else as the only one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Json) -> str:
    return value if isinstance(value, str) else ""


def text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def extras(item: Mapping[str, Json], known: frozenset[str]) -> Iterator[Part]:
    """What stands beside the known keys and is not empty, so that nothing is lost."""
    for key, value in item.items():
        if key not in known and value not in (None, "", [], {}):
            yield Unknown({key: value})
