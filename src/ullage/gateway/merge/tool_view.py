"""The view: all known tools of all members at one moment, and look-up by name.

A `View` sorts every tool into one group: listed, hidden, withheld, changed or not callable, and names the servers whose
tools are not known. `build_view` makes one from the members' listings and reuses the tools of the view before, so that
whatever was derived from an unchanged tool stays valid. Nothing here does I/O.
"""

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ullage.errors import Denied, SourceFailed, Unavailable, UnknownTool
from ullage.options import Access, Rules
from ullage.tool import Call, JsonObject, Listing, Reply, SourceWrapper, Tool, ToolSource

from ..accepted_definitions import DefinitionChange, tool_changed
from ..sanitize import sanitize_tool
from ..slim.schema_walk import first_sentence
from ..tool_source import definition_hash
from .tool_names import NOBODY, Book, Origin, Owned, key, listed_names, nearest, remembered, without_client

__all__ = [
    "Entry",
    "Member",
    "MemberListing",
    "MergedSource",
    "MergedWrapper",
    "Missing",
    "RememberedSource",
    "View",
    "build_view",
    "denied_error",
    "only_unprefixed",
    "owner_of_unlisted",
]

_BRIEF = 80
"""Most characters of a reason that is shown in a list of servers."""
_LONGEST_ASKED = 4_000
"""Characters of a name that are compared with those of tools and servers."""
_MOST_OPTIONS = 8
_UNLISTED = re.compile(r"[A-Za-z0-9_./:-]{1,128}")
"""Names under which a tool that is not listed can be called."""
_NAME_SEPARATORS = re.compile(r"__|[./:]")
"""Separators between a server's name and its tool's name."""
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Missing:
    """A server whose tools are not known."""

    server: str
    reason: str
    prefix: str = ""
    """The prefix of its tools' names."""
    has_failed: bool = False
    """Whether listing its tools failed; otherwise the listing is still to come."""
    command: str = ""
    """The command that the user can run to change that. It is never shortened."""

    @property
    def brief(self) -> str:
        """The reason without the server's name, cut to as many whole clauses as fit 80 characters."""
        if self.command:
            return f"{self.reason}: {self.command}"
        named = rf"(^|[;:] )(?:server )?`{re.escape(self.server)}` "
        clauses = re.sub(named, r"\1", self.reason).split("; ")
        for number in range(len(clauses), 0, -1):
            shown = "; ".join(clauses[:number])
            if len(shown) <= _BRIEF:
                return shown
        return first_sentence(clauses[0], _BRIEF)


class RememberedSource(ToolSource):
    """Base class of a source that remembers its tools between calls, and what was judged about them. The defaults
    remember nothing."""

    __slots__ = ()

    def peek(self) -> Listing | None:
        """Return the last listing without waiting; None if there is none."""
        return None

    async def load(self) -> Listing | None:
        """Load the stored listing, so that `peek` returns it, without contacting the server."""
        return self.peek()

    @property
    def is_silent_about_changes(self) -> bool:
        """Whether the source runs and does not announce changes of its tools."""
        return False

    async def refresh(self) -> None:
        """List the tools again."""

    def token_count(self, tool: str) -> int | None:
        """Return the tokens of a tool's definition; None if they are not known."""
        return None

    def withheld(self) -> Mapping[str, DefinitionChange]:
        """Return the tools whose definitions are not the accepted ones, by name."""
        return {}

    def withheld_prompts(self) -> Mapping[str, DefinitionChange]:
        """Return the prompts whose definitions are not the accepted ones, by name."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One of the sources that are merged."""

    name: str
    """The server's name in the settings; no two members share one."""
    source: ToolSource
    prefix: str
    """Put before its tools' names as `prefix__tool`; empty for none."""
    rules: Rules = field(default_factory=Rules)
    own: bool = False
    """Whether it is a part of Ullage, not a server."""
    description: str | None = None
    """One line for the model about its tools."""


def only_unprefixed(members: Iterable[Member]) -> Member | None:
    """The only server without a prefix; None where there is none or several. Ullage's own tools do not count."""
    plain = [member for member in members if not member.own and not member.prefix]
    return plain[0] if len(plain) == 1 else None


