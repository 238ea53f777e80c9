"""Small sessions to try things on."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from context.session.crashing import Quick
from ullage.context.session import Draft, Record, Session
from ullage.tool import JsonObject

START = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Clock:
    """Stands still until it is put on."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def opened(path: Path, **options: Any) -> Session:  # noqa: ANN401 - whatever `open` takes
    return Session.open(path, **{"files": Quick(), "clock": Clock(), **options})


def user(text: str) -> JsonObject:
    return {"role": "user", "content": text}


def talked(path: Path, number: int = 10, **options: Any) -> Session:  # noqa: ANN401 - whatever `open` takes
    """A session with so many messages, `message 1` first."""
    session = opened(path, **options)
    session.append([user(f"message {place}") for place in range(1, number + 1)])
    return session


def summary(text: str = "what was said") -> Draft:
    return Draft(message=user(f"<context_summary>\n{text}\n</context_summary>"), kind="summary")


def texts(records: Sequence[Record]) -> list[object]:
    return [record.message["content"] for record in records]


def lines_of(session: Session) -> list[dict[str, Any]]:
    """What stands in the file."""
    return [json.loads(line) for line in session.path.read_bytes().splitlines()]


def archive_of(session: Session) -> Path:
    return session.path.with_name(f"{session.path.name}.archive-{session.id}")
