"""Small histories of a coding agent, and summarisers that behave in their own ways."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from ullage.context import SummaryAnswer, SummaryRequest
from ullage.models import shipped
from ullage.tokens import Meter
from ullage.tool import JsonObject

METER = Meter(shipped())
ASKED = "Find out why the invoices of March are wrong and mend it."


def steps(number: int, words: int = 60) -> list[JsonObject]:
    """So many calls with their results, in the form of OpenAI's chat."""
    made: list[JsonObject] = []
    for step in range(number):
        call = {"name": "read", "arguments": f'{{"path": "src/module_{step}.py"}}'}
        made += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{step}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{step}", "content": result(step, words)},
        ]
    return made


def result(step: int, words: int) -> str:
    lines = (f"line {line} of module {step}: the value is {line * 7 + step}" for line in range(words // 10))
    return f"def function_{step}():\n" + "\n".join(lines)


def talk(number: int, words: int = 60) -> list[JsonObject]:
    """A request, work on it, an answer, and another request."""
    return [
        {"role": "user", "content": ASKED},
        *steps(number, words),
        {"role": "assistant", "content": "The rounding in module_3 was wrong. I mended it."},
        {"role": "user", "content": "Now look at April."},
    ]


@dataclass
class Summarising:
    """Answers with a text, one after the other; the last one for ever. An exception is raised."""

    answers: Sequence[str | Exception | SummaryAnswer] = ("Decisions: round half up. Next steps: April.",)
    window: int | None = 100_000
    asked: list[SummaryRequest] = field(default_factory=list[SummaryRequest])
    hangs: bool = False

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        self.asked.append(request)
        if self.hangs:
            await anyio.sleep_forever()
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, SummaryAnswer) else SummaryAnswer(text=answer)
