"""What does a reader of a file need to know besides its text?

The text, the variables that may stand in it, and how its paths and lines are to be understood; so that reading is a
function of this value. Nothing is opened here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .issue import Issue, Severity
from .lines import json_line, toml_line
from .variables import Expanded, expand

__all__ = ["Page", "dotted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One file as it was read."""

    file: str
    """As shown to people."""
    text: str = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    absolute: Callable[[str], str]
    """A path as the file has it, with `~` or from the file's folder, to the path that is meant."""
    projects: tuple[str, ...] = ()
    """The folders in which work is going on, innermost first: some files have entries for each."""
    expands: bool = True
    """Whether `${VAR}` is replaced. It stays as it is written in a project file that is not approved."""

    def expand(self, text: str) -> Expanded:
        return expand(text, self.environment) if self.expands else Expanded(text)

    def issue(
        self,
        severity: Severity,
        message: str,
        path: Sequence[str] = (),
        *,
        server: str | None = None,
        suggestion: str = "",
    ) -> Issue:
        """About the key at that path of this file."""
        find = toml_line if self.file.endswith(".toml") else json_line
        return Issue(
            severity=severity,
            message=message,
            file=self.file,
            line=find(self.text, path) if path else None,
            key=dotted(path) if path else None,
            server=server,
            suggestion=suggestion,
        )


def dotted(path: Sequence[str]) -> str:
    return ".".join(path)
