import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    assistant_message,
    read_message,
    user_message,
    write_message,
)

pytestmark = pytest.mark.requirement("S2:formats")

WORDS = st.text("ab é\n", min_size=1, max_size=6).filter(str.strip)
TEXT = st.builds(Text, WORDS)
ANY_TEXT = st.builds(Text, st.text(max_size=4))
IDS = st.from_regex(r"[a-zA-Z0-9_-]{1,40}", fullmatch=True)
OBJECT = st.dictionaries(WORDS, st.none() | st.integers() | WORDS, max_size=2).map(
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
)
WEB, FILE = st.just("https://example.org/x"), st.just("file-1")
DETAIL = st.sampled_from(["low", "high", "auto"])
PDF = st.builds(Media, kind=st.just("document"), media_type=st.just("application/pdf"), data=st.just("AA=="))


def _image(detail: SearchStrategy[str | None], url: SearchStrategy[str] = WEB) -> SearchStrategy[Media]:
    image = st.just("image")
    types = st.sampled_from(["image/png", "image/jpeg"])
    inline = st.builds(Media, kind=image, media_type=types, data=st.just("AA=="), detail=detail)
    return inline | st.builds(Media, kind=image, url=url, detail=detail)


def _with(parts: SearchStrategy[Media], beside: dict[str, object]) -> SearchStrategy[tuple[Part, ...]]:
    return parts.map(lambda part: (part, Unknown(beside)))  # pyright: ignore[reportArgumentType]


def _flat(*kinds: SearchStrategy[Part] | SearchStrategy[tuple[Part, ...]]) -> SearchStrategy[tuple[Part, ...]]:
    several = st.lists(st.one_of(*kinds), min_size=1, max_size=4)
    return several.map(
        lambda found: tuple(part for one in found for part in (one if isinstance(one, tuple) else (one,)))
    )


def _said(role: Role, parts: SearchStrategy[tuple[Part, ...]]) -> SearchStrategy[Message]:
    return st.builds(Message, role=st.just(role), parts=parts)


def _result(parts: SearchStrategy[tuple[Part, ...]], **fields: SearchStrategy[object]) -> SearchStrategy[ToolResult]:
    return st.builds(ToolResult, parts=parts, call_id=IDS, **fields)  # pyright: ignore[reportArgumentType]


CALL = st.builds(ToolCall, name=st.just("f"), arguments=OBJECT, id=IDS)
RAW_CALL = st.builds(ToolCall, name=st.just("f"), arguments=st.text(max_size=5), id=IDS)
SOUND = st.builds(Media, kind=st.just("audio"), media_type=st.just("audio/wav"), data=st.just("AA=="))
DOCUMENT = _with(PDF, {"filename": "a.pdf"})
CHAT = st.one_of(
    _said("user", _flat(ANY_TEXT, _image(st.none() | DETAIL), SOUND, DOCUMENT)),
    _said("system", _flat(ANY_TEXT)),
    _said("developer", _flat(ANY_TEXT)),
    _said(
        "assistant",
        st.tuples(st.lists(ANY_TEXT, max_size=2), st.lists(RAW_CALL, min_size=1)).map(lambda two: (*two[0], *two[1])),
    ),
    _said("tool", _result(_flat(ANY_TEXT), name=st.none() | st.just("f")).map(lambda result: (result,))),
    st.builds(Message, role=st.just("user"), parts=_flat(ANY_TEXT), name=st.just("bo")),
)
STORED = st.builds(Media, kind=st.just("document"), url=WEB | FILE)
RESPONSES = st.one_of(
    _said("user", _flat(ANY_TEXT, _image(DETAIL, WEB | FILE), DOCUMENT, STORED)),
    _said("developer", _flat(ANY_TEXT)),
    _said("assistant", _flat(ANY_TEXT)),
    _said("assistant", RAW_CALL.map(lambda call: (call,)) | RAW_CALL.map(lambda call: (call, Unknown({"id": "fc_1"})))),
    _said("assistant", st.builds(Thinking, text=WORDS | st.just(""), signature=IDS).map(lambda one: (one,))),
    _said("assistant", st.builds(Thinking, text=WORDS).map(lambda one: (one, Unknown({"id": "rs_1"})))),
    _said("assistant", st.just((Unknown({"type": "web_search_call", "id": "ws_1"}),))),
    _said("tool", _result(_flat(ANY_TEXT, _image(DETAIL))).map(lambda result: (result,))),
)
IMAGE = _image(st.none(), WEB | FILE)
INNER = _flat(TEXT, IMAGE, _with(PDF, {"document": {}})) | st.sampled_from([(), (Text(""),)])
TITLED = _with(PDF | STORED, {"document": {"title": "T"}})
NOTE = TEXT.map(lambda text: (text, Unknown({"document": {"media_type": "text/plain"}})))
ANSWERED = st.lists(_result(INNER, is_error=st.booleans()), max_size=2)
SEARCHED = (
    ToolCall(name="web_search", arguments='{"query":"rain"}', id="srvtoolu_1"),
    ToolResult(
        parts=(Unknown({"type": "web_search_result", "url": "x"}),), call_id="srvtoolu_1", name="web_search_tool_result"
    ),
)
FAILED = (
    SEARCHED[0],
    ToolResult(
        parts=(Unknown({"type": "web_search_tool_result_error"}),), call_id="srvtoolu_1", name="web_search_tool_result"
    ),
)
RAN = (
    ToolCall(name="code_execution", arguments="{}", id="srvtoolu_2"),
    ToolResult(
        parts=(Unknown({"type": "code_execution_result"}),), call_id="srvtoolu_2", name="code_execution_tool_result"
    ),
)
REMOTE = (
    ToolCall(name="f", arguments="{}", id="mcptoolu_1"),
    Unknown({"server_name": "s"}),
    ToolResult(parts=(Text("x"),), call_id="mcptoolu_1", name="mcp_tool_result", is_error=True),
)
THOUGHT = st.builds(Thinking, text=st.text(max_size=3), signature=IDS)
ANTHROPIC = st.one_of(
    _said("user", st.tuples(ANSWERED, _flat(TEXT, IMAGE, TITLED, NOTE)).map(lambda two: (*two[0], *two[1]))),
    _said("system", _flat(TEXT)),
    _said("assistant", _flat(TEXT, THOUGHT, CALL, st.sampled_from([SEARCHED, FAILED, RAN, REMOTE]))),
    _said("user", st.just((Unknown({"type": "container_upload", "file_id": "f"}),))),
)
FILM = st.builds(Media, kind=st.just("video"), media_type=st.just("video/mp4"), url=st.just("gs://b/x"))
LOOKED = _image(st.none() | st.just("MEDIA_RESOLUTION_LOW")).filter(lambda image: image.data is not None)
REPLIED = st.lists(_result(st.builds(Text, OBJECT).map(lambda text: (text,)), name=st.just("f")), max_size=2)
SIGNED = st.tuples(st.builds(Thinking, text=st.just(""), signature=IDS), CALL | ANY_TEXT)
GEMINI = st.one_of(
    _said("user", st.tuples(REPLIED, _flat(TEXT, LOOKED, FILM)).map(lambda two: (*two[0], *two[1]))),
    _said("assistant", _flat(TEXT, st.builds(Thinking, text=WORDS, signature=st.none() | IDS), CALL, SIGNED, LOOKED)),
    _said("system", _flat(TEXT)),
    _said("assistant", st.just((Unknown({"executableCode": {"code": "1"}}),))),
)
SAYABLE = st.one_of(
    st.tuples(CHAT, st.just(Format.OPENAI_CHAT)),
    st.tuples(RESPONSES, st.just(Format.OPENAI_RESPONSES)),
    st.tuples(ANTHROPIC, st.just(Format.ANTHROPIC)),
    st.tuples(GEMINI, st.just(Format.GEMINI)),
    st.tuples(CHAT | RESPONSES | ANTHROPIC | GEMINI, st.just(Format.ULLAGE)),
)


