"""What does a call that failed reply?

One shape for every failed result (contract U:errors), as text, because some clients show the model nothing else. An
error of the protocol is no result and is not made here.
"""

import json

from ullage.errors import UllageError
from ullage.tool import Reply

__all__ = ["failed"]


def failed(error: UllageError) -> Reply:
    return Reply.text(json.dumps(error.wire(), ensure_ascii=False), is_error=True)
