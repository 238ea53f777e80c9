"""How much time and how many connections does a server get?

What the settings of a server do not say; values only.
"""

from dataclasses import dataclass, field

from .backoff import Patience

__all__ = ["Bounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Times in seconds."""

    connections: int = 128
    """Of one server, over all sessions."""
    least_share: int = 4
    """Of these, which one principal may have in any case; beyond it, half of them."""
    room_wait: float = 30.0
    """In which a call waits for a connection where there are as many as may be."""
    idle: float = 900.0
    """After which a session's connection beside others is let go, where the settings name no time."""
    shortest_idle: float = 0.1
    """A shorter time in the settings is taken as this one, so that nothing spins."""
    start_slack: float = 2.0
    """On top of a server's time to start: the opener watches the clock too and knows better what went wrong."""
    stopping: float = 8.0
    """In which an open connection must have let go of its process before it is cut off."""
    retiring: float = 30.0
    """In which the open calls of a removed server may finish."""
    leaving: float = 10.0
    """In which everything must have ended when the host does."""
    patience: Patience = field(default_factory=Patience)

    @property
    def share(self) -> int:
        """The connections to one server that one principal may have."""
        return min(self.connections, max(self.least_share, self.connections // 2))
