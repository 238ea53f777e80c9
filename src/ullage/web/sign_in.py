"""Sign-in to the dashboard: one-time codes from the terminal, and the browser sessions they are exchanged for.

A code is valid for five minutes and for one exchange. Wrong codes are limited: a code has 39 bits, and after 20 wrong
ones in a minute every exchange is refused until the minute is over. Only hashes of codes and sessions are kept, in
memory, so a restart signs everybody out.
"""

import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from ullage.errors import Denied, Unavailable

__all__ = ["CODE_SECONDS", "SESSION_SECONDS", "WRONG_SECONDS", "SignIns", "Viewer"]

CODE_SECONDS = 300.0
SESSION_SECONDS = 12 * 3600.0
_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""No 0, 1, I and O, which look alike."""
_CODE_LETTERS = 8
_MOST_CODES, _MOST_SESSIONS = 32, 256
_MOST_WRONG, WRONG_SECONDS = 20, 60.0


@dataclass(frozen=True, slots=True)
class Viewer:
    """The person who is signed in."""

    principal: str
    """Whose rows are shown."""
    is_operator: bool = False
    """Whether it is the user who runs the server, who also sees its settings: pending approvals and errors."""


class SignIns:
    """The codes and browser sessions of one server."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Create it; `clock` returns monotonic seconds."""
        self._clock = clock
        self._codes: OrderedDict[bytes, tuple[Viewer, float]] = OrderedDict()
        self._sessions: OrderedDict[bytes, tuple[Viewer, float]] = OrderedDict()
        self._wrong: deque[float] = deque()

    def make_code(self, viewer: Viewer) -> str:
        """Return a new code, such as `K7QF-2MXW`."""
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LETTERS))
        self._put(self._codes, code, viewer, CODE_SECONDS, _MOST_CODES)
        return f"{code[:4]}-{code[4:]}"

    def exchange(self, code: str) -> str:
        """Return the secret of a new session for a code, which is used up.

        Raises:
            Denied: The code is unknown, used or expired.
            Unavailable: There were too many wrong codes in the last minute.
        """
        now = self._clock()
        while self._wrong and self._wrong[0] <= now - WRONG_SECONDS:
            self._wrong.popleft()
        if len(self._wrong) >= _MOST_WRONG:
            raise Unavailable("there were too many wrong codes", suggestion="wait a minute, then try again")
        viewer, until = self._codes.pop(_hashed(_normalized(code)), (None, 0.0))
        if viewer is None or until <= now:
            self._wrong.append(now)
            raise Denied("this code is unknown, used or expired", suggestion="print a new one with `ullage dashboard`")
        secret = secrets.token_urlsafe(32)
        self._put(self._sessions, secret, viewer, SESSION_SECONDS, _MOST_SESSIONS)
        return secret

    def viewer(self, secret: str | None) -> Viewer | None:
        """Return who is signed in with this session; None for an unknown or expired one."""
        viewer, until = self._sessions.get(_hashed(secret or ""), (None, 0.0))
        return viewer if until > self._clock() else None

    def sign_out(self, secret: str | None) -> None:
        self._sessions.pop(_hashed(secret or ""), None)

    def _put(
        self,
        kept: OrderedDict[bytes, tuple[Viewer, float]],
        secret: str,
        viewer: Viewer,
        lifetime: float,
        most: int,
    ) -> None:
        now = self._clock()
        for key in [key for key, (_, until) in kept.items() if until <= now]:
            del kept[key]
        while len(kept) >= most:
            kept.popitem(last=False)
        kept[_hashed(secret)] = viewer, now + lifetime


def _hashed(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()


def _normalized(code: str) -> str:
    return "".join(letter for letter in code[:64].upper() if letter in _ALPHABET)
