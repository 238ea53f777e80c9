"""What is known of a server before it is started?

A neutral entry, whoever's file it came from: configuration makes it, the wire starts it, the gateway goes by its rules.
It says nothing of whether the server runs.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

__all__ = ["Access", "DefinitionChanges", "Origin", "Rules", "Server", "Transport"]

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
