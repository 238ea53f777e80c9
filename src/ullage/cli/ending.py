"""How does a verb that runs for long end in good order?

Being told to end (SIGTERM, or SIGHUP when a terminal goes) is what most clients do, seconds before they kill: servers
that were started must be ended by then, so the work is not cut off.
"""

import signal
import sys
from collections.abc import Awaitable, Callable

import anyio

__all__ = ["until_asked", "until_told"]

_TOLD = (signal.SIGTERM,) if sys.platform == "win32" else (signal.SIGTERM, signal.SIGHUP)


async def until_told(work: Callable[[], Awaitable[None]]) -> None:
    """Runs the work to its end, or cancels it when the process is told to end."""
    with anyio.open_signal_receiver(*_TOLD) as told:
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                async for _ in told:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(listen)
            await work()
            tasks.cancel_scope.cancel()


async def until_asked(work: Callable[[anyio.Event], Awaitable[None]]) -> None:
    """The same for work that ends by itself when the event is set, by Ctrl-C too; who asks again cancels it."""
    asked = anyio.Event()
    with anyio.open_signal_receiver(*_TOLD, signal.SIGINT) as told:
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                async for _ in told:
                    if asked.is_set():
                        tasks.cancel_scope.cancel()
                    asked.set()

            tasks.start_soon(listen)
            await work(asked)
            tasks.cancel_scope.cancel()
