"""Entries of a busy team's gateway, as many as wanted, in the order of time.

A session runs for up to two hours, with tool results, searches, the definitions that each request carries, pages read
back and model calls. Spread over a year, so that 5 million entries are 20 sessions a day.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from ullage.ledger import Entry, ModelUse
from ullage.models import Usage

__all__ = ["entries"]

_DAYS = 365
_SESSION = 690
"""Entries of a session."""
_CLIENTS = ("claude-code", "codex", "opencode")
_PROJECTS = tuple(f"/home/dev/project-{number}" for number in range(12))
_SERVERS = ("github", "shop", "files", "browser", "tickets")
_TOOLS = 8
_MODELS = ("claude-opus-4-5", "claude-sonnet-4-5", "gpt-5.2-codex")


def entries(count: int, *, seed: int = 1) -> Iterator[Entry]:
    chance = random.Random(seed)
    start = datetime(2025, 11, 1, tzinfo=UTC)
    sessions = max(1, count // _SESSION)
    for session in range(sessions + 1):
        begun = start + timedelta(days=_DAYS * session / sessions)
        who: dict[str, Any] = {
            "principal": f"dev-{session % 4}",
            "session": f"session-{session:08d}-0000-4000-8000-000000000000",
            "client": _CLIENTS[session % 3],
            "project": _PROJECTS[session % 12],
        }
        for place in range(min(_SESSION, count - _SESSION * session)):
            yield _entry(chance, begun + timedelta(seconds=10 * place), place, _MODELS[session % 3], who)


def _entry(chance: random.Random, time: datetime, place: int, model: str, who: dict[str, Any]) -> Entry:
    match place % 4:
        case 0:
            baseline = chance.randrange(100, 40_000)
            tokens = min(baseline, 5_000)
            server = _SERVERS[chance.randrange(5)]
            return Entry(
                time=time, kind="result", server=server, tool=f"{server}_tool_{chance.randrange(_TOOLS)}", model=model,
                tokens=tokens, baseline_tokens=baseline, saved_tokens=baseline - tokens, milliseconds=12.5,
                is_error=chance.random() < 0.03, **who,
            )  # fmt: skip
        case 1:
            return Entry(
                time=time,
                kind="definitions",
                model=model,
                tokens=1_450,
                baseline_tokens=93_000,
                saved_tokens=91_550,
                **who,
            )
        case 2 if place % 20 == 2:
            return Entry(time=time, kind="search", tool="find_tool", model=model, tokens=900, saved_tokens=-900, **who)
        case 2:
            return Entry(
                time=time, kind="page", server="shop", tool="query", model=model, tokens=2_000, saved_tokens=-2_000,
                **who,
            )  # fmt: skip
        case _:
            read = 58_000 + place * 100
            usage = Usage(input=read + 2_000, output=400, cache_read=read, cache_write=2_000)
            return Entry(
                time=time, kind="model", server="anthropic", model=model, tokens=60_400 + place * 100,
                use=ModelUse(usage=usage, dollars=Decimal("0.0415"), key=f"msg_{who['session']}_{place}"), **who,
            )  # fmt: skip
