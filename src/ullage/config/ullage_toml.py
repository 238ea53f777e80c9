"""What does an `ullage.toml` say?

Strict: whatever cannot be meant is an error with its file, line, key and the nearest known key, and all errors of a
file are told together. Variables in servers are another matter: one that is not set concerns only that server.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ullage.gateway import NAMES, Rules, Server, ServerResults
from ullage.sql import DatabaseSettings

from .entry import Entry, launch_fault, server_of
from .issue import Issue, nearest
from .key import Key
from .keys import CLIENT, GATEWAY, HANDLING, OWN, RESULTS, SERVER, STORE_KEYS, TABLES, TOKEN, TOP
from .kinds import CHOICES, described
from .layer import Layer
from .page import Page, dotted
from .settings import ClientProfile, Token
from .source_keys import SOURCE
from .sources import database_of
from .variables import expand
from .withheld import Withheld

__all__ = ["read_ullage_toml"]

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_RULES = ("allow", "ask", "deny", "read_only", "writing", "pinned", "hidden")
_HEADINGS = tuple(dict.fromkeys(heading.split(".")[0] for heading in TABLES if heading))
_BESIDE_URL = ("arguments", "environment", "directory")
"""Keys of a server that is started, which mean nothing for one that is reached by its address."""

_Table = Mapping[str, object]
_Path = tuple[str, ...]


@dataclass(slots=True)
class _Findings:
    """What is met on the way through one file."""

    page: Page
    issues: list[Issue] = field(default_factory=list[Issue])
    rules: dict[str, Rules] = field(default_factory=dict[str, Rules])
    """By server, those left out among them."""
    on: set[str] = field(default_factory=set[str])
    """Servers of which it is written that they are not disabled."""
    handling: dict[str, ServerResults] = field(default_factory=dict[str, ServerResults])
    """By server, what is said of its results."""

    def error(self, message: str, path: _Path, suggestion: str = "", options: tuple[str, ...] = ()) -> None:
        server = path[1] if len(path) > 1 and path[0] == "servers" else None
        issue = self.page.issue("error", message, path, server=server, suggestion=suggestion)
        self.issues.append(replace(issue, options=options))


def read_ullage_toml(page: Page) -> Layer:
    findings = _Findings(page)
    try:
        document = cast("_Table", tomllib.loads(page.text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        hint = "name it under `include` in an ullage.toml" if page.file.endswith(".json") else ""
        findings.error(f"is not TOML: {error or 'nested too deep'}", (), hint)
        return Layer(source=page.file, issues=tuple(findings.issues))
    return _layer(document, findings)


def _layer(document: _Table, findings: _Findings) -> Layer:
    top = {key: value for key, value in document.items() if key not in _HEADINGS}
    known = (*_HEADINGS, *(key.name for key in TOP))
    plain = _keys(top, (), TOP, findings, known=known)
    values = {
        **_settings(document, "gateway", GATEWAY, findings),
        **_settings(document, "own", OWN, findings),
        **_settings(document, "results", RESULTS, findings),
        **_store(document, findings),
    }
    servers = dict(_servers(document, findings))
    databases = dict(_databases(document, findings))
    clients = list(_named(document, ("clients",), findings))
    return Layer(
        source=findings.page.file,
        values=values,
        servers=servers,
        handling=findings.handling,
        databases=databases,
        clients={path[-1]: ClientProfile(**_keys(table, path, CLIENT, findings)) for path, table in clients},
        tokens=dict(_tokens(document, findings)),
        include=plain.get("include", ()),
        issues=(*findings.issues, *_unhidden(values, findings.page)),
        withheld=Withheld(rules=findings.rules, on=frozenset(findings.on)),
    )


def _table(document: _Table, path: _Path, findings: _Findings) -> _Table:
    if path[-1] in document and not isinstance(document[path[-1]], dict):
        findings.error(f"`{dotted(path)}` must be a table, and is {described(document[path[-1]])}", path)
        return {}
    return cast("_Table", document.get(path[-1], {}))


def _keys(
    table: _Table, path: _Path, keys: Sequence[Key], findings: _Findings, known: Sequence[str] = ()
) -> dict[str, Any]:
    """What fits, under the names it has in the code; what does not fit is reported."""
    found, by_name = dict[str, Any](), {key.name: key for key in keys}
    for name, value in table.items():
        key = by_name.get(name)
        if key is None:
            _unknown(name, path, known or tuple(by_name), findings)
        elif key.target in found:
            findings.error(f"`{name}` says again what another key has said", (*path, name))
        elif (read := key.kind.read(value)) is None:
            _misfit(key, value, (*path, name), findings)
        else:
            found[key.target] = read
    return found


def _unknown(name: str, path: _Path, known: Sequence[str], findings: _Findings) -> None:
    near = nearest(name, known)
    where = f"in `[{dotted(path)}]`" if path else "before the first table"
    hint = f"did you mean {' or '.join(f'`{one}`' for one in near)}?" if near else f"known are {', '.join(known)}"
    findings.error(f"unknown key `{name}` {where}", (*path, name), hint, near or tuple(known))


def _misfit(key: Key, value: object, path: _Path, findings: _Findings) -> None:
    shown = described(value)
    hint = "put it in quotes" if shown == key.kind.nature == "a table" else ""
    is_now = "" if shown == key.kind.nature else f", and is {shown}"
    findings.error(f"`{dotted(path)}` must be {key.kind.wanted}{is_now}", path, hint, CHOICES.get(key.kind.wanted, ()))


def _settings(document: _Table, name: str, keys: Sequence[Key], findings: _Findings) -> dict[str, Any]:
    table = _table(document, (name,), findings)
    return {f"{name}.{key}": value for key, value in _keys(table, (name,), keys, findings).items()}


def _unhidden(values: Mapping[str, Any], page: Page) -> Iterator[Issue]:
    """The tools that find the others are all a model sees: they can be denied, not hidden."""
    for name in values.get("own.hidden", ()):
        if name in NAMES:
            said = f"`{name}` cannot be hidden, it stays listed"
            yield page.issue("problem", said, ("own", "hidden"), suggestion="write it under `deny` to be without it")


def _store(document: _Table, findings: _Findings) -> dict[str, Any]:
    """The database's address, its password perhaps from a variable; without it there is nothing to go on with."""
    values = _settings(document, "store", STORE_KEYS, findings)
    if "store.url" in values:
        replaced = expand(cast("str", values["store.url"]), findings.page.environment)
        for name in (*replaced.unset, *replaced.foreign):
            findings.error(f"`store.url` needs `{name}`, which is not set in the environment", ("store", "url"))
        values["store.url"] = replaced.text
    return values


