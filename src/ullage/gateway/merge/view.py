"""Which tools are there, of which servers, under which names?

A `View` is what is known of all members at one moment: tools to list and to find, tools that only answer to their
names, tools withheld, and servers that have not said what they offer. Nobody is asked anything here; `merge` does that.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Protocol, TypeGuard

from ullage.errors import Denied, Unavailable, UnknownTool
from ullage.tool import Listing, Tool, ToolSource

from ..server import Access, Rules
from .missing import Missing
from .names import Owned, listed_names
from .spelling import Book, key, nearest

__all__ = ["Entry", "Heard", "Member", "Missing", "Peeked", "View", "Weighed", "denied", "peeked", "see", "weighed"]

_MOST_OPTIONS = 8


class Peeked(Protocol):
    """A source that can say at once what it last offered."""

    def peek(self) -> Listing | None:
        """None where that is not known; never waits."""
        ...


class Weighed(Protocol):
    """A source that knows what its definitions cost."""

    def token_count(self, tool: str) -> int | None: ...


def peeked(source: object) -> TypeGuard[Peeked]:
    return callable(getattr(source, "peek", None))


def weighed(source: object) -> TypeGuard[Weighed]:
    return callable(getattr(source, "token_count", None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One of the sources that are merged."""

    name: str
    """The server's name in the settings; no two members share one."""
    source: ToolSource
    prefix: str
    """Put before its names as `prefix__tool`; empty for none."""
    rules: Rules = field(default_factory=Rules)
    own: bool = False
    """Whether it is a part of Ullage and no server."""
    description: str | None = None
    """One line for the model about what is to be found here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tool of one member."""

    listed: str
    tool: Tool
    """The definition under its listed name."""
    member: Member
    original: str
    """The name that its server knows it by."""
    token_count: int | None = None
    """What the definition costs a model; None where nobody has weighed it."""

    @property
    def server(self) -> str:
        return self.member.name

    @property
    def aliases(self) -> tuple[str, ...]:
        return self.tool.aliases

    @property
    def access(self) -> Access:
        return self.member.rules.access(self.original)

    @property
    def is_read_only(self) -> bool:
        return self.member.rules.is_read_only(self.original, self.tool.annotations)

    @property
    def needs_a_task(self) -> bool:
        """Whether it runs only as a task (`execution.taskSupport`), which a gateway cannot hold for its client."""
        execution = self.tool.extra.get("execution")
        return isinstance(execution, dict) and execution.get("taskSupport") == "required"

    @property
    def is_pinned(self) -> bool:
        return self.member.rules.is_pinned(self.original)


Heard = tuple[Member, Listing]
"""A member and what it offers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All tools at one moment, in a stable order: members as configured, tools as their server lists them."""

    entries: tuple[Entry, ...]
    """To be listed and found."""
    missing: tuple[Missing, ...] = ()
    revision: str
    """Differs whenever what `entries` define does."""
    hidden: tuple[Entry, ...] = ()
    """Neither listed nor found; they answer to their names."""
    withheld: tuple[Entry, ...] = ()
    """Denied by the settings: there for nobody."""
    uncallable: tuple[Entry, ...] = ()
    """Not to be called through Ullage, so neither listed nor found; whoever calls one is told why."""
    servers: tuple[str, ...] = ()
    """Every member's name in the order of the settings, those of the missing too."""
    book: Book[Entry] | None = field(default=None, repr=False, compare=False)
    """Made from the entries where not given."""

    def __post_init__(self) -> None:
        if self.book is None:
            object.__setattr__(self, "book", Book(self.all))

    @property
    def all(self) -> tuple[Entry, ...]:
        """Every tool that answers to its name, if only with a refusal."""
        return (*self.entries, *self.hidden, *self.withheld, *self.uncallable)

    @property
    def listing(self) -> Listing:
        return Listing(tuple(entry.tool for entry in self.entries), self.revision)

    def find(self, name: str, server: str | None = None) -> Entry:
        """The tool of that name, in any spelling; raises `UnknownTool` for none or several, `Denied` if withheld,
        `Unavailable` if it cannot be called from here."""
        assert self.book is not None
        owner = None if server is None else self._server(server)
        found = self.book.find(name, owner)
        if len(found) != 1:
            raise self._unknown(name, owner, found)
        if found[0].access == "deny":
            raise denied(found[0])
        if found[0].needs_a_task:
            raise _uncallable(found[0])
        return found[0]

    def _server(self, name: str) -> str:
        names = self.servers or tuple(dict.fromkeys(entry.server for entry in self.entries))
        alike = [one for one in names if key(one) == key(name)]
        if name in names or len(alike) == 1:
            return name if name in names else alike[0]
        near = nearest(name, [(one,) for one in names]) or names[:_MOST_OPTIONS]
        raise UnknownTool(
            f"no server is called `{name[:100]}`",
            suggestion="Leave the server out, or name one of the options.",
            options=near,
        )

    def _unknown(self, name: str, server: str | None, found: Sequence[Entry]) -> UnknownTool:
        shown, place = name[:100], "" if server is None else f" of server `{server}`"
        allowed = tuple(entry.listed for entry in found if entry.access != "deny")[:_MOST_OPTIONS]
        if found:
            return UnknownTool(
                f"`{shown}` may mean {len(found)} tools", suggestion="Say which, by an option below.", options=allowed
            )
        return UnknownTool(
            f"no tool{place} is called `{shown}`",
            suggestion=f"`find_tool` finds tools by what they do; the options are the nearest names.{self._absent()}",
            options=self._nearest(name, server),
        )

    def _nearest(self, name: str, server: str | None) -> tuple[str, ...]:
        entries = [entry for entry in self.entries if server is None or entry.server == server]
        return nearest(name, [(entry.listed, entry.original) for entry in entries])

    def _absent(self) -> str:
        if not self.missing:
            return ""
        named = "; ".join(f"`{one.server}` ({one.brief})" for one in self.missing[:_MOST_OPTIONS])
        return f" Not known are the tools of {named}."


