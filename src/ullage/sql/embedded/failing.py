"""What is told to whoever asked, when a worker cannot answer?"""

import signal

from ullage.errors import DeadlinePassed, QueryFailed, SourceFailed, UllageError

from .received import Failed

__all__ = ["closed", "crashed", "failure", "late"]

_ASK_LESS = "ask for less: narrow the WHERE, aggregate, or join on fewer rows"


def failure(failed: Failed, *, name: str, seconds: float) -> UllageError:
    text = failed.text if failed.code is None else f"{failed.code}: {failed.text}"
    match failed.kind:
        case "deadline":
            return late(seconds)
        case "source":
            return SourceFailed(f"`{name}` cannot be read: {text}", suggestion="look at the file, then ask again")
        case "memory":
            return QueryFailed(text, suggestion=_ASK_LESS)
        case _:
            return QueryFailed(text, suggestion="mend the statement and ask again")


def late(seconds: float) -> DeadlinePassed:
    return DeadlinePassed(f"the question was not answered within {seconds:g} s", suggestion=_ASK_LESS)


def crashed(name: str, status: int | None) -> SourceFailed:
    return SourceFailed(
        f"the process that reads `{name}` ended in the middle of the question{_how(status)}",
        suggestion=f"the next question gets a new one; {_ASK_LESS}",
    )


def closed(name: str) -> SourceFailed:
    return SourceFailed(f"`{name}` is closed", suggestion="Ullage is ending, or the database left the configuration")


def _how(status: int | None) -> str:
    if status is None or status == 0:
        return ""
    if status > 0:
        return f" with status {status}"
    known = {number.value: number.name for number in signal.Signals}
    return f" by {known.get(-status, f'signal {-status}')}"
