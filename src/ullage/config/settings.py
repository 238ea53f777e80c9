"""The merged settings as values.

These are the settings after every file, variable and flag has been read, each value already checked. The loader reports
which file a value came from. API keys are named by their variables and never contained in these values. The delegation
policy itself belongs to the package `delegate`, which is imported only if there is a policy to read.
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
    "Telemetry",
    "Timing",
    "Token",
    "WireKind",
    "is_provider_on",
    "key_variables",
    "provider_key",
    "providers_off",
    "providers_on",
    "why_providers_off",
]

WireKind = Literal["openai", "openai-chat", "anthropic", "google", "compatible"]
Scope = Literal["call", "task", "session", "day", "month"]
LogLevel = Literal["debug", "info", "warn", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds allowed to a provider; None for the setting of all providers."""

    connect: float | None = None
    first_byte: float | None = None
    idle: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """Settings of one provider of models. The API key is read from a variable and never stored here."""

    name: str
    kind: WireKind
    """The protocol of the provider's API."""
    base_url: str = field(repr=False)
    key_env: str | None = None
    """The variable that contains its key; None for a provider that needs none."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timing: Timing = field(default_factory=Timing)
    host: str | None = None
    """The company that bills, as price tables name it; None for the maker of the model."""
    variables: frozenset[str] = frozenset()
    """Every variable that it reads from the environment, including its key."""
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
"""Providers that exist without a table in the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits on spending; None for no limit."""

    dollars: Decimal | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateSettings:
    """Settings of delegation to models: policy, budgets, and files that may be sent."""

    is_wanted: bool = False
    """Whether any file configures delegation or providers. A key alone does not count as a wish to spend money."""
    policy: "Policy | None" = None
    """None if no file has a policy: a built-in policy is used instead."""
    warnings: tuple[str, ...] = ()
    """Parts of the policy that make no sense, with file and line."""
    cut: bool = False
    """Whether a prompt larger than every context window is cut; otherwise it is refused."""
    file_roots: tuple[str, ...] = ()
    """Absolute paths of folders whose files may be sent to a model."""
    budgets: Mapping[Scope, Budget] = field(default_factory=dict[Scope, Budget])
    alerts: tuple[Decimal, ...] | None = None
    """Fractions of a budget at which the user is warned; None for the default."""
    log_level: LogLevel | None = None
    """None if the environment sets none."""
    cost_alert: Decimal | None = None
    """Dollars of one call."""
    usage_export: str | None = None
    """The CSV file to which the use of models is appended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """A collection of folders and files that agents may search."""

    name: str
    folders: tuple[str, ...] = ()
    """Absolute paths, like those of `files`."""
    files: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    max_file_bytes: int = 1_000_000
    within: str | None = None
    """The folder of the project whose settings name them: a link in it that leads out of it is not read."""
    came_from: str = ""


