"""Checks and completes the entries of servers, databases, folders, providers and policies.

`Findings` reads tables by their keys and gathers every error of a file; its callers define the tables and keys.

- Servers: variables are replaced, the transport is determined, and anything that cannot work is reported for that
  server alone. Each file format defines the keys of an entry and their names.
- Databases and folders: variables in the address are replaced and paths are made absolute. An entry with an unset
  variable is left out without affecting others. Nothing is opened or connected to.
- Providers: variables in the address and headers are replaced. An API key written into the file is refused: keys belong
  in variables. No provider is contacted.
- Policies: written in `models.json` and `policies.json`, in the tables of an `ullage.toml`, or in both; the tables take
  precedence. The package `delegate` interprets a policy; it is imported only if there is one.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from ullage.models import shipped
from ullage.options import SAMPLE, DatabaseSettings, Limits, Server

from .config_file import Expanded, Issue, Page, Severity, join_path, json_line, nearest, toml_line, variables_in
from .setting_definitions import CHOICES, LIMITS, PAIRS, POLICY, PROVIDER, TIMING, Key, describe_value
from .settings import BUILT_IN, ProviderSettings, Timing, WireKind

if TYPE_CHECKING:
    from ullage.delegate import Policy

__all__ = [
    "FILES",
    "Documents",
    "Entry",
    "Findings",
    "Path",
    "Table",
    "database_of",
    "describe_unresolved",
    "is_ullage",
    "joined",
    "judged",
    "launch_fault",
    "of_files",
    "of_tables",
    "read_provider",
    "sample_shop",
    "server_of",
]

_EXPANDED = ("command", "arguments", "environment", "directory", "url", "headers")
_LAUNCHERS = re.compile(
    r"(?:uvx?|pipx|python[\d.]*|py|poetry|pdm|hatch|rye|pixi|pipenv|conda|mamba|micromamba|mise|asdf|direnv|devbox|nix"
    r"|env|sudo|doas|nice|ionice|chrt|taskset|timeout|gtimeout|stdbuf|unbuffer|nohup|setsid|time|caffeinate|firejail|dotenv"
    r"|cmd|powershell|pwsh|wsl|sh|bash|dash|zsh|ksh|fish|busybox)(?:\.exe)?",
    re.IGNORECASE,
)
"""Programs that start the program named in their arguments."""
_ULLAGE = re.compile(r"ullage(?:\.exe)?(?:\[[\w,-]*\])?(?:[@=<>~!].*)?", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A server as a file has it, under the names of `Server`'s fields. Its variables are not replaced yet."""

    name: str
    path: tuple[str, ...]
    """The path of the entry in the file."""
    values: Mapping[str, Any]


def server_of(page: Page, entry: Entry) -> tuple[Server | None, tuple[Issue, ...]]:
    """Return the server, or None and the reason why it is left out."""
    if is_ullage(entry.values):
        said = f"server `{entry.name}` is Ullage itself and is skipped"
        return None, (page.issue("note", said, entry.path, server=entry.name),)
    found = list[Expanded]()
    values = {**entry.values, **_expand_variables(page, entry.values, found)}
    if not values.get("disabled"):
        unresolved = describe_unresolved(page, f"server `{entry.name}`", entry.path, found)
        faults = (*(replace(issue, server=entry.name) for issue in unresolved), *_unusable(page, entry, values))
        if faults:
            return None, faults
    if not values.get("transport"):
        url: str | None = values.get("url")
        is_sse = url is not None and urlsplit(url).path.rstrip("/").endswith("/sse")
        values["transport"] = "stdio" if url is None else "sse" if is_sse else "http"
    written = entry.values
    folder = written.get("directory")
    # A hash of what is started or connected to, as written: variables stay unexpanded.
    parts = [
        written.get("transport"),
        written.get("command"),
        list(written.get("arguments", ())),
        None if folder is None else page.absolute(folder),
        written.get("url"),
    ]
    values["launch"] = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return Server(name=entry.name, came_from=f"{page.file} [{join_path(entry.path)}]", **values), ()


def _expand_variables(page: Page, values: Mapping[str, Any], found: list[Expanded]) -> dict[str, Any]:
    def replaced(text: str) -> str:
        result = page.expand(text)
        found.append(result)
        return result.text

    texts: dict[str, object] = {}
    for key in _EXPANDED:
        if key in values:
            value = values[key]
            if isinstance(value, str):
                texts[key] = replaced(value)
            elif isinstance(value, tuple):
                texts[key] = tuple(replaced(item) for item in cast("tuple[str, ...]", value))
            else:
                texts[key] = {name: replaced(text) for name, text in cast("Mapping[str, str]", value).items()}
    if "directory" in texts:
        texts["directory"] = page.absolute(cast("str", texts["directory"]))
    if str(texts.get("command", "")).startswith("~"):
        texts["command"] = page.absolute(cast("str", texts["command"]))
    return texts


