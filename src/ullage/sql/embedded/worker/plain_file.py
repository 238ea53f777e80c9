"""Is there a file to read?"""

import os
import stat

from .failure import Failure

__all__ = ["refuse_unless_file"]


def refuse_unless_file(path: str) -> None:
    """Opening a pipe or a device would wait for ever."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - pathlib would be loaded for this alone
    except FileNotFoundError:
        raise Failure("source", "there is no such file") from None
    except OSError as error:
        raise Failure("source", error.strerror or "it cannot be looked at") from None
    if not stat.S_ISREG(mode):
        raise Failure("source", "it is not a file")
