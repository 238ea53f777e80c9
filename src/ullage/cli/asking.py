"""What does the person at the terminal answer?

A line, read without holding up whoever waits for it; whoever ends the input (Ctrl-D) or interrupts (Ctrl-C) has
answered nothing. What is asked is the verb's affair.
"""

import signal
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

from .configured import say
from .output import plain

__all__ = ["typed"]


async def typed(prompt: str) -> str:
    """The line that a person types; empty where he would rather not."""
    answer: list[str] = []
    done, token = anyio.Event(), current_token()
    with anyio.open_signal_receiver(signal.SIGINT) as told:
        # A thread that nobody waits for: one that reads cannot be interrupted, and would keep the process from ending.
        threading.Thread(target=_read, args=(prompt, answer, done, token), daemon=True).start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_interrupted, told, done)
            await done.wait()
            tasks.cancel_scope.cancel()
    if not answer:
        say("")
    return "".join(answer)


async def _interrupted(told: AsyncIterator[signal.Signals], done: anyio.Event) -> None:
    async for _ in told:
        done.set()


def _read(prompt: str, answer: list[str], done: anyio.Event, token: EventLoopToken) -> None:
    with suppress(EOFError, OSError, ValueError):
        answer.append(input(plain(prompt)))
    with suppress(anyio.RunFinishedError):
        from_thread.run_sync(done.set, token=token)