_AFFIXES = re.compile(r"^mcp(?:server)?|(?:mcp)?(?:server)?$")


def owner_of_unlisted(name: str, members: Iterable[Member], given: Mapping[str, Origin]) -> Member | None:
    """Return the server without a prefix that may have an unlisted tool or prompt of this name.

    None where the call may be meant for another server, present or gone, or for a tool that the owner listed before;
    where a rule would decide otherwise about another spelling of the name; and for a name in characters that the
    protocol does not recommend, which may look like another name.

    Args:
        name: The name of the call, which resembles no listed one.
        members: All servers.
        given: The origin of each name that was ever listed, by its folded form.
    """
    members = tuple(members)
    owner = only_unprefixed(members)
    if owner is None or _UNLISTED.fullmatch(name) is None:
        return None
    spellings = {spelt.removeprefix("mcp") for part in without_client(name) if (spelt := key(part))}
    not_foreign = {owner.name, *(member.name for member in members if member.own)}
    others = {member.prefix for member in members} | {member.name for member in members} - not_foreign
    for listed, (server, _) in given.items():
        if server not in not_foreign:
            others |= {server, listed.partition("__")[0]} if "__" in listed else {server}
        elif key(listed) in spellings:
            return None
    heads = tuple(head for other in others if (head := key(other)))
    if any(spelt.startswith(heads) for spelt in spellings):
        return None
    return owner if owner.rules.strictest_access(name) == owner.rules.access(name) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tool of one member."""

    listed: str
    tool: Tool
    """The definition under its listed name."""
    member: Member
    original: str
    """The name on its server."""
    token_count: int | None = None
    """Tokens of the definition; None where they were not counted."""
    change: DefinitionChange | None = None
    """Set where the definition differs from the accepted one; `tool` then has only the name."""
    originals: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names and values of the schema that hold invisible characters, by the escaped form a model is shown."""
    declared: JsonObject | None = None
    """The `outputSchema` that the server declares, where `tool` is listed without it."""

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


