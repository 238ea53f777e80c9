"""MCP servers as other programs configure them, and edits of configuration files.

An entry is read key by key according to its program's table (`EntryKeys`). Reading always ends with a value, whatever
the file contains: parts that cannot be understood are listed as problems of that one entry. Variables are converted to
the form `${NAME}`; references that only the program itself can fill in, such as `${input:token}`, are listed as
unresolved.

Changes to a configuration file are values: `Put` and `Remove` name a place by its keys. `apply_edits` carries them out
on the parsed document; `jsonc` and `toml_text` carry out the same edits on the text and compare the two results, so
that an edited file has exactly the intended content or is not written at all.
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
    """A file cannot be edited without risk to its content; it is left unchanged."""


@dataclass(frozen=True, slots=True)
class Put:
    """Sets a value. Missing tables above it are created; an existing value is replaced in place."""

    path: KeyPath
    value: object


@dataclass(frozen=True, slots=True)
class Remove:
    """Removes a key with its value. A missing key is not an error."""

    path: KeyPath


Edit = Put | Remove


def apply_edits(document: object, edits: Iterable[Edit]) -> dict[str, Any]:
    """Return a copy of the document after these edits.

    Raises:
        EditRefused: A key on the path to a value contains something other than a table.
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
    """Return the value at a path; None if there is none."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = cast("dict[str, object]", document).get(key)
    return document


def fingerprint(document: object, *, is_ordered: bool) -> str:
    """Return a text that is equal for documents with equal content; with `is_ordered`, in the same order."""
    return json.dumps(document, sort_keys=not is_ordered, default=lambda value: f"{type(value).__name__} {value}")


Scope = Literal["user", "local", "project", "managed"]
"""The scope of a file: the user's for all folders, the user's for one folder, the project's, an administrator's."""
FileFormat = Literal["json", "toml", "markdown"]
"""The format of a file. Of a Markdown file, which describes a single agent, only the front matter is read."""
Transport = Literal["stdio", "http", "sse"]
Variables = Literal["braces", "dollar", "opencode", "editor", "none"]
"""How a program writes variables: `${NAME}`, also `$NAME`, `{env:NAME}`, `${env:NAME}` and `${userHome}`, or not at
all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a file that could not be understood."""

    file: str
    message: str
    path: KeyPath = ()
    """The key that the problem concerns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """One file of a program that may configure servers or rules."""

    path: str
    scope: Scope
    format: FileFormat = "json"
    tables: tuple[KeyPath, ...] = ()
    """Paths of the tables that contain servers."""
    folder: str | None = None
    """The folder to which its servers are limited; None for all."""
    is_main: bool = False
    """Whether the program itself writes new servers of this scope here."""
    is_folder: bool = False
    """Whether this is a folder, of which every file of this format is read."""
    ending: str = ""
    """What the names of a folder's files end with; by default, their format."""
    is_optional: bool = False
    """Whether the program reads the file in some runs only, over its others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    """Permissions for one server's tools, by the server's own tool names; `*` matches any text."""

    only: tuple[str, ...] | None = None
    """The only tools shown to the model; None for all."""
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    """Tools that need a person's consent."""
    allow: tuple[str, ...] = ()
    """Tools that run without consent."""
    exempt: tuple[str, ...] = ()
    """Tools that need no consent although a pattern of `ask` matches them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """One configured server. Environment, headers and arguments may contain secrets and are not in its repr."""

    name: str
    program: str
    file: str
    path: KeyPath
    """The path of the entry in the file."""
    scope: Scope
    folder: str | None = None
    """The folder to which the server is limited."""
    transport: Transport = "stdio"
    command: str | None = None
    arguments: tuple[str, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    inherited: tuple[str, ...] = ()
    """Variables of the program's own environment that the server inherits."""
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
    """References that only the program itself can fill in: `${input:token}`, an `envFile`, an extension."""
    signs_in: bool = False
    """Whether the program is configured to sign in to the server."""
    other_keys: tuple[str, ...] = ()
    """Keys of the entry that Ullage does not use."""
    faults: tuple[str, ...] = ()
    """Why the entry cannot be used."""
    is_shadowed: bool = False
    """Whether an entry of a nearer scope has the same name."""
    raw: object = field(default=None, repr=False, compare=False)
    """The entry as parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryKeys:
    """The names that one program uses for the parts of an entry."""

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
    """Keys, each with its unit in seconds."""
    call_timeout: tuple[tuple[str, float], ...] = ()
    only: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    sign_in: tuple[str, ...] = ("oauth", "auth")
    external: tuple[str, ...] = ()
    """Keys for things outside the entry that cannot be moved with it, such as `envFile`."""
    ignored: tuple[str, ...] = ()
    """Keys without effect on the server itself."""


_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio", "local": "stdio", "http": "http", "streamable-http": "http", "streamablehttp": "http",
    "streamable_http": "http", "remote": "http", "sse": "sse",
}  # fmt: skip


class _EntryReader:
    """Reads values from one raw entry; unsuitable ones are recorded as faults."""

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
        """Return the names on these lists, in their order; None if no list exists."""
        lists = [read_names(value) for key in keys if (value := self.take(key)) is not None]
        return tuple(dict.fromkeys(name for one in lists for name in one)) if lists else None

    def _refuse(self, key: str | None, wanted: str) -> None:
        self.faults.append(f"`{key}` must be {wanted}")


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_names(value: object) -> tuple[str, ...]:
    """Return the readable names on a list. A single text counts as a list of one."""
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
    """Read one entry of a table of servers.

    Args:
        raw: The entry as it was parsed.
        keys: The program's names of the parts.
        name: The server's name in the table.
        place: The file that contains it.
        path: The path of the entry in the file.
        program: The program that the file belongs to.
        home: The user's home folder, for `${userHome}`.
        variables: Variables that are set; None for no variables.
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
        # The declared type decides which of the two is used; without one, programs prefer the command.
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
        # `$NAME` may also be meant for a shell; the program leaves it unchanged if there is no such variable.
        arguments = tuple(_without_unset(one, variables or {}) for one in arguments)
    arguments = tuple(map(resolver.convert, arguments))
    environment = {key: resolver.convert(value) for key, value in environment.items()}
    headers = {key: resolver.convert(value) for key, value in headers.items()}
    command, directory, url = (None if one is None else resolver.convert(one) for one in (command, directory, url))
    external = [f"`{key}`" for key in keys.external if reader.take(key) not in (None, {}, [])]
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
    """Return the command, its arguments and its environment, even if one key contains all of them."""
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
"""Placeholder for a dollar sign that begins no variable; no argument contains this letter."""


def _without_unset(text: str, environment: Mapping[str, str]) -> str:
    def hide(match: re.Match[str]) -> str:
        return match[0] if match[1] in environment else _DOLLAR + match[1]

    return re.sub(r"\$([A-Za-z_]\w*)", hide, text.replace(_DOLLAR, ""), flags=re.ASCII)


@dataclass(slots=True)
class _VariableReader:
    """Converts the variables of one program to the form `${NAME}`."""

    form: Variables
    home: str
    folder: str | None
    unresolved: list[str] = field(default_factory=list[str])

    def convert(self, text: str) -> str:
        if self.form == "none":
            # The program takes such a text literally; Ullage would replace it.
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
            # The program replaces an unset variable with an empty text.
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
