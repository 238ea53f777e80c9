"""The merged settings as values.

The settings after every file, variable and flag has been read: values only, each already checked. Which file a
value came from is told by whoever loaded them.

Providers, budgets and where a policy came from: values only, each already checked. Keys are named by their variables
and never among these. The policy itself is `delegate`'s, which is loaded only where there is one to read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from ullage.options import DatabaseSettings, IndexKind, ResultRules, Rules, Server, ServerResults

if TYPE_CHECKING:
    from ullage.delegate import Policy

__all__ = [
    "BUILT_IN",
    "Budget",
    "ClientProfile",
    "DelegateSettings",
    "Folders",
    "Gateway",
    "LogLevel",
    "Mode",
    "ProviderSettings",
    "Results",
    "Scope",
    "Search",
    "Settings",
    "Timing",
    "Token",
    "WireKind",
]

WireKind = Literal["openai", "openai-chat", "anthropic", "google", "compatible"]
Scope = Literal["call", "task", "session", "day", "month"]
LogLevel = Literal["debug", "info", "warn", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds that a provider is given; None for what holds for all."""

    connect: float | None = None
    first_byte: float | None = None
    idle: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    name: str
    kind: WireKind
    """How it is spoken to."""
    base_url: str = field(repr=False)
    key_env: str | None = None
    """The variable that holds its key; None for one that needs none."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timing: Timing = field(default_factory=Timing)
    host: str | None = None
    """Who bills, as price tables know them; None for whoever made the model."""
    variables: frozenset[str] = frozenset()
    """All that it takes from the environment, its key among it."""
    came_from: str = ""


BUILT_IN: Mapping[str, ProviderSettings] = {
    one.name: one
    for one in (
        ProviderSettings(name="openai", kind="openai", base_url="https://api.openai.com/v1", key_env="OPENAI_API_KEY"),
        ProviderSettings(
            name="anthropic", kind="anthropic", base_url="https://api.anthropic.com", key_env="ANTHROPIC_API_KEY"
        ),
        ProviderSettings(
            name="google",
            kind="google",
            base_url="https://generativelanguage.googleapis.com",
            key_env="GOOGLE_API_KEY",
        ),
    )
}
"""Those that are there without a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may be spent; None for no limit."""

    dollars: Decimal | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateSettings:
    is_wanted: bool = False
    """Whether any file speaks of delegating or of providers. A key alone is no wish to spend money."""
    policy: "Policy | None" = None
    """None where no file has one: a policy of our own then stands in for it."""
    warnings: tuple[str, ...] = ()
    """What in the policy cannot be meant, with file and line."""
    cut: bool = False
    """Whether a prompt that no window holds is cut rather than refused."""
    file_roots: tuple[str, ...] = ()
    """Absolute paths of folders whose files may be sent to a model."""
    budgets: Mapping[Scope, Budget] = field(default_factory=dict[Scope, Budget])
    alerts: tuple[Decimal, ...] | None = None
    """Parts of a budget at which the user is told; None for what holds without."""
    log_level: LogLevel | None = None
    """None where the environment does not say."""
    cost_alert: Decimal | None = None
    """Dollars of one call."""
    usage_export: str | None = None
    """The CSV file to which the use of models is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    name: str
    folders: tuple[str, ...] = ()
    """Absolute paths, as those of `files`."""
    files: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    max_file_bytes: int = 1_000_000
    within: str | None = None
    """The folder of the project that named them: a link in it that leads out of it is not read."""
    came_from: str = ""


