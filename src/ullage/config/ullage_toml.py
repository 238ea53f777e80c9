"""Parses `ullage.toml`.

Parsing is strict: anything invalid is an error with its file, line, key and the nearest known key, and all errors of a
file are reported together. A variable that is not set in the entry of a server affects only that server.

The tables `[delegate]`, `[providers.NAME]` and `[retrieve.NAME]` are parsed here too. The tables of a policy are only
located here; `entries` reads them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ullage.options import FIND_NAMES, DatabaseSettings, Rules, Server, ServerResults

from .config_file import FILE_NAME, Issue, Page, load_toml
from .entries import Entry, Findings, Path, Table, database_of, launch_fault, of_tables, read_provider, server_of
from .layers import Delegation, Layer
from .permissions import Withheld
from .setting_definitions import (
    CEILING,
    CLIENT,
    DELEGATE,
    GATEWAY,
    GROUP,
    HANDLING,
    OWN,
    RESULTS,
    RETRIEVE,
    SCOPES,
    SEARCH,
    SERVER,
    SOURCE,
    SPENDING,
    STORE_KEYS,
    TABLES,
    TELEMETRY,
    TOKEN,
    TOP,
    Key,
)
from .settings import Budget, ClientProfile, Folders, Scope, Token

__all__ = ["read_delegation", "read_retrieves", "read_ullage_toml", "server_fault"]


def read_delegation(document: Table, findings: Findings) -> Delegation:
    table = findings.table(document, ("delegate",))
    values = findings.keys(table, ("delegate",), DELEGATE)
    budgets = findings.table(table, ("delegate", "budgets"))
    said = findings.keys(budgets, ("delegate", "budgets"), SPENDING)
    ceilings = dict[Scope, Budget]()
    for scope in SCOPES:
        if scope in said:
            path = ("delegate", "budgets", scope)
            ceilings[scope] = Budget(**findings.keys(findings.table(budgets, path), path, CEILING))
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
        budgets=ceilings,
        values={f"delegate.{name}": value for name, value in kept.items() if value is not None},
        providers={path[-1]: read_provider(findings, path, one) for path, one in named},
    )


def read_retrieves(document: Table, findings: Findings) -> Iterator[tuple[str, Folders]]:
    for path, table in findings.named(document, ("retrieve",)):
        before = len(findings.issues)
        values = findings.keys(table, path, RETRIEVE)
        if not (table.get("folders") or table.get("files")) and len(findings.issues) == before:
            findings.error(f"`{'.'.join(path)}` has neither `folders` nor `files`", path, "name what is to be searched")
        if len(findings.issues) == before:
            placed: dict[str, Any] = {
                name: tuple(findings.page.absolute(entry) for entry in values[name])
                for name in ("folders", "files")
                if name in values
            }
            folders = Folders(
                name=path[-1], came_from=f"{findings.page.file} [{'.'.join(path)}]", **{**values, **placed}
            )
            yield path[-1], folders


_RULES = ("allow", "ask", "deny", "read_only", "writing", "pinned", "hidden", "only")
_HEADINGS = tuple(dict.fromkeys(heading.split(".")[0] for heading in TABLES if heading))
_BESIDE_URL = ("arguments", "environment", "inherit_env", "directory")
"""Keys of a server that is started; they have no meaning for a server reached by its address."""


@dataclass(slots=True)
class _Findings(Findings):
    """Findings of a file, with those about servers."""

    rules: dict[str, Rules] = field(default_factory=dict[str, Rules])
    """Servers by name, including those left out."""
    on: set[str] = field(default_factory=set[str])
    """Servers whose entry says explicitly that they are not disabled."""
    handling: dict[str, ServerResults] = field(default_factory=dict[str, ServerResults])
    """Settings of results, by server."""
    is_bound_to_folder: bool = False
    """Whether some server is limited to certain folders."""


def read_ullage_toml(page: Page) -> Layer:
    """Return the layer of an `ullage.toml`, with an issue for every error in it."""
    findings = _Findings(page)
    try:
        document = cast("Table", load_toml(page.text))
    except (ValueError, RecursionError) as error:
        hint = "name it under `include` in an ullage.toml" if page.file.endswith(".json") else ""
        findings.error(f"is not TOML: {'nested too deep' if isinstance(error, RecursionError) else error}", (), hint)
        return Layer(source=page.file, issues=tuple(findings.issues))
    return _layer(document, findings)


def _layer(document: Table, findings: _Findings) -> Layer:
    top = {key: value for key, value in document.items() if key not in _HEADINGS}
    known = (*_HEADINGS, *(key.name for key in TOP))
    plain = findings.keys(top, (), TOP, known=known)
    values = {
        **_settings(document, "gateway", GATEWAY, findings),
        **_settings(document, "own", OWN, findings),
        **_settings(document, "search", SEARCH, findings),
        **_settings(document, "results", RESULTS, findings),
        **_store(document, findings),
        **_telemetry(document, findings),
    }
    servers = dict(_servers(document, findings))
    databases = dict(_databases(document, findings))
    delegation = read_delegation(document, findings)
    retrieves = dict(read_retrieves(document, findings))
    clients = list(findings.named(document, ("clients",)))
    groups = list(findings.named(document, ("groups",)))
    # The tools that find the others are all that a model sees, so they can be denied but not hidden.
    still_listed = list[Issue]()
    for name in values.get("own.hidden", ()):
        if name in FIND_NAMES:
            said = f"`{name}` cannot be hidden, it stays listed"
            still_listed.append(
                findings.page.issue(
                    "problem", said, ("own", "hidden"), suggestion="write it under `deny` to be without it"
                )
            )
    return Layer(
        source=findings.page.file,
        values={**values, **delegation.values},
        servers=servers,
        handling=findings.handling,
        databases=databases,
        delegation=delegation,
        retrieves=retrieves,
        clients={path[-1]: ClientProfile(**findings.keys(table, path, CLIENT)) for path, table in clients},
        groups={path[-1]: findings.keys(table, path, GROUP).get("servers", ()) for path, table in groups},
        tokens=dict(_tokens(document, findings)),
        include=plain.get("include", ()),
        issues=(*findings.issues, *still_listed),
        withheld=Withheld(rules=findings.rules, on=frozenset(findings.on)),
        is_bound_to_folder=findings.is_bound_to_folder,
    )


def _settings(document: Table, name: str, keys: Sequence[Key], findings: _Findings) -> dict[str, Any]:
    table = findings.table(document, (name,))
    return {f"{name}.{key}": value for key, value in findings.keys(table, (name,), keys).items()}


def _store(document: Table, findings: _Findings) -> dict[str, Any]:
    """Read the store's URL, whose password may come from a variable. A variable that is not set is an error."""
    values = _settings(document, "store", STORE_KEYS, findings)
    if "store.url" in values:
        replaced = findings.page.expand(cast("str", values["store.url"]))
        for name in (*replaced.unset, *replaced.foreign):
            findings.error(f"`store.url` needs `{name}`, which is not set in the environment", ("store", "url"))
        values["store.url"] = replaced.text
    return values


