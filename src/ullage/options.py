"""Settings that the packages take, as plain values: a database, the search for tools, results, and upstream servers.

Configuration builds these values and the packages read them. They are in a module of their own so that reading the
settings imports none of the packages: `ullage serve` and `ullage config` read the settings first.

Settings of results are looked up by the tool that a reply came from. A server's settings have one form, whichever file
they were read from: configuration creates them, the client of MCP servers starts the server, and the gateway applies
its rules. They do not say whether the server runs. Nothing here counts, cuts or stores anything.
"""

import hashlib
import json
import re
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
"""Used in place of a URL: the sample shop, created on first use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that no query may exceed, whatever it asks for."""

    rows: int = 1_000
    seconds: float = 30.0
    """From receiving the query to its last row; enforced to within half a second."""
    cell: int = 20_000
    """Characters of one value; the rest is cut and counted."""
    bytes: int = 16_000_000
    """Bytes of all values of an answer together."""
    concurrency: int = 4
    """Queries that run at the same time; others wait, and the wait counts towards their time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """Settings of one database that agents may query."""

    name: str
    url: str = field(repr=False)
    """A URL in SQLAlchemy's form, or the path of a SQLite or DuckDB file; may contain a password."""
    default: bool = False
    """Whether `query` without a prefix uses this database when there are several."""
    description: str | None = None
    """One line for the model that describes what the database contains."""
    limits: Limits = field(default_factory=Limits)
    max_tokens: int | None = None
    """Tokens of the text of one answer; None for no limit besides the one of every result."""
    masked: tuple[str, ...] = ()
    """Columns whose values are never shown: `table.column`, with patterns such as `*.password`."""
    functions: tuple[str, ...] = ()
    """Functions defined in the database itself, allowed although the guard does not know them."""
    cache: float = 0.0
    """Seconds for which an identical query is answered from memory; 0 to disable."""
    schema_cache: float = 300.0
    """Seconds for which a description of tables is answered from memory; 0 to disable."""
    came_from: str | None = None
    """The file and table that the settings were read from, for display."""
    within: str | None = None
    """The project whose settings name a file in it: the file is not opened if links lead out of that folder."""


IndexKind = Literal["static", "encoder", "words"]
"""How the search ranks tools: with the static table, with the encoder, or by words alone. The first two use words
too."""
MOST_USES = 2_000
"""Past uses kept per principal; the least recently used are dropped first."""
FIND_NAMES = ("find_tool", "call_tool", "call_tool_write")
"""Names of Ullage's own tools, which no other tool may have."""


