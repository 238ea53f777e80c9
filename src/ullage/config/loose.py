"""What can be made of an entry in another program's file?

Key by key, and forgivingly: a number where a text belongs is that text, null and the empty text are nothing. What is
not understood at all leaves the one server out; what Ullage has no use for is noted. Which keys there are is the
dialect's matter.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any, TypeVar, cast

from ullage.options import Rules, Server

from .entry import Entry, launch_fault, server_of
from .issue import Issue
from .kinds import FLAG, SECONDS, TRANSPORT, described
from .lists import readable
from .naming import clean, folded
from .narrowing import narrower, tool_names
from .page import Page
from .permissions import Permissions
from .withheld import Withheld

__all__ = [
    "Loose",
    "flag",
    "pairs",
    "read_tables",
    "seconds",
    "text",
    "texts",
    "transport",
]

Value = TypeVar("Value")

_UNUSED = {
    "autoApprove": "is not taken over: your client asks before `call_tool_write`, as it is set to",
    "alwaysAllow": "is not taken over: your client asks before `call_tool_write`, as it is set to",
    "trust": "is not taken over: your client asks before `call_tool_write`, as it is set to",
    "envFile": "is not read: put its variables into `env`",
    "oauth": "is not used: Ullage cannot sign in for that program; send a token in `headers`",
    "headersHelper": "is not run: put the header into `headers`",
}


def text(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)


def texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    found = [text(item) for item in cast("list[object]", value)]
    return None if None in found else cast("tuple[str, ...]", tuple(found))


def pairs(value: object) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return {} if value == [] else None
    given = {key: one for key, one in cast("dict[str, object]", value).items() if one is not None}
    found = {key: str(one).lower() if isinstance(one, bool) else text(one) for key, one in given.items()}
    return None if None in found.values() else cast("dict[str, str]", found)


def flag(value: object) -> bool | None:
    return cast("bool | None", FLAG.read(value))


def seconds(value: object) -> float | None:
    return cast("float | None", SECONDS.read(value))


def transport(value: object) -> str | None:
    return cast("str | None", TRANSPORT.read(value))


@dataclass(slots=True)
class Loose:
    """One entry, being read."""

    page: Page
    path: tuple[str, ...]
    raw: Mapping[str, object]
    used: set[str] = field(default_factory=set[str])
    faults: list[str] = field(default_factory=list[str])

    def take(self, read: Callable[[object], Value | None], *keys: str) -> Value | None:
        """The value of the first of these keys that has one; None where none has or it cannot be understood."""
        for key in keys:
            self.used.add(key)
            value = self.raw.get(key)
            if value not in (None, ""):
                return self._read(read, key, value)
        return None

    def tools(self, key: str) -> tuple[str, ...] | None:
        """The tools on a list, as far as it can be understood, as the server calls them; None where there is none."""
        self.used.add(key)
        value = self.raw.get(key)
        if value in (None, ""):
            return None
        found, is_whole = readable(_without_blanks(value))
        if not is_whole:
            self._misread(key, value)
        return tool_names(found, self.path[-1])

    def _read(self, read: Callable[[object], Value | None], key: str, value: object) -> Value | None:
        found = read(value)
        if found is None:
            self._misread(key, value)
        return found

    def _misread(self, key: str, value: object) -> None:
        self.faults.append(f"its `{key}` is {described(value)}, which cannot be meant")

    def unused(self, server: str) -> tuple[Issue, ...]:
        return tuple(
            self.page.issue(
                "note",
                f"`{key}` of server `{server}` {_UNUSED.get(key, 'means nothing to Ullage')}",
                (*self.path, key),
                server=server,
            )
            for key in self.raw
            if key not in self.used
        )


def _without_blanks(value: object) -> object:
    return [item for item in cast("list[object]", value) if item != ""] if isinstance(value, list) else value


Dialect = Callable[[Loose], Mapping[str, Any]]
"""What an entry says, under the names of `Server`'s fields; None for what it does not say. It always says `rules`."""


