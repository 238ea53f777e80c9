"""Signals that end a command which runs for long.

SIGTERM, and SIGHUP when a terminal is closed, ask for an end in good order: calls in flight finish and servers are
ended. A second signal ends the command at once.
"""

import signal
import sys
from collections.abc import Awaitable, Callable

import anyio

__all__ = ["cancel_when_set", "run_until_signalled"]

_SIGNALS = (signal.SIGTERM,) if sys.platform == "win32" else (signal.SIGTERM, signal.SIGHUP)


async def run_until_signalled(work: Callable[[anyio.Event], Awaitable[None]], *, with_interrupt: bool) -> None:
    """Run work that ends by itself when its event is set, which the first signal does; the second cancels it.

    With `with_interrupt`, Ctrl-C is such a signal too. Without, it raises KeyboardInterrupt as ever.
    """
    told = anyio.Event()
    with anyio.open_signal_receiver(*_SIGNALS, *((signal.SIGINT,) if with_interrupt else ())) as signals:
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                async for _ in signals:
                    if told.is_set():
                        tasks.cancel_scope.cancel()
                    told.set()

            tasks.start_soon(listen)
            await work(told)
            tasks.cancel_scope.cancel()


async def cancel_when_set(event: anyio.Event, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work, and give it up where the event is set first."""
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            await event.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        await work()
        tasks.cancel_scope.cancel()