def denied(entry: Entry) -> Denied:
    """What whoever calls a withheld tool is told."""
    patterns = [pattern for pattern in entry.member.rules.deny if fnmatchcase(entry.original, pattern)]
    return Denied(
        f"the settings deny `{entry.listed}`",
        suggestion=f"The user's rules for server `{entry.server}` have `{patterns[0]}` under `deny`: do without it.",
    )


def _uncallable(entry: Entry) -> Unavailable:
    return Unavailable(
        f"`{entry.listed}` runs only as a task, and Ullage hands on no tasks",
        suggestion=f"Do without it, or connect the client to server `{entry.server}` itself for this tool.",
    )


def see(heard: Iterable[Heard], *, reserved: Iterable[str] = (), before: View | None = None) -> View:
    """The view of what was heard. What the view before it has already is taken over, its revision too if it can be."""
    pairs = tuple(heard)
    entries = _entries(pairs, reserved, before)
    shown: list[Entry] = []
    hidden: list[Entry] = []
    withheld: list[Entry] = []
    uncallable: list[Entry] = []
    for entry in entries:
        secret = hidden if entry.member.rules.is_hidden(entry.original) else shown
        offered = uncallable if entry.needs_a_task else secret
        (withheld if entry.access == "deny" else offered).append(entry)
    return View(
        entries=tuple(shown),
        revision=_revision(pairs, shown, before),
        hidden=tuple(hidden),
        withheld=tuple(withheld),
        uncallable=tuple(uncallable),
        servers=tuple(member.name for member, _ in pairs),
    )


def _entries(pairs: Sequence[Heard], reserved: Iterable[str], before: View | None) -> list[Entry]:
    tools = {member.name: {tool.name: tool for tool in reversed(listing.tools)} for member, listing in pairs}
    owned = [
        Owned(server=member.name, prefix=member.prefix, names=tuple(dict.fromkeys(tool.name for tool in listing.tools)))
        for member, listing in pairs
    ]
    listed = listed_names(owned, reserved)
    spoken = set(listed.values())
    old = {} if before is None else _by_origin(before.all)
    members = {member.name: member for member, _ in pairs}
    return [
        _entry(members[server], tools[server][original], name, spoken, old.get((server, original)))
        for (server, original), name in _in_order(owned, listed)
    ]


def _in_order(owned: Iterable[Owned], listed: Mapping[tuple[str, str], str]) -> Iterable[tuple[tuple[str, str], str]]:
    return (((owner.server, name), listed[owner.server, name]) for owner in owned for name in owner.names)


def _by_origin(entries: Iterable[Entry]) -> dict[tuple[str, str], Entry]:
    return {(entry.server, entry.original): entry for entry in entries}


def _entry(member: Member, tool: Tool, listed: str, spoken: set[str], old: Entry | None) -> Entry:
    aliases = _aliases(member, tool, spoken)
    count = member.source.token_count(tool.name) if weighed(member.source) else None
    merged = _renamed(tool, listed, aliases)
    if old is not None and old.tool == merged:
        merged = old.tool
    return Entry(listed=listed, tool=merged, member=member, original=tool.name, token_count=count)


def _aliases(member: Member, tool: Tool, spoken: set[str]) -> tuple[str, ...]:
    """Other spellings that a source declares hold where its names stand alone, and where nobody is listed so."""
    if member.prefix:
        return ()
    fresh = tuple(alias for alias in tool.aliases if alias not in spoken)
    spoken.update(fresh)
    return fresh


def _renamed(tool: Tool, listed: str, aliases: tuple[str, ...]) -> Tool:
    if tool.name == listed and tool.aliases == aliases:
        return tool
    return Tool(
        name=listed,
        input_schema=tool.input_schema,
        description=tool.description,
        title=tool.title,
        output_schema=tool.output_schema,
        annotations=tool.annotations,
        aliases=aliases,
        extra=tool.extra,
    )


def _revision(pairs: Sequence[Heard], shown: Sequence[Entry], before: View | None) -> str:
    if before is not None and [one.tool for one in before.entries] == [one.tool for one in shown]:
        return before.revision
    parts = [part for member, listing in pairs for part in (member.name, listing.revision)]
    said = "\0".join((*parts, *(entry.listed for entry in shown)))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
