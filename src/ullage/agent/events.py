"""What does an agent say while it works?

Each event is a value, and as JSON an object with its `type`. They come in the order in which things happen: before
every call of the model a `context_status`, then the answer as it streams in, what it took, the calls it asks for and
their results, and one `end` at last.
"""

from dataclasses import dataclass, field
from typing import Literal

from ullage.delegate import cost_json, usage_json
from ullage.models import Cost, Usage
from ullage.tool import Json, JsonObject

__all__ = [
    "Called",
    "ContextStatus",
    "Corrected",
    "End",
    "Ending",
    "Event",
    "Returned",
    "Said",
    "Thought",
    "Used",
]

Ending = Literal["stop", "length", "refusal", "steps", "deadline"]
"""Why an agent ended: its model was done, had no room left for its answer, would not answer; or there were as many
steps, or as much time, as it was given."""


@dataclass(frozen=True, slots=True)
class ContextStatus:
    """How full the window is just before the model is called."""

    context: JsonObject
    """The usage with `compacted`, and where there is something to say `before` and `warning`."""

    def to_json(self) -> dict[str, Json]:
        return {"type": "context_status", "context": dict(self.context)}


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the answer."""

    text: str

    def to_json(self) -> dict[str, Json]:
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of what the model thinks before it answers."""

    text: str

    def to_json(self) -> dict[str, Json]:
        return {"type": "thinking", "text": self.text}


@dataclass(frozen=True, slots=True)
class Corrected:
    """The pieces since the last status were not this answer's alone: an attempt had broken off. This is all of it."""

    text: str

    def to_json(self) -> dict[str, Json]:
        return {"type": "text_corrected", "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What one call of the model took."""

    step: int
    """From 1 on."""
    model: str
    """That answered, as its provider calls it."""
    usage: Usage
    reported: bool
    """Whether the provider said so; else it is our own count."""
    cost: Cost | None
    """Of all attempts together; None where nobody knows."""
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        said: dict[str, Json] = {"type": "usage", "step": self.step, "model": self.model}
        said |= {"usage": {**usage_json(self.usage), "reported": self.reported}, "cost": cost_json(self.cost)}
        if self.warnings:
            said["warnings"] = list(self.warnings)
        return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A tool that the model wants to be run."""

    id: str
    tool: str
    """As its source calls it."""
    arguments: str
    """JSON text, as the model wrote it."""

    def to_json(self) -> dict[str, Json]:
        return {"type": "tool_call", "id": self.id, "tool": self.tool, "arguments": self.arguments}


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What came of a call. Those of one answer come as they are ready; the model gets them in its calls' order."""

    id: str
    tool: str
    text: str
    """What the model will read; pictures are counted in `media`."""
    media: int = 0
    is_error: bool = False
    meta: JsonObject = field(default_factory=dict[str, Json])
    """What the tool's source had to say beside it; the model does not see it."""

    def to_json(self) -> dict[str, Json]:
        said: dict[str, Json] = {"type": "tool_result", "id": self.id, "tool": self.tool, "text": self.text}
        said["isError"] = self.is_error
        if self.media:
            said["media"] = self.media
        if self.meta:
            said["meta"] = dict(self.meta)
        return said


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    reason: Ending
    text: str
    """The last answer."""
    steps: int
    """Calls of the model."""

    def to_json(self) -> dict[str, Json]:
        return {"type": "end", "reason": self.reason, "text": self.text, "steps": self.steps}


Event = ContextStatus | Said | Thought | Corrected | Used | Called | Returned | End
