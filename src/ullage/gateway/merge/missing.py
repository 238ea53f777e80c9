"""Which server's tools are not known, and why not, in how few words?"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..slim.wording import first_sentence

__all__ = ["Missing"]

_BRIEF = 80
"""Characters of a reason that stands beside others."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A server whose tools are not known."""

    server: str
    reason: str
    prefix: str = ""
    """Of its tools' names."""
    has_failed: bool = False
    """Whether it was asked and could not say; else it may yet."""
    command: str = ""
    """What the user runs to change that. It is never shortened."""

    @property
    def brief(self) -> str:
        """The reason in a few whole clauses, to stand beside the server's name and not to repeat it."""
        if self.command:
            return f"{self.reason}: {self.command}"
        named = rf"(^|[;:] )(?:server )?`{re.escape(self.server)}` "
        clauses = re.sub(named, r"\1", self.reason).split("; ")
        shown = next((some for some in _shorter(clauses) if len(some) <= _BRIEF), None)
        return first_sentence(clauses[0], _BRIEF) if shown is None else shown


def _shorter(clauses: Sequence[str]) -> Iterator[str]:
    """All of them, then without the last, and so on."""
    return ("; ".join(clauses[:number]) for number in range(len(clauses), 0, -1))
