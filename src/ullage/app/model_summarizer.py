"""Summarizers that call a model of the user's settings.

A summary is requested like any other delegated call, with the same budgets, fallbacks and ledger entries. The context
writes the prompt and decides whether the summary is acceptable.
"""

from dataclasses import dataclass

from ullage.context import SummaryAnswer, SummaryRequest
from ullage.delegate import Ask, Candidate, Delegate, RouteRequest, route
from ullage.messages import Message, Text
from ullage.tokens import patiently, unheard
from ullage.tool import ANONYMOUS, Caller

from .build_delegate import open_delegate, with_model
from .count_text import meter

__all__ = ["DelegateSummarizer", "NamedSummarizer"]


@dataclass(frozen=True, slots=True)
class NamedSummarizer:
    """A summarizer for a model's name.

    The settings of the working directory, with their keys and budgets, are read for each summary: compactions are rare,
    and nothing stays open between them.
    """

    model: str
    """An alias or id of the policy, or any model of a provider whose key is set, as `openai:gpt-4o` or `gpt-4o`."""
    caller: Caller = ANONYMOUS

    @property
    def window(self) -> int | None:
        window = meter().models.window(self.model.rpartition(":")[2])
        return window.tokens if window.resolved else None

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        async with open_delegate() as opened:
            delegate, entry = with_model(opened, self.model)
            return await DelegateSummarizer(delegate=delegate, model=entry.id, caller=self.caller).summarize(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateSummarizer:
    delegate: Delegate
    model: str | None = None
    """An alias or a model's id; None for the policy's default."""
    caller: Caller = ANONYMOUS

    @property
    def window(self) -> int | None:
        """Context window in tokens of the model that is called first."""
        return self._first.window

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        outcome = await self.delegate.run(
            Ask(
                messages=(
                    Message(role="system", parts=(Text(request.instructions),)),
                    Message(role="user", parts=(Text(request.text),)),
                ),
                force_model=self.model,
                max_output_tokens=request.max_tokens,
                caller=self.caller,
                tool="summary",
                prompt_tokens=await self._weigh(request),
            )
        )
        cost = outcome.cost
        dollars = None if cost is None or cost.total is None or cost.currency != "USD" else str(cost.total)
        return SummaryAnswer(
            text=outcome.completion.text,
            complete=outcome.completion.finish != "length",
            refused=outcome.completion.finish == "refusal",
            cost=dollars,
        )

    @property
    def _first(self) -> Candidate:
        asked = RouteRequest(prompt_tokens=0, force_model=self.model)
        return route(asked, self.delegate.policy, self.delegate.models).candidates[0]

    async def _weigh(self, request: SummaryRequest) -> int:
        """Return the middle of the request's token band: the caller has left room in the window for the rest of the
        band."""
        meter, model = self.delegate.meter, self._first.entry.model
        name = model if meter.models.get(model) is not None else unheard(model)
        texts = [await patiently(meter.steps(text, name)) for text in (request.instructions, request.text)]
        return sum(count.tokens for count in texts)
