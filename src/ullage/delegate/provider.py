"""Whom do we ask, and how long do we wait?

A provider as configured, with its key. Nothing is asked here.
"""

from dataclasses import dataclass, field

from .exchange import Wire

__all__ = ["Provider", "Timeouts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """In seconds."""

    connect: float = 3.0
    first_byte: float = 60.0
    """Until the answer begins; some models think first."""
    idle: float = 30.0
    """Between two pieces of an answer."""


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
