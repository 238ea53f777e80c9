"""What may go with a prompt without passing through the caller's window: held results, files, earlier answers.

Protocols only; who reads and keeps them is decided where the gateway is put together.
"""

from dataclasses import dataclass
from typing import Protocol

from ullage.messages import Media, Message, join_texts
from ullage.tool import Caller

__all__ = ["Answers", "Conversation", "Files", "Held"]


class Held(Protocol):
    """Results that were held back, and passages that were retrieved."""

    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        """Their text, within so many tokens; raises `UnknownHandle`."""
        ...


class Files(Protocol):
    """Files inside the folders that the user named."""

    async def texts(self, paths: tuple[str, ...]) -> dict[str, str]:
        """Their contents by the path from the folder that each lies in.

        Raises:
            Denied: one lies outside, is ignored, or may hold a secret.
            UnreadableFile: one is not there, is no text, or is too large.
        """
        ...

    async def images(self, names: tuple[str, ...]) -> tuple[Media, ...]:
        """The same for images, each a path or a `data:` URI."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What was asked and answered so far."""

    model: str
    """The id, in the policy, of the model that answered last."""
    messages: tuple[Message, ...]
    """Without the system's; the last is the answer."""

    @property
    def answer(self) -> str:
        return join_texts(self.messages[-1].parts)


class Answers(Protocol):
    """Keeps answers of delegated calls, each for whoever got it."""

    async def keep(self, conversation: Conversation, caller: Caller) -> str | None:
        """Its handle; None where it could not be kept."""
        ...

    async def open(self, handle: str, caller: Caller) -> Conversation:
        """Raises `UnknownHandle` for none, another's, or one that is no answer."""
        ...
