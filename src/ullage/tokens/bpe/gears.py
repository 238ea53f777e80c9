"""When is it worth making a quicker way of counting ready?

A process that counts a little is served best by what loads at once, one that counts for long by what counts fastest,
and nobody knows beforehand which of them this is. So the quicker way is made ready once counting has taken as long as
that takes: at the worst, twice the time of one who had known.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread

__all__ = ["PATIENCE", "Counter", "Gears"]

Counter = Callable[[str], int]

PATIENCE = 1.0
"""Seconds of counting, about what it takes to make the quicker way ready."""
_PROBES = (
    "They won't say I'LL or it's; 1,234,567 of 8.90 were counted.\r\n\n   \tEND",
    "getHTTPResponse(url)[0] != null; // https://example.com/a?b=1&c=2 #--==>>",
    "A reunião começa às três da tarde. Ёлка, ελληνικά, ǅ, e\u0301",
    "今天的会议改到下午三点。 회의는 세 시에 시작합니다。 カタカナとひらがな 〇²½",
    "👩\u200d👧 ❤\ufe0f <|endoftext|> <|im_start|> \x00\u2028\u3000  \n \n",
)


class Gears:
    """Counts one way until another is ready. Both must agree; the second is not used if it differs on a few texts."""

    __slots__ = ("_clock", "_lock", "_make", "_patience", "_quick", "_slow", "_spent")

    def __init__(
        self,
        slow: Counter,
        make_quick: Callable[[], Counter],
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._slow = slow
        self._quick: Counter | None = None
        self._make: Callable[[], Counter] | None = make_quick
        self._patience = patience
        self._clock = clock
        self._spent = 0.0
        self._lock = Lock()

    def count(self, text: str) -> int:
        if self._quick is not None:
            return self._quick(text)
        begin = self._clock()
        counted = self._slow(text)
        self._spent += self._clock() - begin
        if self._spent > self._patience:
            self._shift_behind()
        return counted

    @property
    def shifted(self) -> bool:
        """Whether the quicker way counts."""
        return self._quick is not None

    def shift(self) -> bool:
        """Makes the quicker way ready, here and now. False if there is none to be had, which is not tried again."""
        with self._lock:
            make, self._make = self._make, None
            if make is not None:
                self._quick = self._made(make)
        return self.shifted

    def _shift_behind(self) -> None:
        self._spent = -math.inf
        # The interpreter waits for this thread: to end while one is inside foreign code may crash.
        with suppress(RuntimeError):  # it is ending already, or there is no thread to be had
            Thread(target=self.shift, name="ullage-quick").start()

    def _made(self, make: Callable[[], Counter]) -> Counter | None:
        try:
            quick = make()
            agrees = all(quick(text) == self._slow(text) for text in _PROBES)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - whatever is wrong with it, a Rust panic too: there is a way that works
            return None
        return quick if agrees else None
