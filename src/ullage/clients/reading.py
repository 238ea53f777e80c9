"""Which conversations are in this file?

Told by what is in it, never by its name. Files are only read.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from ullage.errors import UnreadableFile
from ullage.tool import Json

from .archived import Archived, archived_at
from .claude_code import read as read_claude_code
from .claude_code import recognises as recognises_claude_code
from .cline import read as read_cline
from .cline import recognises as recognises_cline
from .codex import read as read_codex
from .codex import recognises as recognises_codex
from .conversation import Conversation, Program
from .document import Document, parse
from .gemini_cli import read as read_gemini_cli
from .gemini_cli import recognises as recognises_gemini_cli
from .opencode import read as read_opencode
from .opencode import recognises as recognises_opencode
from .opencode_stored import is_database, read_database, read_stored
from .own import read as read_own
from .own import recognises as recognises_own
from .pi import read as read_pi
from .pi import recognises as recognises_pi
from .plain import read as read_plain
from .plain import recognises as recognises_plain
from .plain import rewritten as rewritten_plain

__all__ = ["read_conversations", "read_text", "rewritten_text"]

_READERS: Sequence[tuple[Callable[[Document], bool], Callable[[Document], Conversation]]] = (
    (recognises_pi, read_pi),
    (recognises_codex, read_codex),
    (recognises_claude_code, read_claude_code),
    (recognises_gemini_cli, read_gemini_cli),
    (recognises_opencode, read_opencode),
    (recognises_cline, read_cline),
)


def read_conversations(path: Path) -> list[Conversation]:
    """At least one, the latest at the end; `UnreadableFile` where there is none."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise UnreadableFile(
            f"`{path}` cannot be read: {getattr(error, 'strerror', error)}",
            suggestion="check the path and its permissions",
        ) from error
    if is_database(data):
        return _some(read_database(path), path)
    stored = _stored(path, data)
    return [stored] if stored is not None else _read(data.decode("utf-8", "replace"), str(path), archived_at(path))


def read_text(text: str, name: str) -> list[Conversation]:
    """The same of a text that was read already; of a session of Ullage, without what lies in its archive."""
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
        f"`{name}` holds no session and no messages that are known here",
        suggestion="name a session's file, a list of messages or a request's body, as JSON or JSONL",
        options=get_args(Program),
    )


def rewritten_text(text: str, natives: Sequence[Json]) -> str:
    """A list of messages or a request's body with other messages in it."""
    return rewritten_plain(parse(text), natives)


def _stored(path: Path, data: bytes) -> Conversation | None:
    """A file that only names a session; what was said in it lies beside it."""
    if path.parent.parent.name != "session":
        return None
    whole = parse(data.decode("utf-8", "replace")).whole
    return read_stored(path, whole) if isinstance(whole, dict) and "messages" not in whole else None


def _some(found: list[Conversation], path: Path) -> list[Conversation]:
    if not found:
        raise UnreadableFile(f"`{path}` holds no session yet")
    return found
