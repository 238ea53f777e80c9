"""The kinds of failure of one attempt, and what is known of each. What to do about a failure, `retry` decides."""

from typing import ClassVar, Literal

from ullage.errors import Unavailable
from ullage.models import Usage

__all__ = ["FailureKind", "ProviderFailed"]

FailureKind = Literal[
    "connect",
    "first_byte",
    "idle",
    "cut",
    "truncated",
    "malformed",
    "rate_limited",
    "exhausted",
    "server",
    "overloaded",
    "bad_request",
    "context_length",
    "sealed",
    "unauthorized",
    "not_found",
    "refused",
    "no_key",
    "deadline",
]
"""`cut`: the connection broke; `truncated`: the stream ended without its mark; `malformed`: it was not what its wire
promises; `exhausted`: the account has no money, or no quota before another day; `sealed`: it cannot open the thoughts
that it was sent, or seals none; `refused`: the provider will not, for a reason of its own; `no_key`: nobody was
asked."""

_PROXY_TIMEOUTS = frozenset({504, 524})


class ProviderFailed(Unavailable):
    """One attempt that came to nothing. Holds no body, no key and no prompt."""

    code: ClassVar[str] = "PROVIDER_FAILED"

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        status: int | None = None,
        retry_after: float | None = None,
        suggestion: str = "",
    ) -> None:
        super().__init__(message, suggestion=suggestion)
        self.kind: FailureKind = kind
        self.status = status
        self.retry_after = retry_after
        """Seconds, where the provider said so."""
        self.usage = Usage()
        """What the provider had reported before it failed."""
        self.was_sent = kind not in ("connect", "no_key")
        """Whether the request reached the provider, as far as is known."""

    @property
    def may_be_billed(self) -> bool:
        """Whether the provider may have worked on the request: it was sent, and either no HTTP status came, or one by
        which a proxy says that the provider behind it took too long."""
        return self.was_sent and (self.status is None or self.status in _PROXY_TIMEOUTS)
