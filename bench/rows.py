"""Which recorded requests are there, and of what kind is each?

A row is a request body as it was sent with the number of input tokens its provider reported. The files are read from
`DATA` (a folder of .jsonl, one a provider) and never copied.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ullage.errors import UllageError
from ullage.messages import Format, Media, Request, read_request
from ullage.models import Match, ModelTable
from ullage.tokens import Meter
from ullage.tokens.count import kind_of

sys.path.append(str(Path(__file__).parent.parent / "scripts"))

import fit_bands

DEFAULT_DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "usage"
_HOSTS = {"inference.baseten.co": "baseten", "integrate.api.nvidia.com": "nvidia", "us.inference.heroku.com": "heroku"}
_PLAIN = frozenset({"cache_control", "count_tokens"})
_TOOLS = _PLAIN | {"tools", "tool_turns", "thinking_cfg"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    provider: str
    host: str
    """The provider as people write it before a model's name."""
    model: str
    request: Request
    body: dict[str, Any]
    match: Match
    reported: int
    kind: str
    """`plain`, `tools` or `other`."""
    repository: str
    hidden: bool
    """Whether its provider puts a prompt of its own before everybody's."""
    redacted: bool
    """Whether strings of it were changed after it was sent, so that its count cannot be exact."""


@dataclass(slots=True)
class Skipped:
    """What was not measured, and why."""

    reasons: dict[str, int]

    def add(self, reason: str) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


def data_folder() -> Path:
    return Path(os.environ.get("DATA") or DEFAULT_DATA)


def read_rows(folder: Path, models: ModelTable, skipped: Skipped) -> Iterator[Row]:
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                row = _read_row(json.loads(line), models, skipped)
                if row is not None:
                    yield row


def _read_row(raw: dict[str, Any], models: ModelTable, skipped: Skipped) -> Row | None:
    reason = _unfit(raw)
    if reason:
        return skipped.add(reason)
    host = _host(raw)
    match = models.get(f"{host}/{raw['model']}")
    if match is None:
        return skipped.add(f"model not in the table: {raw['provider']}/{raw['model']}")
    try:
        request = read_request(raw["request"], format_of(raw))
    except UllageError as error:
        return skipped.add(f"unreadable: {error.code}")
    return Row(
        provider=raw["provider"],
        host=host,
        model=raw["model"],
        request=request,
        body=raw["request"],
        match=match,
        reported=raw["input_tokens"],
        kind=_kind(frozenset(raw["flags"]), request),
        repository=raw["source"].split("@")[0],
        hidden=raw["provider"] in fit_bands.HIDDEN_PROMPTS,
        redacted=bool(raw.get("redacted")) or "REDACTED" in json.dumps(raw["request"]),
    )


def _host(raw: dict[str, Any]) -> str:
    """The provider as a user would name it; Alibaba's two regions, kept apart in the recordings' paths, differ."""
    if raw["provider"] == "dashscope" and "/US/" in raw["source"]:
        return "dashscope-us"
    return _HOSTS.get(raw["provider"], raw["provider"])


def _unfit(raw: dict[str, Any]) -> str | None:
    if not raw["input_tokens"]:
        return "no input tokens reported"
    if "server_state" in raw["flags"]:
        return "refers to what its provider keeps"
    return None


def format_of(raw: dict[str, Any]) -> Format | None:
    """The format that the address tells; None where the body must tell it, as on Bedrock."""
    path = raw["endpoint"].partition("?")[0].partition("#")[0]
    if "contents" in raw["request"]:
        return Format.GEMINI
    if path.endswith(("chat/completions", "/v1/completions", "/api/chat", "/embeddings")):
        return Format.OPENAI_CHAT
    if path.endswith("/responses"):
        return Format.OPENAI_RESPONSES
    if path.endswith(("/v1/messages", "/count_tokens")):
        return Format.ANTHROPIC
    return None


def samples_of(rows: Sequence[Row], meter_of: Callable[[Row], Meter]) -> list[fit_bands.Sample]:
    """The rows as their rules weigh them, to fit bands to."""
    return [
        fit_bands.Sample(
            host=row.match.host or row.match.card.provider,
            maker=row.match.card.provider,
            kind=kind_of(row.request),
            repository=row.repository,
            count=meter_of(row).weigh(row.request, f"{row.host}/{row.model}").total,
            reported=row.reported,
        )
        for row in rows
    ]


def _kind(flags: frozenset[str], request: Request) -> str:
    if any(isinstance(part, Media) for message in request.messages for part in message.parts):
        return "other"
    if flags <= _PLAIN:
        return "plain"
    return "tools" if flags <= _TOOLS and flags & {"tools", "tool_turns"} else "other"
