"""The view: all known tools of all members at one moment, and look-up by name.

A `View` is what is known of all members at one moment: tools to list and to find, tools that only answer to their
names, tools withheld, and servers that have not said what they offer. Nobody is asked anything here; `merge` does that.

Every tool gets its listed name and its place: shown, hidden, withheld or not to be called. What the view before had
already is taken over, so that whoever made something of it need not make it again. Nobody is asked anything here.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeGuard

from ullage.errors import Denied, SourceFailed, Unavailable, UnknownTool
from ullage.options import Access, Rules
from ullage.tool import Listing, Tool, ToolSource

from ..baseline import DefinitionChange, tool_changed
from ..sanitize import sanitize_tool
from ..slim.schema_walk import first_sentence
from ..tool_source import definition_hash
from .tool_names import NOBODY, Book, Origin, Owned, key, listed_names, nearest, remembered

__all__ = [
    "Entry",
    "Heard",
    "Member",
    "Missing",
    "Peeked",
    "View",
    "Weighed",
    "denied",
    "only_unprefixed",
    "peeked",
    "see",
]

_BRIEF = 80
"""Characters of a reason that stands beside others."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A server whose tools are not known."""

    server: str
    reason: str
    prefix: str = ""
    """Of its tools' names."""
    has_failed: bool = False
    """Whether it was asked and could not say; else it may yet."""
    command: str = ""
    """What the user runs to change that. It is never shortened."""

    @property
    def brief(self) -> str:
        """The reason in a few whole clauses, to stand beside the server's name and not to repeat it."""
        if self.command:
            return f"{self.reason}: {self.command}"
        named = rf"(^|[;:] )(?:server )?`{re.escape(self.server)}` "
        clauses = re.sub(named, r"\1", self.reason).split("; ")
        shown = next((some for some in _shorter(clauses) if len(some) <= _BRIEF), None)
        return first_sentence(clauses[0], _BRIEF) if shown is None else shown


def _shorter(clauses: Sequence[str]) -> Iterator[str]:
    """All of them, then without the last, and so on."""
    return ("; ".join(clauses[:number]) for number in range(len(clauses), 0, -1))


_MOST_OPTIONS = 8
_JOINTS = re.compile(r"__|[./:]")
"""What stands between a server's name and its tool's."""
_LONGEST = 200


class Peeked(Protocol):
    """A source that can say at once what it last offered."""

    def peek(self) -> Listing | None:
        """None where that is not known; never waits."""
        ...


def peeked(source: object) -> TypeGuard[Peeked]:
    return callable(getattr(source, "peek", None))


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


