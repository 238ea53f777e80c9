"""What does the person at the terminal answer?

A line, read without holding up whoever waits for it; whoever ends the input (Ctrl-D) or interrupts (Ctrl-C) has
answered nothing. What is asked is the verb's affair.
"""

import signal
import threading

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

from .configured import say

__all__ = ["typed"]


async def typed(prompt: str) -> str:
    """The line that a person types; empty where he would rather not."""
    answer: list[str] = []
    came, token = anyio.Event(), current_token()
    # A thread that nobody waits for: one that reads cannot be interrupted, and would keep the process from ending.
    threading.Thread(target=_read, args=(prompt, answer, came, token), daemon=True).start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_until_interrupted, tasks.cancel_scope)
        await came.wait()
        tasks.cancel_scope.cancel()
    if not answer:
        say("")
    return "".join(answer)


async def _until_interrupted(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT) as told:
        async for _ in told:
            scope.cancel()


def _read(prompt: str, answer: list[str], came: anyio.Event, token: EventLoopToken) -> None:
    try:
        answer.append(input(prompt))
    except (EOFError, OSError, ValueError):
        answer.clear()
    from_thread.run_sync(came.set, token=token)
