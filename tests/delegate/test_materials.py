"""Files, images, earlier answers and schemas go with a prompt without passing through the caller's window."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from delegate.delegates import METER, Both, delegate, one_fallback, saying
from delegate.streams import ANSWERS, Scripted
from ullage.app.build_delegate import FilesOfRoots
from ullage.delegate import DELEGATE, Conversation, DelegateSource
from ullage.delegate.checked_answers import UnfitAnswer, check_schema, read_fitting
from ullage.delegate.delegate_tools import RUN
from ullage.delegate.model_call import is_strict
from ullage.errors import Denied, InvalidArguments, UnknownHandle
from ullage.gateway import definition_text
from ullage.retrieve import FileRoots
from ullage.tool import ANONYMOUS, Call, Caller, JsonObject, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S4:schema")]

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 16).decode()
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}


@dataclass
class FakeAnswers:
    kept: dict[str, tuple[str, Conversation]] = field(default_factory=dict[str, tuple[str, Conversation]])

    async def keep(self, conversation: Conversation, caller: Caller) -> str | None:
        handle = f"r{len(self.kept)}"
        self.kept[handle] = (caller.principal, conversation)
        return handle

    async def open(self, handle: str, caller: Caller) -> Conversation:
        principal, conversation = self.kept.get(handle, (None, None))
        if conversation is None or principal != caller.principal:
            raise UnknownHandle("no such handle")
        return conversation


def source(client: httpx2.AsyncClient, root: Path | None = None, answers: FakeAnswers | None = None) -> DelegateSource:
    files = None if root is None else FilesOfRoots(FileRoots(folders=(root,)))
    asking = delegate(client, by=replace(one_fallback(), buckets=()))
    return DelegateSource(delegate=asking, files=files, answers=answers)


async def run(
    one: DelegateSource, arguments: JsonObject, caller: Caller = ANONYMOUS, tool: str = "delegate.run"
) -> Reply:
    return await one.call(Call(tool=tool, arguments=arguments, caller=caller))


def said(reply: Reply) -> str:
    return str(reply.content[0]["text"])


def meta(reply: Reply) -> Any:  # noqa: ANN401 - whatever JSON there is
    return reply.meta[DELEGATE]


def lines(count: int) -> str:
    return "".join(f"def step_{number}(value):\n    return value * {number} + 1\n\n" for number in range(count // 3))


@pytest.mark.requirement("S4:schema", "S4:more")
async def test_an_edit_of_a_file_named_by_its_path_costs_the_caller_a_few_tokens(tmp_path: Path):
    (tmp_path / "steps.py").write_text(lines(300), encoding="utf-8")
    changed = "    return value * 50 + 1\n"
    patch = (
        "diff --git a/steps.py b/steps.py\n--- a/steps.py\n+++ b/steps.py\n@@ -151,2 +151,2 @@\n"
        f" def step_50(value):\n-{changed}+    return value * 50 + 2\n"
    )
    both = Both(Scripted([saying(patch)]))
    arguments: JsonObject = {"prompt": "step_50 must add 2", "files": ["steps.py"]}
    async with both.client() as client:
        reply = await run(source(client, tmp_path), arguments, tool="delegate.diff")
    assert "+    return value * 50 + 2" in said(reply)
    assert METER.count(json.dumps(arguments), "gpt-4o").tokens <= 38
    assert "def step_99" in both.openai.bodies[0]["messages"][-1]["content"]


@pytest.mark.requirement("S4:schema")
async def test_files_and_images_go_with_a_prompt(tmp_path: Path):
    (tmp_path / "a.txt").write_text("forty-two", encoding="utf-8")
    (tmp_path / "a.png").write_bytes(base64.b64decode(PNG))
    both = Both(Scripted([ANSWERS["chat"]]))
    async with both.client() as client:
        await run(source(client, tmp_path), {"prompt": "Please look", "files": ["a.txt"], "images": ["a.png"]})
    image, text = both.openai.bodies[0]["messages"][-1]["content"]
    assert image["image_url"]["url"] == f"data:image/png;base64,{PNG}"
    assert text["text"] == '<file path="a.txt">\nforty-two\n</file>\n\nPlease look'


@pytest.mark.requirement("S4:schema")
async def test_without_roots_no_path_is_read_and_outside_them_none():
    both = Both(Scripted([ANSWERS["chat"]]))
    async with both.client() as client:
        for name in ("files", "images"):
            with pytest.raises(InvalidArguments, match="no files can be read here"):
                await run(source(client), {"prompt": "x", name: ["/etc/hostname"]})
            with pytest.raises(Denied):
                await run(source(client, Path(__file__).parent), {"prompt": "x", name: ["/etc/hostname"]})
    assert both.openai.requests == []


@pytest.mark.requirement("S4:schema", "S4:route")
async def test_images_go_to_a_model_that_takes_them():
    blind = replace(one_fallback().models["openai:gpt-4o-mini"], model="nova-micro")
    models = {**one_fallback().models, "openai:gpt-4o-mini": blind}
    both, image = Both(Scripted([ANSWERS["chat"]])), f"data:image/png;base64,{PNG}"
    async with both.client() as client:
        by = replace(one_fallback(), models=models, buckets=())
        one = replace(source(client, Path()), delegate=delegate(client, by=by))
        reply = await run(one, {"prompt": "Please look", "images": [image]})
        assert meta(reply)["decision"]["alias"] == "long-context"
        assert "chat-default: takes no images" in meta(reply)["rationale"]
        one = replace(one, delegate=delegate(client, by=replace(by, fallbacks={})))
        with pytest.raises(InvalidArguments, match="take them"):
            await run(one, {"prompt": "Please look", "images": [image], "forceModel": "chat-default"})
        assert meta(await run(one, {"prompt": "Please look", "images": [image]}))["decision"]["alias"] != "chat-default"


@pytest.mark.requirement("S4:schema")
async def test_an_earlier_answer_is_continued_by_its_handle_or_as_the_last():
    both, answers = Both(Scripted([saying("It is Paris."), saying("Two million.")])), FakeAnswers()
    async with both.client() as client:
        one = source(client, answers=answers)
        with pytest.raises(UnknownHandle):
            await run(one, {"prompt": "And now?", "continue": "last"})
        first = await run(one, {"prompt": "Capital of France?", "forceModel": "chat-premium"})
        for handle in (meta(first)["handle"], "last"):
            again = await run(one, {"prompt": "How many people?", "continue": handle})
            assert meta(again)["decision"]["alias"] == "chat-premium"
        roles = [(one["role"], one["content"]) for one in both.openai.bodies[1]["messages"]]
        assert roles == [("user", "Capital of France?"), ("assistant", "It is Paris."), ("user", "How many people?")]
        assert len(both.openai.bodies[2]["messages"]) == 5
        other = Caller(principal="other", session="s")
        with pytest.raises(UnknownHandle):
            await run(one, {"prompt": "x", "continue": meta(first)["handle"]}, other)


@pytest.mark.requirement("S4:schema")
async def test_an_earlier_answer_is_context_within_the_budget_of_tokens():
    both, answers = Both(Scripted([saying("word " * 3_000), saying("ok")])), FakeAnswers()
    async with both.client() as client:
        one = replace(source(client, answers=answers), context_tokens=100)
        first = await run(one, {"prompt": "Please write"})
        await run(one, {"prompt": "Sum up", "context": [meta(first)["handle"]]})
    shown = both.openai.bodies[1]["messages"][-1]["content"]
    assert shown.startswith("<context>\nword word")
    assert "characters left out" in shown
    assert METER.count(shown, "gpt-4o").tokens < 150


@pytest.mark.requirement("S4:schema")
async def test_an_answer_that_does_not_fit_its_schema_is_asked_for_again():
    good = {"city": "Paris", "people": 2_000_000}
    tries = [saying("Paris!"), saying('{"city": "Paris"}'), saying(f"```json\n{json.dumps(good)}\n```")]
    both = Both(Scripted(tries))
    async with both.client() as client:
        reply = await run(source(client), {"prompt": "Please tell", "schema": dict(SCHEMA)})
    assert json.loads(said(reply)) == good
    assert meta(reply)["asked"] == 3
    assert both.openai.bodies[0]["response_format"]["json_schema"]["strict"] is True
    assert "it is not JSON" in both.openai.bodies[1]["messages"][-1]["content"]
    assert "'people' is a required property" in both.openai.bodies[2]["messages"][-1]["content"]


async def test_an_empty_answer_is_asked_for_again_without_an_empty_message():
    both = Both(Scripted([saying(""), saying('{"city": "Paris", "people": 1}')]))
    async with both.client() as client:
        reply = await run(source(client), {"prompt": "Please tell", "schema": dict(SCHEMA)})
    assert json.loads(said(reply))["city"] == "Paris"
    assert all(message["content"] for message in both.openai.bodies[1]["messages"])


@pytest.mark.requirement("S4:schema")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"$ref": "https://elsewhere.test/schema"},
        {"patternProperties": {"(a+)+$": {}}},
        {"description": "x" * 30_000},
        {"$ref": "#"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#none"},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}},
    ],
)
async def test_a_schema_that_cannot_be_checked_is_refused(schema: Mapping[str, Any]):
    with pytest.raises(InvalidArguments, match="schema"):
        check_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"next": {"$ref": "#"}}},
        {"items": {"$ref": "#/$defs/a~1b"}, "$defs": {"a/b": {"type": "string"}}},
        {"items": {"$ref": "#one"}, "$defs": {"a": {"$anchor": "one", "type": "string"}}},
        {"anyOf": [{"type": "string"}, {"$ref": "#/anyOf/0"}]},
        {"$defs": {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)} | {"a60": {}}},
    ],
)
async def test_a_schema_may_refer_to_its_parts(schema: JsonObject):
    check_schema(schema)


@pytest.mark.requirement("S4:schema")
@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '\ufeff{"a": 1}',
        '```\n{"a": 1}\n```',
        'Here it is:\n\n```json\n{"a": 1}\n```\nTell me if you need more.',
        'Sure! {"a": 1} is the answer.',
        '<think>perhaps {"a": 2}?</think>\n{"a": 1}',
    ],
)
async def test_words_around_the_json_cost_no_second_answer(text: str):
    assert json.loads(read_fitting(text, {"type": "object", "required": ["a"]})) == {"a": 1}


@pytest.mark.parametrize("text", ["", "{", "none", "NaN", '{"a": Infinity}', "[" * 100_000, "{a} and {b}"])
async def test_what_is_no_json_is_not_taken_for_it(text: str):
    with pytest.raises(UnfitAnswer):
        read_fitting(text, {})


async def test_a_pattern_that_takes_for_ever_is_not_run():
    schema: JsonObject = {"type": "string", "pattern": "^(a+)+$"}
    check_schema(schema)
    assert read_fitting(json.dumps("a" * 40 + "!"), schema)
    with pytest.raises(UnfitAnswer):
        read_fitting("3", schema)


async def test_only_closed_schemas_are_strict():
    assert is_strict(SCHEMA)
    assert not is_strict({**SCHEMA, "additionalProperties": True})
    assert not is_strict({**SCHEMA, "required": ["city"]})
    closed: JsonObject = {"properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    assert is_strict(closed)
    assert is_strict({"type": "object", "additionalProperties": False})
    assert not is_strict({"type": "object"})
    assert not is_strict({**closed, "required": "a"})
    assert not is_strict({**closed, "required": ["a", "b"]})
    assert not is_strict({"type": "array", "items": {"type": "string"}}), "no object"
    assert not is_strict({**closed, "properties": {"a": {"type": "object"}}})
    assert not is_strict({**closed, "properties": {"a": {"items": [{"properties": {"b": {}}}]}}})
    assert not is_strict({"type": "array"})


@pytest.mark.requirement("S4:schema")
async def test_the_listed_definition_grew_by_no_more_than_sixty_tokens():
    assert METER.count(definition_text(RUN), "gpt-4o").tokens <= 168 + 60
