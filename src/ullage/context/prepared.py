"""What goes out with the next call of a model, and what is said of it?"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ullage.tool import Json

from .compact import Compaction
from .shed import Dropped, Shed
from .usage import ContextUsage

__all__ = ["Plan", "Prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    messages: tuple[object, ...]
    """As they were given, with a summary where something was let go."""
    system: object = None
    tools: Sequence[object] = ()
    status: ContextUsage
    """How full the window is with this."""
    before: ContextUsage | None = None
    """How full it was, where something was let go."""
    sheds: tuple[Shed, ...] = ()
    """What was let go, by which means."""
    dropped: tuple[Dropped, ...] = ()
    """Every message that is not what it was, and what became of it."""
    warning: str | None = None
    generation: int | None = None
    """Under which the session keeps what was let go; None where nothing was, or nothing keeps it."""

    @property
    def compacted(self) -> bool:
        return bool(self.sheds)

    @property
    def event(self) -> dict[str, Json]:
        """`context_status`, as it is told before every call of a model."""
        context: dict[str, Json] = {**self.status.to_json(), "compacted": self.compacted}
        if self.before is not None:
            context["before"] = self.before.to_json()
            context["shed"] = [shed_json(one) for one in self.sheds]
            context["dropped"] = [one.to_json() for one in self.dropped]
        if self.generation is not None:
            context["generation"] = self.generation
        if self.warning is not None:
            context["warning"] = self.warning
        return {"type": "context_status", "context": context}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be let go now. A summary is stood in for by a digest: no model is asked for a plan."""

    before: ContextUsage
    after: ContextUsage
    compaction: Compaction = field(repr=False)

    def to_json(self) -> dict[str, Json]:
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "compacted": self.compaction.compacted,
            "shed": [shed_json(one) for one in self.compaction.sheds],
            "dropped": [one.to_json() for one in self.compaction.dropped],
            "warning": self.compaction.warning,
        }


def shed_json(shed: Shed) -> dict[str, Json]:
    return {
        "tier": shed.tier,
        "tokens": shed.tokens,
        "messages": shed.messages,
        "brokeAt": shed.broke_at,
        "reread": shed.reread,
    }
