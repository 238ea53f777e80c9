"""The command `ullage`, with a fast first answer for clients.

A client that starts `ullage serve` waits for `initialize` and `tools/list`; Codex waits one second for both and then
continues silently without Ullage. Loading Ullage takes a good part of that second, so both are answered from a cache
before anything is loaded. Every other command, and a serve for which the cache has no answer, is loaded at once.

Only light modules of the standard library are imported before that.
"""

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any

    from .start_session import StartSession
else:
    import _signal as signal  # built in; the module `signal` adds enumerations, which take time to build

__all__ = ["main"]

_WITH_VALUE = ("--config", "--include", "--store", "--client", "--mode", "--model")
_MODES = ("auto", "search", "direct")


def main() -> int:
    """Run the command line of this process; return its exit status."""
    status = read_status_flags(sys.argv[2:]) if sys.argv[1:2] == ["statusline"] else None
    if status is not None:
        # Programs run this command every second: without the argument parser it takes half the time.
        from .status_line import print_status_line

        print_status_line(status.get("store"), as_json="json" in status)
        return 0
    session: StartSession | None = None
    try:
        session = _start_session(sys.argv[1:]) if sys.argv[1:2] == ["serve"] else None
        if session is not None:
            _interrupt_when_told()
            if not session.answer_first():
                return 0
            session.answer_aside()
        from ullage.cli import main as run

        return run(session=session)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if session is not None:
            message = f"Ullage could not be started: {type(error).__name__}"
            session.refuse(_failure("INTERNAL_ERROR", message, "run `ullage doctor`; the client's log has the details"))
        raise
    finally:
        if session is not None:
            # What a server has not taken over by now is answered here, as after a signal while Ullage was being loaded.
            session.refuse(_failure("UNAVAILABLE", "Ullage was ended before it was loaded", "start it again"))


def _failure(code: str, message: str, suggestion: str) -> "dict[str, object]":
    return {"error_code": code, "message": message, "suggestion": suggestion, "available_options": []}


def _interrupt_when_told() -> None:
    """Let the signals that end this process raise `KeyboardInterrupt`, so that requests that were read are answered.

    `ullage serve` replaces this once it is loaded.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _start_session(words: "list[str]") -> "StartSession | None":
    """Return the session of a client for which the cache has the first answers."""
    if sys.platform == "win32":  # a pipe cannot be waited for there
        return None
    flags = read_flags(words[1:])
    if flags is None or not _is_served():
        return None
    from . import __version__
    from .client_command import read_client_rules
    from .start_cache import Situation, read_entry

    flags["client_rules"] = read_client_rules()
    try:
        situation = Situation(flags, os.environ, os.getcwd(), flags.get("client"))
        entry = read_entry(situation, version=__version__)
    except OSError:
        return None
    if entry is None:
        return None
    from .start_session import StartSession, claim_input, claim_output

    return StartSession(entry, claim_input(), claim_output())


def _is_served() -> bool:
    """Return whether a program, not a person, reads the output and writes the input."""
    try:
        modes = [os.fstat(descriptor).st_mode for descriptor in (0, 1, 2)]
    except OSError:
        return False
    return all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes[:2])


def read_status_flags(words: "list[str]") -> "dict[str, str] | None":
    """Parse the flags of `ullage statusline`; return None where the argument parser is needed."""
    found = dict[str, str]()
    rest = list(words)
    while rest:
        name, is_joined, value = rest.pop(0).partition("=")
        if name == "--json" and not is_joined:
            found["json"] = ""
        elif name == "--store" and (value or (rest and not is_joined and not rest[0].startswith("-"))):
            found["store"] = value or rest.pop(0)
        else:
            return None
    return found


def read_flags(words: "list[str]") -> "dict[str, Any] | None":
    """Parse the flags of `ullage serve` on standard input and output; return None if one is unknown here."""
    found: dict[str, Any] = {"include": []}
    rest = list(words)
    while rest:
        name, is_joined, value = rest.pop(0).partition("=")
        if name == "--sample" and not is_joined:
            found["sample"] = True
            continue
        if name not in _WITH_VALUE or not (is_joined or rest):
            return None
        value = value if is_joined else rest.pop(0)
        if not value or (value.startswith("-") and not is_joined) or (name == "--mode" and value not in _MODES):
            return None
        if name == "--include":
            found["include"].append(value)
        else:
            found[name[2:]] = value
    return found
