"""What a project file would do once it is approved, a line each, for a person to review.

The lines say what would be started, contacted and read, which variables it would receive, what it sets, and what of it
is ignored. They are made of the file as it is written: no variable is replaced. Values of variables whose names look
like secrets are shown by their length and a digest, so that a changed value still shows as a difference.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import cast
from urllib.parse import urlsplit, urlunsplit

from ullage.options import SAMPLE, DatabaseSettings, Rules, Server

from .delegating import ProviderSettings
from .delegation import Delegation
from .folders import Folders
from .layer import Layer
from .policies import Documents
from .restricting import USER_ONLY_SERVER_KEYS, USER_ONLY_VALUES
from .variables import variables_in

__all__ = ["effects_of", "is_secret_name", "masked_url", "other_settings"]

_SECRET_NAME = re.compile(
    r"(?:^|[_.-])(?:api[_-]?key|access[_-]?key|auth|authorization|bearer|cookie|cred(?:ential)?s?|key|pass(?:wd|word|phrase)?|"
    r"pat|pwd|secret|session|signature|token)s?(?:$|[_.-])",
    re.IGNORECASE,
)
_NAMED_KEY = 3
"""Parts of a path such as `servers.github.command`."""
_NEVER_CUT = ("start ", "contact ", "receive ", "read ")
_LONGEST = 2_000
"""Characters of one line; the rest is cut, and its digest keeps a change visible."""


def is_secret_name(name: str) -> bool:
    """Whether a variable, a header or a parameter of that name probably holds a secret."""
    return _SECRET_NAME.search(name) is not None


def effects_of(layers: Sequence[Layer]) -> tuple[str, ...]:
    """What these layers of one project file and of the files it includes would do, in a stable order."""
    lines = [line for layer in layers for line in _effects(layer)]
    return tuple(dict.fromkeys(_shortened(line) for line in lines))


# fmt: off
_SHOWN_ELSEWHERE = {
    "servers": {
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "headers",
        "deny",
        "ask",
        "hidden",
        "allow",
        "read_only",
        "pinned",
    },
    "sources": {"database"},
    "retrieve": {"folders", "files"},
    "providers": {"base_url", "key_env"},
    "clients": {"model", "window", "mode", "underscore_names"},
}
"""Keys of named tables that have a line of their own."""
# fmt: on
_TABLES_SHOWN_ELSEWHERE = ("include", "gateway", "search", "results", "own", "store", "http")


def other_settings(document: Mapping[str, object], tables: Sequence[str] = ()) -> Iterator[str]:
    """A line for every key of a file that no other line shows, so that no change of it goes unseen.

    Args:
        document: the file as it was parsed.
        tables: the only tables to look at; all of them where there are none.
    """
    for table, value in document.items():
        if (tables and table not in tables) or table in _TABLES_SHOWN_ELSEWHERE:
            continue
        named = _SHOWN_ELSEWHERE["servers" if tables else table] if tables or table in _SHOWN_ELSEWHERE else set[str]()
        for path, leaf in _leaves(value, (table,)):
            if not (len(path) >= _NAMED_KEY and path[2] in named):
                yield _shortened(f"set       {'.'.join(path)} = {_shown_value(path[-1], _written(leaf))}")


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            yield from _leaves(inner, (*path, str(key)))
    else:
        yield path, tuple(cast("list[object]", value)) if isinstance(value, list) else value


def _effects(layer: Layer) -> Iterator[str]:
    for name, server in layer.servers.items():
        if server is not None:
            yield from _server_effects(name, server)
    for name, database in layer.databases.items():
        if database is not None:
            yield _database_effect(name, database)
    yield from (_folder_effect(name, folders) for name, folders in layer.retrieves.items())
    yield from _delegate_effects(layer.delegation)
    yield from (f"read      the servers of `{path}`" for path in layer.include)
    yield from _setting_effects(layer)


def _setting_effects(layer: Layer) -> Iterator[str]:
    for name, profile in layer.clients.items():
        yield f"set       the profile of client `{name}`: {_fields_of(profile)}"
    for key, value in sorted(layer.values.items()):
        if key not in USER_ONLY_VALUES:
            yield f"set       {key} = {_written(value)}"
    for name, rules in layer.withheld.rules.items():
        yield from _rule_effects(name, rules)
    ignored = [key for key in layer.values if key in USER_ONLY_VALUES]
    for key in (*ignored, *(f"http.tokens.{name}" for name in layer.tokens)):
        yield f"ignored   {key}: never read from a project's file"


def _server_effects(name: str, server: Server) -> Iterator[str]:
    state = ", disabled" if server.disabled else ""
    if server.command is not None:
        line = shlex.join((server.command, *server.arguments))
        where = f" in `{server.directory}`" if server.directory else ""
        yield f"start     `{line}`{where} (server `{name}`{state})"
    else:
        yield f"contact   {masked_url(server.url or '')} (server `{name}`{state})"
    for key, value in sorted(server.environment.items()):
        yield f"set       variable {key}={_shown_value(key, value)} for server `{name}`"
    for key, value in sorted(server.headers.items()):
        yield f"send      header {key}: {_shown_value(key, value)} to server `{name}`"
    texts = (
        server.command or "",
        *server.arguments,
        *server.environment.values(),
        server.url or "",
        *server.headers.values(),
    )
    received = dict.fromkeys(one for text in (*texts, server.directory or "") for one in variables_in(text))
    yield from (f"receive   your variable {one} (server `{name}`)" for one in received)
    for key in USER_ONLY_SERVER_KEYS:
        if getattr(server, key, None) not in (None, False, (), "hold"):
            yield f"ignored   servers.{name}.{key}: never read from a project's file"


def _database_effect(name: str, database: DatabaseSettings) -> str:
    if database.url == SAMPLE:
        return f"open      the sample shop (database `{name}`)"
    verb = "contact" if "://" in database.url and not database.url.startswith(("sqlite", "duckdb")) else "read   "
    received = variables_in(database.url)
    also = f", receiving your variable {', '.join(received)}" if received else ""
    return f"{verb}   {masked_url(database.url)} (database `{name}`{also})"


def _folder_effect(name: str, folders: Folders) -> str:
    paths = ", ".join(f"`{path}`" for path in (*folders.folders, *folders.files))
    return f"read      {paths} (collection `{name}`, for `retrieve.search` and `files`)"


def _delegate_effects(delegation: Delegation) -> Iterator[str]:
    for name, provider in delegation.providers.items():
        if provider is not None:
            yield _provider_effect(name, provider)
    if delegation.policy is not None:
        yield f"choose    models by its own policy: {_policy_summary(delegation.policy)}"
    for scope, budget in delegation.budgets.items():
        yield f"restrict  one {scope} to {_fields_of(budget)}"


def _provider_effect(name: str, provider: ProviderSettings) -> str:
    asked = ", ".join(sorted(provider.variables))
    also = f"; ignored unless your own settings allow it to receive {asked}" if asked else ""
    return f"contact   {masked_url(provider.base_url)} with prompts (provider `{name}`{also})"


def _policy_summary(policy: Documents) -> str:
    models, aliases = (cast("Mapping[str, object] | None", policy.tables.get(name)) for name in ("models", "aliases"))
    named = sorted(str(one) for one in aliases.values()) if isinstance(aliases, Mapping) else []
    known = sorted(models) if isinstance(models, Mapping) else []
    return ", ".join(dict.fromkeys((*named, *known))) or "rules only"


def _rule_effects(name: str, rules: Rules) -> Iterator[str]:
    for kind in ("deny", "ask", "hidden"):
        patterns = getattr(rules, kind)
        if patterns:
            yield f"restrict  server `{name}`: {kind} {', '.join(patterns)}"
    for kind in ("allow", "read_only", "pinned"):
        patterns = getattr(rules, kind)
        if patterns:
            yield f"set       server `{name}`: {kind} {', '.join(patterns)}"


def _fields_of(value: object) -> str:
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    said = {name: getattr(value, name) for name in names if getattr(value, name) is not None}
    return ", ".join(f"{name} {_written(one)}" for name, one in said.items()) or "nothing"


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, cast('tuple[object, ...]', value)))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown_value(name: str, value: str) -> str:
    """A value as a person may see it: a variable's name is no secret, what stands for one may be."""
    rest = re.sub(r"\$\{[^}]*\}", "", value)
    if not is_secret_name(name) or not rest or rest.strip() in ("Bearer", "Basic", "token"):
        return value
    return f"(hidden, {len(value)} characters, digest {_digest(value)})"


