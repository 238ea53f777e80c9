"""Which passages did this caller get, to hand them on?

A handle stands for the places that one search found. It cannot be guessed, means nothing to other principals, and is
the same each time for the same places, so that a repeated search is a repeated reply. In memory and within bounds: it
ends with the process.
"""

import hmac
import secrets
from dataclasses import dataclass, field

from ullage.errors import UnknownHandle

from .retriever import Place

__all__ = ["PREFIX", "Handles"]

PREFIX = "p_"
_DIGITS = 18
"""Three are one token, so that 60 bits cost six."""
_PRINCIPALS = 100
_EACH = 100
"""Handles of one principal; the oldest is let go, and so is the principal who was longest away."""

_Places = tuple[Place, ...]


@dataclass(slots=True)
class Handles:
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _held: dict[str, dict[str, _Places]] = field(default_factory=dict[str, dict[str, _Places]], repr=False)
    """By principal and handle, the oldest first."""

    def keep(self, principal: str, places: _Places) -> str:
        own = self._held.pop(principal, {})
        handle = self._handle(principal, places)
        own.pop(handle, None)
        self._held[principal] = {**own, handle: places}
        _let_go(self._held[principal], _EACH)
        _let_go(self._held, _PRINCIPALS)
        return handle

    def open(self, principal: str, handle: str) -> _Places:
        """Raises `UnknownHandle` for none, another's, or one that was let go: they cannot be told apart."""
        places = self._held.get(principal, {}).get(handle)
        if places is None:
            raise UnknownHandle(
                f"no passages are held under `{handle[:40]}`",
                suggestion="search again with `retrieve.search`, and give the handle it then names",
            )
        return places

    def _handle(self, principal: str, places: _Places) -> str:
        told = "\n".join((principal, *(place.citation for place in places)))
        digest = hmac.digest(self.key, told.encode("utf-8", "surrogatepass"), "sha256")
        return PREFIX + str(int.from_bytes(digest, "big"))[-_DIGITS:]


def _let_go(held: dict[str, _Places] | dict[str, dict[str, _Places]], most: int) -> None:
    while len(held) > most:
        del held[next(iter(held))]