Mode = Literal["auto", "search", "direct"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """How the many tools are shown as few."""

    mode: Mode = "auto"
    """`search` lists find_tool and its kin, `direct` every tool, `auto` decides by what the tools weigh."""
    direct_below: float = 0.02
    """In `auto`: the share of the window under which tools are shown directly."""
    model: str | None = None
    """Whose tokens are counted and whose window is meant; None for o200k_base and 200,000."""
    window: int | None = None
    """In tokens, instead of the model's."""
    join_calls: bool = False
    """One `call_tool` for all tools instead of one for reading and one for the rest."""
    find_budget: int = 1000
    """Tokens that a reply of find_tool may cost, where the caller does not say."""
    start_wait: float = 10.0
    """Seconds that find_tool waits for servers that are still starting."""
    underscore_names: bool = False
    """List Ullage's own tools as `count_tokens`, not `count-tokens`."""
    shutdown_grace: float = 5.0
    """Seconds that calls in flight may still take after SIGTERM; then they are answered with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How tools are ranked."""

    index: IndexKind = "static"
    """What stands beside the search by words: the table that ships, an encoder, or nothing."""
    learn: bool = True
    """Whether what was called after a search is remembered, and later searches are ranked by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """How much of a result is let through, and how long the rest is kept."""

    budget: int = 10_000
    """Tokens of any result where nothing else is said; 0 for no limit."""
    encode: bool = True
    """Whether JSON tables are written as the cheapest text that loses nothing."""
    keep_hours: float = 24.0
    """For which a result that was cut can be read by its handle."""
    keep_megabytes: float = 200.0
    """Of such results, as they are packed; the oldest go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProfile:
    """What differs for one client; None for what does not."""

    model: str | None = None
    window: int | None = None
    mode: Mode | None = None
    underscore_names: bool | None = None
    groups: tuple[str, ...] | None = None
    """The groups of servers that it sees; None for every server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Where a bearer token for serving over HTTP is kept; exactly one of the two places."""

    name: str
    """The principal in figures and handles."""
    env: str | None = None
    """The variable that holds it."""
    file: str | None = None
    """The absolute path of the file that holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    store: str = field(repr=False)
    """The database's URL; may hold a password."""
    servers: tuple[Server, ...] = ()
    """By name, the disabled ones among them; a server that cannot be started for want of a variable is not."""
    gateway: Gateway = field(default_factory=Gateway)
    search: Search = field(default_factory=Search)
    own: Rules = field(default_factory=Rules)
    """For Ullage's own tools."""
    clients: Mapping[str, ClientProfile] = field(default_factory=dict[str, ClientProfile])
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Names of servers by the name of their group."""
    tokens: tuple[Token, ...] = ()
    databases: tuple[DatabaseSettings, ...] = ()
    """As the files have them; one that cannot be reached for want of a variable is not among them."""
    results: Results = field(default_factory=Results)
    handling: Mapping[str, ServerResults] = field(default_factory=dict[str, ServerResults])
    """By server, what differs from `results`."""
    sample: str = ""
    """The file in which the sample shop lies, or will."""
    delegate: DelegateSettings = field(default_factory=DelegateSettings)
    providers: tuple[ProviderSettings, ...] = tuple(BUILT_IN.values())
    """Whether they have a key is for the environment to say."""
    retrieves: tuple[Folders, ...] = ()
    """To be searched, the first of them where none is named."""
    pending_files: tuple[str, ...] = ()
    """Project files that wait for the user's approval, by absolute path."""

    @property
    def delegate_name(self) -> str:
        """What delegating is called among the servers."""
        return self.name_of_own("delegate")

    def name_of_own(self, name: str) -> str:
        """What a part of Ullage is called; a server, a database or a collection that is called so keeps its name."""
        taken = {one.name for one in (*self.servers, *self.databases, *self.retrieves)}
        # No name in the settings has brackets.
        return f"{name} (own)" if name in taken else name

    @property
    def result_rules(self) -> ResultRules:
        """How every server's results are handled. A database writes its rows as cheaply as they can be, or as JSON
        where it is asked to, and then means it; so does a model with its answer."""
        delegate = (self.delegate_name,) if self.delegate.is_wanted else ()
        own = (*(one.name for one in (*self.databases, *self.retrieves)), *delegate)
        servers = {**self.handling, **{name: ServerResults(encode=False) for name in own}}
        return ResultRules(budget=self.results.budget, encode=self.results.encode, servers=servers)

    @property
    def may_cut(self) -> bool:
        """Whether any result may be less than what came."""
        budgets = [
            self.results.budget,
            *(n for one in self.handling.values() for n in (one.budget, *one.budgets.values())),
        ]
        return self.results.encode or any(budgets)

    @property
    def default_database(self) -> DatabaseSettings | None:
        """The one that is meant where none is named: the one marked so, else the first."""
        marked = (database for database in self.databases if database.default)
        return next(marked, self.databases[0] if self.databases else None)

    def servers_of(self, client: str | None) -> frozenset[str] | None:
        """The names of the servers that a client sees; None for all."""
        profile = self.clients.get(client or "")
        if profile is None or profile.groups is None:
            return None
        return frozenset(server for group in profile.groups for server in self.groups.get(group, ()))

    def gateway_for(self, client: str | None) -> Gateway:
        """What holds for a client: its profile where it has one, over what holds for all.

        A model named for a client comes with its own window, unless the profile says another.
        """
        profile = self.clients.get(client or "", ClientProfile())
        chosen = self.gateway if profile.model is None else replace(self.gateway, model=profile.model, window=None)
        return replace(
            chosen,
            window=chosen.window if profile.window is None else profile.window,
            mode=chosen.mode if profile.mode is None else profile.mode,
            underscore_names=(
                chosen.underscore_names if profile.underscore_names is None else profile.underscore_names
            ),
        )
