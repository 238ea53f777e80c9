"""What does an `ullage.toml` say of providers, budgets and folders to be searched?

The tables `[delegate]`, `[providers.NAME]` and `[retrieve.NAME]`. A policy's own tables are only found here; `policies`
has them read.
"""

from collections.abc import Iterator
from typing import Any

from .delegate_keys import CEILING, DELEGATE, RETRIEVE, SCOPES, SPENDING
from .delegating import Budget, Scope
from .delegation import Delegation
from .findings import Findings, Path, Table
from .folders import Folders
from .policies import of_tables
from .providers import read_provider

__all__ = ["read_delegation", "read_retrieves"]


def read_delegation(document: Table, findings: Findings) -> Delegation:
    table = findings.table(document, ("delegate",))
    values = findings.keys(table, ("delegate",), DELEGATE)
    budgets = findings.table(table, ("delegate", "budgets"))
    said = findings.keys(budgets, ("delegate", "budgets"), SPENDING)
    roots = values.get("file_roots")
    if roots is not None:
        roots = tuple(findings.page.absolute(folder) for folder in roots)
    kept = {
        "file_roots": roots,
        "project_keys": values.get("project_keys"),
        "cut": values.get("cut"),
        "alerts": said.get("alerts"),
    }
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
            yield scope, Budget(**findings.keys(findings.table(table, path), path, CEILING))


def read_retrieves(document: Table, findings: Findings) -> Iterator[tuple[str, Folders]]:
    for path, table in findings.named(document, ("retrieve",)):
        before = len(findings.issues)
        values = findings.keys(table, path, RETRIEVE)
        if not (table.get("folders") or table.get("files")) and len(findings.issues) == before:
            findings.error(f"`{'.'.join(path)}` has neither `folders` nor `files`", path, "name what is to be searched")
        if len(findings.issues) == before:
            yield path[-1], _folders(path, values, findings)


def _folders(path: Path, values: dict[str, Any], findings: Findings) -> Folders:
    placed: dict[str, Any] = {
        name: tuple(findings.page.absolute(entry) for entry in values[name])
        for name in ("folders", "files")
        if name in values
    }
    return Folders(name=path[-1], came_from=f"{findings.page.file} [{'.'.join(path)}]", **{**values, **placed})
