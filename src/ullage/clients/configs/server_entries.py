"""MCP servers as other programs configure them: neutral values, and how an entry is read.

An entry is read key by key by the table of its program (`EntryKeys`). Whatever a file holds, reading ends with a value:
what cannot be understood is a problem of that one entry, and is listed. Variables are brought into the form `${NAME}`;
what only the program itself can fill in, such as `${input:token}`, is listed as unresolved.

Changes to a configuration file, as values, and their effect on the parsed document.

`Put` and `Remove` name a place by its keys. `apply_edits` carries them out on the parsed document; `jsonc` and
`toml_text` carry out the same edits on the text and compare the two results, so that an edited file always says exactly
what it should, or is not written at all.
"""

import copy
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

__all__ = [
    "ConfigFile",
    "Edit",
    "EditRefused",
    "EntryKeys",
    "FileFormat",
    "KeyPath",
    "Problem",
    "Put",
    "Remove",
    "Scope",
    "ServerEntry",
    "ToolRules",
    "Variables",
    "apply_edits",
    "fingerprint",
    "read_entry",
    "read_names",
    "value_at",
]

KeyPath = tuple[str, ...]
"""Keys from the top of a document to a value: `("mcpServers", "github")`."""


class EditRefused(ValueError):
    """A file cannot be changed without a risk for what it says; it stays as it is."""


@dataclass(frozen=True, slots=True)
class Put:
    """Sets a value. Missing tables above it are made; an existing value is replaced where it stands."""

    path: KeyPath
    value: object


@dataclass(frozen=True, slots=True)
class Remove:
    """Removes a key with its value. One that is not there is no fault."""

    path: KeyPath


Edit = Put | Remove


def apply_edits(document: object, edits: Iterable[Edit]) -> dict[str, Any]:
    """The document after these edits, as a copy.

    Raises:
        EditRefused: a key on the way to a value holds something else than a table.
    """
    if not isinstance(document, dict):
        raise EditRefused("the file does not hold a table of settings")
    whole = copy.deepcopy(cast("dict[str, Any]", document))
    for edit in edits:
        table = whole
        for key in edit.path[:-1]:
            if key not in table:
                if isinstance(edit, Remove):
                    break
                table[key] = {}
            if not isinstance(table[key], dict):
                raise EditRefused(f"`{'.'.join(edit.path[:-1])}` is not a table")
            table = cast("dict[str, Any]", table[key])
        else:
            if isinstance(edit, Put):
                table[edit.path[-1]] = copy.deepcopy(edit.value)
            else:
                table.pop(edit.path[-1], None)
    return whole


