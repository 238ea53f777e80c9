"""Calls of OpenAI's own tools that the client carries out, in every format."""

import json

import pytest

from ullage.messages import Format, faults, read_message, write_messages
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:formats", "S2:compact:valid")

PICTURE = "data:image/png;base64,AAAA"
ITEMS: list[Json] = [
    {"role": "user", "content": "Go"},
    {"type": "local_shell_call", "id": "l", "call_id": "c1", "action": {"command": ["ls"]}, "status": "completed"},
    {"type": "local_shell_call_output", "call_id": "c1", "output": "a.txt"},
    {"type": "shell_call", "call_id": "c2", "action": {"commands": ["pwd"]}, "status": "completed"},
    {"type": "shell_call_output", "call_id": "c2", "output": [{"stdout": "/home", "stderr": ""}]},
    {"type": "apply_patch_call", "call_id": "c3", "operation": {"type": "delete_file", "path": "a.txt"}},
    {"type": "apply_patch_call_output", "call_id": "c3", "status": "completed", "output": "gone"},
    {"type": "computer_call", "id": "u", "call_id": "c4", "action": {"type": "screenshot"}, "status": "completed"},
    {"type": "computer_call_output", "call_id": "c4", "output": {"type": "computer_screenshot", "image_url": PICTURE}},
]
CUSTOM: Json = {"id": "c1", "type": "custom", "custom": {"name": "py", "input": "print(1)"}}
CHAT: list[Json] = [
    {"role": "user", "content": "Go"},
    {"role": "assistant", "content": None, "tool_calls": [CUSTOM]},
    {"role": "tool", "tool_call_id": "c1", "content": "1"},
]


@pytest.mark.parametrize("target", Format)
@pytest.mark.parametrize(("history", "source"), [(ITEMS, Format.OPENAI_RESPONSES), (CHAT, Format.OPENAI_CHAT)])
def test_calls_of_own_tools_keep_their_results_in_every_format(history: list[Json], source: Format, target: Format):
    written = write_messages([read_message(native, source) for native in history], target)
    assert faults(written, target) == ()
    for said in ("ls", "a.txt", "pwd", "/home", "gone") if source is Format.OPENAI_RESPONSES else ("py", "print(1)"):
        assert said in json.dumps(written)


def test_calls_of_own_tools_are_written_back_with_outputs_of_their_kind():
    written = write_messages([read_message(item, Format.OPENAI_RESPONSES) for item in ITEMS], Format.OPENAI_RESPONSES)
    assert written[1:] == ITEMS[1:]


def test_a_chats_custom_call_becomes_one_of_the_responses_api_and_stays_in_a_chat():
    neutral = [read_message(message, Format.OPENAI_CHAT) for message in CHAT]
    assert write_messages(neutral, Format.OPENAI_RESPONSES)[1:] == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "py", "input": "print(1)"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "1"},
    ]
    assert write_messages(neutral, Format.OPENAI_CHAT) == CHAT


def test_citations_stored_audio_and_video_settings_are_written_back():
    cited: Json = {
        "role": "assistant",
        "content": [{"type": "text", "text": "So", "citations": [{"type": "char_location", "cited_text": "so"}]}],
    }
    spoken: Json = {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    film: Json = {
        "role": "user",
        "parts": [{"fileData": {"fileUri": "https://example.org/a"}, "videoMetadata": {"fps": 1}}],
    }
    for native, format_ in ((cited, Format.ANTHROPIC), (spoken, Format.OPENAI_CHAT), (film, Format.GEMINI)):
        assert write_messages([read_message(native, format_)], format_) == [native]
