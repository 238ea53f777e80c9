"""What is told to whoever asked, when a worker cannot answer?"""

import signal

from ullage.errors import DeadlinePassed, QueryFailed, SourceFailed, UllageError

from .received import Failed

__all__ = ["closed", "crashed", "failure", "late"]

_ASK_LESS = "ask for less: narrow the WHERE, aggregate, or join on fewer rows"
_INSTALL = ": pip install "
"""Between what is missing and what to install, as a worker says it."""
_NOT_THERE = "there is no such file"
"""As a worker says it."""


def failure(failed: Failed, *, name: str, seconds: float) -> UllageError:
    text = failed.text if failed.code is None else f"{failed.code}: {failed.text}"
    match failed.kind:
        case "deadline":
            return late(seconds)
        case "source":
            return _unreadable(name, text)
        case "memory":
            return QueryFailed(text, suggestion=_ASK_LESS)
        case _:
            return QueryFailed(text, suggestion="mend the statement and ask again")


def _unreadable(name: str, text: str) -> SourceFailed:
    why, install, package = text.partition(_INSTALL)
    suggestion = f"{_INSTALL}{package}".removeprefix(": ") if install else "look at the file, then ask again"
    if text == _NOT_THERE:
        suggestion = "check the path; it is taken from the folder of ullage.toml"
    return SourceFailed(f"`{name}` cannot be read: {why}", suggestion=suggestion)


def late(seconds: float) -> DeadlinePassed:
    return DeadlinePassed(
        f"the question was not answered within {round(seconds, 1) or seconds:g} s", suggestion=_ASK_LESS
    )


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
