"""Which tables and keys may `ullage.toml` have?

One table for reading, for the nearest name in an error, and for the reference in the docs. What a key does is told
where its field is declared.
"""

from .delegate_keys import CEILING, DELEGATE, PROVIDER, RETRIEVE, SPENDING
from .key import Key
from .kinds import (
    ADDRESS,
    AMOUNT,
    BUDGET,
    BUDGETS,
    CHANGES,
    FLAG,
    FRACTION,
    INDEX,
    INHERITED,
    LINES,
    MODE,
    NAMES,
    PAIRS,
    PREFIX,
    SECONDS,
    STORE,
    TEXT,
    TIMES,
    TRANSPORT,
    VARIABLE,
    WAIT,
    WHOLE,
)  # fmt: skip
from .source_keys import SOURCE

__all__ = [
    "CLIENT", "GATEWAY", "GROUP", "HANDLING", "OWN", "RESULTS", "SEARCH", "SERVER", "STORE_KEYS", "TABLES", "TOKEN",
    "TOP", "reference",
]  # fmt: skip

_ALLOW = Key(name="allow", kind=NAMES, means="Tools allowed whatever `ask` and `deny` say.")
_ASK = Key(
    name="ask", kind=NAMES, means="Tools that a person must agree to, each time; refused where nobody can be asked."
)
_DENY = Key(name="deny", kind=NAMES, means="Tools that may not be called and are not shown.")
_ONLY = Key(name="only", kind=NAMES, means="The only tools there are; any other is denied.")
_PINNED = Key(name="pinned", kind=NAMES, means="Tools that are always listed.")
_HIDDEN = Key(name="hidden", kind=NAMES, means="Tools that are neither listed nor found; they can be called by name.")

