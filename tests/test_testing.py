"""The conformance checks that ship must fail on what is wrong."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ullage.ledger import Recording, Unrecorded, totals
from ullage.models import shipped
from ullage.search import LexicalIndex
from ullage.store import Database
from ullage.testing import (
    FakeAnsweringSource,
    FakeEngine,
    FakeIndex,
    FakeRecorder,
    FakeSource,
    check_completion,
    check_engine,
    check_index,
    check_prompts,
    check_recorder,
    check_resources,
    check_source,
    check_subscribed,
)
from ullage.tokens.bpe import default_engine
from ullage.tool import (
    Block,
    Call,
    Change,
    Complete,
    Contents,
    JsonObject,
    Needs,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
    Tool,
    text_block,
)

pytestmark = pytest.mark.anyio
TOOL = Tool(name="a", description="does a", input_schema={"type": "object"})


@pytest.mark.parametrize(
    "tools",
    [
        (TOOL, TOOL),
        (TOOL, replace(TOOL, name="b", aliases=("a",))),
        (replace(TOOL, input_schema={}),),
        (replace(TOOL, description=None),),
    ],
    ids=["twice", "alias of another", "no type", "no description"],
)
async def test_a_source_with_a_faulty_listing_is_caught(tools: tuple[Tool, ...]):
    with pytest.raises(AssertionError):
        await check_source(FakeSource(offered=tools), Call(tool="a"))


@dataclass(slots=True, kw_only=True)
class Eager(FakeSource):
    """Answers everything."""

    async def call(self, call: Call) -> Reply:
        return await self.answer(call)

    async def read(self, read: Read) -> Contents:
        return Contents(contents=({"uri": read.uri},))

    async def prompt(self, request: PromptRequest) -> PromptMessages:
        block: Block = text_block("x")
        return PromptMessages(messages=(block,))


async def test_a_source_that_answers_what_it_does_not_offer_is_caught():
    eager = Eager(offered=(TOOL,), texts={"memo://1": "x"}, messages={"p": "x"})
    for check in (
        check_source(eager, Call(tool="a")),
        check_resources(eager),
        check_prompts(eager, PromptRequest(name="p")),
    ):
        with pytest.raises(AssertionError):
            await check


async def test_a_reply_that_answers_and_needs_is_caught():
    async def both(_: Call) -> Reply:
        return Reply(content=(text_block("x"),), needs=Needs({}))

    with pytest.raises(AssertionError):
        await check_source(FakeSource(offered=(TOOL,), answer=both), Call(tool="a"))


@pytest.mark.parametrize("vocabulary", ["o200k_base", "cl100k_base", "gemma4", "qwen3", "modernbert"])
def test_the_engine_that_ships_conforms(vocabulary: str):
    check_engine(default_engine(), vocabulary)


def test_a_fake_engine_conforms_and_one_that_miscounts_in_steps_is_caught():
    check_engine(FakeEngine(), "o200k_base")

    class Odd(FakeEngine):
        def steps(self, vocabulary: str, text: str) -> Generator[None, None, int]:
            yield
            return 1

    with pytest.raises(AssertionError):
        check_engine(Odd(), "o200k_base")
    assert len(shipped()) > 300


def test_the_index_that_ships_conforms_and_one_that_forgets_nothing_is_caught():
    check_index(LexicalIndex())
    check_index(FakeIndex())

    class Hoarder(FakeIndex):
        def remove(self, document_id: str) -> None:
            """Keeps it."""

    with pytest.raises(AssertionError):
        check_index(Hoarder())


ASKED = Complete(reference={"type": "ref/prompt", "name": "p"}, argument={"name": "a", "value": "b"})


async def test_a_source_that_completes_and_tells_of_resources_is_passed():
    source = FakeAnsweringSource(values=("bee", "cat"))
    await check_completion(source, ASKED)
    assert (await source.complete(ASKED))["values"] == ["bee"]
    await check_subscribed(source, "memo://1")
    heard: list[Change] = []
    source.watch(heard.append)
    source.touch("memo://1")
    await source.subscribe("memo://1")
    source.touch("memo://1")
    assert heard == [Change("resource", "memo://1")]


async def test_a_completion_of_another_shape_is_caught():
    class Odd(FakeAnsweringSource):
        async def complete(self, request: Complete) -> JsonObject:
            return {"values": "bee"}

    with pytest.raises(AssertionError):
        await check_completion(Odd(), ASKED)


def test_every_shipped_recorder_takes_what_it_is_given(tmp_path: Path):
    kept = FakeRecorder()
    check_recorder(kept)
    check_recorder(Unrecorded())
    assert len(kept.entries) == 1_000
    database = Database.open(tmp_path / "ledger.db")
    recording = Recording(database)
    check_recorder(recording)
    recording.stop(30)
    assert totals(database)["result"].entries == 1_000
    database.close()
