"""How does what was heard become a view?

Every tool gets its listed name and its place: shown, hidden, withheld or not to be called. What the view before had
already is taken over, so that whoever made something of it need not make it again. Nobody is asked anything here.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeGuard

from ullage.tool import Tool

from ..baseline import DefinitionChange
from ..definition import definition_hash
from ..sanitize import sanitize_tool
from .names import NOBODY, Origin, Owned, listed_names, remembered
from .view import Entry, Heard, Member, View

__all__ = ["Weighed", "see"]


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
