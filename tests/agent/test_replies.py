import pytest

from ullage.agent.function_tools import parts_of, text_in
from ullage.messages import Media, Part, Text
from ullage.tool import Block, Needs, Reply, Structured

pytestmark = pytest.mark.requirement("S2:formats")

PIXEL = "iVBORw0KGgo="


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "hello"}, Text("hello")),
        (
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            Media(kind="image", media_type="image/png", data=PIXEL),
        ),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}, Text("inside")),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": PIXEL, "mimeType": "image/jpeg"}},
            Media(kind="image", media_type="image/jpeg", data=PIXEL),
        ),
        ({"type": "resource", "resource": {"uri": "file:///a"}}, Text('{"uri":"file:///a"}')),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": ""}}, Text("(no output)")),
        ({"type": "resource_link", "uri": "file:///a", "name": "notes"}, Text("notes: file:///a")),
        ({"type": "hologram", "depth": 3}, Text('{"type":"hologram","depth":3}')),
    ],
)
def test_a_block_becomes_a_part_and_nothing_is_lost(block: Block, part: Part):
    assert parts_of(Reply(content=(block,))) == (part,)


def test_what_no_provider_takes_is_said_in_words():
    sound: Block = {"type": "audio", "data": "A" * 400, "mimeType": "audio/mpeg"}
    assert parts_of(Reply(content=(sound,))) == (Text("[audio/mpeg, about 300 bytes, which cannot be shown here]"),)
    vector: Block = {"type": "image", "data": "A" * 40, "mimeType": "image/svg+xml"}
    assert isinstance(parts_of(Reply(content=(vector,)))[0], Text)


def test_structured_content_is_shown_where_there_is_no_other():
    assert parts_of(Reply(structured=Structured({"rows": [1]}))) == (Text('{"rows":[1]}'),)
    both = Reply(content=({"type": "text", "text": "one row"},), structured=Structured({"rows": [1]}))
    assert parts_of(both) == (Text("one row"),)


@pytest.mark.parametrize("reply", [Reply(), Reply.text("")])
def test_a_result_is_never_without_words(reply: Reply):
    assert parts_of(reply) == (Text("(no output)"),)


def test_a_tool_that_must_ask_somebody_says_that_nobody_is_there():
    needs = Needs(requests={"1": {"method": "elicitation/create", "params": {}}})
    said = text_in(parts_of(Reply(needs=needs)))
    assert "`elicitation/create`" in said
    assert "not carried out" in said
    assert "something" in text_in(parts_of(Reply(needs=Needs(requests={}))))
