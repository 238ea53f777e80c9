"""When are other models to be asked, and what is loaded for it?

`delegate.run` and its kin as a source of tools that loads nothing before it is listed or called, and follows the
settings. Where no provider has a key, or nobody spoke of delegating, it is not there at all. What the tools do is
`delegate`'s affair.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from ullage.config import Settings
from ullage.gateway import Member
from ullage.ledger import Recorder
from ullage.store import Database
from ullage.tool import Call, Listing, Reply

from .handing import Handing
from .keys import key_of, names_on, off

if TYPE_CHECKING:
    import httpx2

    from ullage.delegate import DelegateSource, Files

__all__ = ["DELEGATED", "Delegating"]

_log = logging.getLogger(__name__)

DELEGATED = ("delegate.run", "delegate.diff", "delegate.tests", "delegate.consensus")
"""The tools, the first of them listed."""


@dataclass(slots=True, kw_only=True)
class Delegating:
    settings: Callable[[], Settings]
    """Those in force now."""
    environment: Mapping[str, str] = field(repr=False)
    database: Database | None
    recorder: Recorder
    held: Handing
    _source: "DelegateSource | None" = None
    _made_for: tuple[Any, ...] = ()
    """The settings that the source was made for."""
    _client: "httpx2.AsyncClient | None" = None
    _lock: anyio.Lock | None = None
    _said: frozenset[str] = frozenset()

    def member(self, settings: Settings) -> Member | None:
        """None where there is nobody to ask."""
        if not settings.delegate.is_wanted or not names_on(settings, self.environment):
            return None
        own = settings.own
        rules = replace(own, pinned=(*own.pinned, DELEGATED[0]))
        return Member(name=settings.delegate_name, source=self, prefix="", rules=rules, own=True)

    async def tools(self) -> Listing:
        # Loading it takes a while, and most gateways never delegate.
        from ullage.delegate import TOOLS

        return Listing(TOOLS, revision="1")

    async def call(self, call: Call) -> Reply:
        return await (await self._opened()).call(call)

    def look(self) -> None:
        """Says on the log, once each, which providers are off and what in the policy cannot be meant."""
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

    async def _opened(self) -> "DelegateSource":
        self._lock = self._lock or anyio.Lock()
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

        from .delegates import build, purse_of, rebuilt
        from .materials import KeptAnswers

        files = self._files(settings)
        if self._source is not None:
            delegate = rebuilt(self._source.delegate, settings, self.environment, self.recorder)
            return replace(self._source, delegate=delegate, files=files)
        self._client = httpx2.AsyncClient()
        purse = purse_of(self.database, self.settings)
        delegate = build(settings, self.environment, client=self._client, purse=purse, recorder=self.recorder)
        if delegate.policy.languages:
            # Here is a thread; later it would hold up the event loop.
            load_detector()
        answers = KeptAnswers(vault=self.held.vault)
        return DelegateSource(delegate=delegate, held=self.held, files=files, answers=answers)

    def _files(self, settings: Settings) -> "Files | None":
        """None where the user named no folder."""
        if not settings.delegate.file_roots:
            return None
        from ullage.retrieve import FileRoots

        from .materials import FilesOfRoots

        keys = (key_of(one, self.environment) for one in settings.providers)
        folders = tuple(Path(folder) for folder in settings.delegate.file_roots)
        return FilesOfRoots(FileRoots(folders=folders, secrets=tuple(key for key in keys if key)))