def only_unprefixed(members: Iterable[Member]) -> Member | None:
    """The one server whose names are listed as they are; None for none or several. Ullage's own tools do not count."""
    plain = [member for member in members if not member.own and not member.prefix]
    return plain[0] if len(plain) == 1 else None


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
    change: DefinitionChange | None = None
    """Where the definition is not the one that was accepted; `tool` then has no more than the name."""
    originals: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names and values of the schema that hold invisible characters, by the escaped form a model is shown."""

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
    changed: tuple[Entry, ...] = ()
    """Not as they were accepted: neither listed nor found, and refused until the user accepts them."""
    servers: tuple[str, ...] = ()
    """Every member's name in the order of the settings, those of the missing too."""
    book: Book[Entry] | None = field(default=None, repr=False, compare=False)
    """Made from the entries where not given."""
    given: Mapping[str, Origin] = field(default_factory=dict[str, Origin], repr=False, compare=False)
    """Whose each name is that was ever listed."""

    def __post_init__(self) -> None:
        if self.book is None:
            object.__setattr__(self, "book", Book(self.all))

    @property
    def all(self) -> tuple[Entry, ...]:
        """Every tool that answers to its name, if only with a refusal."""
        return (*self.entries, *self.hidden, *self.withheld, *self.uncallable, *self.changed)

    @property
    def listing(self) -> Listing:
        return Listing(tuple(entry.tool for entry in self.entries), self.revision)

    def find(self, name: str, server: str | None = None) -> Entry:
        """The tool of that name, in any spelling; raises `UnknownTool` for none or several, `Denied` if withheld,
        `ToolChanged` if its definition is not the accepted one, `SourceFailed` if its server could not say what it
        offers, `Unavailable` if it cannot be called from here."""
        assert self.book is not None
        owner = None if server is None else self.server(server)
        found = self.book.find(name, owner)
        if len(found) > 1 and all(entry.member.own for entry in found):
            # Of several databases, the one whose tools are shown is meant.
            found = tuple(entry for entry in found if not entry.member.rules.is_hidden(entry.original)) or found
        if not found and (absent := self._absent(name, owner)) is not None and absent.has_failed:
            raise _failed(absent)
        if len(found) != 1:
            raise self._unknown(name, owner, found)
        if found[0].access == "deny":
            raise denied(found[0])
        if (change := found[0].change) is not None:
            raise tool_changed(found[0].listed, change)
        if found[0].needs_a_task:
            raise _uncallable(found[0])
        return found[0]

    def server(self, name: str) -> str:
        """The server of that name, in any spelling; raises `UnknownTool` for none or several."""
        names = self.servers or tuple(dict.fromkeys(entry.server for entry in self.entries))
        alike = [one for one in names if key(name) and key(one) == key(name)]
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
        absent = self._absent(name, server)
        others = _not_known(self.missing if absent is None else (absent,))
        return UnknownTool(
            f"no tool{place} is called `{shown}`",
            suggestion=f"`find_tool` finds tools by what they do; the options are the nearest names.{others}",
            options=self._nearest(name, server),
        )

    def _nearest(self, name: str, server: str | None) -> tuple[str, ...]:
        entries = [entry for entry in self.entries if server is None or entry.server == server]
        return nearest(name, [(entry.listed, entry.original) for entry in entries])

    def _absent(self, name: str, server: str | None) -> Missing | None:
        """The server whose tool it would be, where that server's tools are not known."""
        if server is not None:
            return next((one for one in self.missing if one.server == server), None)
        heads = set(_heads(name)) - {key(entry.member.prefix) for entry in self.all} if self.missing else set[str]()
        return next((one for one in self.missing if heads & {key(one.server), key(one.prefix)}), None)


def _heads(name: str) -> Iterable[str]:
    """What may be a server's name in the name of a tool, as listed or with a client's own prefix before it."""
    parts = _JOINTS.split(name[:_LONGEST])
    skipped = 2 if parts[0].lower() == "mcp" else 0
    return (spelt for part in parts[: len(parts) - 1][: skipped + 1] if (spelt := key(part)))


def _not_known(missing: Sequence[Missing]) -> str:
    if not missing:
        return ""
    named = "; ".join(f"`{one.server}` ({one.brief})" for one in missing[:_MOST_OPTIONS])
    return f" Not known are the tools of {named}."


def _failed(absent: Missing) -> SourceFailed:
    return SourceFailed(
        f"the tools of server `{absent.server}` are not known: {absent.brief}",
        suggestion="Do without it for now; a server that failed is tried again after a while.",
    )


def denied(entry: Entry) -> Denied:
    """What whoever calls a withheld tool is told."""
    pattern = entry.member.rules.denied_by(entry.original)
    said = f"have `{pattern}` under `deny`" if pattern else "name the only tools wanted, and this is none of them"
    return Denied(
        f"the settings deny `{entry.listed}`",
        suggestion=f"The user's rules for server `{entry.server}` {said}: do without it.",
    )


def _uncallable(entry: Entry) -> Unavailable:
    return Unavailable(
        f"`{entry.listed}` runs only as a task, and Ullage hands on no tasks",
        suggestion=f"Do without it, or connect the client to server `{entry.server}` itself for this tool.",
    )


class Weighed(Protocol):
    """A source that knows what its definitions cost."""

    def token_count(self, tool: str) -> int | None: ...


def weighed(source: object) -> TypeGuard[Weighed]:
    return callable(getattr(source, "token_count", None))


class Withholding(Protocol):
    """A source that leaves out tools whose definitions are not the accepted ones."""

    def withheld(self) -> Mapping[str, DefinitionChange]: ...


def _withholds(source: object) -> TypeGuard[Withholding]:
    return callable(getattr(source, "withheld", None))


