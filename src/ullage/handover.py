"""The connection that the start module hands to the server after answering the first requests itself."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Handover", "digest_of_tools"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """A connection on standard input and output that is already in use."""

    reader: int
    """The descriptor to read from. Standard input itself is empty by then."""
    writer: int
    """The descriptor to write to. Standard output itself leads to standard error by then."""
    lines: list[bytes] = field(default_factory=list[bytes])
    """Lines that were read and not answered, in order, without line ends."""
    rest: bytes = b""
    """The beginning of an incomplete line."""
    is_ended: bool = False
    """Whether the input has ended."""
    initialize: dict[str, Any] | None = None
    """The parameters of the `initialize` request that was answered; None where none was."""
    protocol_version: str | None = None
    """The negotiated revision, or the one named by the first request of the stateless era."""
    tools_digest: str | None = None
    """`digest_of_tools` of the list that was sent; None where none was."""


def digest_of_tools(tools: Sequence[Any]) -> str:
    """Return a digest that differs for different lists of tools, as they are sent."""
    text = json.dumps(tools, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
