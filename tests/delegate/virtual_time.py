"""An event loop whose time passes at once: it jumps to the next timer where nothing else is to be done."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

__all__ = ["run_in_virtual_time"]

Value = TypeVar("Value")


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits; the time that it would have waited has passed."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout:
            self.passed += timeout
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.passed


def run_in_virtual_time(work: Callable[[], Awaitable[Value]]) -> Value:
    """What `work` returns; its sleeps and time-outs take no time. It must use no threads and no sockets."""
    return anyio.run(work, backend_options={"loop_factory": _VirtualLoop})
