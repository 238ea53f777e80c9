"""Which folders can be searched through the gateway, and when is each of them loaded?

When it is first listed or searched. One that stays in the settings as it was keeps what it has read and the handles it
gave. How they are searched is `retrieve`'s affair.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ullage.config import Folders, Settings
from ullage.gateway import Member
from ullage.tool import Call, Caller, Listing, Reply

if TYPE_CHECKING:
    from ullage.retrieve import RetrieveSource

__all__ = ["RETRIEVED", "LateFolders", "Retrieving"]

RETRIEVED = "retrieve.search"


@dataclass(slots=True, kw_only=True)
class LateFolders:
    """Some folders as a source of `retrieve.search`."""

    settings: Folders
    weigh: Callable[[Caller], Callable[[str], int]]
    _source: "RetrieveSource | None" = None

    async def tools(self) -> Listing:
        return await self._opened().tools()

    async def call(self, call: Call) -> Reply:
        return await self._opened().call(call)

    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        return await self._opened().passages(handles, caller, max_tokens)

    def _opened(self) -> "RetrieveSource":
        if self._source is None:
            # Loading it takes a while, and most gateways search no folders.
            from ullage.retrieve import FolderRetriever, RetrieveSettings, RetrieveSource

            said = self.settings
            chosen = RetrieveSettings(
                within=None if self.settings.within is None else Path(self.settings.within),
                name=said.name,
                folders=tuple(map(Path, said.folders)),
                files=tuple(map(Path, said.files)),
                include=said.include,
                exclude=said.exclude,
                gitignore=said.gitignore,
                max_file_bytes=said.max_file_bytes,
            )
            self._source = RetrieveSource(FolderRetriever(chosen), self.weigh)
        return self._source


@dataclass(slots=True, kw_only=True)
class Retrieving:
    """Those of the settings, by name."""

    weigh: Callable[[Caller], Callable[[str], int]]
    _late: Mapping[str, LateFolders] = field(default_factory=dict[str, LateFolders])

    def arranged(self, settings: Settings) -> dict[str, LateFolders]:
        """Those of the settings, the ones that stay as they are; nothing changes before they are taken."""
        return {one.name: self._refitted(one) for one in settings.retrieves}

    def _refitted(self, folders: Folders) -> LateFolders:
        known = self._late.get(folders.name)
        if known is not None and known.settings == folders:
            return known
        return LateFolders(settings=folders, weigh=self.weigh)

    def take(self, arranged: Mapping[str, LateFolders]) -> None:
        self._late = arranged

    def all(self) -> tuple[LateFolders, ...]:
        return tuple(self._late.values())

    def members(self, arranged: Mapping[str, LateFolders], settings: Settings) -> list[Member]:
        """The first one's tool under its own name, the others' with the collection's before it."""
        return [
            Member(name=name, source=late, prefix="" if number == 0 else name, rules=settings.own, own=True)
            for number, (name, late) in enumerate(arranged.items())
        ]
