"""What the agents of every framework are given to do, and what must hold of it.

Imported by scripts that run in the environment `.bench/adapters`; prints what was measured as one line of JSON.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ullage.context import Context, Options, Summarizer, SummaryAnswer, SummaryRequest, Threshold
from ullage.messages import Format, faults, read_request
from ullage.models import shipped
from ullage.tokens import Meter

__all__ = ["MODEL", "WINDOW", "Short", "Watched", "begin", "order", "result"]

METER = Meter(shipped())
MODEL = "gpt-4o"
WINDOW = 4_000


def order(number: int) -> str:
    """What the tool says: some 200 tokens."""
    return "\n".join(f"{number}-{line}: shipped to 12 Harbour Road" for line in range(20))


@dataclass
class Short:
    """Sums everything up in a sentence."""

    window: int | None = None
    asked: int = 0

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        self.asked += 1
        return SummaryAnswer(text="The user wants every order read. Go on with the next one.")


def begin(
    format: Format,  # noqa: A002
    *,
    summarizer: Summarizer | None = None,
    threshold: Threshold = 0.65,
) -> Context:
    options = Options(context_window=WINDOW, compact_threshold=threshold)
    return Context(model=MODEL, meter=METER, format=format, options=options, summarizer=summarizer)


@dataclass
class Watched:
    """Every request that reached the model, as the body of an OpenAI request, and every status before it."""

    format: Format
    requests: list[tuple[list[Any], int]] = field(default_factory=list[tuple[list[Any], int]])
    events: list[Any] = field(default_factory=list[Any])

    def tokens(self, messages: Sequence[Any], **body: Any) -> int:  # noqa: ANN401
        """What the provider reports."""
        key = "input" if self.format is Format.OPENAI_RESPONSES else "messages"
        weight = METER.weigh(read_request({key: list(messages), **body}, self.format), MODEL).total.tokens
        self.requests.append((list(messages), weight))
        return weight

    def check(self, steps: int) -> None:
        assert len(self.requests) == len(self.events) == steps, (len(self.requests), len(self.events), steps)
        for messages, tokens in self.requests:
            assert faults(messages, self.format) == (), faults(messages, self.format)
            assert tokens <= WINDOW, tokens
        assert all(event["type"] == "context_status" for event in self.events)

    @property
    def compacted(self) -> list[Any]:
        return [event["context"] for event in self.events if event["context"]["compacted"]]

    @property
    def measured(self) -> dict[str, Any]:
        return {
            "compacted": len(self.compacted),
            "after": max(said["usagePercent"] for said in self.compacted),
            "tiers": sorted({shed["tier"] for said in self.compacted for shed in said["shed"]}),
            "off": self.off,
            "warnings": sorted({event["context"].get("warning", "") for event in self.events}),
        }

    @property
    def off(self) -> float:
        """By how much a status was off at most, from the second on: before the first call nobody knows of the tools."""
        pairs = [(event["context"], tokens) for event, (_, tokens) in zip(self.events, self.requests, strict=True)]
        return max(abs(said["used"] - tokens) / tokens for said, tokens in pairs[1:])


def result(**said: Any) -> None:  # noqa: ANN401
    sys.stdout.write(json.dumps(said) + "\n")
