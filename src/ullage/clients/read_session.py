"""Reads a session file of any program, and plain lists of messages.

The program is detected from the content of the file, never from its name. Files are only read.

A plain list is JSON, or JSONL with a message or a request body per line, in any of the formats that `ullage.messages`
supports. A body contains everything; a list alone contains neither the system prompt nor the tools.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from ullage.errors import UnreadableFile
from ullage.messages import Format, detect_format, detect_messages, read_message, text_at
from ullage.tool import Json, JsonObject

from .claude_code import read as read_claude_code
from .claude_code import recognises as recognises_claude_code
from .cline import read as read_cline
from .cline import recognises as recognises_cline
from .codex import read as read_codex
from .codex import recognises as recognises_codex
from .conversation import Conversation, Document, Draft, Program, parse
from .gemini_cli import read as read_gemini_cli
from .gemini_cli import recognises as recognises_gemini_cli
from .opencode import is_database, read_database, read_stored
from .opencode import read as read_opencode
from .opencode import recognises as recognises_opencode
from .pi import read as read_pi
from .pi import recognises as recognises_pi
from .ullage_session import Archived, archived_at, read_own, recognises_own

__all__ = [
    "Holder",
    "holder_of",
    "read_conversations",
    "read_plain",
    "read_text",
    "recognises_plain",
    "rewrite_plain",
    "rewrite_text",
]

Holder = Literal["messages", "input", "contents"]
"""The key of a body that contains its messages."""
_HOLDERS: tuple[Holder, ...] = ("messages", "input", "contents")
_SYSTEM = {
    Format.ANTHROPIC: ("system",),
    Format.OPENAI_RESPONSES: ("instructions",),
    Format.GEMINI: ("systemInstruction", "system_instruction"),
}
_MARKS = frozenset({"content", "parts", "tool_calls", "call_id", "encrypted_content"})
"""Every message or item has one of these keys."""


def recognises_plain(document: Document) -> bool:
    if isinstance(document.whole, list):
        return bool(_messages(document.whole))
    return any(holder_of(one) or _is_message(one) for one in document.objects)


def read_plain(document: Document) -> list[Conversation]:
    """Read one conversation for each body; a list of messages is one conversation."""
    if isinstance(document.whole, list):
        return [_of_list(document.whole, broken=0)]
    bodies = [one for one in document.objects if holder_of(one)]
    conversations: list[Conversation] = []
    for body in bodies:
        format, holder = detect_format(body), holder_of(body)  # noqa: A001
        values = body.get(holder or "messages")
        listed = values if isinstance(values, list) else []
        messages = _messages(listed)
        draft = _build_draft(messages, format)
        draft.unread["values that are no message"] = len(listed) - len(messages)
        tools = body.get("tools")
        system = next((body[key] for key in _SYSTEM.get(format, ()) if body.get(key)), "")
        conversations.append(
            draft.complete(
                Conversation(
                    program="messages",
                    format=format,
                    model=text_at(body, "model"),
                    system=system,
                    tools=tuple(tools) if isinstance(tools, list) else (),
                )
            )
        )
    return conversations or [_of_list(list(document.values), broken=document.broken)]


def holder_of(body: JsonObject) -> Holder | None:
    """Return the key that contains the messages of a body; None if the object is not a body."""
    return next((key for key in _HOLDERS if isinstance(body.get(key), list) and "role" not in body), None)


def rewrite_plain(document: Document, natives: Sequence[Json]) -> str:
    """Return the same list or body with other messages, in the same form: one value, or one per line."""
    whole = document.whole
    if isinstance(whole, dict) and (holder := holder_of(whole)):
        return json.dumps({**whole, holder: [*natives]}, ensure_ascii=False, indent=2) + "\n"
    if isinstance(whole, list):
        return json.dumps([*natives], ensure_ascii=False, indent=2) + "\n"
    return "".join(json.dumps(native, ensure_ascii=False) + "\n" for native in natives)


def _of_list(values: Sequence[Json], *, broken: int) -> Conversation:
    messages = _messages(values)
    format = detect_messages(messages)  # noqa: A001
    draft = _build_draft(messages, format)
    draft.unread["lines that are not JSON"] = broken
    draft.unread["values that are no message"] = len(values) - len(messages)
    return draft.complete(Conversation(program="messages", format=format))


def _messages(values: Sequence[Json]) -> list[dict[str, Json]]:
    return [value for value in values if isinstance(value, dict) and _is_message(value)]


def _is_message(value: JsonObject) -> bool:
    return ("role" in value or "type" in value) and bool(value.keys() & _MARKS)


def _build_draft(messages: Sequence[dict[str, Json]], format: Format) -> Draft:  # noqa: A002
    """Create a draft; an answer begins at the start of the assistant's turn."""
    draft = Draft()
    was_answer = False
    for message in messages:
        place = draft.add(message)
        is_answer = read_message(message, format).role == "assistant"
        if is_answer and not was_answer:
            draft.add_answer(place, None, None, None)
        was_answer = is_answer
    return draft


_READERS: Sequence[tuple[Callable[[Document], bool], Callable[[Document], Conversation]]] = (
    (recognises_pi, read_pi),
    (recognises_codex, read_codex),
    (recognises_claude_code, read_claude_code),
    (recognises_gemini_cli, read_gemini_cli),
    (recognises_opencode, read_opencode),
    (recognises_cline, read_cline),
)


def read_conversations(path: Path) -> list[Conversation]:
    """Read the conversations of a session file.

    Returns:
        At least one conversation, the latest at the end.

    Raises:
        UnreadableFile: The file contains no conversation.
    """
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise UnreadableFile(
            f"`{path}` cannot be read: {getattr(error, 'strerror', error)}",
            suggestion="check the path and its permissions",
        ) from error
    if is_database(data):
        found = read_database(path)
        if not found:
            raise UnreadableFile(f"`{path}` contains no session yet")
        return found
    # Such a file only names the session; its messages are in the files beside it.
    stored = None
    if path.parent.parent.name == "session":
        whole = parse(data.decode("utf-8", "replace")).whole
        stored = read_stored(path, whole) if isinstance(whole, dict) and "messages" not in whole else None
    return [stored] if stored is not None else _read(data.decode("utf-8", "replace"), str(path), archived_at(path))


def read_text(text: str, name: str) -> list[Conversation]:
    """Read the conversations of a text; a session of Ullage is read without its archive."""
    return _read(text, name, lambda _: None)


def _read(text: str, name: str, archived: Archived) -> list[Conversation]:
    document = parse(text)
    if recognises_own(document):
        return [read_own(document, archived)]
    for recognises, read in _READERS:
        if recognises(document):
            return [read(document)]
    if recognises_plain(document):
        return read_plain(document)
    raise UnreadableFile(
        f"`{name}` contains no session and no messages in a known format",
        suggestion="name a session's file, a list of messages or a request's body, as JSON or JSONL",
        options=get_args(Program),
    )


def rewrite_text(text: str, natives: Sequence[Json]) -> str:
    """Return a list of messages or a request's body with other messages in it."""
    return rewrite_plain(parse(text), natives)
