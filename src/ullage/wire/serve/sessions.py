"""Which requests belong together, where the protocol has no sessions?

Those of one principal and one client with no pause of half an hour between them. A guess, and marked as one wherever it
is used. The clock is passed in.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

__all__ = ["InferredSessions"]

_GAP = 30 * 60.0
_KEPT = 4096


@dataclass(slots=True)
class _Session:
    name: str
    seen: float


@dataclass(slots=True)
class InferredSessions:
    gap: float = _GAP
    """Seconds of silence after which another session begins."""
    kept: int = _KEPT
    """How many are remembered; the one silent for longest goes first."""
    _open: OrderedDict[tuple[str, str | None], _Session] = field(
        default_factory=OrderedDict[tuple[str, str | None], _Session]
    )

    def of(self, principal: str, client: str | None, now: float) -> str:
        """The session of a request at `now`, in seconds since the epoch; the session is named after its beginning."""
        key = (principal, client)
        session = self._open.get(key)
        if session is None or now - session.seen > self.gap:
            session = self._open[key] = _Session(f"{principal}/{client or '-'}@{int(now)}", now)
        session.seen = max(session.seen, now)
        self._open.move_to_end(key)
        while len(self._open) > self.kept:
            self._open.popitem(last=False)
        return session.name
