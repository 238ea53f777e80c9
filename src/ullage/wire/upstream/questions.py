"""How are a server's own requests answered?

Side by side, at most so many at once, each exactly once, until the server withdraws it. What they ask for, and of whom,
is decided by whoever answers them; a refusal goes back as an error of the protocol that names the request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ullage.errors import ProtocolError, UllageError

from ..jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, Message, error_response

__all__ = ["Questions"]

Post = Callable[[Message], None]

_AT_ONCE = 32


@dataclass(slots=True, eq=False)
class Questions:
    """The requests of a server that are being answered."""

    answer: Callable[[str, Message], Awaitable[Message]]
    """Method and params to result; raises a `UllageError` to refuse."""
    _open: dict[int | str, asyncio.Task[None]] = field(default_factory=dict[int | str, asyncio.Task[None]])

    def asked(self, number: int | str, method: str, params: Message, post: Post) -> None:
        if method == "ping":
            post({"jsonrpc": "2.0", "id": number, "result": {}})
        elif len(self._open) >= _AT_ONCE or number in self._open:
            post(error_response(number, INTERNAL_ERROR, f"`{method}` is refused: too many requests at once"))
        else:
            task = asyncio.get_running_loop().create_task(self._answered(number, method, params, post))
            self._open[number] = task
            task.add_done_callback(lambda _: self._open.pop(number, None))

    async def _answered(self, number: int | str, method: str, params: Message, post: Post) -> None:
        try:
            result = await self.answer(method, params)
        except ProtocolError as error:
            post(error_response(number, error.number, error.message, error.data))
        except UllageError as error:
            post(
                error_response(number, METHOD_NOT_FOUND, f"`{method}` is refused: {error.message}", dict(error.wire()))
            )
        except Exception as error:  # noqa: BLE001 - whatever went wrong in asking, the server must not wait for ever
            post(error_response(number, INTERNAL_ERROR, f"`{method}` failed: {type(error).__name__}"))
        else:
            post({"jsonrpc": "2.0", "id": number, "result": result})

    def withdrawn(self, number: object) -> None:
        task = self._open.get(number) if isinstance(number, int | str) else None
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stops answering."""
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