def encoder_lacks() -> tuple[str, ...]:
    """Return the modules that the encoder needs and that are not installed, without importing anything."""
    return tuple(module for module in ("onnxruntime", "ullage_encoder") if find_spec(module) is None)


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handling:
    """How one tool's results are shortened and rewritten."""

    budget: int | None
    """Maximum tokens of a reply; None for no limit."""
    encode: bool
    """Whether JSON tables are written as the cheapest lossless text."""
    is_for_program: bool = False
    """Whether the caller asked for the whole reply, which a program reads: it is passed on unchanged or refused."""

    def limited(self, most: int | None) -> "Handling":
        """Return a copy with at most `most` tokens; None adds no limit."""
        return self if most is None else replace(self, budget=min(self.budget or most, most))

    @property
    def is_whole(self) -> bool:
        """Whether the reply is passed on unchanged, so that the tool's outputSchema can be kept."""
        return self.budget is None and not self.encode

    @property
    def keeps_structure(self) -> bool:
        """Whether a reply has its structured content wherever the tool's outputSchema requires it."""
        return self.is_whole or self.is_for_program


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerResults:
    """Settings that differ for one server. Tools are given by their own names or by patterns such as `list_*`; the
    first match applies."""

    budget: int | None = None
    """Tokens; None for the setting of all servers, 0 for no limit."""
    budgets: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens by tool, in place of `budget`."""
    encode: bool | None = None
    """Whether JSON tables are written as cheaper text; None for the setting of all servers."""
    whole: tuple[str, ...] = ()
    """Tools whose results are neither cut nor rewritten."""
    cache: Mapping[str, float] = field(default_factory=dict[str, float])
    """By tool, seconds for which an identical call is answered from memory."""


_NOTHING = ServerResults()
_MOST_KNOWN = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRules:
    """Rules for handling results, looked up by the server and tool that a result came from."""

    budget: int = 10_000
    """Tokens of any result without a setting of its own; 0 for no limit."""
    encode: bool = True
    ceiling: int = 0
    """Tokens that no result exceeds, whatever a request, a client's profile or a server's settings say; 0 for none."""
    servers: Mapping[str, ServerResults] = field(default_factory=dict[str, ServerResults])
    _known: dict[ToolOrigin, Handling] = field(
        default_factory=dict[ToolOrigin, Handling], init=False, repr=False, compare=False
    )
    """Cache of the handling of tools already called, for calls that ask for no budget of their own."""

    def handling(self, origin: ToolOrigin, asked: int | None = None) -> Handling:
        """Return the handling of a result.

        Args:
            origin: The server and the tool that the result came from.
            asked: The caller's own budget for this call, in tokens; replaces the configured one. 0 for the whole
                reply as the source sent it, None for no budget of its own.
        """
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
        if asked == 0:
            handling = Handling(budget=None, encode=False, is_for_program=True)
        elif any(fnmatchcase(origin.tool, pattern) for pattern in server.whole):
            handling = Handling(budget=asked, encode=False)
        else:
            set_here = _first(origin.tool, server.budgets)
            budget = next(one for one in (asked, set_here, server.budget, self.budget) if one is not None)
            encode = self.encode if server.encode is None else server.encode
            handling = Handling(budget=budget or None, encode=encode)
        return handling.limited(self.ceiling or None)

    def cached_for(self, origin: ToolOrigin) -> float:
        """Return the seconds for which results are cached; 0 for none."""
        return _first(origin.tool, self.servers.get(origin.server, _NOTHING).cache) or 0.0


def _first(tool: str, by_pattern: Mapping[str, Value]) -> Value | None:
    return next((value for pattern, value in by_pattern.items() if fnmatchcase(tool, pattern)), None)


Transport = Literal["stdio", "http", "sse"]
DefinitionChanges = Literal["hold", "accept", "ignore"]
"""How a definition that differs from the accepted one is treated: it is withheld until the user accepts it, it is
accepted and recorded, or nothing is recorded at all."""
Access = Literal["allow", "ask", "deny"]
Origin = Literal["user", "project", "client"]
"""Where the entry was found: the user's own `ullage.toml`, a project's, or another program's file."""

