"""The delegate's tools (`delegate.run` and its kin) as a source, loaded on first use.

The source loads nothing before it is listed or called, and follows the settings. Where no provider has a key, or the
settings do not mention delegating, there is no source. The tools themselves are implemented in `delegate`.

A delegated call can include stored results and found passages by handle. A handle is valid only for the principal who
received it, and all texts of a call share one budget. The caller's context window is not passed on.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.to_thread

from ullage.config import Settings
from ullage.errors import UnknownHandle
from ullage.gateway import Member, Reference, ResultRules, Vault
from ullage.ledger import Recorder
from ullage.store import Database
from ullage.tokens import Meter
from ullage.tool import Call, Caller, Listing, Reply, ToolSource

from .provider_keys import key_of, names_on, off

if TYPE_CHECKING:
    import httpx2

    from ullage.delegate import DelegateSource, Files

__all__ = ["DELEGATED", "Delegating", "Handing", "Passages"]

_LEAST = 50
"""Tokens below which no useful part of a text fits."""


class Passages(Protocol):
    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        """Return the texts of these handles; raises `UnknownHandle`."""
        ...


class _Shape(Protocol):
    """Position and size of a part of a stored result."""

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
    """The sources that issue handles of passages."""

    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        """Return the handles' texts in this order."""
        parts = [partial(self._text, handle, caller) for handle in handles]
        return await self._share_budget(parts, caller, max_tokens)

    async def _share_budget(self, parts: Sequence[Callable[[int], Awaitable[str]]], caller: Caller, budget: int) -> str:
        """Return the parts' texts. Each part gets an equal share of the budget that the parts before it left."""
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
        return await self._share_budget(pages, caller, budget)

    async def _page(self, handle: str, start: int, caller: Caller, budget: int) -> str:
        from ullage.gateway import ResultReader

        rules = ResultRules(budget=budget)
        reader = ResultReader(vault=self.vault, rules=lambda: rules, meter=self.meter, reference=self.reference)
        asked = Call(tool="read_result", arguments={"handle": handle, "offset": start}, caller=caller)
        reply = await reader.call(asked)
        return "\n".join(str(block["text"]) for block in reply.content if block.get("type") == "text")


def _starts(shapes: Sequence[_Shape]) -> list[int]:
    """Return the first unit of every part that is read by itself; consecutive parts of lines are read together."""
    follows = [False, *(one.kind == other.kind == "lines" and not other.label for one, other in pairwise(shapes))]
    return [shape.first for shape, is_more in zip(shapes, follows, strict=False) if not is_more and shape.units]


_log = logging.getLogger(__name__)

DELEGATED = ("delegate.run", "delegate.diff", "delegate.tests", "delegate.consensus")
"""The tools; only the first is listed."""


_LEDGER_SECONDS = 2.0
"""Maximum wait for a call's cost to be written to the ledger. A locked database loses entries, never a call."""


@dataclass(slots=True, kw_only=True)
class Delegating(ToolSource):
    settings: Callable[[], Settings]
    """Returns the settings now in force."""
    environment: Mapping[str, str] = field(repr=False)
    database: Database | None
    recorder: Recorder
    held: Handing
    _source: "DelegateSource | None" = None
    _made_for: tuple[Any, ...] = ()
    """The settings that the source was created for."""
    _client: "httpx2.AsyncClient | None" = None
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _said: frozenset[str] = frozenset()

    def member(self, settings: Settings) -> Member | None:
        """Return the gateway's member; None where no provider can be called."""
        if not settings.delegate.is_wanted or not names_on(settings, self.environment):
            return None
        own = settings.own
        rules = replace(own, pinned=(*own.pinned, DELEGATED[0]))
        return Member(name=settings.delegate_name, source=self, prefix="", rules=rules, own=True)

    async def tools(self) -> Listing:
        # Imported late: loading takes a while, and most gateways never delegate.
        from ullage.delegate import TOOLS

        return Listing(TOOLS, revision="1")

    async def call(self, call: Call) -> Reply:
        source = await self._open_source()
        try:
            return await source.call(call)
        finally:
            # The cost is written before the answer is returned, so that a killed process loses no costs.
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.recorder.flush, _LEDGER_SECONDS)

    def look(self) -> None:
        """Log once each which providers are off and which entries of the policy are unusable."""
        settings = self.settings()
        sentences = off(settings, self.environment) if settings.delegate.is_wanted else ()
        for sentence in (*sentences, *settings.delegate.warnings):
            if sentence not in self._said:
                _log.warning("%s", sentence)
        self._said |= {*sentences, *settings.delegate.warnings}

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _open_source(self) -> "DelegateSource":
        async with self._lock:
            settings = self.settings()
            wanted = (settings.delegate, settings.providers)
            if self._source is None or self._made_for != wanted:
                self._source = await anyio.to_thread.run_sync(self._make, settings)
                self._made_for = wanted
            return self._source

    def _make(self, settings: Settings) -> "DelegateSource":
        import httpx2

        from ullage.delegate import DelegateSource, load_detector

        from .build_delegate import KeptAnswers, build, purse_of, rebuild_delegate

        files = self._files(settings)
        if self._source is not None:
            delegate = rebuild_delegate(self._source.delegate, settings, self.environment, self.recorder)
            return replace(self._source, delegate=delegate, files=files)
        self._client = httpx2.AsyncClient()
        purse = purse_of(self.database, self.settings)
        delegate = build(settings, self.environment, client=self._client, purse=purse, recorder=self.recorder)
        if delegate.policy.languages:
            # Loaded here, in a worker thread; later it would block the event loop.
            load_detector()
        answers = KeptAnswers(vault=self.held.vault)
        return DelegateSource(delegate=delegate, held=self.held, files=files, answers=answers)

    def _files(self, settings: Settings) -> "Files | None":
        """Return the file reader; None where the settings name no folder."""
        if not settings.delegate.file_roots:
            return None
        from ullage.retrieve import FileRoots

        from .build_delegate import FilesOfRoots

        keys = (key_of(one, self.environment) for one in settings.providers)
        folders = tuple(Path(folder) for folder in settings.delegate.file_roots)
        return FilesOfRoots(FileRoots(folders=folders, secrets=tuple(key for key in keys if key)))
