"""Does this line match?

Patterns are regular expressions without look-around and back-references, matched in time that grows with the line and
never explodes: by the engine beneath pydantic, because Python's own can take for ever and cannot be interrupted. What
is no such expression is looked for as plain text.
"""

from collections.abc import Callable
from typing import Annotated

from ullage.errors import InvalidArguments

__all__ = ["Pattern", "matcher"]

Pattern = Callable[[str], bool]
_LONGEST = 1_000
"""Characters of a pattern."""


def matcher(pattern: str) -> tuple[Pattern, bool]:
    """Says of a line whether it matches, and whether the pattern was read as an expression."""
    if not pattern or len(pattern) > _LONGEST:
        raise InvalidArguments(
            f"`grep` must have 1 to {_LONGEST} characters, not {len(pattern)}", suggestion="Look for less."
        )
    search = _expression(pattern)
    return (lambda line: pattern in line, False) if search is None else (search, True)


def _expression(pattern: str) -> Pattern | None:
    # Here, because most processes never search, and those that count must not load it.
    from pydantic import Field, TypeAdapter

    try:
        test = TypeAdapter(Annotated[str, Field(pattern=pattern)]).validator.isinstance_python
    except Exception:  # noqa: BLE001 - pydantic passes on an error of its core that it does not export
        return None
    return lambda line: test(line) or (not line.isascii() and test(line.encode("utf-8", "replace").decode()))