Mode = Literal["auto", "search", "direct"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Settings of how the gateway presents many tools as few."""

    mode: Mode = "auto"
    """`search` lists find_tool and the tools that go with it, `direct` lists every tool, `auto` decides by the tokens
    of the tools."""
    direct_below: float = 0.02
    """In `auto`: the fraction of the window below which tools are listed directly."""
    model: str | None = None
    """The model whose tokens are counted and whose window applies; None for o200k_base and 200,000."""
    window: int | None = None
    """In tokens, in place of the model's window."""
    join_calls: bool = False
    """Offer one `call_tool` for all tools instead of one for reading and one for all other tools."""
    find_budget: int = 1000
    """Default number of tokens of a reply of find_tool, unless the caller gives one."""
    start_wait: float = 10.0
    """Seconds that find_tool waits for servers that are still starting."""
    underscore_names: bool = False
    """List Ullage's own tools as `count_tokens`, not `count-tokens`."""
    shutdown_grace: float = 5.0
    """Seconds that running calls may take after SIGTERM; then they are answered with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Settings of how tools are ranked."""

    index: IndexKind = "static"
    """The index used besides the search by words: the static table that ships with Ullage, an encoder, or none."""
    learn: bool = True
    """Whether the tools called after a search are recorded, and later searches ranked by them."""
    shapes: bool = True
    """Whether searches show what tools return, and learn it from replies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Settings of how much of a result is passed on, and how long the rest is kept."""

    budget: int = 10_000
    """Tokens of any result without a setting of its own; 0 for no limit."""
    encode: bool = True
    """Whether JSON tables are written as the cheapest lossless text."""
    ceiling: int = 0
    """Tokens that no result exceeds, whatever a request or a client's profile says; 0 for no such limit."""
    keep_hours: float = 24.0
    """Time for which a result that was cut can be read by its handle."""
    keep_megabytes: float = 200.0
    """Size of all such results, compressed; the oldest are dropped first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProfile:
    """Settings that differ for one client; None for those that do not."""

    model: str | None = None
    window: int | None = None
    mode: Mode | None = None
    underscore_names: bool | None = None
    groups: tuple[str, ...] | None = None
    """The groups of servers that the client sees; None for every server."""
    whole: tuple[str, ...] | None = None
    """Tools, by listed names or patterns, whose results it gets as their source sent them, with structured content;
    None for no tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """Where traces and metrics are sent. Only the user's own settings say so, never a project's file."""

    endpoint: str | None = field(default=None, repr=False)
    """May contain a secret; None for that of the `OTEL_` variables."""
    export: bool | None = None
    """None to export where an endpoint is set."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def is_on(self) -> bool:
        return self.endpoint is not None if self.export is None else self.export


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Where a bearer token for serving over HTTP is kept; exactly one of the two places is set."""

    name: str
    """The principal in usage figures and handles."""
    env: str | None = None
    """The variable that contains it."""
    file: str | None = None
    """The absolute path of the file that contains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, merged from every file, variable and flag.

    `load` creates them: `load(Flags(), os.environ, Path.cwd()).settings`.
    """

    store: str = field(repr=False)
    """The database's URL; may contain a password."""
    servers: tuple[Server, ...] = ()
    """Servers by name, including disabled ones. A server that lacks a variable it needs to start is not included."""
    gateway: Gateway = field(default_factory=Gateway)
    search: Search = field(default_factory=Search)
    own: Rules = field(default_factory=Rules)
    """Rules of Ullage's own tools."""
    clients: Mapping[str, ClientProfile] = field(default_factory=dict[str, ClientProfile])
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Names of servers by the name of their group."""
    tokens: tuple[Token, ...] = ()
    databases: tuple[DatabaseSettings, ...] = ()
    """Databases as configured; one that lacks a variable it needs to connect is not included."""
    results: Results = field(default_factory=Results)
    handling: Mapping[str, ServerResults] = field(default_factory=dict[str, ServerResults])
    """Settings that differ from `results`, by server."""
    sample: str = ""
    """The file of the sample shop, whether or not it exists yet."""
    delegate: DelegateSettings = field(default_factory=DelegateSettings)
    providers: tuple[ProviderSettings, ...] = tuple(BUILT_IN.values())
    """Configured providers; whether they have a key depends on the environment."""
    retrieves: tuple[Folders, ...] = ()
    """Folders to search; the first is used if none is named."""
    telemetry: Telemetry = field(default_factory=Telemetry)
    pending_files: tuple[str, ...] = ()
    """Project files that wait for the user's approval, by absolute path."""

    @property
    def delegate_name(self) -> str:
        """The name of the source for delegation among the servers."""
        return self.name_of_own("delegate")

    def name_of_own(self, name: str) -> str:
        """Return the name of a part of Ullage. A server, a database or a collection of the same name keeps it, and the
        part gets the suffix ` (own)`."""
        taken = {one.name for one in (*self.servers, *self.databases, *self.retrieves)}
        # No name in the settings contains brackets.
        return f"{name} (own)" if name in taken else name

    @property
    def result_rules(self) -> ResultRules:
        """The rules for handling the results of every server. Results of databases, folders and delegation are not
        rewritten: a database already writes its rows in the cheapest form, or as JSON if asked to, and a model's answer
        is kept as it is."""
        delegate = (self.delegate_name,) if self.delegate.is_wanted else ()
        own = (*(one.name for one in (*self.databases, *self.retrieves)), *delegate)
        servers = {**self.handling, **{name: ServerResults(encode=False) for name in own}}
        results = self.results
        return ResultRules(budget=results.budget, encode=results.encode, ceiling=results.ceiling, servers=servers)

    @property
    def may_cut(self) -> bool:
        """Whether any result may be cut or rewritten."""
        budgets = [
            self.results.budget,
            self.results.ceiling,
            *(n for one in self.handling.values() for n in (one.budget, *one.budgets.values())),
        ]
        return self.results.encode or any(budgets)

    @property
    def default_database(self) -> DatabaseSettings | None:
        """The database used if none is named: the one marked as default, else the first."""
        marked = (database for database in self.databases if database.default)
        return next(marked, self.databases[0] if self.databases else None)

    def servers_of(self, client: str | None) -> frozenset[str] | None:
        """Return the names of the servers that a client sees; None for all."""
        profile = self.clients.get(client or "")
        if profile is None or profile.groups is None:
            return None
        return frozenset(server for group in profile.groups for server in self.groups.get(group, ()))

    def whole_for(self, client: str | None) -> tuple[str, ...]:
        """Return the tools, by names or patterns, whose results a client gets whole."""
        profile = self.clients.get(client or "")
        return () if profile is None else profile.whole or ()

    def gateway_for(self, client: str | None) -> Gateway:
        """Return the gateway's settings for a client: its profile, if it has one, over the settings of all clients.

        A model set for a client brings its own window, unless the profile sets another.
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


def provider_key(provider: ProviderSettings, environment: Mapping[str, str]) -> str | None:
    """Return the provider's key; None where it needs none, or has none."""
    return environment.get(provider.key_env or "", "").strip() or None


def is_provider_on(provider: ProviderSettings, environment: Mapping[str, str]) -> bool:
    key = provider_key(provider, environment)
    return provider.key_env is None or (key is not None and (key.isascii() and key.isprintable() and " " not in key))


def providers_on(settings: Settings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the providers that can be called for a model of the policy; without a policy, for the default models."""
    policy = settings.delegate.policy
    wanted = BUILT_IN.keys() if policy is None else {one.provider for one in policy.models.values()}
    return tuple(one.name for one in settings.providers if one.name in wanted and is_provider_on(one, environment))


def providers_off(settings: Settings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each provider that the policy uses and that cannot be called."""
    return tuple(f"provider `{name}` is off: {why}" for name, why in why_providers_off(settings, environment).items())


def why_providers_off(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return by provider why it cannot be called."""
    policy = settings.delegate.policy
    wanted = dict.fromkeys(one.provider for one in policy.models.values()) if policy else ()
    known = {one.name: one for one in settings.providers}
    said = [(name, _why_provider_off(known.get(name), environment)) for name in wanted]
    return {name: why for name, why in said if why is not None}


def key_variables(settings: Settings) -> tuple[str, ...]:
    """Return the variables of which one must be set for the default models."""
    return tuple(one.key_env for one in settings.providers if one.name in BUILT_IN and one.key_env)


def _why_provider_off(provider: ProviderSettings | None, environment: Mapping[str, str]) -> str | None:
    if provider is None:
        return "the policy names it, and it is not configured"
    if is_provider_on(provider, environment):
        return None
    if provider_key(provider, environment) is None:
        return f"`{provider.key_env}` is not set"
    return f"what `{provider.key_env}` holds is no key"
