"""What does this client get to see?

A source and how it introduces itself, by the name under which a client comes: from the URL's path or a flag, never from
what a client says of itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ullage.errors import UnknownResource
from ullage.tool import Era, ToolSource

__all__ = ["Identity", "Profile", "Profiles", "SessionEnd", "single"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the server says of itself."""

    name: str
    version: str
    instructions: str | Callable[[], str | None] | None = None
    """A function where they change while the server runs; it is asked when a client connects."""

    def spoken(self) -> str | None:
        return self.instructions() if callable(self.instructions) else self.instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    source: ToolSource
    identity: Identity
    model: str | None = None
    """The model the user named for this client; None where nobody did."""
    when_met: Callable[[Era], None] = lambda _: None
    """Told the era of the protocol in which a client speaks, before it is answered."""


Profiles = Callable[[str | None], Profile]
"""The profile of a client by its name, None for the one without; raises `UnknownResource` with the names there are."""


SessionEnd = Callable[[str, str], None]
"""Told the principal and the session when a session of the earlier era has ended."""


def single(profile: Profile, *names: str | None) -> Profiles:
    """The same for everyone, under these names or none."""

    def profile_of(name: str | None) -> Profile:
        if name is None or name in names:
            return profile
        known = tuple(one for one in names if one is not None)
        raise UnknownResource(f"no client is called `{name}`", suggestion="use /mcp alone", options=known)

    return profile_of
