"""Fakes of sources and engines for tests.

Each fake implements a public Protocol in full and records its calls, so that nothing needs to be patched.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from zlib import crc32

from ullage.errors import BadInput, UnknownTool
from ullage.ledger import AuditEvent, Entry
from ullage.search import Document
from ullage.tool import (
    Call,
    Change,
    Complete,
    Contents,
    JsonObject,
    Listener,
    Listing,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
    Tool,
    ToolSource,
)

if TYPE_CHECKING:
    from ullage.search.document import Vectors

__all__ = ["FakeAnsweringSource", "FakeEmbedder", "FakeEngine", "FakeIndex", "FakeRecorder", "FakeSource"]

Answer = Callable[[Call], Awaitable[Reply]]


async def _echo(call: Call) -> Reply:
    return Reply.text(f"{call.tool}: {dict(call.arguments)}")


@dataclass(slots=True, kw_only=True)
class FakeSource(ToolSource):
    """A fake source: one function answers all tools, resources and prompts come from dictionaries."""

    offered: tuple[Tool, ...] = ()
    answer: Answer = _echo
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """Resources by address."""
    messages: dict[str, str] = field(default_factory=dict[str, str])
    """Prompts by name; `{}` fields are filled from the arguments."""
    calls: list[Call] = field(default_factory=list[Call])
    """Every call, in order."""
    closed: bool = False
    listeners: list[Listener] = field(default_factory=list[Listener])

    async def tools(self) -> Listing:
        return Listing(self.offered, revision=repr(self.offered))

    async def call(self, call: Call) -> Reply:
        names = [name for tool in self.offered for name in (tool.name, *tool.aliases)]
        if call.tool not in names:
            raise UnknownTool(f"no tool is called `{call.tool}`", options=tuple(names))
        self.calls.append(call)
        return await self.answer(call)

    def watch(self, listener: Listener) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener) if listener in self.listeners else None

    def change(self, change: Change) -> None:
        """Notify watchers that something changed."""
        for listener in tuple(self.listeners):
            listener(change)

    async def close(self) -> None:
        self.closed = True

    async def resources(self) -> tuple[JsonObject, ...]:
        return tuple({"uri": uri, "name": uri} for uri in self.texts)

    async def templates(self) -> tuple[JsonObject, ...]:
        return ()

    async def read(self, read: Read) -> Contents:
        if read.uri not in self.texts:
            raise BadInput(f"no resource is at `{read.uri}`", options=tuple(self.texts))
        return Contents(contents=({"uri": read.uri, "text": self.texts[read.uri]},))

    async def prompts(self) -> tuple[JsonObject, ...]:
        return tuple({"name": name} for name in self.messages)

    async def prompt(self, request: PromptRequest) -> PromptMessages:
        if request.name not in self.messages:
            raise BadInput(f"no prompt is called `{request.name}`", options=tuple(self.messages))
        text = self.messages[request.name].format(**request.arguments)
        return PromptMessages(messages=({"role": "user", "content": {"type": "text", "text": text}},))


@dataclass(slots=True, kw_only=True)
class FakeAnsweringSource(FakeSource):
    """A fake source that also completes arguments and notifies of changed resources."""

    values: tuple[str, ...] = ()
    """All completions."""
    subscribed: set[str] = field(default_factory=set[str])

    async def complete(self, request: Complete) -> JsonObject:
        typed = str(request.argument.get("value", ""))
        return {"values": [value for value in self.values if value.startswith(typed)]}

    async def subscribe(self, uri: str) -> None:
        self.subscribed.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        self.subscribed.discard(uri)

    def touch(self, uri: str) -> None:
        """Notify subscribers that a resource changed."""
        if uri in self.subscribed:
            self.change(Change("resource", uri))


@dataclass(slots=True)
class FakeRecorder:
    """Records the entries that it is given."""

    entries: list[Entry] = field(default_factory=list[Entry])
    events: list[AuditEvent] = field(default_factory=list[AuditEvent])

    def record(self, entry: Entry) -> None:
        self.entries.append(entry)

    def audit(self, event: AuditEvent) -> None:
        self.events.append(event)

    def flush(self, timeout: float = 5.0) -> bool:
        return True


@dataclass(slots=True)
class FakeEngine:
    """Counts words. Supports every vocabulary in `vocabularies`."""

    vocabularies: frozenset[str] = frozenset({"o200k_base", "cl100k_base"})
    asked: list[str] = field(default_factory=list[str])
    """Every text that was counted, in order."""

    def available(self, vocabulary: str) -> bool:
        return vocabulary in self.vocabularies

    def adds_up(self, vocabulary: str) -> bool:
        return False

    def counter(self, vocabulary: str) -> Callable[[str], int]:
        return self._count

    def _count(self, text: str) -> int:
        self.asked.append(text)
        return len(text.split())

    def steps(self, vocabulary: str, text: str) -> Generator[None, None, int]:
        yield
        return self._count(text)


@dataclass(slots=True)
class FakeIndex:
    """Scores a document by how many words of the query are in its name or description."""

    documents: dict[str, Document] = field(default_factory=dict[str, Document])

    def add(self, document: Document) -> None:
        self.documents[document.id] = document

    def remove(self, document_id: str) -> None:
        self.documents.pop(document_id, None)

    def scores(self, query: str) -> dict[str, float]:
        words = query.lower().split()
        found = {key: f"{one.name} {one.description}".lower() for key, one in self.documents.items()}
        scored = {key: float(sum(word in text for word in words)) for key, text in found.items()}
        return {key: score for key, score in scored.items() if score > 0}


@dataclass(slots=True, kw_only=True)
class FakeEmbedder:
    """Embeds texts so that texts with common words are similar."""

    edition: str = "fake-1"
    weight: float = 7.0
    numbers: int = 64
    asked: list[str] = field(default_factory=list[str])
    """Every text that was embedded."""

    def embed_documents(self, documents: Sequence[Document]) -> "Vectors":
        return self._vectors([f"{one.server} {one.name} {one.description}" for one in documents])

    def embed_query(self, query: str) -> "Vectors":
        return self._vectors([query])

    def _vectors(self, texts: Sequence[str]) -> "Vectors":
        import numpy as np

        self.asked += texts
        found = np.zeros((len(texts), self.numbers), dtype=np.float32)
        for place, text in enumerate(texts):
            for word in text.lower().replace("_", " ").split():
                found[place, crc32(word.encode()) % self.numbers] += 1
        lengths = np.sqrt((found * found).sum(axis=1, keepdims=True))
        lengths[lengths == 0] = 1
        return found / lengths
