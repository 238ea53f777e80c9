"""Fakes and conformance checks for your own sources, engines and wrappers.

Each fake implements a public Protocol in full and records its calls, so that nothing needs to be patched.

The checks are plain functions that raise `AssertionError` with a sentence; call them from any test runner. They check
what a Protocol requires, not whether the answers are right.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zlib import crc32

import anyio

from ullage.errors import BadInput, UnknownTool
from ullage.ledger import AuditEvent, Entry, Recorder
from ullage.search import Document, Embedder, Index
from ullage.tokens import Engine, drain
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
__all__ = [
    "FakeAnsweringSource",
    "FakeEmbedder",
    "FakeEngine",
    "FakeIndex",
    "FakeRecorder",
    "FakeSource",
    "check_closing",
    "check_completion",
    "check_embedder",
    "check_engine",
    "check_index",
    "check_prompts",
    "check_recorder",
    "check_resources",
    "check_source",
    "check_subscribed",
    "check_watched",
]

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


_NOBODY = "a name that no tool, resource or prompt has"


async def check_source(source: ToolSource, sample: Call) -> Reply:
    """Check a `ToolSource`: a stable listing, calls by name and alias, `UnknownTool` for other names. Returns the
    reply."""
    first, second = await source.tools(), await source.tools()
    assert first == second, "two listings in a row differ, and so would a client's prompt cache"
    names = [name for tool in first.tools for name in (tool.name, *tool.aliases)]
    assert len(set(names)) == len(names), "two tools share a name or an alias"
    for tool in first.tools:
        assert tool.input_schema.get("type") == "object", f"the schema of `{tool.name}` does not say type object"
        assert tool.description, f"`{tool.name}` has no description: a model cannot know what it is for"
    try:
        await source.call(Call(tool=_NOBODY))
    except UnknownTool:
        pass
    else:
        raise AssertionError("a call of an unknown tool did not raise UnknownTool")
    reply = await source.call(sample)
    assert reply.needs is None or not reply.content, "a reply either answers or needs something, not both"
    return reply


def check_watched(source: ToolSource) -> None:
    """Check that `watch` returns a function that ends it, and that ending twice is harmless."""
    heard: list[Change] = []
    unwatch = source.watch(heard.append)
    unwatch()
    unwatch()


async def check_closing(source: ToolSource) -> None:
    """Check that `close` returns within five seconds, also when called again."""
    with anyio.fail_after(5):
        await source.close()
        await source.close()


async def check_resources(source: ToolSource) -> None:
    """Check that every listed resource can be read and an unlisted one is refused as bad input."""
    for resource in await source.resources():
        uri = resource.get("uri")
        assert isinstance(uri, str), f"a resource without an address: {resource}"
        read = await source.read(Read(uri=uri))
        assert read.contents or read.needs, f"`{uri}` is listed but holds nothing"
    try:
        await source.read(Read(uri=_NOBODY))
    except BadInput:
        return
    raise AssertionError("reading an unknown address did not raise BadInput")


async def check_prompts(source: ToolSource, sample: PromptRequest) -> None:
    """Check that the sample is listed and returns messages, and that an unlisted prompt is refused as bad input."""
    assert sample.name in [prompt.get("name") for prompt in await source.prompts()], f"`{sample.name}` is not listed"
    assert (await source.prompt(sample)).messages, f"`{sample.name}` gave no messages"
    try:
        await source.prompt(PromptRequest(name=_NOBODY))
    except BadInput:
        return
    raise AssertionError("an unknown prompt did not raise BadInput")


async def check_completion(source: ToolSource, sample: Complete) -> None:
    """Check that `values` is a list of texts, at most the hundred that the protocol allows."""
    values = (await source.complete(sample)).get("values")
    assert isinstance(values, list), "a completion has a list of `values`"
    assert all(isinstance(value, str) for value in values), "a value that is no text"
    assert len(values) <= 100, "more values than the protocol allows"


async def check_subscribed(source: ToolSource, uri: str) -> None:
    """Check that subscribing twice and unsubscribing twice are harmless."""
    for _ in range(2):
        await source.subscribe(uri)
    for _ in range(2):
        await source.unsubscribe(uri)


def check_recorder(recorder: Recorder) -> None:
    """Check that `record` takes any entry and many of them, and returns at once without waiting or failing."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(1_000):
        recorder.record(
            Entry(
                time=moment, kind="result", principal="ada", session="s", tokens=number, detail={"note": "x" * 10_000}
            )
        )


def check_engine(engine: Engine, vocabulary: str) -> None:
    """Check an `Engine`: an empty text has no tokens, any other some, and counting in steps gives the same as at
    once."""
    assert engine.available(vocabulary), f"`{vocabulary}` is not available"
    assert not engine.available(_NOBODY), "a vocabulary nobody has is said to be available"
    assert engine.counter(vocabulary)("") == 0, "the empty text is not empty"
    text = "The quick brown fox, 12345 times: naïve 数字 🦊 and\nmore. " * 50
    assert engine.counter(vocabulary)(text) > 0, "a text weighs nothing"
    in_steps = drain(engine.steps(vocabulary, text))
    assert in_steps == engine.counter(vocabulary)(text), "counting in steps gives another number"


def check_index(index: Index) -> None:
    """Check an `Index`, given empty: it finds what was added, replaces by id, no longer finds what was removed, and has
    no scores for an empty query."""
    ferry = Document(id="1", name="book_ferry", description="Book a place on a ferry")
    index.add(ferry)
    index.add(Document(id="2", name="read_mail", description="Read the newest mail"))
    assert index.scores("book a ferry").get("1", 0.0) > 0, "what was added is not found"
    assert not index.scores(""), "an empty query has scores"
    assert all(score > 0 for score in index.scores("read mail").values()), "a score is not above 0"
    index.add(Document(id="1", name="fly", description="Take a plane"))
    index.remove("2")
    index.remove("2")
    assert "2" not in index.scores("read mail"), "what was removed is still found"


def check_embedder(embedder: Embedder) -> None:
    """Check an `Embedder`: one row for each text, of length one or all zeros, independent of the other texts and as
    wide as those of queries."""
    ferry = Document(id="1", name="book_ferry", description="Book a place on a ferry")
    nothing = Document(id="2", name="")
    both = embedder.embed_documents([nothing, ferry])
    assert both.shape[0] == 2, "there is not one row a document"
    assert both.dtype == "float32", "vectors are not of single precision"
    lengths = [float((row @ row) ** 0.5) for row in both]
    assert abs(lengths[1] - 1) < 1e-3, "a vector has not length one"
    assert lengths[0] == 0 or abs(lengths[0] - 1) < 1e-3, "a vector of nothing has neither length one nor zero"
    assert (embedder.embed_documents([ferry])[0] == both[1]).all(), "a document's vector depends on its company"
    assert embedder.embed_documents([]).shape == (0, both.shape[1]), "no documents give other than no rows"
    query = embedder.embed_query("book a ferry")
    assert query.ndim == 2, "a query gives other than rows"
    assert query.shape[1] == both.shape[1], "queries and documents have vectors of different length"
    assert (embedder.embed_query("book a ferry") == query).all(), "the same query has another vector"
    assert embedder.edition == embedder.edition != "", "it has no edition that stays"
