"""What the start module passes on when the gateway has been loaded. Standard library only."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Handover", "digest_tools"]


@dataclass(slots=True, kw_only=True)
class Handover:
    """A connection on standard input and output on which some requests have been answered already."""

    reader: int
    """Descriptor of the input, claimed from standard input."""
    writer: int
    """Descriptor of the output, claimed from standard output."""
    lines: list[bytes]
    """Lines that were read and not answered, in their order."""
    rest: bytes
    """The beginning of a line whose end has not been read."""
    is_ended: bool
    """Whether the input has ended."""
    initialize: dict[str, Any] | None
    """The params of the `initialize` request that was answered; None where none was."""
    protocol_version: str | None
    """The version that was answered to it."""
    tools_digest: str | None
    """Digest of the tools that were answered (`digest_tools`); None where none were."""


def digest_tools(tools: Sequence[Any]) -> str:
    """SHA-256 of the JSON text of a `tools` array."""
    text = json.dumps(tools, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
