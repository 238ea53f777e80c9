"""Settings of the search for tools, and the names of the tools that search and call."""

from importlib.util import find_spec
from typing import Literal

__all__ = ["FIND_NAMES", "MOST_USES", "IndexKind", "encoder_lacks"]

IndexKind = Literal["static", "encoder", "words"]
"""By the table, by the encoder, or by words alone; all of them by words too."""
MOST_USES = 2_000
"""Remembered of one principal; the longest unused go first."""
FIND_NAMES = ("find_tool", "call_tool", "call_tool_write")
"""Tools of Ullage's own that no other tool may be named as."""


def encoder_lacks() -> tuple[str, ...]:
    """What the encoder needs and is not installed. Imports nothing."""
    return tuple(module for module in ("onnxruntime", "ullage_encoder") if find_spec(module) is None)