TOP = (
    Key(
        name="include",
        kind=NAMES,
        means="Files of other programs whose servers are read in place; paths from this file's folder, `~` allowed.",
    ),
)
GATEWAY = (
    Key(
        name="mode",
        kind=MODE,
        means="Show tools through `find_tool` (`search`), as they are (`direct`), or by their weight (`auto`).",
        default="`auto`",
    ),
    Key(
        name="direct_below",
        kind=FRACTION,
        means="In `auto`: tools that weigh less than this share of the window are shown as they are.",
        default="0.02",
    ),
    Key(
        name="model",
        kind=TEXT,
        means="Whose tokens are counted and whose window is meant; or a plain rule such as `character_count_div_4`.",
        default="o200k_base and 200,000",
    ),
    Key(name="window", kind=WHOLE, means="The window in tokens, instead of the model's.", default="the model's"),
    Key(
        name="join_calls",
        kind=FLAG,
        means="One `call_tool` for everything, instead of `call_tool` for reading and `call_tool_write` for the rest.",
        default="false",
    ),
    Key(
        name="find_budget",
        kind=WHOLE,
        means="Tokens that a reply of `find_tool` may cost where the caller names no budget.",
        default="1000",
    ),
    Key(
        name="start_wait",
        kind=WAIT,
        means="Seconds that `find_tool` waits for servers that are still starting.",
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
        means="Seconds that calls in flight may still take when `ullage serve` is told to end (SIGTERM); then they are "
        "answered with an error.",
        default="5",
    ),
)
SEARCH = (
    Key(
        name="index",
        kind=INDEX,
        means="Rank tools by words and the table that comes with Ullage (`static`), by words and an encoder "
        "(`encoder`, with `ullage[encoder]`), or by words alone (`words`).",
        default="`static`",
    ),
    Key(
        name="learn",
        kind=FLAG,
        means="Remember which tools were called after which search, and rank later searches by it. Of a query only "
        "words are kept that tools have too; a project's file may switch it off, not on.",
        default="true",
    ),
)
RESULTS = (
    Key(
        name="budget",
        kind=BUDGET,
        means="Tokens that any result may have; what is left out is kept behind a handle. 0 for no limit.",
        default="10000",
    ),
    Key(
        name="encode",
        kind=FLAG,
        means="Write JSON tables as the cheapest text that loses nothing, where that is smaller.",
        default="true",
    ),
    Key(
        name="keep_hours",
        kind=AMOUNT,
        means="Hours for which a result that was cut can be read by its handle.",
        default="24",
    ),
    Key(
        name="keep_megabytes",
        kind=AMOUNT,
        means="Megabytes of such results that are kept, packed; the oldest go first.",
        default="200",
    ),
)
HANDLING = (
    Key(
        name="budget",
        kind=BUDGET,
        means="Tokens that a result of this server may have; 0 for no limit.",
        default="that of `[results]`",
    ),
    Key(
        name="budgets",
        kind=BUDGETS,
        means='The same by tool, by name or pattern, the first that fits: `{ "list_*" = 2000 }`.',
    ),
    Key(
        name="encode",
        kind=FLAG,
        means="As in `[results]`, for this server.",
        default="that of `[results]`",
    ),
    Key(name="whole", kind=NAMES, means="Tools whose results are neither cut nor written otherwise."),
    Key(
        name="cache",
        kind=TIMES,
        means="Seconds in which the same call of a tool is answered from memory: `{ get_rates = 60 }`.",
    ),
)
"""Of a server's keys, those about its results."""
SERVER = (
    Key(name="command", kind=TEXT, means="The program to start. Either this or `url`."),
    Key(name="args", kind=LINES, means="Its arguments.", field="arguments"),
    Key(
        name="env",
        kind=PAIRS,
        means="Variables that are set for it, beside those every server gets.",
        field="environment",
    ),
    Key(
        name="inherit_env",
        kind=INHERITED,
        means='Variables of Ullage\'s own environment that it gets as well: `["GITHUB_*", "AWS_PROFILE"]`; `true` for '
        "all but Ullage's own.",
        default="false",
    ),
    Key(
        name="cwd",
        kind=TEXT,
        means="The folder it is started in, from this file's folder, `~` allowed.",
        default="Ullage's own",
        field="directory",
    ),
    Key(name="url", kind=ADDRESS, means="The address of a server that already runs."),
    Key(name="headers", kind=PAIRS, means="HTTP headers sent with every request to `url`."),
    Key(
        name="transport",
        kind=TRANSPORT,
        means="How it is spoken to.",
        default="`stdio` with a `command`; `sse` for a `url` that ends in `/sse`, else `http`",
    ),
    Key(
        name="type",
        kind=TRANSPORT,
        means="The same as `transport`, under the name other programs give it.",
        field="transport",
    ),
    Key(name="disabled", kind=FLAG, means="Keep the entry but do not use it.", default="false"),
    Key(
        name="folders",
        kind=NAMES,
        means="Only work in these folders, and below them in the same repository, has this server. For the user's own "
        "file.",
        default="every folder",
    ),
    Key(
        name="shared",
        kind=FLAG,
        means="All sessions use one connection. For servers that keep nothing about who is calling.",
        default="false",
    ),
    Key(
        name="prefix",
        kind=PREFIX,
        means="Put before its tools' names as `prefix__tool`; empty for none.",
        default="the server's name",
    ),
    Key(
        name="description",
        kind=TEXT,
        means="One line that tells the model what is to be found here.",
        default="the server's own",
    ),
    Key(
        name="start_timeout",
        kind=SECONDS,
        means="Seconds until it must have answered its first request.",
        default="60",
    ),
    Key(
        name="call_timeout",
        kind=SECONDS,
        means="Seconds without answer or progress after which a call is given up.",
        default="300",
    ),
    Key(
        name="idle_timeout",
        kind=SECONDS,
        means="Seconds without a call after which it is stopped, to be started again when needed.",
        default="never",
    ),
    _ALLOW,
    _ASK,
    _DENY,
    _ONLY,
    Key(name="read_only", kind=NAMES, means="Tools that change nothing, whatever their annotations leave out."),
    Key(name="writing", kind=NAMES, means="Tools that do change something, whatever their annotations claim."),
    _PINNED,
    _HIDDEN,
    Key(
        name="definition_changes",
        kind=CHANGES,
        means="When a tool, a prompt or the instructions are not as they were accepted: withhold them until "
        "`ullage trust` accepts them (`hold`), accept them and say so (`accept`), or record nothing (`ignore`).",
        default="`hold`",
    ),
    *HANDLING,
)
GROUP = (Key(name="servers", kind=NAMES, means="The servers of this group, by name."),)
CLIENT = (
    Key(
        name="groups",
        kind=NAMES,
        means="The groups whose servers this client sees; servers of no group it names are not there for it.",
        default="every server",
    ),
    Key(name="model", kind=TEXT, means="The model this client uses.", default="that of `[gateway]`"),
    Key(
        name="window",
        kind=WHOLE,
        means="The window in tokens.",
        default="that of this client's `model`, else of `[gateway]`",
    ),
    Key(
        name="mode",
        kind=MODE,
        means="As in `[gateway]`; `direct` for a client that defers tools by itself.",
        default="that of `[gateway]`",
    ),
    Key(name="underscore_names", kind=FLAG, means="As in `[gateway]`.", default="that of `[gateway]`"),
)
STORE_KEYS = (
    Key(
        name="url",
        kind=STORE,
        means="Where the catalogue, the ledger, budgets, what was learnt and results that were cut live: "
        "`sqlite:///path` or `postgresql://…`.",
        default="an SQLite file in the user's data folder",
    ),
)
TOKEN = (
    Key(name="env", kind=VARIABLE, means="The variable that holds the token. Either this or `file`."),
    Key(name="file", kind=TEXT, means="The file that holds it, from this file's folder, `~` allowed."),
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
    "http.tokens.NAME": TOKEN,
}
"""Every table by its heading; NAME is the user's to choose, SCOPE one of `call` to `month`."""


def reference() -> str:
    """The tables as Markdown, for the docs."""
    return "\n\n".join(_section(heading, keys) for heading, keys in TABLES.items()) + "\n"


def _section(heading: str, keys: tuple[Key, ...]) -> str:
    title = f"### `[{heading}]`" if heading else "### Before the first table"
    rows = (f"| `{key.name}` | {key.kind.wanted} | {key.default} | {key.means} |" for key in keys)
    return "\n".join([title, "", "| key | takes | default | means |", "|---|---|---|---|", *rows])
