"""Keeps the cache of first answers filled and up to date, for clients that start `ullage serve` next.

An entry has what a newly started gateway would answer now, not what this one has already answered its own client. It
is written shortly after a change, and when the gateway ends. Nothing is written for settings that have errors, for
lists that still wait for servers, or while this process knows less than the store.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from ullage import __version__
from ullage.config import Loaded, Places, Stamp
from ullage.start_cache import (
    Entry,
    Situation,
    catalogue_token,
    digest,
    digest_of_tools,
    load_entry,
    make_facts,
    make_folder,
    write_entry,
)
from ullage.tool import Change
from ullage.wire import HANDSHAKE_VERSIONS, MODERN_VERSIONS, Presentation, encode_line

from .build_gateway import Gateway

__all__ = ["StartAnswers"]

_log = logging.getLogger(__name__)

_MOMENT = 0.5
"""Seconds in which changes are collected before entries are written."""


@dataclass(slots=True, kw_only=True)
class StartAnswers:
    """Writes the cache entries of this gateway's client, and of clients that were started in the same way before."""

    gateway: Gateway
    situation: Situation
    _loaded: Loaded = field(init=False)
    """The settings that the gateway started with."""
    _place: tuple[str, bytes] | None = field(init=False)
    """The cache's folder and key; None where there is no cache."""
    _token: str = ""
    """The revision of the catalogue that the gateway's lists were made from."""
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self._loaded = self.gateway.loaded
        self._place = make_folder(self.situation.environment)
        self._token = self._read_token()
        if self._place is not None and self.situation.is_inside_project(self._place[0]):
            self._place = None

    async def keep(self, wait: float = _MOMENT) -> None:
        """Write entries after `wait` seconds, and shortly after each change, until cancelled."""
        if self._place is None:
            return
        unwatch = self.gateway.merge.watch(self._hear)
        self.gateway.when_adopted.append(self._note)
        self._note()
        try:
            while True:
                await self._changed.wait()
                await anyio.sleep(wait)
                await self._write_changes()
                wait = _MOMENT
        finally:
            unwatch()

    async def close(self) -> None:
        """Write the entries that are not yet saved."""
        if self._changed.is_set() or self._read_token() != self._token:
            await self._write_changes()

    async def _write_changes(self) -> None:
        self._changed = anyio.Event()
        try:
            await self.write((self.situation.client,))
        except BaseException:
            self._note()
            raise

    def _note(self) -> None:
        self._changed.set()

    def _hear(self, change: Change) -> None:
        if change.kind == "tools":
            self._note()

    async def write(self, clients: Iterable[str | None] = ()) -> None:
        """Update the outdated entries of these clients, and of all other clients that have one."""
        if self._place is None or not self._is_fresh():
            return
        folder, key = self._place
        token = self._read_token()
        if token != self._token:
            if not await self.gateway.servers.is_current():
                return
            self._token = token
        profiles = self.gateway.settings.clients
        wanted = {client if client in profiles else None for client in clients}
        for client in (None, *profiles):
            situation = self.situation.for_client(client)
            known = await anyio.to_thread.run_sync(load_entry, folder, situation, key)
            if client not in wanted and known is None:
                continue
            facts = self._facts(situation, token)
            if client not in wanted and known is not None and known.header["facts"] == facts:
                continue
            entry = await self._make(situation, facts)
            if entry is not None and entry != known:
                try:
                    await anyio.to_thread.run_sync(partial(write_entry, situation, entry, key=key, folder=folder))
                except OSError as error:
                    _log.warning("the first answers cannot be cached in `%s`: %s", folder, error.strerror)
                    return

    def _is_fresh(self) -> bool:
        """Return whether a process that starts now would read the same settings.

        A running process keeps the content of project files that were approved before.
        """
        loaded = self.gateway.loaded
        if loaded.errors or loaded.unread:
            return False
        return loaded is self._loaded or not (loaded.in_use or loaded.pending)

    async def _make(self, situation: Situation, facts: dict[str, Any]) -> Entry | None:
        """Build a client's entry; None where its tool list is not settled."""
        loaded = self.gateway.loaded
        view = await self.gateway.view()
        if view.missing and self.gateway.settings.gateway_for(situation.client).mode == "direct":
            return None
        served = self.gateway.preview(situation.client)
        try:
            answers = await present(Presentation(served.profile))
        except Exception:  # noqa: BLE001 - an answer that fails for any reason must not be cached
            return None
        view = await self.gateway.view()
        if (view.missing and served.find.surface == "direct") or self.gateway.loaded is not loaded:
            return None
        header = {"answers": _as_read(answers.header["answers"]), "facts": facts}
        return Entry(header, answers.tools, answers.tools_modern)

    def _facts(self, situation: Situation, token: str) -> dict[str, Any]:
        assert self._place is not None
        loaded = self.gateway.loaded
        key = self._place[1]
        settings = loaded.settings
        variables = set(loaded.variables)
        if settings.delegate.is_wanted:
            # Delegating is offered only where a provider's key is set.
            variables |= {one.key_env for one in settings.providers if one.key_env}
        facts = make_facts(
            situation,
            key,
            version=__version__,
            stamps={str(path): _stamp(stamp) for path, stamp in loaded.stamps.items()},
            judged={str(path) for path in loaded.files if not path.is_relative_to(Places.of_user().config)},
            variables=tuple(variables),
            client_files={str(path): (one.parts, one.folders) for path, one in loaded.client_files.items()},
            is_bound_to_folder=loaded.is_bound_to_folder,
            clients=tuple(settings.clients),
            catalogue=(digest(key, self._store), token),
        )
        return _as_read(facts)

    @property
    def _store(self) -> str:
        return self._loaded.settings.store

    def _read_token(self) -> str:
        if self._place is None:
            return ""
        folder, key = self._place
        return catalogue_token(folder, digest(key, self._store))


async def present(presentation: Presentation) -> Entry:
    """Return the first answers of a server as a cache entry stores them, without their dependencies.

    For each tool list, the array of tools is stored apart from the text before and after it.
    """
    lists = dict[str, list[str]]()
    arrays = list[bytes]()
    for name, modern in (("tools", False), ("tools_modern", True)):
        result = await presentation.tools_result(modern=modern)
        before = b'{"tools":'
        array = encode_line({"tools": result["tools"]})[len(before) : -len(b"}\n")]
        after = encode_line(result)[len(before) + len(array) : -len(b"\n")]
        lists[name] = [before.decode(), after.decode(), digest_of_tools(result["tools"])]
        arrays.append(array)
    answers = {
        "versions": HANDSHAKE_VERSIONS,
        "modern_versions": MODERN_VERSIONS,
        "initialize": presentation.introduction(HANDSHAKE_VERSIONS[-1]),
        "discover": presentation.introduction(MODERN_VERSIONS[-1]),
        **lists,
    }
    return Entry({"answers": answers}, *arrays)


def _as_read(value: dict[str, Any]) -> dict[str, Any]:
    """Return a value as it reads after a round trip through JSON, so that the two can be compared."""
    return json.loads(json.dumps(value))


def _stamp(stamp: Stamp | None) -> list[int] | None:
    return None if stamp is None else [stamp.modified, stamp.touched, stamp.size, stamp.inode]
