"""What does an `ullage.toml` say of providers, budgets and folders to be searched?

The tables `[delegate]`, `[providers.NAME]` and `[retrieve.NAME]`. A policy's own tables are only found here; `policies`
has them read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

from .delegate_keys import BUDGETS, CEILING, DELEGATE, RETRIEVE, SCOPES
from .delegating import Budget, ProviderSettings, Scope
from .findings import Findings, Path, Table
from .policies import Documents, of_tables
from .providers import read_provider

if TYPE_CHECKING:
    from ullage.retrieve import RetrieveSettings

__all__ = ["Delegation", "read_delegation", "read_retrieves"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """What one file says of delegating."""

    is_mentioned: bool = False
    conf: str | None = None
    """The absolute path of the folder with a policy's two files."""
    policy: Documents | None = None
    budgets: dict[Scope, Budget] = field(default_factory=dict[Scope, Budget])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    """By dotted key."""
    providers: dict[str, ProviderSettings | None] = field(default_factory=dict[str, "ProviderSettings | None"])


def read_delegation(document: Table, findings: Findings) -> Delegation:
    table = findings.table(document, ("delegate",))
    values = findings.keys(table, ("delegate",), DELEGATE)
    budgets = findings.table(table, ("delegate", "budgets"))
    said = findings.keys(budgets, ("delegate", "budgets"), BUDGETS)
    kept = {"project_keys": values.get("project_keys"), "alerts": said.get("alerts")}
    named = findings.named(document, ("providers",))
    return Delegation(
        is_mentioned="delegate" in document or "providers" in document,
        conf=findings.page.absolute(values["conf"]) if "conf" in values else None,
        policy=of_tables(findings.page, values),
        budgets=dict(_budgets(budgets, said, findings)),
        values={f"delegate.{name}": value for name, value in kept.items() if value is not None},
        providers={path[-1]: read_provider(findings, path, one) for path, one in named},
    )


def _budgets(table: Table, said: dict[str, Any], findings: Findings) -> Iterator[tuple[Scope, Budget]]:
    for scope in SCOPES:
        if scope in said:
            path = ("delegate", "budgets", scope)
            yield cast("Scope", scope), Budget(**findings.keys(findings.table(table, path), path, CEILING))


def read_retrieves(document: Table, findings: Findings) -> "Iterator[tuple[str, RetrieveSettings]]":
    for path, table in findings.named(document, ("retrieve",)):
        before = len(findings.issues)
        values = findings.keys(table, path, RETRIEVE)
        if not (table.get("folders") or table.get("files")) and len(findings.issues) == before:
            findings.error(f"`{'.'.join(path)}` has neither `folders` nor `files`", path, "name what is to be searched")
        if len(findings.issues) == before:
            yield path[-1], _retrieve(path, values, findings)


def _retrieve(path: Path, values: dict[str, Any], findings: Findings) -> "RetrieveSettings":
    # Loading it takes a while, and most settings have no folders.
    from ullage.retrieve import RetrieveSettings

    placed = {
        name: tuple(PurePath(findings.page.absolute(entry)) for entry in values[name])
        for name in ("folders", "files")
        if name in values
    }
    return RetrieveSettings(name=path[-1], **{**values, **placed})
