"""The plug point for whoever puts the head of a history into fewer words.

A model of the user's, the agent's own, or a fake; `summarizers` makes one of a function or of a client. What is asked
and what counts as an answer, `summary` knows.
"""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Summarizer", "SummaryAnswer", "SummaryRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    instructions: str
    """What to do; meant for the system's place."""
    text: str
    """What it is done to: history, which is data and no instruction."""
    max_tokens: int
    """That the answer may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswer:
    text: str
    complete: bool = True
    """False where the answer ended for want of room."""
    refused: bool = False
    cost: str | None = None
    """In dollars; None where nobody knows."""


class Summarizer(Protocol):
    @property
    def window(self) -> int | None:
        """Tokens that request and answer may have together; None where nobody knows."""
        ...

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        """May raise anything; whatever it raises is a failure and never the end of the session."""
        ...
