"""What did showing a few tools instead of all of them save, and what did it cost?

`TokenMetrics` are the gross figures of one search. `Net` is what remains for a client when Ullage's own tools, its
instructions and its replies are charged, for the first request and for a session; it may be negative. A session's turns
are not seen from here: each call is one request that came back for more, so there were at least calls + 1, and the
figure is a lower bound. Money is not known here.
"""

from collections import OrderedDict
from dataclasses import dataclass

from ullage.tool import Json

__all__ = ["Carried", "Net", "Savings", "TokenMetrics"]

_WITHIN = 0.01
_SESSIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMetrics:
    """The four figures of a search. Figures that do not agree cannot be constructed."""

    baseline_tokens: int
    """The definitions of every tool that the search covers, our own among them: it may return them."""
    returned_tokens: int
    """The definitions and lines of the reply."""
    tokens_saved: int
    savings_percentage: float
    """From 0 to 100; 0 where the baseline is 0."""

    def __post_init__(self) -> None:
        if not 0 <= self.returned_tokens <= self.baseline_tokens:
            raise ValueError(f"returned tokens lie between 0 and the baseline, not {self.returned_tokens}")
        if self.tokens_saved != self.baseline_tokens - self.returned_tokens:
            raise ValueError(f"tokens saved are baseline less returned, not {self.tokens_saved}")
        # Written so that a percentage that is no number fails as well.
        if not abs(self.savings_percentage - _percentage(self.baseline_tokens, self.tokens_saved)) <= _WITHIN:
            raise ValueError(f"{self.savings_percentage} is not the percentage of {self.tokens_saved} tokens saved")
        if not 0 <= self.savings_percentage <= 100:
            raise ValueError(f"a percentage lies between 0 and 100, not {self.savings_percentage}")

    @classmethod
    def of(cls, baseline: int, returned: int) -> "TokenMetrics":
        saved = baseline - returned
        percentage = round(_percentage(baseline, saved), 2)
        return cls(
            baseline_tokens=baseline, returned_tokens=returned, tokens_saved=saved, savings_percentage=percentage
        )

    def to_json(self) -> dict[str, Json]:
        return {
            "baseline_tokens": self.baseline_tokens,
            "returned_tokens": self.returned_tokens,
            "tokens_saved": self.tokens_saved,
            "savings_percentage": self.savings_percentage,
        }


def _percentage(baseline: int, saved: int) -> float:
    return 100 * saved / baseline if baseline else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What one request of a client carries of tools, in tokens."""

    without: int
    """The definitions of every server's tools, as the client would carry them without Ullage: none of our own."""
    surface: int
    """The definitions listed to it now."""
    instructions: int

    @property
    def saved(self) -> int:
        return self.without - self.surface - self.instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """What a client saved when everything of ours is charged; below 0 where it lost."""

    first_request: Carried
    turns: int
    """Requests that the session must have made at the least."""
    replies: int
    """Tokens of our replies, each counted once for every later request that carries it."""
    session: int

    def to_json(self) -> dict[str, Json]:
        first = self.first_request
        return {
            "first_request": {
                "without": first.without,
                "surface": first.surface,
                "instructions": first.instructions,
                "net_tokens": first.saved,
            },
            "session": {
                "turns": self.turns,
                "replies_carried": self.replies,
                "net_tokens": self.session,
                "bound": "lower: over calls + 1 requests",
            },
        }


@dataclass(slots=True)
class _Session:
    turns: int = 0
    saved: int = 0
    """Over all priced turns, before our replies are charged."""
    unpriced: int = 0
    """Turns of which it was not yet known what they save."""
    replies: int = 0
    """Tokens that a further request would carry."""
    charged: int = 0

    def price(self, carried: Carried) -> None:
        self.saved += self.unpriced * carried.saved
        self.unpriced = 0


class Savings:
    """Adds up each session's turns and replies; a session not heard of for long is forgotten."""

    def __init__(self, most: int = _SESSIONS) -> None:
        self._most = most
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()

    def called(self, session: tuple[str, str], carried: Carried | None) -> None:
        """A call came, so one more request will follow. What it saves is added when that is known."""
        found = self._of(session)
        turns = 1 if found.turns else 2
        found.turns += turns
        found.unpriced += turns
        found.charged += found.replies
        if carried is not None:
            found.price(carried)

    def replied(self, session: tuple[str, str], tokens: int) -> None:
        """A reply of ours to that call: the next request carries it, and each one after."""
        found = self._of(session)
        found.replies += tokens
        found.charged += tokens

    def net(self, session: tuple[str, str], carried: Carried) -> Net:
        found = self._of(session)
        found.price(carried)
        return Net(first_request=carried, turns=found.turns, replies=found.charged, session=found.saved - found.charged)

    def _of(self, session: tuple[str, str]) -> _Session:
        found = self._sessions.pop(session, None) or _Session()
        self._sessions[session] = found
        if len(self._sessions) > self._most:
            self._sessions.popitem(last=False)
        return found
