"""What can go wrong with a session's file?"""

from ullage.errors import StoreFailed

__all__ = ["SessionChanged"]


class SessionChanged(StoreFailed):
    """What was to be replaced is no longer there as it was read: somebody else was faster. Nothing was written."""

    code = "SESSION_CHANGED"
