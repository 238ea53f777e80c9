import json

import pytest

from clients.files import Object
from ullage.clients import Conversation, read_text
from ullage.messages import Format, faults
from ullage.models import Usage

pytestmark = [pytest.mark.requirement("S2:formats")]


def read(*messages: Object) -> Conversation:
    whole = {"version": 1, "agent": "lead", "sessionId": "s1", "system_prompt": "You help.", "messages": [*messages]}
    (found,) = read_text(json.dumps(whole), "session.messages.json")
    assert faults(found.natives, found.format) == ()
    return found


def said(role: str, *content, **fields) -> Object:
    return {"role": role, "ts": 1_783_376_868_634, "content": [*content], **fields}


def text(words: str) -> Object:
    return {"type": "text", "text": words}


def test_messages_files_models_and_usage_are_read():
    file = {"type": "file", "path": "a.txt", "content": "much"}
    metrics = {"inputTokens": 100, "outputTokens": 5, "cacheReadTokens": 90, "cacheWriteTokens": 7}
    answer = said("assistant", text("Done."), modelInfo={"id": "anthropic/claude-opus-4.8"}, metrics=metrics)
    found = read(said("user", text("Read it."), file), answer, {"role": "user", "content": "Thanks."})
    assert (found.program, found.format, found.id) == ("cline", Format.ANTHROPIC, "s1")
    assert (found.system, found.tools, found.model) == ("You help.", None, "anthropic/claude-opus-4.8")
    assert found.natives[0] == {
        "role": "user",
        "content": [text("Read it."), text('<file path="a.txt">\nmuch\n</file>')],
    }
    assert found.natives[2] == {"role": "user", "content": [text("Thanks.")]}
    assert found.calls[0].usage == Usage(input=100, output=5, cache_read=90, cache_write=7)


def test_an_input_that_leaves_out_the_cache_is_told_by_its_size():
    metrics = {"inputTokens": 3, "outputTokens": 5, "cacheReadTokens": 90, "cacheWriteTokens": 7}
    found = read(said("user", text("Hi.")), said("assistant", text("Hi."), metrics=metrics))
    assert found.calls[0].usage == Usage(input=100, output=5, cache_read=90, cache_write=7)


def test_what_a_compaction_left_is_marked():
    about = {"kind": "compaction_summary", "tokensBefore": 21_919}
    found = read(said("user", text("The summary."), metadata=about), said("assistant", text("Going on.")))
    (compaction,) = found.compactions
    assert (compaction.place, compaction.left, compaction.before) == (1, (0,), 21_919)
    assert found.turns_in_window() == (0, 1)
    assert found.calls[0].usage is None
