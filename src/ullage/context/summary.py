"""How is a head put into fewer words by a model?"""

from collections.abc import Callable, Sequence

from ullage.messages import Text

from .carried import Carried
from .entry import Entry
from .summarizer import Summarizer, SummaryRequest

__all__ = ["SummaryFailed", "summarise"]


class SummaryFailed(Exception):
    def __init__(self, reason: str, calls: int) -> None:
        super().__init__(reason)
        self.reason, self.calls = reason, calls


async def summarise(
    head: Sequence[Entry], earlier: Carried | None, summarizer: Summarizer, *, count: Callable[[str], int], room: int
) -> str:
    text = "\n".join(part.text for one in head for part in one.message.parts if isinstance(part, Text))
    try:
        answer = await summarizer.summarize(SummaryRequest(instructions="Summarise.", text=text, max_tokens=room))
    except Exception as error:  # noqa: BLE001
        raise SummaryFailed(f"{error}", 1) from error
    if not answer.text.strip() or not answer.complete or answer.refused:
        raise SummaryFailed("no answer", 1)
    return answer.text
