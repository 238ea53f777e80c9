"""What is said in the place of what was let go?

Which call it came from, how much it was, and how to get it back, in as few words as a model needs. Nothing is counted
here.
"""

import re
from collections.abc import Iterator, Sequence
from json import dumps, loads
from typing import cast

from ullage.messages import Format, Media, Part, ToolResult, join_texts
from ullage.tool import Json

from .pairing import Call

__all__ = [
    "gap",
    "is_marked",
    "is_placeholder",
    "lost_in",
    "placeholder",
    "query_of",
    "said_in",
    "text_of",
    "with_note",
]

_MARK = "let go to make room"
_LONGEST = 1_000
"""Characters that a placeholder never has."""
_VALUE, _ARGUMENTS, _QUERY = 60, 160, 80
"""Characters that are shown of one argument, of all, and of what to search for."""
_GAP = re.compile(r"\[… ([\d,]+) tokens ")
_WHOLE_GAP = re.compile(rf"\[… [^\n]*?{_MARK}[^\n]* …\]")


def placeholder(call: Call, tokens: int, parts: Sequence[Part], *, recalls: bool) -> str:
    """For the whole result of a call."""
    how = f"{_recall(query_of(call))} brings them back" if recalls and tokens else "call it again if needed"
    return f"[{_shown(call)} gave {_size(tokens, parts)}, {_MARK}; {how}]"


def is_placeholder(text: str) -> bool:
    """Whether nothing but the line is left, and perhaps a note behind it."""
    return text.startswith("[") and _MARK in text[:_LONGEST].partition("\n")[0]


def is_marked(text: str) -> bool:
    """Whether something of it was let go."""
    return _MARK in text


def gap(tokens: int, parts: Sequence[Part], query: str | None) -> str:
    """For the middle of a long text, and what was shown beside it; with what to search for where that can be done."""
    how = "" if query is None else f"; {_recall(query)} brings them back"
    return f"[… {_size(tokens, parts)} {_MARK}{how} …]"


def with_note(text: str, note: str) -> str:
    """The text with a note right behind its last gap, so that its end stays its end; behind all of a placeholder."""
    gaps = list(_WHOLE_GAP.finditer(text))
    if not gaps:
        return f"{text}\n{note}"
    end = gaps[-1].end()
    return f"{text[:end]}\n{note}{text[end:]}"


def lost_in(text: str) -> int:
    """The tokens that gaps in a text stand for."""
    return sum(int(found[1].replace(",", "")) for found in _GAP.finditer(text))


def text_of(result: ToolResult, format: Format) -> str:  # noqa: A002
    """What a result says, in one text. Gemini's are objects; of one that holds a text and nothing else, that text."""
    text = join_texts(result.parts)
    held = _read(text) if format is Format.GEMINI else None
    only = next(iter(held.values())) if isinstance(held, dict) and len(held) == 1 else None
    return only if isinstance(only, str) else text


def said_in(text: str) -> str:
    """What to search for to find a text again: its first words."""
    words = " ".join(text[: 4 * _QUERY].split())
    return words if len(words) <= _QUERY else words[:_QUERY].rsplit(" ", 1)[0]


def query_of(call: Call) -> str:
    """What to search for to find the result of a call again: what it was given, of a path its end."""
    words = " ".join(map(_brief, _leaves(_read(call.arguments))))
    return said_in(words) or call.name


def _brief(text: str) -> str:
    is_path = len(text) > _VALUE and " " not in text
    return "/".join(text.split("/")[-3:]) if is_path else text


def _recall(query: str) -> str:
    return f"recall({dumps(query, ensure_ascii=False)})"


def _size(tokens: int, parts: Sequence[Part]) -> str:
    kinds = [part.kind for part in parts if isinstance(part, Media)]
    media = [f"{kinds.count(kind)} {kind}{'s' * (kinds.count(kind) > 1)}" for kind in dict.fromkeys(kinds)]
    return " and ".join(([f"{tokens:,} tokens"] if tokens or not media else []) + media)


def _shown(call: Call) -> str:
    asked = _read(call.arguments)
    if isinstance(asked, dict):
        pairs = (f"{key}={_narrowed(_written(value))}" for key, value in asked.items())
        return f"{call.name}({_clipped(', '.join(pairs), _ARGUMENTS)})"
    return f"{call.name}({_clipped(' '.join(call.arguments.split()), _ARGUMENTS)})"


def _written(value: Json) -> str:
    try:
        return dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"


def _narrowed(value: str) -> str:
    """Without its middle where it is long: the end of a path tells more than its beginning."""
    return value if len(value) <= _VALUE else f"{value[: _VALUE // 3]}…{value[-_VALUE // 2 :]}"


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _read(arguments: str) -> Json:
    """A call's arguments; a text as it is where it is no JSON."""
    try:
        return cast("Json", loads(arguments))
    except (ValueError, RecursionError):
        return arguments


def _leaves(value: Json) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            waiting.extend(reversed(list(one.values()) if isinstance(one, dict) else one))
        elif isinstance(one, str | int | float) and not isinstance(one, bool):
            yield " ".join(str(one).split())
