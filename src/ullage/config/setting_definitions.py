"""The schema of `ullage.toml`: every key with its kind, default and description.

One set of tables serves for reading files, for the nearest name in an error, and for the reference in the docs. The
fields that keys set are documented where they are declared.

Each kind parses a value from a file and returns the typed value, or None if it does not fit. It reports nothing: the
reader of the file knows the position of the value.

Keys inside a policy's tables are not listed here: `delegate` reads them, under the names used in the policy's two JSON
files. Databases are the only kind of source.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import cast, get_args

from ullage.options import DefinitionChanges, IndexKind

from .settings import LogLevel, Scope, WireKind

__all__ = [
    "ADDRESS",
    "AMOUNT",
    "BUDGET",
    "BUDGETS",
    "CEILING",
    "CHANGES",
    "CHOICES",
    "CLIENT",
    "DATABASE",
    "DELEGATE",
    "FLAG",
    "FRACTION",
    "GATEWAY",
    "GROUP",
    "HANDLING",
    "INDEX",
    "KEY_VARIABLE",
    "LEVEL",
    "LIMITS",
    "LINES",
    "MODE",
    "MONEY",
    "NAMES",
    "OWN",
    "PAIRS",
    "POLICY",
    "PREFIX",
    "PROVIDER",
    "RESULTS",
    "RETRIEVE",
    "SCOPES",
    "SEARCH",
    "SECONDS",
    "SERVER",
    "SHARES",
    "SOURCE",
    "SPENDING",
    "STORE",
    "STORE_KEYS",
    "TABLE",
    "TABLES",
    "TELEMETRY",
    "TEXT",
    "TIMES",
    "TIMING",
    "TOKEN",
    "TOP",
    "TRANSPORT",
    "TRANSPORTS",
    "VARIABLE",
    "WAIT",
    "WHOLE",
    "WIRE",
    "Key",
    "Kind",
    "describe_value",
    "reference",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: how it is parsed, and how messages and the reference describe it."""

    wanted: str
    """Description with its article, for messages and the reference."""
    read: Callable[[object], object | None]
    nature: str = "a string"
    """Description, in place of `describe_value`, of a value that has at least the right type."""


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() and "\0" not in value else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _share(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _seconds(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and number > 0 else None


def _wait(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and number >= 0 else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _budget(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _by_tool(read: Callable[[object], object | None]) -> Callable[[object], object | None]:
    """Return a parser of tables in which every value is of this kind."""

    def read_table(value: object) -> dict[str, object] | None:
        if not isinstance(value, dict):
            return None
        table = cast("dict[str, object]", value)
        found = {key: one for key, given in table.items() if key.strip() and (one := read(given)) is not None}
        return found if len(found) == len(table) else None

    return read_table


def _money(value: object) -> Decimal | None:
    """Parse an amount from its shortest decimal form: 0.1 means exactly that, not the nearest binary fraction."""
    return None if _wait(value) is None else Decimal(repr(value))


def _shares(value: object) -> tuple[Decimal, ...] | None:
    items = cast("list[object]", value) if isinstance(value, list) else []
    parts = [Decimal(repr(item)) for item in items if _share(item)]
    return tuple(sorted(set(parts))) if parts and len(parts) == len(items) else None


def _key_variable(value: object) -> object | None:
    """Parse a variable's name and refuse API keys: the keys of some providers would be valid names."""
    named = VARIABLE.read(value)
    return None if named is None or _KEY.match(str(named)) else named


def _lines(value: object) -> tuple[str, ...] | None:
    """Parse a list of any texts, including the empty one: an argument may be empty."""
    if not isinstance(value, list):
        return None
    items = cast("list[object]", value)
    texts = tuple(item for item in items if isinstance(item, str) and "\0" not in item)
    return texts if len(texts) == len(items) else None


def _names(value: object) -> tuple[str, ...] | None:
    lines = _lines(value)
    return lines if lines is not None and all(line.strip() for line in lines) else None


def _parse_inherit(value: object) -> tuple[str, ...] | None:
    """Parse the variables to inherit: true means every name, false none."""
    if isinstance(value, bool):
        return ("*",) if value else ()
    return _names(value)


def _pairs(value: object) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    table = cast("dict[str, object]", value)
    pairs = {key: text for key, text in table.items() if key and isinstance(text, str) and "\0" not in text}
    return pairs if len(pairs) == len(table) else None


def _matching(pattern: str) -> Callable[[object], object | None]:
    compiled = re.compile(pattern)
    return lambda value: value if isinstance(value, str) and compiled.fullmatch(value) else None


def _one_of(choices: dict[str, str]) -> Callable[[object], object | None]:
    return lambda value: choices.get(value) if isinstance(value, str) else None


TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
"""Every spelling in use, mapped to its meaning."""
_MODES = ("auto", "search", "direct")
_INDEXES: tuple[str, ...] = get_args(IndexKind)
_CHANGES: tuple[str, ...] = get_args(DefinitionChanges)
_WIRES: tuple[str, ...] = get_args(WireKind)
_LEVELS: tuple[str, ...] = get_args(LogLevel)
_KEY = re.compile(r"(?:sk|pk|gsk|xai|hf|nvapi)[_-]|AIza")
"""Prefixes of API keys; no variable's name begins with one."""

TEXT = Kind("a string", _text)
FLAG = Kind("true or false", lambda value: value if isinstance(value, bool) else None, "true or false")
WHOLE = Kind("a whole number above 0", _whole, "a number")
FRACTION = Kind("a number from 0 to 1", _share, "a number")
SECONDS = Kind("a number of seconds above 0", _seconds, "a number")
WAIT = Kind("a number of seconds, 0 or more", _wait, "a number")
AMOUNT = Kind("a number above 0", _seconds, "a number")
BUDGET = Kind("a whole number, 0 or more", _budget, "a number")
BUDGETS = Kind("a table of whole numbers, 0 or more", _by_tool(_budget), "a table")
TIMES = Kind("a table of seconds, 0 or more", _by_tool(_wait), "a table")
LINES = Kind("a list of strings", _lines, "a list")
NAMES = Kind("a list of names or patterns", _names, "a list")
INHERITED = Kind("true, false, or a list of names or patterns", _parse_inherit, "a list")
PAIRS = Kind("a table of strings", _pairs, "a table")
PREFIX = Kind("letters, digits, `_` or `-`, or nothing", _matching(r"[A-Za-z0-9_-]*"))
ADDRESS = Kind("an address that begins with http:// or https://", _matching(r"(?s)(?:https?://|\$\{)\S.*"))
VARIABLE = Kind("the name of a variable", _matching(r"[A-Za-z_][A-Za-z0-9_]*"))
KEY_VARIABLE = Kind("the name of a variable, never a key", _key_variable)
STORE = Kind("a database's URL", _matching(r"(?s)(?:[a-z][a-z0-9]*(?:\+[a-z0-9_]+)?://|\$\{).*"))
DATABASE = Kind("a database's URL, a file of SQLite or DuckDB, or `sample`", _text)
MODE = Kind("`auto`, `search` or `direct`", _one_of({mode: mode for mode in _MODES}))
INDEX = Kind("`static`, `encoder` or `words`", _one_of({one: one for one in _INDEXES}))
TRANSPORT = Kind("`stdio`, `http` or `sse`", _one_of(TRANSPORTS))
CHANGES = Kind("`hold`, `accept` or `ignore`", _one_of({one: one for one in _CHANGES}))
WIRE = Kind("`openai`, `openai-chat`, `anthropic`, `google` or `compatible`", _one_of({one: one for one in _WIRES}))
LEVEL = Kind("`debug`, `info`, `warn` or `error`", _one_of({one: one for one in _LEVELS}))
MONEY = Kind("an amount, 0 or more", _money, "a number")
SHARES = Kind("a list of numbers above 0, up to 1", _shares, "a list")
TABLE = Kind("a table", lambda value: cast("object", value) if isinstance(value, dict) else None, "a table")

CHOICES = {
    MODE.wanted: _MODES,
    INDEX.wanted: _INDEXES,
    TRANSPORT.wanted: ("stdio", "http", "sse"),
    CHANGES.wanted: _CHANGES,
    WIRE.wanted: _WIRES,
    LEVEL.wanted: _LEVELS,
}
"""Options that an error lists for a kind that is a choice."""

_DESCRIBED = (
    (bool, "true or false"),
    (str, "a string"),
    (int | float, "a number"),
    (list, "a list"),
    (dict, "a table"),
)


def describe_value(value: object) -> str:
    """Describe a value without revealing it."""
    if value in ("", [], {}) or (isinstance(value, str) and not value.strip()):
        return "empty"
    return next((name for kind, name in _DESCRIBED if isinstance(value, kind)), "something else")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of `ullage.toml`."""

    name: str
    kind: Kind
    means: str
    default: str = "none"
    field: str = ""
    """Name of the field in the code, if it differs."""

    @property
    def target(self) -> str:
        return self.field or self.name


_TIMING = (
    Key(
        name="connect_timeout",
        kind=SECONDS,
        means="Seconds within which a connection must be made.",
        default="3",
        field="connect",
    ),
    Key(
        name="first_byte_timeout",
        kind=SECONDS,
        means="Seconds until the answer must begin; if not set, five times as many for reasoning models.",
        default="60",
        field="first_byte",
    ),
    Key(
        name="idle_timeout",
        kind=SECONDS,
        means="Longest pause in seconds within an answer; if not set, five times as many for reasoning models.",
        default="30",
        field="idle",
    ),
)
TIMING = tuple(key.target for key in _TIMING)
"""The keys among these that are fields of `Timing`."""
PROVIDER = (
    Key(
        name="kind",
        kind=WIRE,
        means="The API of the provider; `compatible` for any server with OpenAI's chat API (Ollama, vLLM, OpenRouter).",
        default="the provider's name, if it is `openai`, `anthropic` or `google`; else `compatible`",
    ),
    Key(
        name="base_url",
        kind=ADDRESS,
        means="The address of the API, including a version if its paths begin with one.",
        default="the maker's own; none for `compatible`",
    ),
    Key(
        name="key_env",
        kind=KEY_VARIABLE,
        means="The variable with the provider's key. If the variable is not set, the provider is off.",
        default="`OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GOOGLE_API_KEY` for these three; else no key is sent",
    ),
    Key(name="headers", kind=PAIRS, means="HTTP headers sent with every request."),
    *_TIMING,
    Key(
        name="host",
        kind=TEXT,
        means="The company that bills you, by its name in price tables, such as `openrouter`.",
        default="the maker of the model",
    ),
)
POLICY = (
    Key(name="aliases", kind=TABLE, means='Names for models: `chat-default = "openai:gpt-4o-mini"`.'),
    Key(
        name="models",
        kind=TABLE,
        means="Models by id, each with `provider`, `model`, `max_output_tokens`, `temperature`, `cap`, "
        "`pricing`, `window`.",
    ),
    Key(
        name="routing",
        kind=TABLE,
        means="How a model is chosen: `defaultAlias`, `languageHeuristics`, `tokenBuckets`, `fallbacks`.",
    ),
    Key(name="caps", kind=TABLE, means="Limits on the tokens of an answer: `default`, and `tiers` by name."),
    Key(name="temperatures", kind=TABLE, means="Temperatures by domain: `default`, `code`, `creative`."),
    Key(name="prompts", kind=TABLE, means="System prompts by task: `run`, `diff`, `tests`, `judge`."),
)
DELEGATE = (
    Key(
        name="conf",
        kind=TEXT,
        means="The folder with `models.json` and `policies.json`, relative to this file's folder; `~` is allowed.",
        default="`conf` beside the project's file or in the working directory, if it has both files",
    ),
    *POLICY,
    Key(
        name="cut",
        kind=FLAG,
        means="Cut a prompt that fits no window in the middle, with a warning, instead of refusing it.",
        default="false",
    ),
    Key(name="budgets", kind=TABLE, means="See below."),
    Key(
        name="file_roots",
        kind=NAMES,
        means="Folders whose files a call may send to a model by path. Only in your own file.",
        default="none",
    ),
    Key(
        name="project_keys",
        kind=NAMES,
        means="Variables that a project's providers may use. Only in your own file.",
    ),
)
SCOPES: tuple[Scope, ...] = get_args(Scope)
SPENDING = (
    *(Key(name=scope, kind=TABLE, means=f"What one {scope} may spend.", default="no limit") for scope in SCOPES),
    Key(
        name="alerts",
        kind=SHARES,
        means="Parts of a budget at which a line is logged, once for each part.",
        default="[0.5, 0.8, 1]",
    ),
)
CEILING = (
    Key(
        name="dollars",
        kind=MONEY,
        means="Maximum amount of money. A call that would exceed it is refused.",
        default="no limit",
    ),
    Key(name="tokens", kind=BUDGET, means="Maximum number of tokens, input and output together.", default="no limit"),
)
RETRIEVE = (
    Key(
        name="folders",
        kind=NAMES,
        means="Folders to search, with everything in them, relative to this file's folder; `~` is allowed.",
    ),
    Key(name="files", kind=NAMES, means="Single files to search, regardless of the patterns."),
    Key(
        name="include",
        kind=NAMES,
        means="Patterns as in `.gitignore`: only matching files are searched.",
        default="every text",
    ),
    Key(
        name="exclude",
        kind=NAMES,
        means="Patterns of files that are not searched, in addition to secrets and generated files; `!name` "
        "makes an exception.",
    ),
    Key(
        name="gitignore",
        kind=FLAG,
        means="Whether to leave out files that a folder's own `.gitignore` names.",
        default="true",
    ),
    Key(
        name="max_file_bytes",
        kind=WHOLE,
        means="Maximum bytes of a file; larger files are left out, and replies note this.",
        default="1000000",
    ),
)

_WITHIN_LIMITS = (
    Key(
        name="max_rows",
        kind=WHOLE,
        means="Maximum rows of one answer, even if a call asks for more.",
        default="1000",
        field="rows",
    ),
    Key(
        name="timeout",
        kind=SECONDS,
        means="Seconds from a query to its last row; after that the query is cancelled.",
        default="30",
        field="seconds",
    ),
    Key(
        name="max_cell",
        kind=WHOLE,
        means="Maximum characters of one value; the rest is cut, and the answer says how much.",
        default="20000",
        field="cell",
    ),
    Key(
        name="max_megabytes",
        kind=AMOUNT,
        means="Maximum megabytes of all values of an answer.",
        default="16",
        field="bytes",
    ),
    Key(name="concurrency", kind=WHOLE, means="Maximum simultaneous queries; further ones wait.", default="4"),
)
LIMITS = tuple(key.target for key in _WITHIN_LIMITS)
"""The keys among these that are fields of `Limits`."""

SOURCE = (
    Key(
        name="database",
        kind=DATABASE,
        means="The database. Paths are relative to this file's folder; `~` is allowed. `sample` is a small "
        "sample shop.",
        field="url",
    ),
    Key(
        name="default",
        kind=FLAG,
        means="Whether `query` and `schema` use this database if a call names none.",
        default="false; if no database is the default, the first one is",
    ),
    Key(name="description", kind=TEXT, means="One line that describes the contents to the model."),
    *_WITHIN_LIMITS,
    Key(
        name="max_tokens",
        kind=WHOLE,
        means="Maximum tokens of one answer, even if a call asks for more.",
        default="the budget of every result",
    ),
    Key(
        name="masked",
        kind=NAMES,
        means="Columns whose values are never shown, as `table.column` or as patterns such as `*.password`.",
    ),
    Key(
        name="functions",
        kind=NAMES,
        means="User-defined functions that a query may call. You guarantee that they change nothing.",
    ),
    Key(
        name="cache",
        kind=WAIT,
        means="Seconds for which the same query is answered from a cache; 0 for never.",
        default="0",
    ),
    Key(
        name="schema_cache",
        kind=WAIT,
        means="Seconds for which descriptions of tables are answered from a cache; 0 for never.",
        default="300",
    ),
)

_ALLOW = Key(name="allow", kind=NAMES, means="Tools that are allowed, regardless of `ask` and `deny`.")
_ASK = Key(
    name="ask", kind=NAMES, means="Tools that the user must approve for each call; refused if the user cannot be asked."
)
_DENY = Key(name="deny", kind=NAMES, means="Tools that cannot be called and are not shown.")
_ONLY = Key(name="only", kind=NAMES, means="The only tools of this server that exist; all others are denied.")
_PINNED = Key(name="pinned", kind=NAMES, means="Tools that are always listed.")
_HIDDEN = Key(name="hidden", kind=NAMES, means="Tools that are neither listed nor found; they can be called by name.")

TOP = (
    Key(
        name="include",
        kind=NAMES,
        means="Files of other programs whose servers are used; paths are relative to this file's folder, and "
        "`~` is allowed.",
    ),
)
GATEWAY = (
    Key(
        name="mode",
        kind=MODE,
        means="Offer tools through `find_tool` (`search`), list them all (`direct`), or decide by their tokens"
        " (`auto`).",
        default="`auto`",
    ),
    Key(
        name="direct_below",
        kind=FRACTION,
        means="With `auto`: if all tools together take less than this share of the window, they are listed directly.",
        default="0.02",
    ),
    Key(
        name="model",
        kind=TEXT,
        means="The model for token counts and window sizes, or a simple rule such as `character_count_div_4`.",
        default="o200k_base and 200,000",
    ),
    Key(
        name="window",
        kind=WHOLE,
        means="The size of the window in tokens, instead of the model's.",
        default="the model's",
    ),
    Key(
        name="join_calls",
        kind=FLAG,
        means="Offer one `call_tool` for all tools, instead of `call_tool` for reading and `call_tool_write` "
        "for the others.",
        default="false",
    ),
    Key(
        name="find_budget",
        kind=WHOLE,
        means="Maximum tokens of a reply of `find_tool` if the caller sets none.",
        default="1000",
    ),
    Key(
        name="start_wait",
        kind=WAIT,
        means="Seconds for which `find_tool` waits for servers that are still starting.",
        default="10",
    ),
    Key(
        name="underscore_names",
        kind=FLAG,
        means="List Ullage's own tools with underscores: `count_tokens`, not `count-tokens`.",
        default="false",
    ),
    Key(
        name="shutdown_grace",
        kind=WAIT,
        means="Seconds that calls in flight may still take after `ullage serve` receives SIGTERM; "
        "then they get an error.",
        default="5",
    ),
)
SEARCH = (
    Key(
        name="index",
        kind=INDEX,
        means="Rank tools by words and the table in the package (`static`), by words and an encoder "
        "(`encoder`, with `ullage[encoder]`), or by words alone (`words`).",
        default="`static`",
    ),
    Key(
        name="learn",
        kind=FLAG,
        means="Remember which tools were called after which search, and rank later searches by it. Only words "
        "of a query that also occur in tools are kept. A project's file can turn this off, not on.",
        default="true",
    ),
    Key(
        name="shapes",
        kind=FLAG,
        means="Show in searches what a tool returns: keys and types of values, from its `outputSchema` or "
        "learned from replies. A project's file can turn this off, not on.",
        default="true",
    ),
)
RESULTS = (
    Key(
        name="budget",
        kind=BUDGET,
        means="Maximum tokens of any result; the whole result is kept under a handle. 0 for no limit.",
        default="10000",
    ),
    Key(
        name="encode",
        kind=FLAG,
        means="Write JSON tables in fewer tokens, without loss, if that is smaller.",
        default="true",
    ),
    Key(
        name="ceiling",
        kind=BUDGET,
        means="Tokens that no result exceeds, regardless of a request, `whole` or another budget. A larger "
        "whole result is refused with its handle. Only in your own file; 0 for none.",
        default="0",
    ),
    Key(
        name="keep_hours",
        kind=AMOUNT,
        means="Hours for which a cut result can be read by its handle.",
        default="24",
    ),
    Key(
        name="keep_megabytes",
        kind=AMOUNT,
        means="Maximum megabytes of such results, compressed; the oldest are deleted first.",
        default="200",
    ),
)
HANDLING = (
    Key(
        name="budget",
        kind=BUDGET,
        means="Maximum tokens of a result of this server; 0 for no limit.",
        default="that of `[results]`",
    ),
    Key(
        name="budgets",
        kind=BUDGETS,
        means='The same for single tools, by name or pattern; the first match counts: `{ "list_*" = 2000 }`.',
    ),
    Key(
        name="encode",
        kind=FLAG,
        means="As in `[results]`, for this server.",
        default="that of `[results]`",
    ),
    Key(name="whole", kind=NAMES, means="Tools whose results are neither cut nor rewritten."),
    Key(
        name="cache",
        kind=TIMES,
        means="Seconds for which the same call of a tool is answered from a cache: `{ get_rates = 60 }`.",
    ),
)
"""The keys of a server that concern its results."""
SERVER = (
    Key(name="command", kind=TEXT, means="The program to start. Either this or `url`."),
    Key(name="args", kind=LINES, means="The arguments of `command`.", field="arguments"),
    Key(
        name="env",
        kind=PAIRS,
        means="Variables that are set for the server, in addition to those that every server gets.",
        field="environment",
    ),
    Key(
        name="inherit_env",
        kind=INHERITED,
        means='Variables of Ullage\'s own environment that the server also gets: `["GITHUB_*", "AWS_PROFILE"]`;'
        " `true` for all except Ullage's own.",
        default="false",
    ),
    Key(
        name="cwd",
        kind=TEXT,
        means="The folder in which the server is started, relative to this file's folder; `~` is allowed.",
        default="Ullage's own",
        field="directory",
    ),
    Key(name="url", kind=ADDRESS, means="The address of a remote or running server."),
    Key(name="headers", kind=PAIRS, means="HTTP headers sent with every request to `url`."),
    Key(
        name="transport",
        kind=TRANSPORT,
        means="The transport to the server.",
        default="`stdio` with a `command`; `sse` for a `url` that ends in `/sse`, else `http`",
    ),
    Key(
        name="type",
        kind=TRANSPORT,
        means="The same as `transport`, under the name that other programs use.",
        field="transport",
    ),
    Key(name="disabled", kind=FLAG, means="Keep the entry but do not use it.", default="false"),
    Key(
        name="folders",
        kind=NAMES,
        means="The server is available only in these folders, and below them in the same repository. Only in "
        "your own file.",
        default="every folder",
    ),
    Key(
        name="shared",
        kind=FLAG,
        means="All sessions share one connection. For servers that store nothing about the caller.",
        default="false",
    ),
    Key(
        name="prefix",
        kind=PREFIX,
        means="The text before the names of the server's tools (`prefix__tool`); empty for none.",
        default="the server's name",
    ),
    Key(
        name="description",
        kind=TEXT,
        means="One line that describes the contents to the model.",
        default="the server's own",
    ),
    Key(
        name="start_timeout",
        kind=SECONDS,
        means="Seconds within which the server must answer its first request.",
        default="60",
    ),
    Key(
        name="call_timeout",
        kind=SECONDS,
        means="Seconds without answer or progress after which a call fails.",
        default="300",
    ),
    Key(
        name="idle_timeout",
        kind=SECONDS,
        means="Seconds without a call after which the server is stopped; it is started again when needed.",
        default="never",
    ),
    _ALLOW,
    _ASK,
    _DENY,
    _ONLY,
    Key(name="read_only", kind=NAMES, means="Tools that change nothing, even if their annotations do not mark them."),
    Key(name="writing", kind=NAMES, means="Tools that change something, regardless of their annotations."),
    _PINNED,
    _HIDDEN,
    Key(
        name="definition_changes",
        kind=CHANGES,
        means="What happens if a tool, a prompt or the instructions differ from the accepted version: withhold"
        " it until `ullage trust` accepts it (`hold`), accept it and report that (`accept`), or record "
        "nothing (`ignore`).",
        default="`hold`",
    ),
    *HANDLING,
)
GROUP = (Key(name="servers", kind=NAMES, means="The names of the servers in this group."),)
CLIENT = (
    Key(
        name="groups",
        kind=NAMES,
        means="The groups whose servers this client sees; it sees no others.",
        default="every server",
    ),
    Key(name="model", kind=TEXT, means="The model this client uses.", default="that of `[gateway]`"),
    Key(
        name="window",
        kind=WHOLE,
        means="The size of the window in tokens.",
        default="that of this client's `model`, else of `[gateway]`",
    ),
    Key(
        name="mode",
        kind=MODE,
        means="As in `[gateway]`; use `direct` for a client that loads tools on demand itself.",
        default="that of `[gateway]`",
    ),
    Key(name="underscore_names", kind=FLAG, means="As in `[gateway]`.", default="that of `[gateway]`"),
    Key(
        name="whole",
        kind=INHERITED,
        means="For a client that runs programs: tools, by listed name or pattern, whose results are neither "
        "cut nor rewritten and keep their structured content; `true` for all.",
        default="false",
    ),
)
STORE_KEYS = (
    Key(
        name="url",
        kind=STORE,
        means="The store for the catalogue, the ledger, budgets, what was learned, and results that were cut: "
        "`sqlite:///path` or `postgresql://…`.",
        default="a SQLite file in the user's data folder",
    ),
)
TELEMETRY = (
    Key(
        name="endpoint",
        kind=ADDRESS,
        means="The address to which traces and metrics are sent, as OTLP over HTTP in JSON; `/v1/traces` and "
        "`/v1/metrics` are appended.",
        default="that of the variable `OTEL_EXPORTER_OTLP_ENDPOINT`, if `export` is true",
    ),
    Key(
        name="export",
        kind=FLAG,
        means="Send traces and metrics. If `true` without `endpoint`, the `OTEL_` variables set the address.",
        default="true if `endpoint` is set, else false",
    ),
    Key(name="headers", kind=PAIRS, means='HTTP headers of each request, such as a key: `{ api-key = "${KEY}" }`.'),
)
TOKEN = (
    Key(name="env", kind=VARIABLE, means="The variable with the token. Either this or `file`."),
    Key(name="file", kind=TEXT, means="The file with the token, relative to this file's folder; `~` is allowed."),
)
OWN = (_PINNED, _HIDDEN, _ALLOW, _ASK, _DENY)

TABLES: dict[str, tuple[Key, ...]] = {
    "": TOP,
    "gateway": GATEWAY,
    "search": SEARCH,
    "results": RESULTS,
    "servers.NAME": SERVER,
    "sources.NAME": SOURCE,
    "delegate": DELEGATE,
    "delegate.budgets": SPENDING,
    "delegate.budgets.SCOPE": CEILING,
    "providers.NAME": PROVIDER,
    "retrieve.NAME": RETRIEVE,
    "groups.NAME": GROUP,
    "clients.NAME": CLIENT,
    "own": OWN,
    "store": STORE_KEYS,
    "telemetry": TELEMETRY,
    "http.tokens.NAME": TOKEN,
}
"""Every table by its heading. NAME is chosen by the user; SCOPE is one of `call` to `month`."""


def reference() -> str:
    """Return the tables as Markdown, for the docs."""
    return "\n\n".join(_section(heading, keys) for heading, keys in TABLES.items()) + "\n"


def _section(heading: str, keys: tuple[Key, ...]) -> str:
    title = f"### `[{heading}]`" if heading else "### Before the first table"
    rows = (f"| `{key.name}` | {key.kind.wanted} | {key.default} | {key.means} |" for key in keys)
    return "\n".join([title, "", "| key | value | default | meaning |", "|---|---|---|---|", *rows])