def masked_url(url: str) -> str:
    """An address without its password and without the secret values of its query.

    The host is always shown as the one that is connected to: of the part before `@` only the user's name of a database
    is kept. A path to a file is shown as it is.
    """
    try:
        parts = urlsplit(url)
        host, password = parts.hostname, parts.password
    except ValueError:
        return f"(an address that cannot be read, digest {_digest(url)})"
    if not parts.scheme or not host:
        return url
    user = ""
    if "@" in parts.netloc:
        is_database = (
            not parts.scheme.startswith("http")
            and parts.username
            and re.fullmatch(r"[\w.$-]+|\$\{\w+\}", parts.username)
        )
        user = f"{parts.username if is_database else '…'}{':…' if password else ''}@"
        if not is_database or (password and not password.startswith("${")):
            user = f"{user[:-1]}({_digest(parts.netloc)})@"
    place = parts.netloc.rpartition("@")[2]
    query = "&".join(_masked_pair(pair) for pair in parts.query.split("&")) if parts.query else ""
    return urlunsplit((parts.scheme, f"{user}{place}", parts.path, query, parts.fragment))


def _masked_pair(pair: str) -> str:
    key, equals, value = pair.partition("=")
    is_hidden = is_secret_name(key) and value and not value.startswith("${")
    return f"{key}=…({_digest(value)})" if is_hidden else f"{key}{equals}{value}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _shortened(line: str) -> str:
    if len(line) <= _LONGEST or line.startswith(_NEVER_CUT):
        return line
    return f"{line[:_LONGEST]}… ({len(line)} characters, digest {_digest(line)})"
