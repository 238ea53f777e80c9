"""What does a source offer besides tools?

Told from its methods, since each of these Protocols is optional. What it does not offer, the server does not claim.
"""

from dataclasses import dataclass
from typing import Any, Protocol, cast

from ullage.tool import CompletionSource, Json, PromptSource, ResourceSource, Subscribed, ToolSource, Watched

__all__ = ["LogLevelled", "Offers", "offers_of"]


class LogLevelled(Protocol):
    """A source whose log messages can be asked to be graver."""

    async def set_log_level(self, level: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The source, once for each thing it offers; None where it does not."""

    resources: ResourceSource | None = None
    prompts: PromptSource | None = None
    completion: CompletionSource | None = None
    subscribed: Subscribed | None = None
    watched: Watched | None = None
    log: LogLevelled | None = None

    def capabilities(self) -> dict[str, Json]:
        """As the protocol writes them, true of this source."""
        changed = self.watched is not None
        found: dict[str, Json] = {"tools": {"listChanged": changed}}
        if self.resources is not None:
            found["resources"] = {"subscribe": changed and self.subscribed is not None, "listChanged": changed}
        if self.prompts is not None:
            found["prompts"] = {"listChanged": changed}
        if self.completion is not None:
            found["completions"] = {}
        if self.log is not None:
            found["logging"] = {}
        return found


def offers_of(source: ToolSource) -> Offers:
    found = cast("Any", source)
    return Offers(
        resources=found if _has(source, "resources", "templates", "read") else None,
        prompts=found if _has(source, "prompts", "prompt") else None,
        completion=found if _has(source, "complete") else None,
        subscribed=found if _has(source, "subscribe", "unsubscribe") else None,
        watched=found if _has(source, "watch") else None,
        log=found if _has(source, "set_log_level") else None,
    )


def _has(source: object, *methods: str) -> bool:
    return all(callable(getattr(source, method, None)) for method in methods)
