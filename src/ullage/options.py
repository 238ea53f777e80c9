"""Settings that the packages take, as plain values.

Configuration makes them and the packages go by them. They stand apart so that reading the settings imports none of the
packages: `ullage serve` and `ullage config` read them first.

Settings of one database that agents may ask.

Settings of the search for tools, and the names of the tools that search and call.

What the user set, looked up by where a reply really came from. Nothing is counted, cut or kept here.

A neutral entry, whoever's file it came from: configuration makes it, the wire starts it, the gateway goes by its rules.
It says nothing of whether the server runs.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Literal, TypeVar

from ullage.tool import Origin as ToolOrigin

__all__ = [
    "FIND_NAMES",
    "MOST_USES",
    "SAMPLE",
    "Access",
    "DatabaseSettings",
    "DefinitionChanges",
    "Handling",
    "IndexKind",
    "Limits",
    "Origin",
    "ResultRules",
    "Rules",
    "Server",
    "ServerResults",
    "Transport",
    "encoder_lacks",
]

SAMPLE = "sample"
"""In place of a URL: the sample shop, made on first use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What no question may go beyond, whatever it asks for."""

    rows: int = 1_000
    seconds: float = 30.0
    """From the question to its last row; held within half a second."""
    cell: int = 20_000
    """Characters of one value; the rest is cut and counted."""
    bytes: int = 16_000_000
    """Of all values of an answer."""
    concurrency: int = 4
    """Questions at one time; others wait, and their waiting is within their seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    name: str
    url: str = field(repr=False)
    """As SQLAlchemy writes it, a path of a SQLite or DuckDB file among them; may hold a password."""
    default: bool = False
    """Whether `query` without a prefix means this one, where there are several."""
    description: str | None = None
    """One line for the model about what is to be found here."""
    limits: Limits = field(default_factory=Limits)
    max_tokens: int | None = None
    """Of one answer's text; None for no other limit than that of every result."""
    masked: tuple[str, ...] = ()
    """Columns whose values nobody sees: `table.column`, with patterns such as `*.password`."""
    functions: tuple[str, ...] = ()
    """Of the database's own making, allowed though the guard does not know them."""
    cache: float = 0.0
    """Seconds in which an identical question is answered from memory; 0 for never."""
    schema_cache: float = 300.0
    """The same for descriptions of tables."""
    came_from: str | None = None
    """The file and table it was read from, for people."""


IndexKind = Literal["static", "encoder", "words"]
"""By the table, by the encoder, or by words alone; all of them by words too."""
MOST_USES = 2_000
"""Remembered of one principal; the longest unused go first."""
FIND_NAMES = ("find_tool", "call_tool", "call_tool_write")
"""Tools of Ullage's own that no other tool may be named as."""


def encoder_lacks() -> tuple[str, ...]:
    """What the encoder needs and is not installed. Imports nothing."""
    return tuple(module for module in ("onnxruntime", "ullage_encoder") if find_spec(module) is None)


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handling:
    budget: int | None
    """Tokens that a reply may have; None for as many as it likes."""
    encode: bool
    """Whether JSON tables are written as the cheapest lossless text."""

    def limited(self, most: int | None) -> "Handling":
        """The same with at most so many tokens; None for no further limit."""
        return self if most is None else replace(self, budget=min(self.budget or most, most))

    @property
    def is_whole(self) -> bool:
        """Whether it is passed on as it is, so that its outputSchema can be promised."""
        return self.budget is None and not self.encode


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerResults:
    """What differs for one server; tools by their own names or patterns such as `list_*`, the first that fits."""

    budget: int | None = None
    """Tokens; None for what holds for all servers, 0 for no limit."""
    budgets: Mapping[str, int] = field(default_factory=dict[str, int])
    """By tool, instead of `budget`."""
    encode: bool | None = None
    """Whether JSON tables are written as cheaper text; None for what holds for all servers."""
    whole: tuple[str, ...] = ()
    """Tools whose results are neither cut nor written otherwise."""
    cache: Mapping[str, float] = field(default_factory=dict[str, float])
    """By tool, seconds in which the same call is answered from memory."""


_NOTHING = ServerResults()
_MOST_KNOWN = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRules:
    budget: int = 10_000
    """Tokens of any result where nothing else is said; 0 for no limit."""
    encode: bool = True
    servers: Mapping[str, ServerResults] = field(default_factory=dict[str, ServerResults])
    _known: dict[ToolOrigin, Handling] = field(
        default_factory=dict[ToolOrigin, Handling], init=False, repr=False, compare=False
    )
    """What holds for tools that were called, where a call asks for nothing else."""

    def handling(self, origin: ToolOrigin, asked: int | None = None) -> Handling:
        """`asked` is the caller's own budget for this call, which may be smaller or larger than what is set."""
        if asked is not None:
            return self._handling(origin, asked)
        known = self._known.get(origin)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[origin] = self._handling(origin, None)
        return known

    def _handling(self, origin: ToolOrigin, asked: int | None) -> Handling:
        server = self.servers.get(origin.server, _NOTHING)
        if any(fnmatchcase(origin.tool, pattern) for pattern in server.whole):
            return Handling(budget=asked or None, encode=False)
        set_here = _first(origin.tool, server.budgets)
        budget = next(one for one in (asked, set_here, server.budget, self.budget) if one is not None)
        return Handling(budget=budget or None, encode=self.encode if server.encode is None else server.encode)

    def cached_for(self, origin: ToolOrigin) -> float:
        """Seconds; 0 for not at all."""
        return _first(origin.tool, self.servers.get(origin.server, _NOTHING).cache) or 0.0


