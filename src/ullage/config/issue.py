"""What is to be said about the settings, how bad is it, and where does it stand?

An issue names files, tables, keys, servers and variables, never a value: values may be secrets. Whether anything was
refused because of it is for whoever loads the settings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from ullage.errors import BadConfiguration

__all__ = ["Issue", "Severity", "nearest", "refusal"]

Severity = Literal["error", "problem", "note"]
"""`error`: the settings cannot be used. `problem`: one server or file is left out. `note`: worth knowing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    severity: Severity
    message: str
    file: str | None = None
    """None where a flag or a variable is meant."""
    line: int | None = field(default=None, compare=False)
    """Where it is easily found. An issue that only moved is the same issue."""
    key: str | None = None
    """With the tables it stands in: `servers.github.command`."""
    server: str | None = None
    """The one it concerns, where it concerns one."""
    suggestion: str = ""
    options: tuple[str, ...] = ()
    """What would have been accepted, nearest first."""

    @property
    def place(self) -> str:
        """`file:line`, as far as known."""
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)

    def sentence(self) -> str:
        """All of it in one line."""
        said = f"{self.place}: {self.message}" if self.place else self.message
        return f"{said} ({self.suggestion})" if self.suggestion else said


def nearest(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names somebody may have meant, best first."""
    folded = {one.casefold().replace("-", "_"): one for one in known}
    written = name.casefold().replace("-", "_")
    found = get_close_matches(written, list(folded), n=2, cutoff=0.6)
    # Letters out of order are the likeliest slip of all.
    return tuple(folded[one] for one in sorted(found, key=lambda one: sorted(one) != sorted(written)))


def refusal(issues: Sequence[Issue]) -> BadConfiguration:
    """All of them as one error."""
    if len(issues) == 1:
        only = issues[0]
        message = f"{only.place}: {only.message}" if only.place else only.message
        return BadConfiguration(message, suggestion=only.suggestion, options=only.options)
    lines = (f"\n  {issue.sentence()}" for issue in issues)
    return BadConfiguration(
        f"the settings have {len(issues)} errors:{''.join(lines)}",
        suggestion="mend them all, then start again",
        options=tuple(dict.fromkeys(option for issue in issues for option in issue.options)),
    )
