"""Files and earlier answers for delegated calls: read from the user's folders, kept in the vault."""

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from ullage.delegate import Conversation
from ullage.errors import UnknownHandle
from ullage.gateway import Vault
from ullage.messages import Format, Media, read_message, write_messages
from ullage.tool import Caller

if TYPE_CHECKING:
    from ullage.retrieve import FileRoots

__all__ = ["FilesOfRoots", "KeptAnswers"]

_TOOL = "delegate.answer"


@dataclass(frozen=True, slots=True)
class FilesOfRoots:
    """Reads files off the event loop."""

    roots: "FileRoots"

    async def texts(self, paths: tuple[str, ...]) -> dict[str, str]:
        return await anyio.to_thread.run_sync(self.roots.texts, paths)

    async def images(self, names: tuple[str, ...]) -> tuple[Media, ...]:
        found = await anyio.to_thread.run_sync(self.roots.images, names)
        return tuple(Media(kind="image", media_type=one.media_type, data=one.data) for one in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswers:
    """Answers in the vault: within its bounds, for the principal who got them, and there after a restart."""

    vault: Vault

    async def keep(self, conversation: Conversation, caller: Caller) -> str | None:
        messages = write_messages(conversation.messages, Format.ULLAGE)
        text = json.dumps({"model": conversation.model, "messages": messages}, ensure_ascii=False)
        kept = partial(self.vault.keep_text, text, principal=caller.principal, server="delegate", tool=_TOOL)
        return await self.vault.aside(kept)

    async def open(self, handle: str, caller: Caller) -> Conversation:
        def read() -> str:
            opened = self.vault.open(handle, caller.principal)
            if opened.header.tool != _TOOL:
                raise UnknownHandle(
                    f"`{handle[:40]}` is a result, and no answer that could be continued",
                    suggestion="give it under `context` instead",
                )
            return "".join(opened.text(shape) for shape in opened.shapes)

        said: dict[str, Any] = json.loads(await self.vault.aside(read))
        messages = tuple(read_message(one, Format.ULLAGE) for one in said["messages"])
        return Conversation(model=said["model"], messages=messages)