@dataclass(slots=True)
class Found:
    """The servers of a file, as they are met."""

    servers: dict[str, Server | None] = field(default_factory=dict[str, "Server | None"])
    """None for one that is left out."""
    rules: dict[str, Rules] = field(default_factory=dict[str, Rules])
    """What is held back, by server; where several have one name, what all of them hold back."""
    called: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """What the file calls each, folded."""
    off: set[str] = field(default_factory=set[str])
    """Those switched off, folded."""
    issues: list[Issue] = field(default_factory=list[Issue])

    def switch_off(self, name: str) -> None:
        """Here and wherever else it stands."""
        server = self.servers.get(name)
        self.servers[name] = server and replace(server, disabled=True)
        self.off |= self.called[name]

    def withheld(self, off: Iterable[str] = (), permissions: Permissions | None = None) -> Withheld:
        """All that is held back; `off` are servers, folded, that need not stand here."""
        return Withheld(rules=self.rules, called=self.called, off=frozenset((*self.off, *off)), permissions=permissions)


def read_tables(page: Page, tables: Sequence[tuple[tuple[str, ...], object]], dialect: Dialect) -> Found:
    """Every server of these tables, each with its place. The first of one name in different tables wins."""
    found = Found()
    for path, table in tables:
        if isinstance(table, dict):
            _read_table(page, path, cast("dict[str, object]", table), dialect, found)
        else:
            said = f"`{path[-1]}` is {described(table)}, not a table of servers"
            found.issues.append(page.issue("problem", said, path))
    return found


def _read_table(page: Page, path: tuple[str, ...], table: Mapping[str, object], dialect: Dialect, found: Found) -> None:
    earlier = frozenset(found.servers)
    for given, raw in table.items():
        name = _free(clean(given), found.servers.keys() - earlier)
        server, rules, issues = _read(page, (*path, given), name, raw, dialect)
        found.rules[name] = narrower(found.rules.get(name, Rules()), rules)
        found.called[name] = found.called.get(name, frozenset()) | {folded(given)}
        if name in earlier:
            found.issues.append(
                page.issue("note", f"server `{name}` stands above already", (*path, given), server=name)
            )
        else:
            found.issues += issues
            if server is not None or any(issue.severity == "problem" for issue in issues):
                found.servers[name] = server
        if server is not None and server.disabled:
            found.switch_off(name)


def _free(name: str, taken: set[str]) -> str:
    candidates = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(one for one in candidates if one not in taken)


def _read(
    page: Page, path: tuple[str, ...], name: str, raw: object, dialect: Dialect
) -> tuple[Server | None, Rules, tuple[Issue, ...]]:
    if not isinstance(raw, dict):
        return None, Rules(), (_left_out(page, path, name, f"its entry is {described(raw)}, not a table"),)
    loose = Loose(page, path, cast("dict[str, object]", raw))
    values = _settled({key: value for key, value in dialect(loose).items() if value is not None})
    fault, rules = launch_fault(values), cast("Rules", values["rules"])
    faults = loose.faults or ([f"it {fault}"] if fault else [])
    unused = loose.unused(name)
    if faults and not values.get("disabled"):
        return None, rules, (*(_left_out(page, path, name, one) for one in faults), *unused)
    server, issues = server_of(page, Entry(name=name, path=path, values=values))
    return server, rules, (*issues, *unused)


def _settled(values: dict[str, Any]) -> dict[str, Any]:
    """Where an entry has both a command and an address, its type says which is meant."""
    if "command" in values and "url" in values and "transport" in values:
        values.pop("url" if values["transport"] == "stdio" else "command")
    return values


def _left_out(page: Page, path: tuple[str, ...], name: str, why: str) -> Issue:
    return page.issue("problem", f"server `{name}` is left out: {why}", path, server=name)