def value_at(document: object, path: KeyPath) -> object:
    """The value at a place; None where there is none."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = cast("dict[str, object]", document).get(key)
    return document


def fingerprint(document: object, *, is_ordered: bool) -> str:
    """A text that is equal for documents that say the same; with `is_ordered` in the same order."""
    return json.dumps(document, sort_keys=not is_ordered, default=lambda value: f"{type(value).__name__} {value}")


Scope = Literal["user", "local", "project", "managed"]
"""Whose file it is: the user's for all folders, the user's for one folder, the project's, an administrator's."""
FileFormat = Literal["json", "toml"]
Transport = Literal["stdio", "http", "sse"]
Variables = Literal["braces", "dollar", "opencode", "editor", "none"]
"""How a program writes variables: `${NAME}`, also `$NAME`, `{env:NAME}`, `${env:NAME}` and `${userHome}`, or not at
all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that could not be understood."""

    file: str
    message: str
    path: KeyPath = ()
    """The key it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """One file of a program in which servers or rules may be configured."""

    path: str
    scope: Scope
    format: FileFormat = "json"
    tables: tuple[KeyPath, ...] = ()
    """The tables that hold servers, by name."""
    folder: str | None = None
    """The folder to which its servers are limited; None for all."""
    is_main: bool = False
    """Whether the program itself writes new servers of this scope here."""
    is_folder: bool = False
    """Whether it is a folder, of which every file of this format counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    """What a program may do with one server's tools, by the server's own tool names; `*` is any text."""

    only: tuple[str, ...] | None = None
    """The only tools it shows to the model; None for all."""
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    """Tools that a person must agree to."""
    allow: tuple[str, ...] = ()
    """Tools that run without asking."""
    exempt: tuple[str, ...] = ()
    """Tools that are not asked for although a pattern of `ask` names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """One configured server. Environment, headers and arguments may hold secrets and are not in its repr."""

    name: str
    program: str
    file: str
    path: KeyPath
    """Where in the file it is."""
    scope: Scope
    folder: str | None = None
    """The folder to which it is limited."""
    transport: Transport = "stdio"
    command: str | None = None
    arguments: tuple[str, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    inherited: tuple[str, ...] = ()
    """Variables of the program's own environment that the server gets."""
    directory: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    disabled: bool = False
    start_timeout: float | None = None
    """Seconds."""
    call_timeout: float | None = None
    """Seconds."""
    description: str | None = None
    rules: ToolRules = field(default_factory=ToolRules)
    unresolved: tuple[str, ...] = ()
    """What only the program itself can fill in: `${input:token}`, an `envFile`, an extension."""
    signs_in: bool = False
    """Whether the program is set up to sign in to it."""
    other_keys: tuple[str, ...] = ()
    """Keys of the entry that mean nothing here."""
    faults: tuple[str, ...] = ()
    """Why the entry cannot be used."""
    is_shadowed: bool = False
    """Whether an entry of a nearer scope has the same name."""
    raw: object = field(default=None, repr=False, compare=False)
    """The entry as the file has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryKeys:
    """The names that one program gives to the parts of an entry."""

    variables: Variables = "braces"
    command: str = "command"
    environment: str = "env"
    directory: str | None = "cwd"
    urls: tuple[tuple[str, Transport | None], ...] = (("url", None),)
    """Keys of an address, each with the transport that it implies."""
    headers: str = "headers"
    type: str | None = "type"
    disabled: str | None = "disabled"
    enabled: str | None = None
    start_timeout: tuple[tuple[str, float], ...] = ()
    """Keys with the seconds of their unit."""
    call_timeout: tuple[tuple[str, float], ...] = ()
    only: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    sign_in: tuple[str, ...] = ("oauth", "auth")
    external: tuple[str, ...] = ()
    """Keys for what lies outside the entry and cannot be moved with it, such as `envFile`."""
    ignored: tuple[str, ...] = ()
    """Keys without effect on the server itself."""


_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio", "local": "stdio", "http": "http", "streamable-http": "http", "streamablehttp": "http",
    "streamable_http": "http", "remote": "http", "sse": "sse",
}  # fmt: skip


class _EntryReader:
    """Takes values out of one raw entry; what does not fit becomes a fault."""

    def __init__(self, raw: Mapping[str, object]) -> None:
        self.raw = raw
        self.used = set[str]()
        self.faults = list[str]()

    def take(self, key: str | None) -> object:
        if key is None:
            return None
        self.used.add(key)
        value = self.raw.get(key)
        return None if value in (None, "") else value

    def text(self, key: str | None) -> str | None:
        value = self.take(key)
        if value is None or isinstance(value, str):
            return value
        return self._refuse(key, "a text")

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.take(key)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(one, str | int | float) for one in cast("list[object]", value)):
            return tuple(_as_text(one) for one in cast("list[object]", value))
        self._refuse(key, "a list of texts")
        return ()

    def pairs(self, key: str) -> dict[str, str]:
        value = self.take(key)
        if value is None or value == []:
            return {}
        if isinstance(value, Mapping):
            given = {name: one for name, one in cast("Mapping[str, object]", value).items() if one is not None}
            if all(isinstance(one, str | int | float) for one in given.values()):
                return {name: _as_text(one) for name, one in given.items()}
        self._refuse(key, "a table of texts")
        return {}

    def flag(self, key: str | None) -> bool | None:
        value = self.take(key)
        if value is None or isinstance(value, bool):
            return value
        return self._refuse(key, "true or false")

    def seconds(self, keys: Sequence[tuple[str, float]]) -> float | None:
        found: float | None = None
        for key, unit in keys:
            value = self.take(key)
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                found = value * unit if found is None else found
            elif value is not None:
                self._refuse(key, "a number above 0")
        return found

    def names(self, keys: Sequence[str]) -> tuple[str, ...] | None:
        """The names on these lists, in their order; None where no list is there."""
        lists = [read_names(value) for key in keys if (value := self.take(key)) is not None]
        return tuple(dict.fromkeys(name for one in lists for name in one)) if lists else None

    def _refuse(self, key: str | None, wanted: str) -> None:
        self.faults.append(f"`{key}` must be {wanted}")


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_names(value: object) -> tuple[str, ...]:
    """The names on a list, as far as it can be understood. A single text is a list of one."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    return tuple(item.strip() for item in items if isinstance(item, str) and item.strip())


def read_entry(  # noqa: PLR0913 - an entry, and everything that decides how it is read
    raw: object,
    keys: EntryKeys,
    *,
    name: str,
    place: ConfigFile,
    path: KeyPath,
    program: str,
    home: str,
    variables: Mapping[str, str] | None = None,
) -> ServerEntry:
    """One entry of a table of servers.

    Args:
        raw: the entry as it was parsed.
        keys: how its program names the parts.
        name: the server's name in the table.
        place: the file it is in.
        path: where in the file it is.
        program: whose file it is.
        home: the user's home folder, for `${userHome}`.
        variables: those that are set; None where none is.
    """
    if not isinstance(raw, dict):
        fault = (f"the entry is {_kind(raw)}, not a table",)
        return ServerEntry(
            name=name, program=program, file=place.path, path=path, scope=place.scope, folder=place.folder,
            faults=fault, raw=raw,
        )  # fmt: skip
    reader = _EntryReader(cast("Mapping[str, object]", raw))
    command, arguments, environment = _read_launch(reader, keys)
    directory = reader.text(keys.directory)
    url, implied = _read_address(reader, keys)
    headers = reader.pairs(keys.headers)
    declared = _read_transport(reader, keys)
    if command is not None and url is not None:
        # The declared type says which of the two is meant; without one, programs prefer the command.
        command, url = (command, None) if declared in (None, "stdio") else (None, url)
    if command is None and url is None and not reader.faults:
        reader.faults.append(f"it has neither `{keys.command}` nor `{keys.urls[0][0]}`")
    disabled = bool(reader.flag(keys.disabled)) or reader.flag(keys.enabled) is False
    only = reader.names(keys.only)
    rules = ToolRules(
        only=None if only is not None and "*" in only else only,
        deny=reader.names(keys.deny) or (),
        allow=reader.names(keys.allow) or (),
    )
    resolver = _VariableReader(keys.variables, home, place.folder)
    if keys.variables == "dollar":
        # `$NAME` may as well be a shell's; the program leaves it as it is where there is no such variable.
        arguments = tuple(_without_unset(one, variables or {}) for one in arguments)
    arguments = tuple(map(resolver.convert, arguments))
    environment = {key: resolver.convert(value) for key, value in environment.items()}
    headers = {key: resolver.convert(value) for key, value in headers.items()}
    command, directory, url = (None if one is None else resolver.convert(one) for one in (command, directory, url))
    external = [f"`{key}`" for key in keys.external if reader.take(key) is not None]
    signs_in = any(reader.take(key) not in (None, False) for key in keys.sign_in)
    transport: Transport = "stdio" if url is None else implied or _address_transport(declared, url)
    start_timeout, call_timeout = reader.seconds(keys.start_timeout), reader.seconds(keys.call_timeout)
    description = reader.text("description")
    return ServerEntry(
        name=name,
        program=program,
        file=place.path,
        path=path,
        scope=place.scope,
        folder=place.folder,
        transport=transport,
        command=command,
        arguments=arguments,
        environment=environment,
        directory=directory,
        url=url,
        headers=headers,
        disabled=disabled,
        start_timeout=start_timeout,
        call_timeout=call_timeout,
        description=description,
        rules=rules,
        unresolved=tuple(dict.fromkeys((*resolver.unresolved, *external))),
        signs_in=signs_in,
        other_keys=tuple(key for key in reader.raw if key not in reader.used and key not in keys.ignored),
        faults=tuple(reader.faults),
        raw=cast("object", raw),
    )


def _kind(value: object) -> str:
    if value is None:
        return "empty"
    return "a list" if isinstance(value, list) else "a text" if isinstance(value, str) else "a number or a flag"


def _read_launch(reader: _EntryReader, keys: EntryKeys) -> tuple[str | None, tuple[str, ...], dict[str, str]]:
    """The command, its arguments and its environment, also where one key holds all of them."""
    value = reader.take(keys.command)
    arguments, environment = reader.texts("args"), reader.pairs(keys.environment)
    if isinstance(value, list):
        words = reader.texts(keys.command)
        return (words[0] if words else None), (*words[1:], *arguments), environment
    if isinstance(value, Mapping):
        # Zed before 0.195: `"command": {"path": …, "args": […], "env": {…}}`.
        inner = _EntryReader(cast("Mapping[str, object]", value))
        path = inner.text("path")
        arguments, environment = inner.texts("args"), inner.pairs("env")
        reader.faults += inner.faults
        return path, arguments, environment
    return reader.text(keys.command), arguments, environment


def _read_address(reader: _EntryReader, keys: EntryKeys) -> tuple[str | None, Transport | None]:
    found: tuple[str | None, Transport | None] = None, None
    for key, implied in keys.urls:
        value = reader.text(key)
        if value is not None and found[0] is None:
            found = value, implied
    return found


def _read_transport(reader: _EntryReader, keys: EntryKeys) -> Transport | None:
    value = reader.text(keys.type)
    if value is None:
        return None
    found = _TRANSPORTS.get(value.lower())
    if found is None:
        reader.faults.append(f"`{keys.type}` is `{value}`, which is not known")
    return found


def _address_transport(declared: Transport | None, url: str) -> Transport:
    if declared in ("http", "sse"):
        return declared
    return "sse" if re.split(r"[?#]", url)[0].rstrip("/").endswith("/sse") else "http"


# -- Variables

_DOLLAR = "\x00"
"""Stands for a dollar sign that begins no variable; no argument has this letter."""


def _without_unset(text: str, environment: Mapping[str, str]) -> str:
    def hide(match: re.Match[str]) -> str:
        return match[0] if match[1] in environment else _DOLLAR + match[1]

    return re.sub(r"\$([A-Za-z_]\w*)", hide, text.replace(_DOLLAR, ""), flags=re.ASCII)


@dataclass(slots=True)
class _VariableReader:
    """Brings the variables of one program into the form `${NAME}`."""

    form: Variables
    home: str
    folder: str | None
    unresolved: list[str] = field(default_factory=list[str])

    def convert(self, text: str) -> str:
        if self.form == "none":
            # The program takes such a text as it is; Ullage would replace it.
            if re.search(r"\$\{(?:env:)?[A-Za-z_]", text):
                self.unresolved.append(f"`{text}` taken literally")
            return text
        if self.form == "opencode":
            return re.sub(r"\{(env|file):([^}]*)\}", self._replace_opencode, text)
        if self.form == "dollar":
            text = re.sub(r"\$([A-Za-z_]\w*)", r"${\1}", text, flags=re.ASCII).replace(_DOLLAR, "$")
        return re.sub(r"\$\{([A-Za-z][\w.]*)(?::([^}]*))?\}", self._replace_braces, text)

    def _replace_opencode(self, match: re.Match[str]) -> str:
        if match[1] == "env" and re.fullmatch(r"[A-Za-z_]\w*", match[2], re.ASCII):
            # An unset variable is an empty text there.
            return f"${{{match[2]}:-}}"
        self.unresolved.append(f"`{match[0]}`")
        return match[0]

    def _replace_braces(self, match: re.Match[str]) -> str:
        name, rest = match[1], match[2]
        if name == "env" and rest:
            return f"${{{rest}}}"
        if self.form == "editor":
            known = {"userHome": self.home, "workspaceFolder": self.folder, "pathSeparator": "/", "/": "/"}
            value = known.get(name)
            if rest is None and value is not None:
                return value
            if rest is not None or name in known or name == "workspaceFolderBasename":
                self.unresolved.append(f"`{match[0]}`")
            return match[0]
        if rest is not None and not rest.startswith("-"):
            self.unresolved.append(f"`{match[0]}`")
        return match[0]
