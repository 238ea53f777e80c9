"""What does a source offer besides tools?

Told from its methods, since each of these Protocols is optional, and from what it says of itself where it does: a
gateway has methods for what its servers may not have. What it does not offer, the server does not claim, because
clients pay for claims: some add tools of their own for resources, in every request.
"""

from dataclasses import dataclass
from typing import Any, Protocol, cast

from ullage.tool import (
    CompletionSource,
    Json,
    JsonObject,
    PromptSource,
    ResourceSource,
    Subscribed,
    ToolSource,
    Watched,
)

__all__ = ["LogLevelled", "Offers", "offers_of"]


class LogLevelled(Protocol):
    """A source whose log messages can be asked to be graver."""

    async def set_log_level(self, level: str) -> None: ...


class Capable(Protocol):
    """A source that knows what it can do for the moment."""

    @property
    def capabilities(self) -> JsonObject | None:
        """As the protocol writes them; None where that is not known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The source, once for each thing it offers; None where it does not."""

    resources: ResourceSource | None = None
    prompts: PromptSource | None = None
    completion: CompletionSource | None = None
    subscribed: Subscribed | None = None
    watched: Watched | None = None
    log: LogLevelled | None = None
    capable: Capable | None = None

    def capabilities(self) -> dict[str, Json]:
        """As the protocol writes them, true of this source as far as it is known now."""
        can = None if self.capable is None else self.capable.capabilities
        changed = self.watched is not None
        found: dict[str, Json] = {"tools": {"listChanged": changed}}
        if self.resources is not None and _may(can, "resources"):
            subscribe = changed and self.subscribed is not None and _may_subscribe(can)
            found["resources"] = {"subscribe": subscribe, "listChanged": changed}
        if self.prompts is not None and _may(can, "prompts"):
            found["prompts"] = {"listChanged": changed}
        if self.completion is not None and _may(can, "completions"):
            found["completions"] = {}
        if self.log is not None:
            # Claimed whatever is known: many servers log without declaring it, and clients pay nothing for it.
            found["logging"] = {}
        return found


def _may(can: JsonObject | None, ability: str) -> bool:
    return can is None or ability in can


def _may_subscribe(can: JsonObject | None) -> bool:
    resources = None if can is None else can.get("resources")
    return not isinstance(resources, dict) or resources.get("subscribe") is True


def offers_of(source: ToolSource) -> Offers:
    found = cast("Any", source)
    return Offers(
        resources=found if _has(source, "resources", "templates", "read") else None,
        prompts=found if _has(source, "prompts", "prompt") else None,
        completion=found if _has(source, "complete") else None,
        subscribed=found if _has(source, "subscribe", "unsubscribe") else None,
        watched=found if _has(source, "watch") else None,
        log=found if _has(source, "set_log_level") else None,
        capable=found if hasattr(source, "capabilities") else None,
    )


def _has(source: object, *methods: str) -> bool:
    return all(callable(getattr(source, method, None)) for method in methods)
