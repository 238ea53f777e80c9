"""What did a server say that never came to be spoken to?

The end of its standard error tells people why, and its connection is gone by the time that anyone looks.
"""

from ullage.errors import SourceFailed

__all__ = ["Stillborn"]


class Stillborn(SourceFailed):
    """A start that failed, with the last that the server wrote to standard error."""

    def __init__(self, failure: SourceFailed, stderr_tail: str) -> None:
        super().__init__(failure.message, suggestion=failure.suggestion, options=failure.options)
        self.stderr_tail = stderr_tail