def _telemetry(document: Table, findings: _Findings) -> dict[str, Any]:
    """Read where telemetry is sent. Its address and headers may contain keys from variables; one that is not set is a
    problem, and nothing is sent."""
    values = _settings(document, "telemetry", TELEMETRY, findings)
    texts = [*values.get("telemetry.headers", {}).values(), *filter(None, [values.get("telemetry.endpoint")])]
    replaced = {text: findings.page.expand(text) for text in texts}
    missing = [name for one in replaced.values() for name in (*one.unset, *one.foreign)]
    if missing:
        said = f"nothing is exported: `[telemetry]` needs `{missing[0]}`, which is not set in the environment"
        findings.issues.append(findings.page.issue("problem", said, ("telemetry",)))
        return {"telemetry.export": False}
    if "telemetry.endpoint" in values:
        values["telemetry.endpoint"] = replaced[values["telemetry.endpoint"]].text
    if "telemetry.headers" in values:
        headers = values["telemetry.headers"].items()
        values["telemetry.headers"] = {name: replaced[text].text for name, text in headers}
    return values


def _servers(document: Table, findings: _Findings) -> Iterator[tuple[str, Server | None]]:
    for path, table in findings.named(document, ("servers",)):
        before = len(findings.issues)
        values = findings.keys(table, path, SERVER)
        # A key with an invalid value still counts as present.
        present = {key.target: values.get(key.target) for key in SERVER if key.name in table}
        _fit_together(present, path, findings)
        folders = cast("tuple[str, ...] | None", values.get("folders"))
        if len(findings.issues) == before and _is_wanted_here(folders, findings):
            rules = Rules(**{name: values.pop(name) for name in _RULES if name in values})
            said = {key.target: values.pop(key.target) for key in HANDLING if key.target in values}
            if said:
                findings.handling[path[-1]] = ServerResults(**said)
            findings.rules[path[-1]] = rules
            if values.get("disabled") is False:
                findings.on.add(path[-1])
            entry = Entry(name=path[-1], path=path, values={**values, "rules": rules})
            server, issues = server_of(findings.page, entry)
            findings.issues.extend(issues)
            if server is not None or any(issue.severity == "problem" for issue in issues):
                yield path[-1], server


