"""What did an agent do, as far as its calls tell?

From the names of tools and of their arguments alone: which files it read and which it changed, what it ran and what
came of that, what failed, and what it means to do next. Nothing is understood that is not written there.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ullage.messages import Message, ToolResult, join_texts
from ullage.tool import Json

from .clipping import line_of
from .identifiers import is_record, read_structure
from .pairing import Call, pair
from .words import is_placeholder

__all__ = ["Deed", "deeds"]

_CHANGES = {
    *("append", "apply", "create", "delete", "edit", "insert", "modify", "move", "multiedit", "patch", "put"),
    *("remove", "rename", "replace", "save", "update", "upload", "write"),
}
_ACTS = {*_CHANGES, "add", "book", "cancel", "execute", "post", "publish", "send", "set", "start", "stop", "submit"}
_READS = {"cat", "get", "open", "read", "show", "view"}
_NEW = {"content", "contents", "diff", "new", "old", "patch"}
"""In the names of arguments that a change has, whatever the tool is called."""
_SEARCHES = {"find", "glob", "grep", "list", "ls", "search", "tree"}
_PLANS = {"checklist", "plan", "task", "tasks", "todo", "todos"}
_FILES = {"file", "filename", "filepath", "files", "notebook", "path", "paths"}
_COMMANDS = ("command", "commands", "cmd", "script", "code", "sql")
_WITHIN = ("tool_name", "tool")
"""Where a tool that calls others says which."""
_TOLD = ("content", "step", "text", "title", "task", "description", "name")
"""Where an item of a plan says what is to be done."""
_DONE = {"complete", "completed", "done", "finished"}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(\S[^\n\t]*)", re.MULTILINE)
_ERROR = re.compile(
    r"^(?:[^\w\n]*(?:(?!error|fatal|panic)[\w./-]+:+[ \t]*){0,4}(?:error|fatal|panic)\b[^\n]*"
    r"|[\w.]*?[a-z](?:Error|Exception)\b:[^\n]*|FAILED [^\n]*"
    r"|[^\n]*?(?:\b[1-9]\d* failed\b|command not found|No such file|Permission denied)[^\n]*"
    r"|[^\n]*?exit(?:ed)?(?: with)?(?: code| status):? ?[1-9][^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_ENDS = 400
"""Characters at either end of a result where it says how it went."""
_PATH, _COMMAND, _OUTCOME = 200, 160, 160
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
    """What its last line says, or those that tell of an error; empty where none is left."""
    failed: bool = False
    acts: bool = False
    """Whether its name says that it does more than look."""
    recorded: bool = False
    """Whether its result is structured, so that the ledger has a record of it."""


def deeds(messages: Sequence[Message]) -> list[Deed]:
    """Every call in order."""
    paired = pair(messages)
    ended = [(one.call, one.result) for one in paired.answered if one.call is not None]
    open_ones = [(call, None) for call in paired.unanswered]
    return [_deed(call, result) for call, result in sorted((*ended, *open_ones), key=lambda pair: pair[0].place)]


def _deed(call: Call, result: ToolResult | None) -> Deed:
    asked = call.asked if isinstance(call.asked, dict) else {}
    kind = _kind(call, asked)
    files = () if kind & _SEARCHES else tuple(dict.fromkeys(_files(asked)))
    changes = _is_change(kind, asked)
    outcome, failed = _outcome(result, is_read=bool(files) and not changes)
    return Deed(
        what=_what(call, asked),
        read=() if changes else files,
        changed=(*files, *_patched(call, asked)) if changes and not failed else (),
        plan=tuple(_plan(asked)) if kind & _PLANS else (),
        outcome=outcome,
        failed=failed,
        acts=bool(kind & _ACTS),
        recorded=result is not None and not files and is_record(read_structure(join_texts(result.parts))),
    )


def _kind(call: Call, asked: dict[str, Json]) -> frozenset[str]:
    """The words of a tool's name; of a tool that does several things to a file, those of the thing."""
    command = asked.get("command")
    if isinstance(command, str) and command.isidentifier() and any(_files(asked)):
        return frozenset(_words(command))
    within = [name for key in _WITHIN if isinstance(name := asked.get(key), str)]
    return frozenset(word for name in (call.name, *within) for word in _words(name))


def _is_change(kind: frozenset[str], asked: dict[str, Json]) -> bool:
    if kind & _CHANGES or kind & _READS:
        return bool(kind & _CHANGES)
    return any(value and _NEW.intersection(_words(key)) for key, value in asked.items())


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name[:_PATH])]


def _files(value: Json, *, named: bool = False, depth: int = 3) -> Iterator[str]:
    """The values that stand under a name for files."""
    if isinstance(value, str) and named and value.strip() and len(value) <= _PATH and "\n" not in value:
        yield line_of(value, _PATH)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _files(inner, named=named, depth=depth - 1)
    elif isinstance(value, dict) and depth:
        for key, inner in value.items():
            yield from _files(inner, named=not _FILES.isdisjoint(_words(key)[-1:]), depth=depth - 1)


def _patched(call: Call, asked: dict[str, Json]) -> Iterator[str]:
    """The files that a patch among the arguments names."""
    for text in asked.values() if asked else (call.arguments,):
        if isinstance(text, str) and ("*** " in text or "+++ " in text):
            yield from (line_of(path, _PATH) for path in _PATCHED.findall(text))


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
    if isinstance(said, str) and not any(_files(asked)):
        return f"`{line_of(said, _COMMAND)}`"
    return f"{line_of(call.name, _PATH)}({line_of(call.arguments, _COMMAND)})"


def _outcome(result: ToolResult | None, *, is_read: bool) -> tuple[str, bool]:
    """What a result says of how it went, in a line, and whether that was ill; errors within a file that was read are
    none of the agent's."""
    if result is None:
        return "", False
    text = join_texts(result.parts)
    if is_placeholder(text):
        return "", result.is_error
    ends = text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}"
    wrong = [] if is_read and not result.is_error else _ERROR.findall(ends)
    lines = [line for line in ends.split("\n") if line.strip()]
    told = wrong[-2:] or lines[-1:]
    return line_of(" · ".join(told), _OUTCOME), bool(wrong) or result.is_error
