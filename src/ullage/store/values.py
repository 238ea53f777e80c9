"""How is a value written so that every database takes it and gives it back?

Times are seconds since 1970 in UTC. JSON is kept as text that `json.dumps` wrote in ASCII, so that halves of surrogate
pairs, NUL and numbers that are none survive; plain text columns lose those, and are for people.
"""

from datetime import UTC, datetime

__all__ = ["moment", "seconds", "storable"]


def seconds(time: datetime) -> float:
    """A time that knows its zone, as a number."""
    if time.tzinfo is None:
        raise ValueError("a time without a zone cannot be kept")
    return time.timestamp()


def moment(since_1970: float) -> datetime:
    return datetime.fromtimestamp(since_1970, UTC)


def storable(text: str) -> str:
    """The text without what a column of text refuses: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