_STRICTNESS: dict[Access, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The user's decisions about a server's tools, by their own names or patterns such as `delete_*`."""

    allow: tuple[str, ...] = ()
    """Tools that are allowed even if `ask` or `deny` matches them."""
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    """Tools treated as read-only, whatever their annotations say or leave out."""
    writing: tuple[str, ...] = ()
    """Tools treated as not read-only, whatever their annotations claim."""
    pinned: tuple[str, ...] = ()
    """Tools that are always listed."""
    hidden: tuple[str, ...] = ()
    """Tools that are neither listed nor found; they can be called by name."""
    only: tuple[str, ...] | None = None
    """The only tools that are permitted: any other is denied, whatever the other rules say. None permits all."""
    under: "Rules | None" = None
    """Further rules that apply as well, which no `allow` here overrides: the strictest decides."""

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

    def strictest_access(self, tool: str) -> Access:
        """Return the strictest decision for a name or for any name that a server may take it for.

        Those are the same letters and digits with other separators, in another case, or with characters before them. A
        name that `allow` matches as written is not examined further.
        """
        strictest = self._access(tool)
        if strictest != "deny" and not _named(tool, self.allow):
            folded = _letters(tool)
            if any(fnmatchcase(folded, f"*{_folded_pattern(one)}") for one in self.deny):
                strictest = "deny"
            elif any(fnmatchcase(folded, f"*{_folded_pattern(one)}") for one in self.ask):
                strictest = "ask"
        if self.under is None:
            return strictest
        return max(strictest, self.under.strictest_access(tool), key=_STRICTNESS.__getitem__)

    def denied_by(self, tool: str) -> str | None:
        """Return the pattern under `deny` that denies the tool; None if it is not denied, or only because it is not in
        `only`."""
        if self._access(tool) == "deny":
            return next((pattern for pattern in self.deny if fnmatchcase(tool, pattern)), None)
        return None if self.under is None else self.under.denied_by(tool)

    def is_read_only(self, tool: str, annotations: Mapping[str, object]) -> bool:
        """Return whether a tool is read-only: by setting, else by annotation. A tool with neither is not read-only."""
        if _named(tool, self.writing):
            return False
        return _named(tool, self.read_only) or annotations.get("readOnlyHint") is True

    def is_pinned(self, tool: str) -> bool:
        return _named(tool, self.pinned)

    def is_hidden(self, tool: str) -> bool:
        return _named(tool, self.hidden)


_SEPARATORS = re.compile(r"[\W_]+")
_WILDCARDS = re.compile(r"\[[^\]]*\]|[*?]")


def _letters(text: str) -> str:
    """Return the letters and digits of a text, without separators and case."""
    return _SEPARATORS.sub("", text).casefold()


def _folded_pattern(pattern: str) -> str:
    """Return a pattern for names without separators and case; each of its wildcards matches any text."""
    return "*".join(map(_letters, _WILDCARDS.split(pattern)))


def _named(tool: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An upstream MCP server as configured. Its variables are already replaced by their values."""

    name: str
    transport: Transport
    command: str | None = None
    """For `stdio`; used with `arguments`, `environment` and `directory`."""
    arguments: tuple[str, ...] = field(default=(), repr=False)
    """May contain a secret."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables added to those that the server inherits; may contain secrets, so they are never shown."""
    inherit_env: tuple[str, ...] = ()
    """Variables of Ullage's own environment that the server inherits besides the usual ones: names or patterns; `*` for
    all."""
    directory: str | None = None
    url: str | None = field(default=None, repr=False)
    """For `http` and `sse`; may contain a secret in its query."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    disabled: bool = False
    folders: tuple[str, ...] = ()
    """The only folders in which the server is available; empty for everywhere."""
    shared: bool = False
    """Whether clients of one gateway share one connection; otherwise each session has its own."""
    prefix: str | None = None
    """Prefix of its tools' names, as in `prefix__tool`; None for the server's name, empty for none."""
    description: str | None = None
    """One line for the model that describes what the server offers; None for the server's own description."""
    start_timeout: float = 60.0
    """Seconds within which the server must answer its first request."""
    call_timeout: float = 300.0
    """Seconds without an answer or progress after which a call is abandoned."""
    idle_timeout: float | None = None
    """Seconds without a call after which the server is stopped; None for never."""
    rules: Rules = field(default_factory=Rules)
    definition_changes: DefinitionChanges = "hold"
    came_from: str | None = None
    """The file and table that the entry was read from, for display."""
    origin: Origin = "user"
    """Whether that file is the user's, a project's or another program's."""
    launch: str | None = field(default=None, repr=False, compare=False)
    """Hash of the entry as written, before variables are replaced; None if there is no such entry."""

    @property
    def key(self) -> str:
        """Hash of how the server is started or reached: a changed key means another server. Reveals none of its
        parts."""
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
            # Added only if it is set: a catalogue from before this setting knows servers by the key without it.
            parts.append(["inherit_env", sorted(self.inherit_env)])
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def launch_key(self) -> str:
        """Hash of the command or address as written, before variables are expanded, without environment and headers.
        Accepted definitions are stored under it, so that a renewed token does not make the server a different one."""
        if self.launch is not None:
            return self.launch
        parts = [self.transport, self.command, list(self.arguments), self.directory, self.url]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def spoken_prefix(self) -> str:
        return self.name if self.prefix is None else self.prefix
