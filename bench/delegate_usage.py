"""What do we make of the usage that providers really reported?

Each recorded answer's usage is read on its wire, and compared with the whole prompt that the recording names and with
the provider's own total. The recordings are read from `DATA` and never copied.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rows import format_of

from ullage.messages import Format, read_usage
from ullage.models import Usage

FORMATS = (Format.OPENAI_CHAT, Format.OPENAI_RESPONSES, Format.ANTHROPIC, Format.GEMINI)
_NO_ANSWERS = ("embeddings", "rerank", "countTokens", "count_tokens")
"""What asks for no answer: its usage has no output."""
_OTHER_WIRES = ("/api/chat",)
"""Ollama's own, which is not spoken."""


@dataclass(slots=True)
class Read:
    """Of one wire."""

    rows: int = 0
    unknown: int = 0
    """Without input or output."""
    beside: Counter[str] = field(default_factory=Counter[str])
    """Those whose input is not what the recording, or the provider's total, names, by why."""
    untotalled: Counter[str] = field(default_factory=Counter[str])
    """Those whose input and output are not the provider's total, by provider."""


def measure(folder: Path) -> dict[str, Read]:
    found = {form.value: Read() for form in FORMATS}
    for raw in _rows(folder):
        form = format_of(raw)
        if form is not None:
            _add(found[form.value], raw, read_usage(raw["usage"], form))
    return found


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for raw in map(json.loads, lines):
                if not any(part in raw["endpoint"] for part in (*_NO_ANSWERS, *_OTHER_WIRES)):
                    yield raw


def _add(read: Read, raw: Mapping[str, Any], usage: Usage) -> None:
    read.rows += 1
    if usage.input is None or usage.output is None:
        read.unknown += 1
        return
    if usage.input != raw["input_tokens"]:
        read.beside[_why(raw["usage"], usage.input - raw["input_tokens"])] += 1
    total = raw["usage"].get("total_tokens", raw["usage"].get("totalTokenCount"))
    if total is not None and total < usage.input:
        read.beside["a total of the provider's that is less than its own prompt"] += 1
    elif total is not None and total != usage.input + usage.output:
        read.untotalled[raw["provider"]] += 1


def _why(said: Mapping[str, Any], more: int) -> str:
    if said.get("toolUsePromptTokenCount") == more:
        return "results of the provider's own tools, which the recording leaves out"
    if "prompt_audio_seconds" in said:
        return "a recording that was listened to, which only the total holds"
    return "unexplained"
