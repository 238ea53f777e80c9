"""What do others leave of a history that fills its window?

LangChain's SummarizationMiddleware and pydantic-ai-harness' SummarizingCompaction, each in an environment of its own
(`delegate_peers`), with a summarising model that says one sentence and with our tail: they compact where they are told
to, keep what fits 30 % of the window by their own count, and put the rest into a summary.

This file asks; `context_peers_langchain` and `context_peers_harness` answer, over there.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from context_traces import Point
from delegate_peers import present, python_of

from ullage.messages import Message, Part, Text, ToolCall, ToolResult, to_json

HERE = Path(__file__).parent
PEERS = {"langchain": "context_peers_langchain.py", "pydantic-ai-harness": "context_peers_harness.py"}
SENTENCE = "The work goes on."
"""All that the summarising model ever says."""
KEEP = 0.30
PLACEHOLDERS = ("Previous conversation was too long to summarize.", "No previous conversation history.")
"""What LangChain says instead of a summary, without having asked its model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a peer left of a history."""

    messages: tuple[Message, ...]
    compacted: bool
    """False where it left the history as it was."""

    @property
    def text(self) -> str:
        """All that can be read in it."""
        return "\n".join(text for message in self.messages for part in message.parts for text in _texts(part))

    @property
    def is_placeholder(self) -> bool:
        return self.compacted and any(words in self.text for words in PLACEHOLDERS)


def peers(*, wanted: bool) -> list[str]:
    """Those that are there, after installing what is missing and saying which they are."""
    return present(tuple(PEERS), wanted=wanted)


def left_by(peer: str, points: Sequence[Point]) -> list[Left]:
    command = [str(python_of(peer)), str(HERE / PEERS[peer])]
    lines = "\n".join(json.dumps(line) for line in _questions(points))
    done = subprocess.run(command, input=lines, capture_output=True, text=True, encoding="utf-8", check=True)
    return [_left(point, json.loads(line)) for point, line in zip(points, done.stdout.splitlines(), strict=True)]


def _questions(points: Sequence[Point]) -> Iterator[Mapping[str, object]]:
    """A trace is sent once, with all its points behind it."""
    for _, group in groupby(points, key=lambda point: id(point.trace)):
        asked = list(group)
        yield {"history": [to_json(message) for message in asked[0].trace.messages], "says": SENTENCE}
        yield from ({"step": point.step, "window": point.window, "keep": int(KEEP * point.window)} for point in asked)


def _left(point: Point, items: list[int | str] | None) -> Left:
    """A place in the history is that message; a text was put in as the user's."""
    if items is None:
        return Left(messages=point.history, compacted=False)
    found = [point.history[one] if isinstance(one, int) else Message(role="user", parts=(Text(one),)) for one in items]
    return Left(messages=tuple(found), compacted=True)


def _texts(part: Part) -> Iterator[str]:
    match part:
        case Text():
            yield part.text
        case ToolCall():
            yield part.name
            yield part.arguments
        case ToolResult():
            for inner in part.parts:
                yield from _texts(inner)
        case _:
            pass