@pytest.mark.requirement("S2:formats")
@given(SAYABLE)
def test_what_a_format_can_say_is_read_back_as_it_was(told: tuple[Message, Format]):
    message, format = told  # noqa: A001
    (native,) = write_message(message, format)
    assert read_message(json.loads(json.dumps(native)), format) == message


@given(SAYABLE, st.sampled_from(list(Format)))
def test_what_was_written_is_written_alike_again(told: tuple[Message, Format], format: Format):  # noqa: A002
    natives = write_message(told[0], format)
    again = [native for written in natives for native in write_message(read_message(written, format), format)]
    assert again == natives


@given(SAYABLE, st.sampled_from(list(Format)))
def test_no_words_are_lost_between_formats(told: tuple[Message, Format], format: Format):  # noqa: A002
    said = [part.text for part in told[0].parts if isinstance(part, Text) and part.text.strip()]
    back = [read_message(native, format) for native in write_message(told[0], format)]
    assert [part.text for one in back for part in one.parts if isinstance(part, Text) and part.text.strip()] == said


@pytest.mark.parametrize("format", list(Format))
def test_a_text_of_either_side_is_read_as_theirs(format: Format):  # noqa: A002
    assert read_message(user_message(format, " "), format) == Message(role="user", parts=(Text(" "),))
    assert read_message(assistant_message(format, "Hi"), format) == Message(role="assistant", parts=(Text("Hi"),))


def test_our_own_texts_are_neutral_messages():
    assert user_message(Format.ULLAGE, "Hi") == Message(role="user", parts=(Text("Hi"),))


@pytest.mark.requirement("S2:formats", "S4:providers")
@pytest.mark.parametrize(
    ("media", "written"),
    [
        (
            Media(kind="image", media_type="image/png", data="aGk=", detail="MEDIA_RESOLUTION_LOW"),
            {
                "inlineData": {"mimeType": "image/png", "data": "aGk="},
                "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"},
            },
        ),
        (
            Media(kind="image", media_type="image/png", data="aGk=", detail="low"),
            {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        ),
        (
            Media(kind="video", media_type="video/mp4", url="gs://b/x"),
            {"fileData": {"fileUri": "gs://b/x", "mimeType": "video/mp4"}},
        ),
        (Media(kind="video", url="gs://b/x"), {"fileData": {"fileUri": "gs://b/x"}}),
    ],
)
def test_gemini_gets_media_with_their_type_and_resolution(media: Media, written: object):
    (native,) = write_message(Message(role="user", parts=(media,)), Format.GEMINI)
    assert native == {"role": "user", "parts": [written]}