def server_fault(name: str, table: Mapping[str, object]) -> str | None:
    """Return why a table of a server would be invalid in an `ullage.toml`; None if it is valid."""
    page = Page(file=FILE_NAME, text="", environment={}, absolute=lambda path: path, expands=False)
    findings = _Findings(page)
    list(_servers({"servers": {name: table}}, findings))
    return next((issue.message for issue in findings.issues if issue.severity == "error"), None)


def _is_wanted_here(folders: tuple[str, ...] | None, findings: _Findings) -> bool:
    """Return whether the working folder is in one of these folders. A project's file applies to its own folder and
    cannot name others."""
    if folders is None:
        return True
    findings.is_bound_to_folder = True
    return not {findings.page.absolute(folder) for folder in folders}.isdisjoint(findings.page.projects)


def _fit_together(present: dict[str, Any], path: Path, findings: _Findings) -> None:
    fault = launch_fault(present)
    if fault:
        hint = "`command` is for a program to be started, `url` for one that runs"
        findings.error(f"server `{path[-1]}` {fault}", path, hint)
        return
    beside, idle = ("command", ("headers",)) if "command" in present else ("url", _BESIDE_URL)
    for key in SERVER:
        if key.target in idle and key.target in present:
            findings.error(f"`{key.name}` means nothing beside `{beside}`", (*path, key.name))


def _databases(document: Table, findings: _Findings) -> Iterator[tuple[str, DatabaseSettings | None]]:
    marked = list[str]()
    for path, table in findings.named(document, ("sources",)):
        before = len(findings.issues)
        values = findings.keys(table, path, SOURCE)
        if "database" not in table:
            findings.error(f"source `{path[-1]}` has no `database`", path, "write its URL or the path of its file")
        marked += [path[-1]] if values.get("default") else []
        if len(marked) > 1:
            findings.error(f"both `{marked[0]}` and `{path[-1]}` are marked `default`", (*path, "default"))
        if len(findings.issues) == before:
            database, issues = database_of(findings.page, path, values)
            findings.issues.extend(issues)
            yield path[-1], database


def _tokens(document: Table, findings: _Findings) -> Iterator[tuple[str, Token]]:
    http = findings.table(document, ("http",))
    for name in http:
        if name != "tokens":
            findings.unknown(name, ("http",), ("tokens",))
    for path, table in findings.named(http, ("http", "tokens")):
        before = len(findings.issues)
        values = findings.keys(table, path, TOKEN)
        if len(values) != 1 and len(findings.issues) == before:
            findings.error(f"token `{path[-1]}` must have `env` or `file`, and one of them only", path)
        if "file" in values:
            values["file"] = findings.page.absolute(values["file"])
        yield path[-1], Token(name=path[-1], **values)
