"""How is what must not be left half done brought to its end, although whoever waits for it is cancelled?

In a task of its own, which is waited for whatever comes. A shielded scope keeps out only those who cancel by scopes:
`asyncio.wait_for`, and whoever cancels a task, reach into it; hence a plain task.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio

__all__ = ["to_its_end"]

Value = TypeVar("Value")


async def to_its_end(work: Coroutine[Any, Any, Value]) -> Value:
    """What came of it. Where we were cancelled meanwhile, that is raised once it has ended: whoever needs to know what
    came of it then has the work write it down."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is None:
        return task.result()
    # Looked at, or asyncio would say on the log that nobody did.
    task.exception()
    raise cancelled