def describe_unresolved(page: Page, what: str, path: tuple[str, ...], found: Sequence[Expanded]) -> tuple[Issue, ...]:
    """Return why an entry is left out: variables that are not set, or that only another program can fill in."""
    unset = dict.fromkeys(name for one in found for name in one.unset)
    foreign = dict.fromkeys(name for one in found for name in one.foreign)
    said = list[tuple[str, str]]()
    if unset:
        names = ", ".join(f"`{name}`" for name in unset)
        hint = f"export it, or write a default: ${{{next(iter(unset))}:-default}}"
        said.append((f"{what} is left out: {names} not set in the environment", hint))
    if foreign:
        names = ", ".join(f"`${{{name}}}`" for name in foreign)
        hint = "write ${VARIABLE} instead, and set that variable"
        said.append((f"{what} is left out: only the file's own program knows {names}", hint))
    return tuple(page.issue("problem", message, path, suggestion=hint) for message, hint in said)


def _unusable(page: Page, entry: Entry, values: Mapping[str, Any]) -> tuple[Issue, ...]:
    """Report values that a library would refuse later, in messages that might repeat a secret."""
    if not page.expands:  # an address can only be checked once its variables are replaced
        return ()
    url, headers = values.get("url"), cast("Mapping[str, str]", values.get("headers", {}))
    said = list[tuple[str, str]]()
    if url is not None and not _is_address(url):
        said.append(("url", "its `url` is no http:// or https:// address"))
    said += [
        ("headers", f"its header `{name}` has a character that no header may have")
        for name, value in headers.items()
        if _CONTROL.search(name + value) or not (name + value).isascii()
    ]
    return tuple(
        page.issue("problem", f"server `{entry.name}` is left out: {why}", (*entry.path, key), server=entry.name)
        for key, why in said
    )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def launch_fault(values: Mapping[str, Any]) -> str | None:
    """Return why nothing could be started or reached by this entry, whatever its variables are; None if there is no
    reason."""
    transport, has_command, has_url = values.get("transport"), "command" in values, "url" in values
    if has_command and has_url:
        return "has both `command` and `url`"
    if not has_command and not has_url:
        return "has neither `command` nor `url`"
    if has_command and transport in ("http", "sse"):
        return f"has a `command`, which does not go with transport `{transport}`"
    if has_url and transport == "stdio":
        return "has a `url`, which does not go with transport `stdio`"
    return None


def is_ullage(values: Mapping[str, Any]) -> bool:
    """Return whether the entry starts Ullage itself as a gateway, which would then call itself without end."""
    command, arguments = str(values.get("command", "")), cast("tuple[str, ...]", values.get("arguments", ()))
    words = [word for argument in arguments for word in argument.split()]
    if _ULLAGE.fullmatch(_last(command)):
        return "serve" in words
    named = [at for at, word in enumerate(words) if _ULLAGE.fullmatch(_last(word))]
    return bool(_LAUNCHERS.fullmatch(_last(command)) and named and "serve" in words[named[0] :])


