"""What does the catalogue know of a server's tools, and what becomes of that when the server lists them anew?

A `Renewal` decides which tools are the same, changed, new or gone. Where the result is kept is the catalogue's affair.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from ullage.tool import Json, Listing, Tool

from ..baseline import DefinitionChange, Verdict
from ..definition import definition, definition_hash, definition_text, revision_of
from ..introduction import Introduction

__all__ = ["Fresh", "Renewal", "Stored", "StoredTool", "fresh_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTool:
    """One tool of one server."""

    id: UUID
    """Stays while the tool keeps its name, whatever else of it changes."""
    server_id: UUID
    tool: Tool
    definition_hash: str
    token_count: int = 0
    """What its definition weighs as a client shows it to a model."""
    embedding: bytes | None = field(default=None, repr=False)
    """For the index alone: never shown, never serialised."""
    created: datetime
    updated: datetime
    """When its definition last changed."""

    def __post_init__(self) -> None:
        if self.token_count < 0:
            raise ValueError(f"a definition cannot weigh {self.token_count} tokens")

    def shown(self) -> dict[str, Json]:
        """All of it that may leave the process."""
        return {
            "id": str(self.id),
            "server_id": str(self.server_id),
            "definition": definition(self.tool),
            "token_count": self.token_count,
            "created": self.created.isoformat(),
            "updated": self.updated.isoformat(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A server's tools as they were last listed."""

    server_id: UUID
    tools: tuple[StoredTool, ...]
    listing: Listing
    introduction: Introduction | None = None
    """What the server said of itself then."""
    changed: bool = False
    """Whether this came of a listing that differed from the one before it."""
    withheld: Mapping[str, DefinitionChange] = field(default_factory=dict[str, DefinitionChange])
    """Tools that are not in `listing`, by name, because they are not as they were accepted."""
    instructions_change: DefinitionChange | None = None

    @property
    def is_held(self) -> bool:
        """Whether anything of the server waits for the user."""
        return bool(self.withheld) or self.instructions_change is not None

    @classmethod
    def of(
        cls,
        server_id: UUID,
        tools: tuple[StoredTool, ...],
        introduction: Introduction | None,
        *,
        changed: bool = False,
    ) -> "Stored":
        listing = Listing(
            tuple(stored.tool for stored in tools), revision_of(stored.definition_hash for stored in tools)
        )
        return cls(server_id=server_id, tools=tools, listing=listing, introduction=introduction, changed=changed)

    def judged(self, verdict: Verdict) -> "Stored":
        """The same without what is withheld. The revision tells what is withheld too, so that a view made of it is made
        anew when that changes."""
        withheld = {name: change for (kind, name), change in verdict.withheld.items() if kind == "tool"}
        listing = self.listing
        if withheld:
            served = tuple(stored for stored in self.tools if stored.tool.name not in withheld)
            hashes = (stored.definition_hash for stored in served)
            held = sorted(f"{change.offered_hash}{change.accepted_hash}" for change in withheld.values())
            listing = Listing(tuple(stored.tool for stored in served), revision_of((*hashes, "withheld", *held)))
        return replace(
            self,
            listing=listing,
            withheld=withheld,
            instructions_change=verdict.withheld.get(("instructions", "")),
        )


@dataclass(frozen=True, slots=True)
class Fresh:
    """A tool just listed."""

    tool: Tool
    definition_hash: str


def fresh_of(tools: Iterable[Tool]) -> tuple[Fresh, ...]:
    return tuple(Fresh(tool, definition_hash(tool)) for tool in tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """What is needed to bring a server's tools up to date. Each definition is weighed once, so that a second try under
    a lock weighs nothing."""

    weigh: Callable[[str], int]
    new_id: Callable[[], UUID]
    now: datetime
    weights: dict[str, int] = field(default_factory=dict[str, int])

    def of(self, old: tuple[StoredTool, ...], listed: Sequence[Fresh], server_id: UUID) -> tuple[StoredTool, ...]:
        """The tools as listed, with everything that is known of those already known; `old` itself where no definition
        differs. A server that lists the same tools in another order has changed nothing that a model should read
        again."""
        if _hashes(old) == Counter(fresh.definition_hash for fresh in listed):
            return old
        known = _by_name(old)
        return tuple(self._renewed(known.get(fresh.tool.name), fresh, server_id) for fresh in listed)

    def _renewed(self, known: list[StoredTool] | None, fresh: Fresh, server_id: UUID) -> StoredTool:
        if not known:
            return StoredTool(
                id=self.new_id(),
                server_id=server_id,
                tool=fresh.tool,
                definition_hash=fresh.definition_hash,
                token_count=self._weight(fresh),
                created=self.now,
                updated=self.now,
            )
        before = known.pop(0)
        if before.definition_hash == fresh.definition_hash:
            return before
        return replace(
            before,
            tool=fresh.tool,
            definition_hash=fresh.definition_hash,
            token_count=self._weight(fresh),
            embedding=None,
            updated=self.now,
        )

    def _weight(self, fresh: Fresh) -> int:
        if fresh.definition_hash not in self.weights:
            self.weights[fresh.definition_hash] = self.weigh(definition_text(fresh.tool))
        return self.weights[fresh.definition_hash]


def _hashes(tools: Iterable[StoredTool]) -> Counter[str]:
    return Counter(stored.definition_hash for stored in tools)


def _by_name(tools: Iterable[StoredTool]) -> dict[str, list[StoredTool]]:
    """A server should not list a name twice; one that does is taken as it is, in order."""
    named: dict[str, list[StoredTool]] = {}
    for stored in tools:
        named.setdefault(stored.tool.name, []).append(stored)
    return named
