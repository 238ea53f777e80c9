"""What fits of a table of `ullage.toml`, and what is to be said of the rest?

Reads tables by their keys and gathers every error of a file. Which tables and keys there are is told by whoever reads.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from .issue import Issue, nearest
from .key import Key
from .kinds import CHOICES, PAIRS, described
from .page import Page, dotted

__all__ = ["Findings", "Path", "Table"]

_NAME = re.compile(r"[A-Za-z0-9_.-]+")

Table = Mapping[str, object]
Path = tuple[str, ...]


@dataclass(slots=True)
class Findings:
    """What is met on the way through one file."""

    page: Page
    issues: list[Issue] = field(default_factory=list[Issue])

    def error(self, message: str, path: Path, suggestion: str = "", options: tuple[str, ...] = ()) -> None:
        server = path[1] if len(path) > 1 and path[0] == "servers" else None
        issue = self.page.issue("error", message, path, server=server, suggestion=suggestion)
        self.issues.append(replace(issue, options=options))

    def table(self, document: Table, path: Path) -> Table:
        """The table at the end of the path, empty where there is none."""
        if path[-1] in document and not isinstance(document[path[-1]], dict):
            self.error(f"`{dotted(path)}` must be a table, and is {described(document[path[-1]])}", path)
            return {}
        return cast("Table", document.get(path[-1], {}))

    def keys(self, table: Table, path: Path, keys: Sequence[Key], known: Sequence[str] = ()) -> dict[str, Any]:
        """What fits, under the names it has in the code; what does not fit is reported."""
        found, by_name = dict[str, Any](), {key.name: key for key in keys}
        for name, value in table.items():
            key = by_name.get(name)
            if key is None:
                self.unknown(name, path, known or tuple(by_name))
            elif key.target in found:
                self.error(f"`{name}` says again what another key has said", (*path, name))
            elif (read := key.kind.read(value)) is None:
                self._misfit(key, value, (*path, name))
            else:
                found[key.target] = read
        return found

    def unknown(self, name: str, path: Path, known: Sequence[str]) -> None:
        near = nearest(name, known)
        where = f"in `[{dotted(path)}]`" if path else "before the first table"
        hint = f"did you mean {' or '.join(f'`{one}`' for one in near)}?" if near else f"known are {', '.join(known)}"
        self.error(f"unknown key `{name}` {where}", (*path, name), hint, near or tuple(known))

    def _misfit(self, key: Key, value: object, path: Path) -> None:
        shown = described(value)
        hint = "put it in quotes" if key.kind is PAIRS and shown == "a table" else ""
        is_now = "" if shown == key.kind.nature else f", and is {shown}"
        wanted = key.kind.wanted
        self.error(f"`{dotted(path)}` must be {wanted}{is_now}", path, hint, CHOICES.get(wanted, ()))

    def named(self, document: Table, path: Path) -> Iterator[tuple[Path, Table]]:
        """The tables whose names the user chose."""
        for name in (table := self.table(document, path)):
            place = (*path, name)
            if not isinstance(table[name], dict):
                self.error(f"`{dotted(place)}` must be a table, and is {described(table[name])}", place)
            elif _NAME.fullmatch(name):
                yield place, self.table(table, place)
            else:
                said = f"`{name}` cannot be a name in `[{dotted(path)}]`"
                self.error(
                    said if name else f"a name in `[{dotted(path)}]` is empty",
                    place,
                    "use letters, digits, `_`, `.` and `-`",
                )
