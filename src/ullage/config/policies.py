"""Where does a policy stand, and can it be read?

In `models.json` and `policies.json`, in the tables of an `ullage.toml`, or in both, where the tables come before the
files. What the policy means is `delegate`'s to say: it is loaded here only where there is a policy.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any, cast

from ullage.models import shipped

from .delegate_keys import POLICY
from .findings import Table
from .issue import Issue, Severity
from .lines import json_line, toml_line
from .page import Page

if TYPE_CHECKING:
    from ullage.delegate import Policy

__all__ = ["FILES", "Documents", "joined", "judged", "of_files", "of_tables"]

FILES = ("models.json", "policies.json")
_MODELS = ("aliases", "models")
"""Of a policy's tables, those that stand in `models.json`."""

Place = Callable[[Sequence[str]], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """A policy as it is written."""

    tables: Table
    """`aliases`, `models`, `routing`, …"""
    place: Place = field(compare=False)
    """File and line of a key."""


def of_tables(page: Page, table: Table) -> Documents | None:
    """What the table `[delegate]` has of a policy; None for nothing."""
    known = {key.name: table[key.name] for key in POLICY if key.name in table}
    if not known:
        return None
    return Documents(tables=known, place=lambda path: _at(page, toml_line(page.text, ("delegate", *path))))


def of_files(models: Page, policies: Page) -> tuple[Documents | None, tuple[Issue, ...]]:
    """The two files as one; None and the reason where they cannot be read."""
    issues, tables = list[Issue](), dict[str, object]()
    for page in (models, policies):
        try:
            said = json.loads(page.text)
        except (ValueError, RecursionError) as error:
            issues.append(page.issue("error", f"is not JSON: {error or 'nested too deep'}"))
            continue
        if isinstance(said, dict):
            tables |= cast("dict[str, object]", said)
        else:
            issues.append(page.issue("error", "must be an object"))

    def place(path: Sequence[str]) -> str | None:
        page = models if path[0] in _MODELS else policies
        return _at(page, json_line(page.text, path))

    return (None if issues else Documents(tables=tables, place=place)), tuple(issues)


def _at(page: Page, line: int | None) -> str | None:
    return None if line is None else f"{page.file}:{line}"


def joined(tables: Documents | None, files: Documents | None) -> Documents | None:
    """The tables before the files, entry by entry."""
    if tables is None or files is None:
        return tables or files
    both = {name: _over(tables.tables.get(name), files.tables.get(name)) for name in {**files.tables, **tables.tables}}

    def place(path: Sequence[str]) -> str | None:
        above = tables.tables.get(path[0])
        is_above = isinstance(above, dict) and (len(path) < 2 or path[1] in above)
        return (tables if is_above else files).place(path)

    return Documents(tables=both, place=place)


def _over(above: object, below: object) -> object:
    if isinstance(above, dict) and isinstance(below, dict):
        return {**cast("dict[str, object]", below), **cast("dict[str, object]", above)}
    return cast("object", below if above is None else above)


def judged(documents: Documents, source: str, today: date) -> "tuple[Policy, tuple[Issue, ...]]":
    """The policy, with an error for each thing that cannot be read and a note for each that cannot be meant."""
    # Loading it takes a while, and most settings have no policy.
    from ullage.delegate import lint, read_policy

    models = {name: one for name, one in documents.tables.items() if name in _MODELS}
    rest = {name: one for name, one in documents.tables.items() if name not in _MODELS}
    policy, faults = read_policy(cast("Any", models), cast("Any", rest), documents.place)
    warned = lint(policy, shipped(), today)
    places = {one.key: one.place or documents.place(one.key.split(".")) for one in (*faults, *warned)}
    errors = (_issue("error", one.key, one.message, places[one.key], source) for one in faults)
    notes = (_issue("note", one.key, one.message, places[one.key], source) for one in warned)
    return policy, (*errors, *notes)


def _issue(severity: Severity, key: str, message: str, place: str | None, source: str) -> Issue:
    file, _, line = (place or "").rpartition(":")
    issue = Issue(severity=severity, message=message, file=file or source, key=f"delegate.{key}")
    return replace(issue, line=int(line)) if line else issue
