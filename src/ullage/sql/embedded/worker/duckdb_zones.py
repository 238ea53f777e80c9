"""What does DuckDB get for the package that it asks for time zones?

Only what it calls: a zone by its name, and a time put into it. The zones are the standard library's; where the system
has none of that name, a time is shown in UTC, which it is in as it arrives.
"""

from datetime import datetime
from types import ModuleType
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["ZONES"]


class _Zone(ZoneInfo):
    def localize(self, moment: datetime) -> datetime:
        return moment.replace(tzinfo=self)


def _zone(name: str) -> _Zone:
    try:
        return _Zone(name)
    except (ZoneInfoNotFoundError, ValueError):
        return _Zone("UTC")


ZONES = ModuleType("pytz")
ZONES.timezone = _zone  # pyright: ignore[reportAttributeAccessIssue]
