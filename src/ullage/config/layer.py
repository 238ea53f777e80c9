"""What does one place say: a flag, a variable, a file?

One value for each, so that which of them decides can be told without reading anything (see `combining`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ullage.options import DatabaseSettings, Server, ServerResults

from .delegation import Delegation
from .folders import Folders
from .issue import Issue
from .settings import ClientProfile, Token
from .withheld import Withheld

__all__ = ["ClientFile", "Layer"]


@dataclass(frozen=True, slots=True)
class ClientFile:
    """What decides in another program's JSON file, which also holds histories and counters."""

    parts: str = field(repr=False)
    """Its tables of servers and permissions, as one text. It may hold secrets."""
    folders: tuple[str, ...] = ()
    """Folders for which it has entries of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    source: str
    """For people: `--mode`, `ULLAGE_MODE`, a file's path."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """By dotted key, such as `gateway.mode`."""
    servers: Mapping[str, Server | None] = field(default_factory=dict[str, "Server | None"])
    """None for one that is left out: its name is taken, it does not fall back to a lower place."""
    handling: Mapping[str, ServerResults] = field(default_factory=dict[str, ServerResults])
    """What is said of these servers' results."""
    databases: Mapping[str, DatabaseSettings | None] = field(default_factory=dict[str, "DatabaseSettings | None"])
    """None for one that is left out, as with servers."""
    delegation: Delegation = field(default_factory=Delegation)
    retrieves: Mapping[str, Folders] = field(default_factory=dict[str, Folders])
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Names of servers by the name of their group."""
    clients: Mapping[str, ClientProfile] = field(default_factory=dict[str, ClientProfile])
    tokens: Mapping[str, Token] = field(default_factory=dict[str, Token])
    include: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = ()
    is_foreign: bool = False
    """Whether it is another program's file."""
    is_project: bool = False
    """Whether it came with a project: it may hold back more, and lifts nothing."""
    withheld: Withheld = field(default_factory=Withheld)
    """What it holds back of servers, its own and those that stand elsewhere."""
    is_pending: bool = False
    """Whether it is a project's file that the user has not approved: only its restrictions are in it."""
    database_limits: Mapping[str, DatabaseSettings] = field(default_factory=dict[str, DatabaseSettings], repr=False)
    """Databases of a pending file, by name: none is opened, their limits and masks bind the user's own."""
    is_bound_to_folder: bool = False
    """Whether what it says depends on the working folder."""
    is_unread: bool = False
    """Whether there was a text that nobody could make sense of."""
    client_file: ClientFile | None = field(default=None, repr=False, compare=False)
    """For another program's JSON file."""

    @property
    def is_users(self) -> bool:
        """Whether the user wrote it for Ullage."""
        return not (self.is_foreign or self.is_project)
