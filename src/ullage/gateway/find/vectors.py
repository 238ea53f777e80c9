"""What is already known of what these tools mean?

Vectors as bytes, by the server's name and the hash of the definition as the server has it: the seam to whoever keeps
them between starts. How a vector is made, and whether its bytes are of this edition, is not known here.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

__all__ = ["VectorCache", "VectorKey"]

VectorKey = tuple[str, str]
"""The server's name, whose words are in the vector too, and the hash of the definition under its own name."""


class VectorCache(Protocol):
    """Keeps vectors between starts. Blocking: used from a thread."""

    def load(self, keys: Iterable[VectorKey]) -> Mapping[VectorKey, bytes]:
        """What is kept of these."""
        ...

    def save(self, vectors: Mapping[VectorKey, bytes]) -> None: ...
