"""How is a server's whole family of processes kept together and ended?

Launchers such as `npx` and `uvx` start the real server as a child, so a server is started as a group of its own and the
group is signalled, never the leader alone. This is the one file that knows the platform. Its Windows half is written
after the documentation and untested.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

__all__ = ["ask_to_end", "is_alive", "kill", "own_group"]


def own_group() -> dict[str, Any]:
    """What to start a process with so that it leads a group of its own."""
    if sys.platform == "win32":  # pragma: no cover
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def ask_to_end(leader: int) -> None:
    if sys.platform == "win32":  # pragma: no cover
        with suppress(OSError):
            os.kill(leader, signal.CTRL_BREAK_EVENT)
    else:
        _signal(leader, signal.SIGTERM)


def kill(leader: int) -> None:
    if sys.platform == "win32":  # pragma: no cover
        with suppress(OSError):
            subprocess.Popen(["taskkill", "/T", "/F", "/PID", str(leader)])
    else:
        _signal(leader, signal.SIGKILL)


def is_alive(leader: int) -> bool:
    """Whether anyone of the group is left; on Windows, where nobody can tell, False."""
    if sys.platform == "win32":  # pragma: no cover
        return False
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Someone is there who changed to another user.
        return True
    return True


if sys.platform != "win32":

    def _signal(leader: int, number: signal.Signals) -> None:
        # A group that is gone is what was wanted; one that belongs to another user by now cannot be helped.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
