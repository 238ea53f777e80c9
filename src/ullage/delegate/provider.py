"""A provider as configured, with its key and its time-outs."""

from dataclasses import dataclass, field

from .exchange import Wire

__all__ = ["Provider", "Timeouts"]

_REASONING = 5
"""How many times longer than others a model may take that reasons, where the user set no limit."""
_KEEP_ALIVE = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """In seconds."""

    connect: float = 3.0
    first_byte: float = 60.0
    """Until the answer begins; some models think first."""
    idle: float = 30.0
    """Between two pieces of an answer; a keep-alive is one."""

    def for_reasoning(self) -> "Timeouts":
        """The limits for a model that reasons before it answers: longer ones, except where the user set others."""
        usual = Timeouts()
        return Timeouts(
            connect=self.connect,
            first_byte=self.first_byte * (_REASONING if self.first_byte == usual.first_byte else 1),
            idle=self.idle * (_REASONING if self.idle == usual.idle else 1),
        )

    @property
    def keep_alive(self) -> float:
        """For how long keep-alives alone are waited through, so that a dead model behind a live proxy is given up."""
        return max(_KEEP_ALIVE, 4 * self.idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    name: str
    wire: Wire
    base_url: str
    key: str | None = field(default=None, repr=False)
    """None where it needs none, as a model on this machine."""
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    timeouts: Timeouts = field(default_factory=Timeouts)
    host: str | None = None
    """Who bills, as prices know them; None for whoever made the model."""
