"""What must a tokenizer be able to do for the meter?"""

from collections.abc import Callable
from typing import Protocol

from .steps import Steps

__all__ = ["Engine"]


class Engine(Protocol):
    """Counts texts exactly with named vocabularies. A literal such as `<|endoftext|>` in a text is text."""

    def available(self, vocabulary: str) -> bool: ...

    def counter(self, vocabulary: str) -> Callable[[str], int]:
        """Counts the tokens of a text; for a vocabulary that is available, which is loaded if it was not."""
        ...

    def steps(self, vocabulary: str, text: str) -> Steps[int]:
        """The same number, with a yield at least every few milliseconds however large the text is."""
        ...
