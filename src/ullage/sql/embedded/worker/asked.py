"""What is asked of a worker in one message?"""

import time
from typing import Any, NamedTuple

__all__ = ["Asked", "Message"]

Message = dict[str, Any]


class Asked(NamedTuple):
    sql: str
    rows: int
    cell: int
    """Characters of one value."""
    bytes: int
    """Of all rows as they travel."""
    deadline: float
    """By the monotonic clock of this process."""

    @classmethod
    def read(cls, message: Message) -> "Asked":
        return cls(
            sql=message["sql"],
            rows=message["rows"],
            cell=message["cell"],
            bytes=message["bytes"],
            deadline=time.monotonic() + message["seconds"],
        )
