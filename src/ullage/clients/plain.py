"""What is in a list of messages, or in the body of a request?

JSON, or JSONL with a message or a body each line, in any of the formats that `ullage.messages` knows. Of a body all is
known; of a list alone, neither the system prompt nor the tools.
"""

import json
from collections.abc import Sequence
from typing import Literal

from ullage.messages import Format, detect_format, detect_messages, read_message, text_at
from ullage.tool import Json, JsonObject

from .conversation import Conversation
from .document import Document
from .draft import Draft

__all__ = ["Holder", "holder_of", "read", "recognises", "rewritten"]

Holder = Literal["messages", "input", "contents"]
"""The key under which a body keeps its messages."""
_HOLDERS: tuple[Holder, ...] = ("messages", "input", "contents")
_SYSTEM = {
    Format.ANTHROPIC: ("system",),
    Format.OPENAI_RESPONSES: ("instructions",),
    Format.GEMINI: ("systemInstruction", "system_instruction"),
}
_MARKS = frozenset({"content", "parts", "tool_calls", "call_id", "encrypted_content"})
"""Keys of which a message or an item has one."""


def recognises(document: Document) -> bool:
    if isinstance(document.whole, list):
        return bool(_messages(document.whole))
    return any(holder_of(one) or _is_message(one) for one in document.objects)


def read(document: Document) -> list[Conversation]:
    """One for each body; a list of messages is one."""
    if isinstance(document.whole, list):
        return [_of_list(document.whole, broken=0)]
    bodies = [one for one in document.objects if holder_of(one)]
    return [_of_body(body) for body in bodies] or [_of_list(list(document.values), broken=document.broken)]


def holder_of(body: JsonObject) -> Holder | None:
    """Where the messages of a body are; None where it is none."""
    return next((key for key in _HOLDERS if isinstance(body.get(key), list) and "role" not in body), None)


def rewritten(document: Document, natives: Sequence[Json]) -> str:
    """The same list or body with other messages, written as it was: a value, or a line each."""
    whole = document.whole
    if isinstance(whole, dict) and (holder := holder_of(whole)):
        return json.dumps({**whole, holder: [*natives]}, ensure_ascii=False, indent=2) + "\n"
    if isinstance(whole, list):
        return json.dumps([*natives], ensure_ascii=False, indent=2) + "\n"
    return "".join(json.dumps(native, ensure_ascii=False) + "\n" for native in natives)


def _of_list(values: Sequence[Json], *, broken: int) -> Conversation:
    messages = _messages(values)
    format = detect_messages(messages)  # noqa: A001
    draft = _drafted(messages, format)
    draft.unread["lines that are no JSON"] = broken
    draft.unread["values that are no message"] = len(values) - len(messages)
    return draft.finished(Conversation(program="messages", format=format))


def _of_body(body: JsonObject) -> Conversation:
    format, holder = detect_format(body), holder_of(body)  # noqa: A001
    values = body.get(holder or "messages")
    listed = values if isinstance(values, list) else []
    messages = _messages(listed)
    draft = _drafted(messages, format)
    draft.unread["values that are no message"] = len(listed) - len(messages)
    tools = body.get("tools")
    system = next((body[key] for key in _SYSTEM.get(format, ()) if body.get(key)), "")
    return draft.finished(
        Conversation(
            program="messages",
            format=format,
            model=text_at(body, "model"),
            system=system,
            tools=tuple(tools) if isinstance(tools, list) else (),
        )
    )


def _messages(values: Sequence[Json]) -> list[dict[str, Json]]:
    return [value for value in values if isinstance(value, dict) and _is_message(value)]


def _is_message(value: JsonObject) -> bool:
    return ("role" in value or "type" in value) and bool(value.keys() & _MARKS)


def _drafted(messages: Sequence[dict[str, Json]], format: Format) -> Draft:  # noqa: A002
    """An answer begins where the assistant's turn does."""
    draft = Draft()
    was_answer = False
    for message in messages:
        place = draft.add(message)
        is_answer = read_message(message, format).role == "assistant"
        if is_answer and not was_answer:
            draft.answered(place, None, None, None)
        was_answer = is_answer
    return draft