MemberListing = tuple[Member, Listing]
"""A member and the tools that it lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All tools at one moment, in a stable order: members as configured, tools as their server lists them."""

    entries: tuple[Entry, ...]
    """Tools that are listed and found."""
    missing: tuple[Missing, ...] = ()
    revision: str
    """Differs whenever what `entries` define does."""
    hidden: tuple[Entry, ...] = ()
    """Tools that are neither listed nor found, and can be called by name."""
    withheld: tuple[Entry, ...] = ()
    """Tools denied by the settings."""
    uncallable: tuple[Entry, ...] = ()
    """Tools that cannot be called through Ullage. They are neither listed nor found; a call fails with the reason."""
    changed: tuple[Entry, ...] = ()
    """Tools whose definition changed since it was accepted. They are refused until the user accepts them."""
    servers: tuple[str, ...] = ()
    """Names of all members in the order of the settings, including missing ones."""
    book: Book[Entry] | None = field(default=None, repr=False, compare=False)
    """Look-up of entries by name; built from the entries where not given."""
    given: Mapping[str, Origin] = field(default_factory=dict[str, Origin], repr=False, compare=False)
    """The origin of each name that was ever listed."""

    def __post_init__(self) -> None:
        if self.book is None:
            object.__setattr__(self, "book", Book(self.all))

    @property
    def all(self) -> tuple[Entry, ...]:
        """Every tool that is known by name, including those whose calls are refused."""
        return (*self.entries, *self.hidden, *self.withheld, *self.uncallable, *self.changed)

    @property
    def listing(self) -> Listing:
        return Listing(tuple(entry.tool for entry in self.entries), self.revision)

    def find(self, name: str, server: str | None = None) -> Entry:
        """The tool of that name, in any spelling.

        Args:
            name: The listed name or another spelling of it, with or without a prefix.
            server: Restricts the look-up to one server.

        Raises:
            UnknownTool: No tool has that name, or several have.
            Denied: The settings deny the tool.
            ToolChanged: Its definition is not the accepted one.
            SourceFailed: Its server failed to list its tools.
            Unavailable: It can only run as a task.
        """
        assert self.book is not None
        # No tool has a name of that length, and comparing one of megabytes would take long.
        name = name[:_LONGEST_ASKED]
        owner = None if server is None else self.server(server[:_LONGEST_ASKED])
        found = self.book.find(name, owner)
        if len(found) > 1 and all(entry.member.own for entry in found):
            # Of several databases, prefer the one whose tools are listed.
            found = tuple(entry for entry in found if not entry.member.rules.is_hidden(entry.original)) or found
        if not found and (absent := self._absent(name, owner)) is not None and absent.has_failed:
            listing_failed = SourceFailed(
                f"the tools of server `{absent.server}` are not known: {absent.brief}",
                suggestion="Do without it for now; a server that failed is tried again after a while.",
            )
            raise listing_failed
        if len(found) != 1:
            shown, place = name[:100], "" if owner is None else f" of server `{owner}`"
            allowed = tuple(entry.listed for entry in found if entry.access != "deny")[:_MOST_OPTIONS]
            if found:
                error = UnknownTool(
                    f"`{shown}` may mean {len(found)} tools",
                    suggestion="Say which, by an option below.",
                    options=allowed,
                )
            else:
                absent = self._absent(name, owner)
                entries = [entry for entry in self.entries if owner is None or entry.server == owner]
                missing = self.missing if absent is None else (absent,)
                if not missing:
                    others = ""
                else:
                    named = "; ".join(f"`{one.server}` ({one.brief})" for one in missing[:_MOST_OPTIONS])
                    others = f" Not known are the tools of {named}."
                error = UnknownTool(
                    f"no tool{place} is called `{shown}`",
                    suggestion=f"`find_tool` finds tools by what they do; the options are the nearest names.{others}",
                    options=nearest(name, [(entry.listed, entry.original) for entry in entries]),
                )
            raise error
        if found[0].access == "deny":
            raise denied_error(found[0])
        if (change := found[0].change) is not None:
            raise tool_changed(found[0].listed, change)
        if found[0].needs_a_task:
            raise Unavailable(
                f"`{found[0].listed}` runs only as a task, and Ullage hands on no tasks",
                suggestion=f"Do without it, or connect the client to server `{found[0].server}` itself for this tool.",
            )
        return found[0]

    def server(self, name: str) -> str:
        """The server of that name, in any spelling.

        Raises:
            UnknownTool: No server has that name, or several have.
        """
        names = self.servers or tuple(dict.fromkeys(entry.server for entry in self.entries))
        alike = [one for one in names if key(name) and key(one) == key(name)]
        if not alike and (plain := _AFFIXES.sub("", key(name))):
            # `github-mcp` or `mcp-server-github` for `github`, or the other way round.
            alike = [one for one in names if _AFFIXES.sub("", key(one)) == plain]
        if name in names or len(alike) == 1:
            return name if name in names else alike[0]
        near = nearest(name, [(one,) for one in names]) or names[:_MOST_OPTIONS]
        raise UnknownTool(
            f"no server is called `{name[:100]}`",
            suggestion="Leave the server out, or name one of the options.",
            options=near,
        )

    def late_owners(self, name: str, server: str | None = None) -> frozenset[str]:
        """Names of the missing servers that may have a tool which was not found.

        None if the name means several tools, if it begins with the prefix of a present server, or if it is asked of
        another server.
        """
        late = frozenset(one.server for one in self.missing)
        if server is not None:
            named = frozenset(one for one in late if key(one) == key(server))
            if named or any(key(one) == key(server) for one in self.servers):
                return named
        absent = self._absent(name, None)
        if absent is not None:
            return frozenset({absent.server})
        present = {key(entry.member.prefix) for entry in self.all} - {""}
        is_another_s = server is not None or not present.isdisjoint(_possible_servers(name))
        is_known = self.book is not None and bool(self.book.find(name[:_LONGEST_ASKED], None))
        return frozenset() if is_another_s or is_known else late

    def _absent(self, name: str, server: str | None) -> Missing | None:
        """The missing server that the name would belong to, by the server's name or prefix within it."""
        if server is not None:
            return next((one for one in self.missing if one.server == server), None)
        heads = (
            set(_possible_servers(name)) - {key(entry.member.prefix) for entry in self.all}
            if self.missing
            else set[str]()
        )
        return next((one for one in self.missing if heads & {key(one.server), key(one.prefix)}), None)


