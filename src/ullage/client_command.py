"""Rules about tools on the command line of the program that started this process.

`claude --settings FILE` and `claude --disallowedTools NAMES` apply to one run. The names there are those of servers
that may be behind Ullage now, where Claude Code cannot apply the rules by itself. `read_client_rules` finds them, so
that a tool that is excluded or asked about in such a run stays so. Qwen Code has `--exclude-tools`.

Command lines of other processes are read on Linux only. The rules can only restrict.

Only light modules of the standard library are imported here, because this runs before the first answer.
"""

import json
import os
import re
import sys

from .start_cache import as_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

__all__ = ["parse_client_rules", "read_client_rules"]

_PROCESSES = "/proc"
_MOST_ANCESTORS = 6
"""Processes between the program and this one, as of `uvx` and of shells."""
_LARGEST = 4 * 1024 * 1024
_CLAUDE = re.compile(r"(?:^|/)claude(?:\.exe)?$|/claude-code[^/]*/(?:.*/)?[^/]+\.[cm]?js$")
_QWEN = re.compile(r"(?:^|/)qwen$|/qwen-code/(?:.*/)?[^/]+\.[cm]?js$")
_DENY_FLAGS = ("--disallowedTools", "--disallowed-tools", "--exclude-tools")
_SETTINGS_FLAG = "--settings"


def read_client_rules() -> "dict[str, list[str]] | None":
    """Return the rules on the command line of the nearest agent program above this process, as lists of its names of
    tools under `deny` and `ask`; None where there are none."""
    if not sys.platform.startswith("linux"):
        return None
    for words, folder in _ancestors():
        first = [word for word in words if not word.startswith("-")][:2]
        if any(pattern.search(word) for word in first for pattern in (_CLAUDE, _QWEN)):
            return parse_client_rules(words, folder)
    return None


def _ancestors() -> "Iterator[tuple[list[str], str]]":
    """Yield the command line and the working folder of each process above this one, nearest first."""
    process = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        if process <= 1:
            return
        place = f"{_PROCESSES}/{process}"
        try:
            with open(f"{place}/cmdline", "rb") as file:
                words = file.read().decode("utf-8", "surrogateescape").split("\0")
            folder = os.readlink(f"{place}/cwd")
            with open(f"{place}/stat", "rb") as file:
                # The name in parentheses may contain anything.
                process = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return
        yield words[:-1], folder


def parse_client_rules(words: "Sequence[str]", folder: str) -> "dict[str, list[str]] | None":
    """Return the rules on a command line; None where there are none.

    Args:
        words: The command line.
        folder: The working folder of its process, which relative paths start from.
    """
    deny, ask = list[str](), list[str]()
    at = 0
    while at < len(words):
        name, is_joined, value = words[at].partition("=")
        at += 1
        if name != _SETTINGS_FLAG and name not in _DENY_FLAGS:
            continue
        values = [value] if is_joined else []
        most = 1 if name == _SETTINGS_FLAG else len(words)
        while not is_joined and at < len(words) and len(values) < most and not words[at].startswith("-"):
            values.append(words[at])
            at += 1
        if name == _SETTINGS_FLAG:
            permissions = _permissions("".join(values), folder)
            deny += _names(permissions.get("deny"))
            ask += _names(permissions.get("ask"))
        else:
            # Names are separated by commas or spaces, and may carry arguments in parentheses.
            deny += re.split(r"[,\s]+", re.sub(r"\([^)]*\)", "", " ".join(values)))
    found = {"deny": sorted({one for one in deny if one}), "ask": sorted({one for one in ask if one})}
    return found if found["deny"] or found["ask"] else None


def _permissions(value: str, folder: str) -> "dict[str, Any]":
    """Return the permissions in a settings file or JSON text; none where it cannot be read, as the program says so."""
    try:
        if not value.lstrip().startswith("{"):
            path = os.path.join(folder, os.path.expanduser(value))
            if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
                return {}
            with open(path, encoding="utf-8-sig") as file:
                value = file.read()
        document = json.loads(value)
    except (OSError, ValueError, RecursionError):
        return {}
    return as_table(as_table(document).get("permissions"))


def _names(value: "Any") -> "list[str]":  # noqa: ANN401 - any JSON value
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
