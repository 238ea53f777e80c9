"""What does a call that failed reply?

One shape for every failed result (contract U:errors), as text, because some clients show the model nothing else. An
error of the protocol is no result and is not made here.
"""

import json

from ullage.errors import SourceFailed, UllageError
from ullage.tool import Reply

__all__ = ["advised", "failed"]

_AGAIN = "Call again: a server that has ended is started anew."
_CHECK = "It may have been carried out: check before calling again. A server that has ended is then started anew."


def failed(error: UllageError) -> Reply:
    return Reply.text(json.dumps(error.wire(), ensure_ascii=False), meta=error.meta, is_error=True)


def advised(error: UllageError, *, is_read_only: bool) -> UllageError:
    """The error with a word on calling again, where a call was lost with its server and nobody has given any."""
    if not isinstance(error, SourceFailed) or error.suggestion:
        return error
    return SourceFailed(error.message, suggestion=_AGAIN if is_read_only else _CHECK, options=error.options)
