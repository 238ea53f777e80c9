"""How does a verb that runs for long end in good order?

Being told to end (SIGTERM) is what most clients do, seconds before they kill: servers that were started must be ended
by then, so the work is cancelled and not cut off.
"""

import signal
from collections.abc import Awaitable, Callable

import anyio

__all__ = ["until_told"]


async def until_told(work: Callable[[], Awaitable[None]]) -> None:
    """Runs the work to its end, or cancels it when the process is told to end."""
    with anyio.open_signal_receiver(signal.SIGTERM) as told:
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                async for _ in told:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(listen)
            await work()
            tasks.cancel_scope.cancel()