def _possible_servers(name: str) -> Iterable[str]:
    """Parts of a tool's name that may name its server, also behind a client's own prefix (`mcp__server__tool`)."""
    parts = _NAME_SEPARATORS.split(name[:_LONGEST_NAME])
    skipped = 2 if parts[0].lower() == "mcp" else 0
    return (spelt for part in parts[: len(parts) - 1][: skipped + 1] if (spelt := key(part)))


def denied_error(entry: Entry) -> Denied:
    """The error for a call of a tool that the settings deny."""
    pattern = entry.member.rules.denied_by(entry.original)
    said = f"have `{pattern}` under `deny`" if pattern else "name the only tools wanted, and this is none of them"
    error = Denied(
        f"the settings deny `{entry.listed}`",
        suggestion=f"The user's rules for server `{entry.server}` {said}: do without it.",
    )
    error.tool = entry.server, entry.original
    return error


class MergedSource(ToolSource):
    """Base class of many sources as one: it resolves a name to an `Entry`, and runs a call of that entry."""

    __slots__ = ()

    @property
    @abstractmethod
    def members(self) -> tuple[Member, ...]:
        """The sources that are merged."""

    @abstractmethod
    async def view(self, wait: float = 0.0) -> View:
        """Return all known tools, after waiting up to `wait` seconds for members that never listed theirs."""

    @abstractmethod
    async def find(self, name: str, server: str | None = None) -> Entry:
        """Return the tool of that name in any spelling.

        Raises:
            UnknownTool: No tool has that name, or several have.
        """

    @abstractmethod
    async def call_entry(self, entry: Entry, call: Call) -> Reply:
        """Run a call of a tool that was already resolved."""

    @abstractmethod
    async def refresh(self, wait: float) -> None:
        """List the tools of servers that announce no changes again, within `wait` seconds."""

    async def tools(self) -> Listing:
        return (await self.view()).listing

    async def call(self, call: Call) -> Reply:
        return await self.call_entry(await self.find(call.tool), call)


class MergedWrapper(SourceWrapper[MergedSource], MergedSource):
    """Base class of a wrapper around merged sources."""

    __slots__ = ()

    @property
    def members(self) -> tuple[Member, ...]:
        return self.inner.members

    async def view(self, wait: float = 0.0) -> View:
        return await self.inner.view(wait)

    async def find(self, name: str, server: str | None = None) -> Entry:
        return await self.inner.find(name, server)

    async def call_entry(self, entry: Entry, call: Call) -> Reply:
        return await self.inner.call_entry(entry, call)

    async def refresh(self, wait: float) -> None:
        await self.inner.refresh(wait)

    async def call(self, call: Call) -> Reply:
        """Resolve the name once, and run the call through every wrapper."""
        return await self.call_entry(await self.find(call.tool), call)


def build_view(listings: Iterable[MemberListing], *, reserved: Iterable[str] = (), before: View | None = None) -> View:
    """Build the view of the members' listings.

    Args:
        listings: Every member with its tools, in the order of the settings.
        reserved: Names that no tool may be listed under.
        before: The view that this one replaces. Unchanged tools are taken from it, and its revision where no listed
            tool changed.
    """
    pairs = tuple(listings)
    changes = {
        member.name: member.source.withheld() for member, _ in pairs if isinstance(member.source, RememberedSource)
    }
    # Withheld tools keep their names, so that no other tool is listed under one.
    owned = [
        Owned(
            server=member.name,
            prefix=member.prefix,
            names=tuple(dict.fromkeys((*(tool.name for tool in listing.tools), *changes.get(member.name, ())))),
        )
        for member, listing in pairs
    ]
    given = NOBODY if before is None else before.given
    listed = listed_names(owned, reserved, given)
    entries = _build_entries(pairs, owned, listed, before, changes)
    shown: list[Entry] = []
    hidden: list[Entry] = []
    withheld: list[Entry] = []
    uncallable: list[Entry] = []
    changed: list[Entry] = []
    for entry in entries:
        if entry.access == "deny":
            withheld.append(entry)
        elif entry.change is not None:
            changed.append(entry)
        elif entry.needs_a_task:
            uncallable.append(entry)
        elif entry.member.rules.is_hidden(entry.original):
            hidden.append(entry)
        else:
            shown.append(entry)
    return View(
        entries=tuple(shown),
        revision=_view_revision(pairs, shown, before),
        hidden=tuple(hidden),
        withheld=tuple(withheld),
        uncallable=tuple(uncallable),
        changed=tuple(changed),
        servers=tuple(member.name for member, _ in pairs),
        given=remembered(given, listed),
    )


