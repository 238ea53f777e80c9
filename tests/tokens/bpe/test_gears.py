import threading
from collections.abc import Callable

import pytest

from ullage.tokens.bpe.gears import Gears


class Clock:
    """Every look at it is a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


class Counting:
    """Counts characters, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, text: str) -> int:
        self.asked += 1
        return len(text)


def threads_of_gears() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ullage-quick"]


def wait() -> None:
    for thread in threads_of_gears():
        thread.join(10)


def test_who_counts_a_little_is_spared_the_quicker_way():
    def never() -> Callable[[str], int]:
        pytest.fail("nobody waited for it")

    gears = Gears(len, never, patience=3.5, clock=Clock())
    assert [gears.count("abc") for _ in range(3)] == [3, 3, 3]
    assert threads_of_gears() == []


def test_after_as_long_as_it_takes_to_make_the_quicker_way_counts():
    slow, quick = Counting(), Counting()
    gears = Gears(slow, lambda: quick, patience=3.5, clock=Clock())
    for _ in range(4):
        gears.count("abc")
    wait()
    before = slow.asked, quick.asked
    assert gears.count("abcd") == 4
    assert (slow.asked, quick.asked) == (before[0], before[1] + 1)


def test_while_the_quicker_way_is_made_the_other_goes_on():
    made, making = threading.Event(), threading.Event()

    def make() -> Callable[[str], int]:
        making.set()
        assert made.wait(10)
        return Counting()

    slow = Counting()
    gears = Gears(slow, make, patience=0.5, clock=Clock())
    gears.count("a")
    assert making.wait(10)
    assert [gears.count("ab") for _ in range(5)] == [2] * 5
    assert len(threads_of_gears()) == 1
    assert slow.asked == 6
    made.set()
    wait()
    asked = slow.asked
    assert gears.count("abc") == 3
    assert slow.asked == asked


def test_a_quicker_way_that_differs_is_left_alone():
    gears = Gears(len, lambda: lambda text: len(text) + ("会" in text))
    assert not gears.shift()
    assert gears.count("会") == 1


def test_a_quicker_way_that_cannot_be_made_is_asked_for_once():
    tries: list[int] = []

    def fails() -> Callable[[str], int]:
        tries.append(1)
        raise OSError("no room")

    gears = Gears(len, fails, patience=0.5, clock=Clock())
    for _ in range(3):
        assert gears.count("abc") == 3
        wait()
    assert not gears.shift()
    assert tries == [1]


def test_a_panic_is_no_more_than_a_quicker_way_that_cannot_be_made():
    class PanicException(BaseException):
        """As Rust's panics arrive: no Exception."""

    def panics() -> Callable[[str], int]:
        raise PanicException

    gears = Gears(len, panics)
    assert not gears.shift()
    assert gears.count("abc") == 3


def test_an_interruption_is_let_through():
    def interrupted() -> Callable[[str], int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Gears(len, interrupted).shift()


def test_where_no_thread_is_to_be_had_counting_goes_on(monkeypatch: pytest.MonkeyPatch):
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    gears = Gears(len, lambda: len, patience=0.5, clock=Clock())
    assert [gears.count("abc") for _ in range(3)] == [3, 3, 3]


def test_however_many_ask_it_is_made_once():
    made: list[int] = []

    def make() -> Callable[[str], int]:
        made.append(1)
        return len

    gears = Gears(len, make)
    threads = [threading.Thread(target=gears.shift) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert gears.shift()
