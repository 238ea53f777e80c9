"""How are changes heard of where the protocol has no session to announce them on?

By a request, `subscriptions/listen`, that is answered only when the server stops announcing. It is kept open, asked
again when it ends, and replaced when other resources are to be followed. Not being able to is a note, never an error.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, cast

from ullage.errors import ProtocolError, Unavailable
from ullage.tool import Change, JsonObject

from ..jsonrpc import Message
from ..protocol import CONNECTION_CLOSED, SUBSCRIPTION_KEY
from .raw import as_object
from .waiting import Answer

__all__ = ["Listen", "Listening", "kinds_announced"]

Kind = Literal["tools", "resources", "prompts"]
_KINDS: tuple[Kind, ...] = ("tools", "resources", "prompts")
_ACKNOWLEDGING = 5.0
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0


class Listen(Protocol):
    def __call__(self, params: Message, *, number: str, silence: float) -> Awaitable[Answer]: ...


def kinds_announced(capabilities: JsonObject) -> tuple[Kind, ...]:
    """What a server says it announces the changes of."""
    return tuple(kind for kind in _KINDS if as_object(capabilities.get(kind)).get("listChanged") is True)


@dataclass(slots=True, eq=False, kw_only=True)
class Listening:
    """The one open request for changes."""

    listen: Listen
    announce: Callable[[Change], None]
    note: Callable[[str], None]
    kinds: tuple[Kind, ...]
    _uris: dict[str, None] = field(default_factory=dict[str, None])
    _count: int = 0
    _holding: asyncio.Task[None] | None = None
    _expected: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    def start(self) -> None:
        if self.kinds:
            self._holding = asyncio.get_running_loop().create_task(self._hold(self._number()))

    async def follow(self, uri: str) -> None:
        self._uris[uri] = None
        await self._replace()

    async def leave(self, uri: str) -> None:
        self._uris.pop(uri, None)
        await self._replace()

    def acknowledged(self, params: Message) -> None:
        number = as_object(params.get("_meta")).get(SUBSCRIPTION_KEY)
        if isinstance(number, str) and number in self._expected:
            self._expected[number].set()

    async def close(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.wait({self._holding}, timeout=1.0)

    async def _replace(self) -> None:
        """Asks anew before it lets go of the old, so that nothing in between goes unheard."""
        old, number = self._holding, self._number()
        self._holding = asyncio.get_running_loop().create_task(self._hold(number))
        begun = asyncio.get_running_loop().create_task(self._expected[number].wait())
        await asyncio.wait({begun, self._holding}, timeout=_ACKNOWLEDGING, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if old is not None:
            old.cancel()

    def _number(self) -> str:
        self._count += 1
        number = f"listen-{self._count}"
        self._expected = {number: asyncio.Event()}
        return number

    async def _hold(self, number: str) -> None:
        pause = _FIRST_PAUSE
        while self.kinds or self._uris:
            try:
                await self.listen({"notifications": self._filter()}, number=number, silence=math.inf)
            except ProtocolError as error:
                if error.number != CONNECTION_CLOSED:
                    self.note(f"does not announce changes: {error.message[:200]}")
                    return
            except Unavailable:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            number = self._number()
            # Whatever changed in between was not heard of.
            for kind in self.kinds:
                self.announce(Change(kind))

    def _filter(self) -> Message:
        wanted: Message = {f"{kind}ListChanged": True for kind in self.kinds}
        return wanted | ({"resourceSubscriptions": cast("object", list(self._uris))} if self._uris else {})
