"""What text lies behind the handles that a caller gives to another model?

Results that were held back and passages that were found, each for whoever got it and within a budget that all of them
share. The caller's window is not passed through.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Protocol

from ullage.errors import UnknownHandle
from ullage.gateway import Reference, ResultRules, Vault
from ullage.tokens import Meter
from ullage.tool import Call, Caller

__all__ = ["Handing", "Passages"]

_LEAST = 50
"""Tokens, below which nothing of a text can be said."""


class Passages(Protocol):
    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        """Raises `UnknownHandle`."""
        ...


class _Shape(Protocol):
    """What is known of a part of a held result."""

    @property
    def kind(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def first(self) -> int: ...

    @property
    def units(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    vault: Vault
    meter: Meter
    reference: Callable[[Caller], Reference]
    found: Callable[[], Sequence[Passages]]
    """Those who hand out handles of passages."""

    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        """Their texts in this order."""
        parts = [partial(self._text, handle, caller) for handle in handles]
        return await self._shared(parts, caller, max_tokens)

    async def _shared(self, parts: Sequence[Callable[[int], Awaitable[str]]], caller: Caller, budget: int) -> str:
        """Each may take an equal part of what those before it left."""
        texts, left = list[str](), budget
        for number, part in enumerate(parts):
            share = left // (len(parts) - number)
            if share < _LEAST:
                texts.append(f"[{len(parts) - number} more left out]")
                break
            texts.append(await part(share))
            left -= self.meter.count(texts[-1], self.reference(caller).counted_as).high
        return "\n\n".join(texts)

    async def _text(self, handle: str, caller: Caller, budget: int) -> str:
        for found in self.found():
            with suppress(UnknownHandle):
                return await found.passages((handle,), caller, budget)
        opened = await self.vault.aside(lambda: self.vault.open(handle, caller.principal))
        pages = [partial(self._page, handle, start, caller) for start in _starts(opened.shapes)]
        return await self._shared(pages, caller, budget)

    async def _page(self, handle: str, start: int, caller: Caller, budget: int) -> str:
        from ullage.gateway import ResultReader

        rules = ResultRules(budget=budget)
        reader = ResultReader(vault=self.vault, rules=lambda: rules, meter=self.meter, reference=self.reference)
        asked = Call(tool="read_result", arguments={"handle": handle, "offset": start}, caller=caller)
        reply = await reader.call(asked)
        return "\n".join(str(block["text"]) for block in reply.content if block.get("type") == "text")


def _starts(shapes: Sequence[_Shape]) -> list[int]:
    """The first unit of every part that is read by itself: parts of lines that follow one another are read together."""
    follows = [False, *(one.kind == other.kind == "lines" and not other.label for one, other in pairwise(shapes))]
    return [shape.first for shape, is_more in zip(shapes, follows, strict=False) if not is_more and shape.units]
