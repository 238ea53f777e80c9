"""How does an entry of some file become a server that can be started?

Variables are replaced, the transport is settled, and what cannot work is said, for this server alone. Which keys an
entry has and what they are called is its file's matter.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import urlsplit

from ullage.options import Server, Transport

from .issue import Issue
from .page import Page, dotted
from .variables import Expanded

__all__ = ["Entry", "is_ullage", "launch_fault", "server_of", "unresolved"]

_EXPANDED = ("command", "arguments", "environment", "directory", "url", "headers")
_LAUNCHERS = re.compile(
    r"(?:uvx?|pipx|python[\d.]*|py|poetry|pdm|hatch|rye|pixi|pipenv|conda|mamba|micromamba|mise|asdf|direnv|devbox|nix"
    r"|env|sudo|doas|nice|ionice|chrt|taskset|timeout|gtimeout|stdbuf|unbuffer|nohup|setsid|time|caffeinate|firejail|dotenv"
    r"|cmd|powershell|pwsh|wsl|sh|bash|dash|zsh|ksh|fish|busybox)(?:\.exe)?",
    re.IGNORECASE,
)
"""Programs whose business is to start the one named in their arguments."""
_ULLAGE = re.compile(r"ullage(?:\.exe)?(?:\[[\w,-]*\])?(?:[@=<>~!].*)?", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A server as a file has it, under the names of `Server`'s fields. Variables stand in it unreplaced."""

    name: str
    path: tuple[str, ...]
    """Where in the file it stands."""
    values: Mapping[str, Any]


def server_of(page: Page, entry: Entry) -> tuple[Server | None, tuple[Issue, ...]]:
    """The server, or None and the reason why it is left out."""
    if is_ullage(entry.values):
        said = f"server `{entry.name}` is Ullage itself and is skipped"
        return None, (page.issue("note", said, entry.path, server=entry.name),)
    found = list[Expanded]()
    values = {**entry.values, **_expanded(page, entry.values, found)}
    faults = () if values.get("disabled") else (*_unready(page, entry, found), *_unusable(page, entry, values))
    if faults:
        return None, faults
    values["transport"] = values.get("transport") or _transport(values.get("url"))
    values["launch"] = _launch(page, entry.values)
    return Server(name=entry.name, came_from=f"{page.file} [{dotted(entry.path)}]", **values), ()


def _launch(page: Page, written: Mapping[str, Any]) -> str:
    """Hash of what an entry starts or connects to, as it is written: variables stand in it unexpanded."""
    folder = written.get("directory")
    parts = [
        written.get("transport"),
        written.get("command"),
        list(written.get("arguments", ())),
        None if folder is None else page.absolute(folder),
        written.get("url"),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _expanded(page: Page, values: Mapping[str, Any], found: list[Expanded]) -> dict[str, Any]:
    def replaced(text: str) -> str:
        result = page.expand(text)
        found.append(result)
        return result.text

    texts = {key: _mapped(values[key], replaced) for key in _EXPANDED if key in values}
    if "directory" in texts:
        texts["directory"] = page.absolute(cast("str", texts["directory"]))
    if str(texts.get("command", "")).startswith("~"):
        texts["command"] = page.absolute(cast("str", texts["command"]))
    return texts


def _mapped(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple):
        return tuple(change(item) for item in cast("tuple[str, ...]", value))
    return {key: change(text) for key, text in cast("Mapping[str, str]", value).items()}


def _unready(page: Page, entry: Entry, found: list[Expanded]) -> tuple[Issue, ...]:
    issues = unresolved(page, f"server `{entry.name}`", entry.path, found)
    return tuple(replace(issue, server=entry.name) for issue in issues)


def unresolved(page: Page, what: str, path: tuple[str, ...], found: Sequence[Expanded]) -> tuple[Issue, ...]:
    """Why this is left out: variables that nobody has set, or that only another program knows."""
    unset = dict.fromkeys(name for one in found for name in one.unset)
    foreign = dict.fromkeys(name for one in found for name in one.foreign)
    said = list[tuple[str, str]]()
    if unset:
        names = ", ".join(f"`{name}`" for name in unset)
        hint = f"export it, or write a default: ${{{next(iter(unset))}:-default}}"
        said.append((f"{what} is left out: {names} not set in the environment", hint))
    if foreign:
        names = ", ".join(f"`${{{name}}}`" for name in foreign)
        hint = "write ${VARIABLE} instead, and set that variable"
        said.append((f"{what} is left out: only the file's own program knows {names}", hint))
    return tuple(page.issue("problem", message, path, suggestion=hint) for message, hint in said)


def _unusable(page: Page, entry: Entry, values: Mapping[str, Any]) -> tuple[Issue, ...]:
    """What a library would refuse later, in words that might repeat a secret."""
    if not page.expands:  # whether an address is one shows when its variables are replaced
        return ()
    url, headers = values.get("url"), cast("Mapping[str, str]", values.get("headers", {}))
    said = list[tuple[str, str]]()
    if url is not None and not _is_address(url):
        said.append(("url", "its `url` is no http:// or https:// address"))
    said += [
        ("headers", f"its header `{name}` has a character that no header may have")
        for name, value in headers.items()
        if _CONTROL.search(name + value) or not (name + value).isascii()
    ]
    return tuple(
        page.issue("problem", f"server `{entry.name}` is left out: {why}", (*entry.path, key), server=entry.name)
        for key, why in said
    )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _transport(url: str | None) -> Transport:
    if url is None:
        return "stdio"
    return "sse" if urlsplit(url).path.rstrip("/").endswith("/sse") else "http"


def launch_fault(values: Mapping[str, Any]) -> str | None:
    """Why nothing could be started or reached by this entry, whatever its variables are."""
    transport, has_command, has_url = values.get("transport"), "command" in values, "url" in values
    if has_command and has_url:
        return "has both `command` and `url`"
    if not has_command and not has_url:
        return "has neither `command` nor `url`"
    if has_command and transport in ("http", "sse"):
        return f"has a `command`, which does not go with transport `{transport}`"
    if has_url and transport == "stdio":
        return "has a `url`, which does not go with transport `stdio`"
    return None


def is_ullage(values: Mapping[str, Any]) -> bool:
    """Whether it would start this very program as a gateway, which would then call itself without end."""
    command, arguments = str(values.get("command", "")), cast("tuple[str, ...]", values.get("arguments", ()))
    words = [word for argument in arguments for word in argument.split()]
    if _ULLAGE.fullmatch(_last(command)):
        return "serve" in words
    named = [at for at, word in enumerate(words) if _ULLAGE.fullmatch(_last(word))]
    return bool(_LAUNCHERS.fullmatch(_last(command)) and named and "serve" in words[named[0] :])


def _last(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]
