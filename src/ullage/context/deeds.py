"""What did an agent do, as far as its calls tell?

From the names of tools and of their arguments alone: which files it read and which it changed, what it ran and what
came of that, what failed, and what it means to do next. Nothing is understood that is not written there.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json import loads
from typing import cast

from ullage.messages import Message, Text, ToolResult
from ullage.tool import Json

from .clipping import line_of
from .pairing import Call, pair
from .words import is_placeholder

__all__ = ["Deed", "deeds"]

_CHANGES = {
    *("append", "apply", "create", "delete", "edit", "insert", "modify", "move", "multiedit", "patch", "put"),
    *("remove", "rename", "replace", "save", "update", "upload", "write"),
}
_SEARCHES = {"find", "glob", "grep", "list", "ls", "search", "tree"}
_PLANS = {"checklist", "plan", "task", "tasks", "todo", "todos"}
_FILES = {"file", "filename", "filepath", "files", "notebook", "path", "paths"}
_COMMANDS = ("command", "cmd", "script", "code", "sql", "query")
_TOLD = ("content", "step", "text", "title", "task", "description", "name")
"""Where an item of a plan says what is to be done."""
_DONE = {"complete", "completed", "done", "finished"}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(\S[^\n\t]*)", re.MULTILINE)
_ERROR = re.compile(
    r"^(?:\W*+(?:(?!error|fatal|panic)[\w./-]++:++\s*+){0,4}+(?:error|fatal|panic)\b[^\n]*"
    r"|[\w.]*?[a-z](?:Error|Exception)\b:[^\n]*|FAILED [^\n]*"
    r"|[^\n]*?(?:\b[1-9]\d* failed\b|command not found|No such file|Permission denied)[^\n]*"
    r"|[^\n]*?exit(?:ed)?(?: with)?(?: code| status):? ?[1-9][^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_ENDS = 400
"""Characters at either end of a result where it says how it went."""
_PATH, _COMMAND, _OUTCOME = 200, 160, 120
"""Characters that are shown of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One call and what came of it."""

    what: str
    """The command, or the tool with its arguments, in a line."""
    read: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Files."""
    plan: tuple[str, ...] = ()
    """What is to be done, with a mark at what is."""
    outcome: str = ""
    """The line that says how it went; empty where none is left."""
    failed: bool = False


def deeds(messages: Sequence[Message]) -> list[Deed]:
    """Every call in order."""
    paired = pair(messages)
    ended = [(one.call, one.result) for one in paired.answered if one.call is not None]
    open_ones = [(call, None) for call in paired.unanswered]
    return [_deed(call, result) for call, result in sorted((*ended, *open_ones), key=lambda pair: pair[0].place)]


def _deed(call: Call, result: ToolResult | None) -> Deed:
    asked = _arguments(call.arguments)
    kind = _kind(call, asked)
    files = () if kind & _SEARCHES else tuple(dict.fromkeys(_files(asked)))
    patched = tuple(line_of(path, _PATH) for path in _PATCHED.findall(_patch(asked, call))) if kind & _CHANGES else ()
    changes = bool(kind & _CHANGES)
    outcome, failed = _outcome(result, is_read=bool(files) and not changes)
    return Deed(
        what=_what(call, asked),
        read=() if changes else files,
        changed=(*files, *patched) if changes else (),
        plan=tuple(_plan(asked)) if kind & _PLANS else (),
        outcome=outcome,
        failed=failed,
    )


def _kind(call: Call, asked: dict[str, Json]) -> frozenset[str]:
    """The words of a tool's name; of a tool that does several things to a file, those of the thing."""
    command = asked.get("command")
    several = isinstance(command, str) and re.fullmatch(r"\w+", command) and any(_files(asked))
    return _words(command if isinstance(command, str) and several else call.name)


def _words(name: str) -> frozenset[str]:
    return frozenset(map(str.lower, _WORDS.findall(name[:_PATH])))


def _arguments(text: str) -> dict[str, Json]:
    try:
        asked = cast("Json", loads(text))
    except (ValueError, RecursionError):
        return {}
    return asked if isinstance(asked, dict) else {}


def _files(value: Json, *, named: bool = False, depth: int = 3) -> Iterator[str]:
    """The values that stand under a name for files."""
    if isinstance(value, str) and named and value.strip() and len(value) <= _PATH and "\n" not in value:
        yield line_of(value, _PATH)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _files(inner, named=named, depth=depth - 1)
    elif isinstance(value, dict) and depth:
        for key, inner in value.items():
            yield from _files(inner, named=bool(_words(key) & _FILES), depth=depth - 1)


def _patch(asked: dict[str, Json], call: Call) -> str:
    texts = [value for value in asked.values() if isinstance(value, str) and ("*** " in value or "+++ " in value)]
    return "\n".join(texts) if asked else call.arguments


def _plan(asked: dict[str, Json]) -> Iterator[str]:
    for item in next((value for value in asked.values() if isinstance(value, list)), list[Json]()):
        text = next((item[key] for key in _TOLD if item.get(key)), None) if isinstance(item, dict) else item
        status = item.get("status") if isinstance(item, dict) else None
        if isinstance(text, str) and text.strip():
            yield f"[{'x' if status in _DONE else ' '}] {line_of(text, _COMMAND)}"


def _what(call: Call, asked: dict[str, Json]) -> str:
    said = next((asked[key] for key in _COMMANDS if asked.get(key)), None)
    if isinstance(said, list):
        said = " ".join(word for word in said if isinstance(word, str))
    if isinstance(said, str) and len(_WORDS.findall(said[:_PATH])) > 1 and not any(_files(asked)):
        return f"`{line_of(said, _COMMAND)}`"
    return f"{line_of(call.name, _PATH)}({line_of(call.arguments, _COMMAND)})"


def _outcome(result: ToolResult | None, *, is_read: bool) -> tuple[str, bool]:
    """The line of a result that says how it went, and whether that was ill; in a file that was read, errors are none of
    the agent's."""
    if result is None:
        return "", False
    text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
    if is_placeholder(text):
        return "", result.is_error
    ends = text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}"
    wrong = [] if is_read and not result.is_error else _ERROR.findall(ends)
    lines = [line for line in ends.split("\n") if line.strip()]
    told = wrong[-1:] or lines[-1:]
    return (line_of(told[0], _OUTCOME) if told else ""), bool(wrong) or result.is_error
