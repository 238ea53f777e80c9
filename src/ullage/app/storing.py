"""What if there is no store?

Whoever works without a database still works; it forgets, and says so once.
"""

import logging

from ullage.errors import StoreFailed
from ullage.store import Database

__all__ = ["open_store"]

_log = logging.getLogger(__name__)


def open_store(url: str, loss: str) -> tuple[Database | None, StoreFailed | None]:
    """The database, or None and why; `loss` says what that means. Blocks."""
    try:
        return Database.open(url), None
    except StoreFailed as error:
        _log.warning("%s: %s (%s)", loss, error.message, error.suggestion)
        return None, error
