"""What must a tokenizer be able to do for the meter?"""

from typing import Protocol

from .steps import Steps

__all__ = ["Engine"]


class Engine(Protocol):
    """Counts texts exactly with named vocabularies. A literal such as `<|endoftext|>` in a text is text."""

    def available(self, vocabulary: str) -> bool: ...

    def count(self, vocabulary: str, text: str) -> int:
        """The number of tokens; for a vocabulary that is available."""
        ...

    def steps(self, vocabulary: str, text: str) -> Steps[int]:
        """The same number, with a yield at least every few milliseconds however large the text is."""
        ...
