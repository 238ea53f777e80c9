"""Checks that an implementation fulfils its Protocol.

Plain functions that raise `AssertionError` with a sentence; call them from any test runner. They check what a Protocol
requires, not whether the answers are right.
"""

from datetime import UTC, datetime

import anyio

from ullage.errors import BadInput, UnknownTool
from ullage.ledger import Entry, Recorder
from ullage.search import Document, Embedder, Index
from ullage.tokens import Engine, drain
from ullage.tool import (
    Call,
    Change,
    Complete,
    PromptRequest,
    Read,
    Reply,
    ToolSource,
)

__all__ = [
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
    await _check_unknown(source)
    reply = await source.call(sample)
    assert reply.needs is None or not reply.content, "a reply either answers or needs something, not both"
    return reply


async def _check_unknown(source: ToolSource) -> None:
    try:
        await source.call(Call(tool=_NOBODY))
    except UnknownTool:
        return
    raise AssertionError("a call of an unknown tool did not raise UnknownTool")


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