_Changes = Mapping[str, Mapping[str, DefinitionChange]]
"""Changed definitions by server and tool."""


def _build_entries(
    pairs: Sequence[MemberListing],
    owned: Sequence[Owned],
    listed: Mapping[Origin, str],
    before: View | None,
    changes: _Changes,
) -> list[Entry]:
    tools = {member.name: {tool.name: tool for tool in reversed(listing.tools)} for member, listing in pairs}
    for server, its in changes.items():
        tools[server] |= {name: Tool(name=name, input_schema={}) for name in its}
    taken = set(listed.values())
    old = {} if before is None else {(entry.server, entry.original): entry for entry in before.all}
    members = {member.name: member for member, _ in pairs}
    entries: list[Entry] = []
    for server, original in ((owner.server, name) for owner in owned for name in owner.names):
        tool, before_it = tools[server][original], old.get((server, original))
        entry = _build_entry(members[server], tool, listed[server, original], taken, before_it)
        entries.append(replace(entry, change=changes.get(server, {}).get(original)))
    return entries


def _build_entry(member: Member, tool: Tool, listed: str, taken: set[str], old: Entry | None) -> Entry:
    # A member with a prefix has no aliases.
    if member.prefix:
        aliases = ()
    else:
        free = tuple(alias for alias in tool.aliases if alias not in taken)
        taken.update(free)
        aliases = free
    count = member.source.token_count(tool.name) if isinstance(member.source, RememberedSource) else None
    safe, originals = sanitize_tool(tool)
    if safe.name == listed and safe.aliases == aliases:
        merged = safe
    else:
        merged = Tool(
            name=listed,
            input_schema=safe.input_schema,
            description=safe.description,
            title=safe.title,
            output_schema=safe.output_schema,
            annotations=safe.annotations,
            aliases=aliases,
            extra=safe.extra,
        )
    if old is not None and _is_same_tool(old.tool, merged):
        merged = old.tool
    return Entry(
        listed=listed,
        tool=merged,
        member=member,
        original=tool.name,
        # The catalogue counted the definition as the server sent it.
        token_count=count if safe is tool else None,
        originals=originals,
    )


def _is_same_tool(old: Tool, new: Tool) -> bool:
    """Whether two definitions are equal as JSON. Python's equality is not enough: there 1 equals true."""
    parts = zip(_definition_parts(old), _definition_parts(new), strict=True)
    if all(before is now for before, now in parts):
        return old.name == new.name and old.aliases == new.aliases
    return old == new and definition_hash(old) == definition_hash(new)


def _definition_parts(tool: Tool) -> tuple[object, ...]:
    return tool.input_schema, tool.description, tool.title, tool.output_schema, tool.annotations, tool.extra


def _view_revision(pairs: Sequence[MemberListing], shown: Sequence[Entry], before: View | None) -> str:
    """A hash of the listed tools; that of the view before where they are the same."""
    if before is not None:
        # Unchanged entries have the same tool object as in the view before.
        old, new = ([(id(entry.tool), entry.server) for entry in each] for each in (before.entries, shown))
        if old == new:
            return before.revision
    parts = [part for member, listing in pairs for part in (member.name, listing.revision)]
    text = "\0".join((*parts, *(entry.listed for entry in shown)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