def _last(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


_NAME = re.compile(r"[A-Za-z0-9_.-]+")

_MOST_SUGGESTED = 200
"""Errors of one file for which similar names are looked up."""

Table = Mapping[str, object]
Path = tuple[str, ...]


@dataclass(slots=True)
class Findings:
    """The problems found while reading one file."""

    page: Page
    issues: list[Issue] = field(default_factory=list[Issue])

    def error(self, message: str, path: Path, suggestion: str = "", options: tuple[str, ...] = ()) -> None:
        server = path[1] if len(path) > 1 and path[0] == "servers" else None
        issue = self.page.issue("error", message, path, server=server, suggestion=suggestion)
        self.issues.append(replace(issue, options=options))

    def table(self, document: Table, path: Path) -> Table:
        """Return the table at the end of the path; an empty one if there is none."""
        if path[-1] in document and not isinstance(document[path[-1]], dict):
            self.error(f"`{join_path(path)}` must be a table, and is {describe_value(document[path[-1]])}", path)
            return {}
        return cast("Table", document.get(path[-1], {}))

    def keys(self, table: Table, path: Path, keys: Sequence[Key], known: Sequence[str] = ()) -> dict[str, Any]:
        """Return the valid values under the names of the fields; report invalid ones."""
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
        near = nearest(name, known) if len(self.issues) < _MOST_SUGGESTED else ()
        where = f"in `[{join_path(path)}]`" if path else "before the first table"
        hint = f"did you mean {' or '.join(f'`{one}`' for one in near)}?" if near else f"known are {', '.join(known)}"
        self.error(f"unknown key `{name}` {where}", (*path, name), hint, near or tuple(known))

    def _misfit(self, key: Key, value: object, path: Path) -> None:
        shown = describe_value(value)
        hint = "put it in quotes" if key.kind is PAIRS and shown == "a table" else ""
        is_now = "" if shown == key.kind.nature else f", and is {shown}"
        wanted = key.kind.wanted
        self.error(f"`{join_path(path)}` must be {wanted}{is_now}", path, hint, CHOICES.get(wanted, ()))

    def named(self, document: Table, path: Path) -> Iterator[tuple[Path, Table]]:
        """Yield the tables whose names the user chose."""
        for name in (table := self.table(document, path)):
            place = (*path, name)
            if not isinstance(table[name], dict):
                self.error(f"`{join_path(place)}` must be a table, and is {describe_value(table[name])}", place)
            elif _NAME.fullmatch(name):
                yield place, self.table(table, place)
            else:
                said = f"`{name}` cannot be a name in `[{join_path(path)}]`"
                self.error(
                    said if name else f"a name in `[{join_path(path)}]` is empty",
                    place,
                    "use letters, digits, `_`, `.` and `-`",
                )


_FILE = re.compile(r"(?P<scheme>(?i:sqlite|duckdb)(?:\+\w+)?:///)(?P<path>[^?]*)(?P<rest>\?.*)?", re.DOTALL)
_PASSWORD = re.compile(r"://[^:/@\s]*:(?P<secret>[^@]+)@|[?&]password=(?P<named>[^&]+)")
_MEGABYTE = 1_000_000


def sample_shop() -> DatabaseSettings:
    """Return the sample shop, which a flag adds for users without a database of their own."""
    return DatabaseSettings(name="shop", url=SAMPLE, description="A sample shop: customers, products, orders.")


def database_of(
    page: Page, path: tuple[str, ...], values: Mapping[str, Any]
) -> tuple[DatabaseSettings | None, tuple[Issue, ...]]:
    """Return the database, or None and the reason why it is left out. The keys of `values` are names of fields."""
    written = cast("str", values["url"])
    expanded = page.expand(written)
    missing = describe_unresolved(page, f"source `{path[-1]}`", path, [expanded])
    if missing:
        return None, missing
    rest = {name: value for name, value in values.items() if name not in LIMITS}
    limited = {name: value for name, value in values.items() if name in LIMITS}
    if "bytes" in limited:
        limited["bytes"] = int(limited["bytes"] * _MEGABYTE)
    rest |= {"url": _resolve_url(expanded.text, page.absolute), "came_from": f"{page.file} [{join_path(path)}]"}
    found = _PASSWORD.search(written)
    if found is None or "${" in (found["secret"] or found["named"]):
        issues = ()
    else:
        said = f"this file contains the password of source `{path[-1]}`"
        hint = "write ${VARIABLE} in its place, and set that variable"
        issues = (page.issue("note", said, (*path, "database"), suggestion=hint),)
    return DatabaseSettings(name=path[-1], limits=Limits(**limited), **rest), issues


def _resolve_url(url: str, absolute: Callable[[str], str]) -> str:
    if url == SAMPLE:
        return url
    if "://" not in url:
        return absolute(url)
    file = _FILE.fullmatch(url)
    if file is None or file["path"] in ("", ":memory:"):
        return url
    return f"{file['scheme']}{absolute(file['path'])}{file['rest'] or ''}"


def database_file(url: str) -> str | None:
    """Return the path of a database's file; None for a server's database and the sample shop."""
    file = _FILE.fullmatch(url)
    if file is not None:
        return file["path"]
    return None if "://" in url or url == SAMPLE else url


_KEYS = ("key", "api_key", "apikey", "token", "secret", "password")
"""Names that people would give to an API key if it could be written here."""
_SECRET_HEADER = re.compile(r"authorization|cookie|.*(?:key|token|secret).*", re.IGNORECASE)
_SECRET_ADDRESS = re.compile(r"://[^/@\s]+@|[?&](?:api[_-]?)?key=", re.IGNORECASE)
_KINDS: Mapping[str, WireKind] = {name: one.kind for name, one in BUILT_IN.items()}
_ADDRESSES = {
    **{one.kind: one.base_url for one in BUILT_IN.values()},
    "openai-chat": BUILT_IN["openai"].base_url,
}
_HINT = 'set a variable, and name it: key_env = "MY_KEY"'


def read_provider(findings: Findings, path: Path, table: Table) -> ProviderSettings | None:
    """Return the provider, or None if it is left out, with the reason added to the findings."""
    before = len(findings.issues)
    values = findings.keys({name: one for name, one in table.items() if name not in _KEYS}, path, PROVIDER)
    _refuse_keys(findings, path, table)
    kind = cast("WireKind", values.get("kind", _KINDS.get(path[-1], "compatible")))
    written = values.get("base_url", _ADDRESSES.get(kind))
    if written is None and "base_url" not in table and len(findings.issues) == before:
        findings.error(f"provider `{path[-1]}` has no `base_url`", path, "write where it is reached")
    if len(findings.issues) > before:
        return None
    return _provider(findings, path, {**values, "kind": kind, "base_url": cast("str", written)})


def _refuse_keys(findings: Findings, path: Path, table: Table) -> None:
    for name in table:
        if name in _KEYS:
            findings.error(
                f"a key does not belong into a file, as `{join_path((*path, name))}` is", (*path, name), _HINT
            )
    headers = table.get("headers")
    for name, value in cast("Mapping[str, object]", headers if isinstance(headers, dict) else {}).items():
        if _SECRET_HEADER.fullmatch(name) and not variables_in(str(value)):
            said = f"header `{name}` of provider `{path[-1]}` may be a key, which does not belong into a file"
            findings.error(said, (*path, "headers"), "write ${VARIABLE} in its place, and set that variable")
    if _SECRET_ADDRESS.search(re.sub(r"\$\{[^}]*\}", "", str(table.get("base_url", "")))):
        findings.error(f"the address of provider `{path[-1]}` holds a secret", (*path, "base_url"), _HINT)


def _provider(findings: Findings, path: Path, values: Mapping[str, Any]) -> ProviderSettings | None:
    found = list[Expanded]()
    written: Mapping[str, str] = {"": values["base_url"], **values.get("headers", {})}
    expanded = {name: _providers_expanded(findings, text, found) for name, text in written.items()}
    missing = describe_unresolved(findings.page, f"provider `{path[-1]}`", path, found)
    findings.issues.extend(missing)
    if missing:
        return None
    built_in = BUILT_IN.get(path[-1])
    key_env = values.get("key_env", None if built_in is None else built_in.key_env)
    return ProviderSettings(
        name=path[-1],
        kind=values["kind"],
        base_url=expanded.pop(""),
        key_env=key_env,
        headers=expanded,
        timing=Timing(**{name: values[name] for name in TIMING if name in values}),
        host=values.get("host"),
        variables=frozenset(one for text in written.values() for one in variables_in(text))
        | ({key_env} if key_env else set[str]()),
        came_from=f"{findings.page.file} [{join_path(path)}]",
    )


def _providers_expanded(findings: Findings, text: str, found: list[Expanded]) -> str:
    found.append(findings.page.expand(text))
    return found[-1].text


FILES = ("models.json", "policies.json")
_MODELS = ("aliases", "models")
"""The tables of a policy that belong in `models.json`."""

Place = Callable[[Sequence[str]], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """A policy as written, before it is interpreted."""

    tables: Table
    """`aliases`, `models`, `routing`, …"""
    place: Place = field(compare=False)
    """Return the file and line of a key."""


def of_tables(page: Page, table: Table) -> Documents | None:
    """Return the parts of a policy in the table `[delegate]`; None if there are none."""
    known = {key.name: table[key.name] for key in POLICY if key.name in table}
    if not known:
        return None
    return Documents(tables=known, place=lambda path: _at(page, toml_line(page.text, ("delegate", *path))))


def of_files(models: Page, policies: Page) -> tuple[Documents | None, tuple[Issue, ...]]:
    """Return the two files as one policy, or None and the reason why they cannot be read."""
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
    """Return the tables and the files combined entry by entry; the tables take precedence."""
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
    """Return the policy, with an error for each unreadable part and a note for each that makes no sense."""
    # Importing it takes a while, and most settings have no policy.
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