def see(heard: Iterable[Heard], *, reserved: Iterable[str] = (), before: View | None = None) -> View:
    """The view of what was heard. What the view before it has already is taken over, its revision too if it can be."""
    pairs = tuple(heard)
    changes = {member.name: member.source.withheld() for member, _ in pairs if _withholds(member.source)}
    owned = _owned(pairs, changes)
    given = NOBODY if before is None else before.given
    listed = listed_names(owned, reserved, given)
    entries = _entries(pairs, owned, listed, before, changes)
    shown: list[Entry] = []
    hidden: list[Entry] = []
    withheld: list[Entry] = []
    uncallable: list[Entry] = []
    changed: list[Entry] = []
    for entry in entries:
        secret = hidden if entry.member.rules.is_hidden(entry.original) else shown
        offered = uncallable if entry.needs_a_task else secret
        offered = offered if entry.change is None else changed
        (withheld if entry.access == "deny" else offered).append(entry)
    return View(
        entries=tuple(shown),
        revision=_revision(pairs, shown, before),
        hidden=tuple(hidden),
        withheld=tuple(withheld),
        uncallable=tuple(uncallable),
        changed=tuple(changed),
        servers=tuple(member.name for member, _ in pairs),
        given=remembered(given, listed),
    )


_Changes = Mapping[str, Mapping[str, DefinitionChange]]
"""By server and tool."""


def _owned(pairs: Sequence[Heard], changes: _Changes) -> list[Owned]:
    """Every member's names, those of withheld tools too: nobody else is to be listed under one of them."""
    return [
        Owned(
            server=member.name,
            prefix=member.prefix,
            names=tuple(dict.fromkeys((*(tool.name for tool in listing.tools), *changes.get(member.name, ())))),
        )
        for member, listing in pairs
    ]


def _entries(
    pairs: Sequence[Heard],
    owned: Sequence[Owned],
    listed: Mapping[Origin, str],
    before: View | None,
    changes: _Changes,
) -> list[Entry]:
    tools = {member.name: {tool.name: tool for tool in reversed(listing.tools)} for member, listing in pairs}
    for server, its in changes.items():
        tools[server] |= {name: Tool(name=name, input_schema={}) for name in its}
    spoken = set(listed.values())
    old = {} if before is None else _by_origin(before.all)
    members = {member.name: member for member, _ in pairs}
    return [
        replace(
            _entry(members[server], tools[server][original], name, spoken, old.get((server, original))),
            change=changes.get(server, {}).get(original),
        )
        for (server, original), name in _in_order(owned, listed)
    ]


def _in_order(owned: Iterable[Owned], listed: Mapping[tuple[str, str], str]) -> Iterable[tuple[tuple[str, str], str]]:
    return (((owner.server, name), listed[owner.server, name]) for owner in owned for name in owner.names)


def _by_origin(entries: Iterable[Entry]) -> dict[tuple[str, str], Entry]:
    return {(entry.server, entry.original): entry for entry in entries}


def _entry(member: Member, tool: Tool, listed: str, spoken: set[str], old: Entry | None) -> Entry:
    aliases = _aliases(member, tool, spoken)
    count = member.source.token_count(tool.name) if weighed(member.source) else None
    safe, originals = sanitize_tool(tool)
    merged = _renamed(safe, listed, aliases)
    if old is not None and _same(old.tool, merged):
        merged = old.tool
    return Entry(
        listed=listed,
        tool=merged,
        member=member,
        original=tool.name,
        # The catalogue weighed what the server sent.
        token_count=count if safe is tool else None,
        originals=originals,
    )


def _same(old: Tool, new: Tool) -> bool:
    """Whether they say the same, as JSON: to Python, 1 and true are equal."""
    parts = zip(_parts(old), _parts(new), strict=True)
    if all(before is now for before, now in parts):
        return old.name == new.name and old.aliases == new.aliases
    return old == new and definition_hash(old) == definition_hash(new)


def _parts(tool: Tool) -> tuple[object, ...]:
    return tool.input_schema, tool.description, tool.title, tool.output_schema, tool.annotations, tool.extra


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


def _identity(entry: Entry) -> tuple[int, str]:
    return id(entry.tool), entry.server


def _revision(pairs: Sequence[Heard], shown: Sequence[Entry], before: View | None) -> str:
    # Entries take over the tools of the view before, so that what stayed the same is the very same.
    if before is not None and list(map(_identity, before.entries)) == list(map(_identity, shown)):
        return before.revision
    parts = [part for member, listing in pairs for part in (member.name, listing.revision)]
    said = "\0".join((*parts, *(entry.listed for entry in shown)))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