def _first(tool: str, by_pattern: Mapping[str, Value]) -> Value | None:
    return next((value for pattern, value in by_pattern.items() if fnmatchcase(tool, pattern)), None)


Transport = Literal["stdio", "http", "sse"]
DefinitionChanges = Literal["hold", "accept", "ignore"]
"""What becomes of a definition that is not the one accepted before: it is withheld until the user accepts it, it is
accepted and recorded, or nothing is recorded at all."""
Access = Literal["allow", "ask", "deny"]
Origin = Literal["user", "project", "client"]
"""The user's own `ullage.toml`, a project's, or another program's file."""

_STRICTNESS: dict[Access, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the user decided about a server's tools, by their own names or patterns such as `delete_*`."""

    allow: tuple[str, ...] = ()
    """Allowed whatever `ask` and `deny` say."""
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    """Tools that change nothing, whatever their annotations say or leave out."""
    writing: tuple[str, ...] = ()
    """Tools that do change something, whatever their annotations claim."""
    pinned: tuple[str, ...] = ()
    """Always listed."""
    hidden: tuple[str, ...] = ()
    """Never listed nor found; callable by name."""
    only: tuple[str, ...] | None = None
    """Any other tool is denied, whatever the rest says; None for all."""
    under: "Rules | None" = None
    """Others that hold as well, of which no `allow` here excuses anything: the stricter of the two decides."""

    def access(self, tool: str) -> Access:
        if not self.deny and not self.ask and self.only is None and self.under is None:
            return "allow"
        here = self._access(tool)
        if self.under is None or here == "deny":
            return here
        return max(here, self.under.access(tool), key=_STRICTNESS.__getitem__)

    def _access(self, tool: str) -> Access:
        if self.only is not None and not _named(tool, self.only):
            return "deny"
        if _named(tool, self.allow):
            return "allow"
        if _named(tool, self.deny):
            return "deny"
        return "ask" if _named(tool, self.ask) else "allow"

    def denied_by(self, tool: str) -> str | None:
        """The pattern under `deny` that denies it; None where it is not denied, or only for not being among `only`."""
        if self._access(tool) == "deny":
            return next((pattern for pattern in self.deny if fnmatchcase(tool, pattern)), None)
        return None if self.under is None else self.under.denied_by(tool)

    def is_read_only(self, tool: str, annotations: Mapping[str, object]) -> bool:
        """By setting, else by annotation; what no one says is not read-only."""
        if _named(tool, self.writing):
            return False
        return _named(tool, self.read_only) or annotations.get("readOnlyHint") is True

    def is_pinned(self, tool: str) -> bool:
        return _named(tool, self.pinned)

    def is_hidden(self, tool: str) -> bool:
        return _named(tool, self.hidden)


def _named(tool: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An upstream MCP server as configured. Variables in it are already replaced by their values."""

    name: str
    transport: Transport
    command: str | None = None
    """For `stdio`; with `arguments`, `environment` and `directory`."""
    arguments: tuple[str, ...] = field(default=(), repr=False)
    """A secret may have been written among them."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Added to what the server inherits; may hold secrets, so it is never shown."""
    inherit_env: tuple[str, ...] = ()
    """Variables of Ullage's own environment that it gets beside the usual ones: names or patterns; `*` for all."""
    directory: str | None = None
    url: str | None = field(default=None, repr=False)
    """For `http` and `sse`; may hold a secret in its query."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    disabled: bool = False
    folders: tuple[str, ...] = ()
    """The only folders in which it is there; empty for everywhere."""
    shared: bool = False
    """Whether clients of one gateway use one connection; else each session has its own."""
    prefix: str | None = None
    """Put before its tools' names as `prefix__tool`; None for the server's name, empty for none."""
    description: str | None = None
    """One line for the model about what is to be found here; None for the server's own."""
    start_timeout: float = 60.0
    """Seconds until it must have answered its first request."""
    call_timeout: float = 300.0
    """Seconds of silence (no answer, no progress) after which a call is given up."""
    idle_timeout: float | None = None
    """Seconds without a call after which it is stopped; None for never."""
    rules: Rules = field(default_factory=Rules)
    definition_changes: DefinitionChanges = "hold"
    came_from: str | None = None
    """The file and table it was read from, for people."""
    origin: Origin = "user"
    """Whose file that is."""
    launch: str | None = field(default=None, repr=False, compare=False)
    """Hash of its entry as it is written, with variables in place; None where there is no such entry."""

    @property
    def key(self) -> str:
        """Equal for servers that are started alike; a changed key means another server. Reveals none of its parts."""
        parts: list[object] = [
            self.transport,
            self.command,
            list(self.arguments),
            sorted(self.environment.items()),
            self.directory,
            self.url,
            sorted(self.headers.items()),
        ]
        if self.inherit_env:
            # Only where it is set: a catalogue from before this setting knows servers by the key without it.
            parts.append(["inherit_env", sorted(self.inherit_env)])
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def launch_key(self) -> str:
        """Equal for as long as the entry says the same: what it starts or where it connects, before variables are
        expanded, without environment and headers. Accepted definitions go by it, so that a token that is renewed does
        not make a server another one."""
        if self.launch is not None:
            return self.launch
        parts = [self.transport, self.command, list(self.arguments), self.directory, self.url]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def spoken_prefix(self) -> str:
        return self.name if self.prefix is None else self.prefix