def _named(document: _Table, path: _Path, findings: _Findings) -> Iterator[tuple[_Path, _Table]]:
    """The tables whose names the user chose."""
    for name in (table := _table(document, path, findings)):
        place = (*path, name)
        if not isinstance(table[name], dict):
            findings.error(f"`{dotted(place)}` must be a table, and is {described(table[name])}", place)
        elif _NAME.fullmatch(name):
            yield place, _table(table, place, findings)
        else:
            said = (
                f"`{name}` cannot be a name in `[{dotted(path)}]`" if name else f"a name in `[{dotted(path)}]` is empty"
            )
            findings.error(said, place, "use letters, digits, `_`, `.` and `-`")


def _servers(document: _Table, findings: _Findings) -> Iterator[tuple[str, Server | None]]:
    for path, table in _named(document, ("servers",), findings):
        before = len(findings.issues)
        values = _keys(table, path, SERVER, findings)
        # A key that is there but does not fit is there all the same.
        present = {key.target: values.get(key.target) for key in SERVER if key.name in table}
        _fit_together(present, path, findings)
        if len(findings.issues) == before:
            yield from _started(values, path, findings)


def _fit_together(present: dict[str, Any], path: _Path, findings: _Findings) -> None:
    fault = launch_fault(present)
    if fault:
        hint = "`command` is for a program to be started, `url` for one that runs"
        findings.error(f"server `{path[-1]}` {fault}", path, hint)
        return
    beside, idle = ("command", ("headers",)) if "command" in present else ("url", _BESIDE_URL)
    for key in SERVER:
        if key.target in idle and key.target in present:
            findings.error(f"`{key.name}` means nothing beside `{beside}`", (*path, key.name))


def _started(values: dict[str, Any], path: _Path, findings: _Findings) -> Iterator[tuple[str, Server | None]]:
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


def _databases(document: _Table, findings: _Findings) -> Iterator[tuple[str, DatabaseSettings | None]]:
    marked = list[str]()
    for path, table in _named(document, ("sources",), findings):
        before = len(findings.issues)
        values = _keys(table, path, SOURCE, findings)
        if "database" not in table:
            findings.error(f"source `{path[-1]}` has no `database`", path, "write its URL or the path of its file")
        marked += [path[-1]] if values.get("default") else []
        if len(marked) > 1:
            findings.error(f"both `{marked[0]}` and `{path[-1]}` are marked `default`", (*path, "default"))
        if len(findings.issues) == before:
            database, issues = database_of(findings.page, path, values)
            findings.issues.extend(issues)
            yield path[-1], database


def _tokens(document: _Table, findings: _Findings) -> Iterator[tuple[str, Token]]:
    http = _table(document, ("http",), findings)
    for name in http:
        if name != "tokens":
            _unknown(name, ("http",), ("tokens",), findings)
    for path, table in _named(http, ("http", "tokens"), findings):
        before = len(findings.issues)
        values = _keys(table, path, TOKEN, findings)
        if len(values) != 1 and len(findings.issues) == before:
            findings.error(f"token `{path[-1]}` must have `env` or `file`, and one of them only", path)
        if "file" in values:
            values["file"] = findings.page.absolute(values["file"])
        yield path[-1], Token(name=path[-1], **values)
