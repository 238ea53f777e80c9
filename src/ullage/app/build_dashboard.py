"""Builds the dashboard of a running gateway, and lets `ullage dashboard` find it.

A server that serves the dashboard leaves a file with its address and a key in the user's state folder, readable by the
user alone, for as long as it runs. Whoever can read the file may ask the server for sign-in codes.
"""

import json
import os
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread

from ullage import __version__
from ullage.clients import read_conversations
from ullage.clients.call_logs import find_logs
from ullage.config import Places, approve_command, review
from ullage.errors import InvalidArguments, UllageError, Unavailable
from ullage.gateway import Entry, View, difference_lines, tool_of
from ullage.gateway.poison import find_flags, flag_line
from ullage.models import Price, price_of
from ullage.processes import user_name
from ullage.tool import Caller, Json, Tool
from ullage.web import (
    CODES_PATH,
    Dashboard,
    LoggedCompaction,
    LoggedSession,
    SignIns,
    UsageFigures,
)
from ullage.wire import Address, Tokens
from ullage.wire.serve.http_auth import bracketed

from .build_gateway import Gateway, tokens_of
from .count_text import meter

__all__ = ["RunningServer", "announce_server", "build_dashboard", "running_servers"]

_SHOWN_TOOLS = 500
_SHOWN_HITS = 25
_SHOWN_TERMS = 8
_DESCRIPTION = 300
"""Characters of a tool's description in a list."""
_TIMEOUT = 5.0


def build_dashboard(
    gateway: Gateway, *, tokens: Tokens | None, clock: Callable[[], float] = monotonic, key: str | None = None
) -> Dashboard:
    """Return the dashboard of a gateway."""
    models, known = meter().models, dict[str, Price | None]()

    def price(model: str) -> Price | None:
        if model not in known:
            match = models.get(model)
            known[model] = None if match is None else price_of(match, when=datetime.now(UTC))
        return known[model]

    def window_of(model: str) -> int | None:
        match = models.get(model)
        return None if match is None else match.window

    figures = None
    if gateway.database is not None:
        logs = _LogFiles(gateway.environment, user_name())
        figures = UsageFigures(gateway.database, prices=price, window_of=window_of, logs=logs)
    return Dashboard(
        facts=_Facts(gateway),
        figures=figures,
        sign_ins=SignIns(clock),
        user=user_name(),
        key=key or secrets.token_urlsafe(32),
        tokens=tokens,
        version=__version__,
    )


@dataclass(slots=True)
class _LogFiles:
    """Session files of agent programs, which belong to the user who runs the server."""

    environment: Mapping[str, str] = field(repr=False)
    user: str
    _kept: dict[str, tuple[tuple[int, float], LoggedSession | None]] = field(
        default_factory=dict[str, tuple[tuple[int, float], LoggedSession | None]]
    )

    def find(self, session: str, principal: str) -> LoggedSession | None:
        if principal != self.user or not session:
            return None
        for file in find_logs(self.environment):
            if session not in Path(file.path).name:
                continue
            stamp = file.size, file.changed
            known = self._kept.get(file.path)
            if known is None or known[0] != stamp:
                known = self._kept[file.path] = stamp, _read_session(file.path, session)
            if known[1] is not None:
                return known[1]
        return None


def _read_session(path: str, session: str) -> LoggedSession | None:
    try:
        found = [one for one in read_conversations(Path(path)) if one.id == session]
    except (UllageError, OSError):
        return None
    if not found:
        return None
    talk = found[-1]
    places = [(call.place, call.at) for call in talk.calls if call.at is not None]
    compactions = list[LoggedCompaction]()
    for one in talk.compactions:
        at = one.at or next((at for place, at in places if place >= one.place), None)
        if at is not None:
            compactions.append(LoggedCompaction(at=at, before=one.before, after=one.after))
    inputs = (call.usage.input for call in talk.calls if call.usage is not None)
    return LoggedSession(
        title=talk.title,
        window=talk.window,
        inputs=frozenset(tokens for tokens in inputs if tokens is not None),
        compactions=tuple(compactions),
    )


@dataclass(slots=True)
class _Facts:
    """What the dashboard shows of a gateway."""

    gateway: Gateway
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def servers(self) -> list[dict[str, Json]]:
        view, gateway = await self.gateway.view(), self.gateway
        tokens = await anyio.to_thread.run_sync(_server_tokens, view)
        states = {one.server: one.state for one in gateway.health()}
        missing = {one.server: one for one in view.missing}
        found = list[dict[str, Json]]()
        for name in dict.fromkeys((*view.servers, *missing)):
            own = [entry for entry in view.entries if entry.server == name]
            absent = missing.get(name)
            found.append(
                {
                    "name": name,
                    "tools": None if absent is not None and not own else len(own),
                    "names": list[Json](entry.original for entry in own),
                    "tokens": None if absent is not None and not own else tokens.get(name, 0),
                    "state": states.get(name) if absent is None else "missing",
                    "isOwn": any(entry.member.own for entry in own),
                }
            )
        return found

    async def tools(self) -> dict[str, Json]:
        view = await self.gateway.view()
        shown = await anyio.to_thread.run_sync(lambda: [_tool_json(entry) for entry in view.entries[:_SHOWN_TOOLS]])
        return {"tools": list[Json](shown), "all": len(view.entries), "surface": self.gateway.find(None).surface}

    async def search(self, query: str, principal: str) -> dict[str, Json]:
        find, view = self.gateway.find(None), await self.gateway.view()
        caller = Caller(principal=principal, session="dashboard", model=self.gateway.flagged(None).model)
        explained = await find.explain({"tool_description": query}, caller)
        entries = {entry.listed: entry for entry in view.entries}
        found = list[Json]()
        for one in explained:
            entry = entries.get(one.listed)
            if entry is not None:
                why = one.to_json()
                if why is not None and isinstance(why["terms"], list):
                    why["terms"] = why["terms"][:_SHOWN_TERMS]
                found.append({**_tool_json(entry), "why": why})
        shown = found[:_SHOWN_HITS]
        return {"tools": shown, "found": len(found), "all": len(view.entries), "surface": find.surface}

    async def approvals(self) -> dict[str, Json]:
        loaded, gateway = self.gateway.loaded, self.gateway

        def files() -> list[Json]:
            return [_file_json(path) for path in (one.path for one in loaded.pending)]

        definitions: dict[str, Json] = {}
        for server in gateway.settings.servers:
            report = None if server.disabled else await gateway.definition_report(server.name)
            if report is None or not (report.withheld or report.new):
                continue
            changes = list[Json]()
            withheld = report.to_json()["withheld"]
            shown = [one for one in withheld if isinstance(one, dict)] if isinstance(withheld, list) else []
            for change, said in zip(report.withheld, shown, strict=True):
                flags = find_flags(server.name, [tool_of(change.offered)]) if change.kind == "tool" else ()
                changes.append(
                    {
                        **said,
                        "difference": list[Json](difference_lines(change)),
                        "flags": [flag_line(flag) for flag in flags],
                    }
                )
            definitions[server.name] = {**report.to_json(), "withheld": changes}
        return {"files": await anyio.to_thread.run_sync(files), "definitions": definitions}

    async def health(self, *, is_operator: bool) -> dict[str, Json]:
        gateway, view = self.gateway, await self.gateway.view()
        known = {one.server: one for one in gateway.health()}
        missing = {one.server: one for one in view.missing}
        servers = list[Json]()
        for server in gateway.settings.servers:
            one, absent = known.get(server.name), missing.get(server.name)
            said: dict[str, Json] = {
                "name": server.name,
                "state": "disabled" if server.disabled else "idle" if one is None else one.state,
                "hasTools": absent is None,
                "protocol": None if one is None else one.protocol,
            }
            if is_operator:
                found: dict[str, Json] = {
                    "calls": 0 if one is None else one.calls,
                    "openCalls": 0 if one is None else one.open_calls,
                    "failures": 0 if one is None else one.failures,
                    "startSeconds": None if one is None else one.start_seconds,
                    "error": None if one is None else one.last_error,
                    "suggestion": None if one is None else one.suggestion,
                }
                if found["error"] is None and absent is not None:
                    found |= {"error": absent.reason, "suggestion": absent.command or None}
                said |= found
            servers.append(said)
        found: dict[str, Json] = {
            "version": __version__,
            "isUsable": gateway.store_error is None,
            "servers": servers,
            "databases": [one.name for one in gateway.settings.databases],
            "folders": [one.name for one in gateway.settings.retrieves],
        }
        if is_operator:
            error, recording = gateway.store_error, gateway.recording
            found |= {
                "started": self.started.isoformat(timespec="seconds"),
                "openCalls": len(gateway.open_calls),
                "storeKind": gateway.settings.store.partition(":")[0].partition("+")[0],
                "storeError": (None if error is None else error.message) or (recording.problem if recording else None),
                "lostEntries": None if recording is None else recording.lost,
            }
        return found

    def revision(self, *, is_operator: bool) -> str:
        states = [(one.server, one.state) for one in self.gateway.health()]
        said = f"{states}{self.gateway.merge.known.revision}{self.gateway.store_error is None}"
        if is_operator:
            calls = [(one.calls, one.open_calls, one.failures) for one in self.gateway.health()]
            said += f"{calls}{[str(one.path) for one in self.gateway.loaded.pending]}"
        return said


def _server_tokens(view: View) -> dict[str, int]:
    tokens = dict[str, int]()
    for entry in view.entries:
        tokens[entry.server] = tokens.get(entry.server, 0) + tokens_of(entry)
    return tokens


def _tool_json(entry: Entry) -> dict[str, Json]:
    tool: Tool = entry.tool
    said = " ".join((tool.description or "").split())
    return {
        "name": entry.listed,
        "server": entry.server,
        "description": said if len(said) <= _DESCRIPTION else f"{said[: _DESCRIPTION - 1]}…",
        "tokens": tokens_of(entry),
        "isReadOnly": entry.is_read_only,
        "access": entry.access,
        "isPinned": entry.is_pinned,
    }


def _file_json(path: Path) -> dict[str, Json]:
    pending = review(path, os.environ, Path.cwd())
    return {
        "path": str(pending.path),
        "effects": list[Json](pending.effects),
        "faults": list[Json](pending.faults),
        "approvedBefore": None if pending.before is None else pending.before.approved,
        "command": None if pending.faults else f"{approve_command(pending.path)} --hash {pending.unit.digest}",
    }


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server on this machine that serves the dashboard to its user."""

    url: str
    """The address of the page."""
    key: str = field(repr=False)

    def make_code(self, principal: str | None = None) -> tuple[str, float]:
        """Ask the server for a one-time code; return it with its lifetime in seconds.

        Raises:
            Unavailable: The server does not answer.
            UllageError: The server refuses, with its own message.
        """
        found = urlsplit(self.url)
        kind = HTTPSConnection if found.scheme == "https" else HTTPConnection
        # Not through a proxy of the environment, which would be told the key.
        connection = kind(found.hostname or "", found.port, timeout=_TIMEOUT)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        try:
            connection.request("POST", CODES_PATH, json.dumps({"principal": principal} if principal else {}), headers)
            response = connection.getresponse()
            answer: Any = json.loads(response.read())
        except (OSError, HTTPException, ValueError) as error:
            raise Unavailable(f"no dashboard answers at `{self.url}`") from error
        finally:
            connection.close()
        if response.status != 200 or "code" not in answer:
            options = tuple(map(str, answer.get("available_options", ())))
            message = str(answer.get("message", "the server refused"))
            raise InvalidArguments(message, suggestion=str(answer.get("suggestion", "")), options=options)
        return str(answer["code"]), float(answer["expiresInSeconds"])


def _folder(places: Places) -> Path:
    return (places.state or places.data / "state") / "servers"


@contextmanager
def announce_server(address: Address, key: str, places: Places) -> Generator[RunningServer]:
    """Leave the address and the key of this process's server for `ullage dashboard`, until the end."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)
    server = RunningServer(f"http://{bracketed(host)}:{address.port}/", key)
    path = _folder(places) / f"{os.getpid()}-{address.port}.json"
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump({"url": server.url, "key": key, "process": os.getpid()}, file)
    try:
        yield server
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def running_servers(places: Places) -> list[RunningServer]:
    """Return the servers of this user that serve the dashboard, the latest first. Files of ended ones are removed."""
    found = list[tuple[float, RunningServer]]()
    with suppress(OSError):
        for path in _folder(places).glob("*.json"):
            try:
                said: Any = json.loads(path.read_text(encoding="utf-8"))
                server, process = RunningServer(str(said["url"]), str(said["key"])), int(said["process"])
                changed = path.stat().st_mtime
            except (OSError, ValueError, KeyError, TypeError):
                continue
            if _is_running(process):
                found.append((changed, server))
            else:
                path.unlink(missing_ok=True)
    return [server for _, server in sorted(found, key=lambda one: -one[0])]


def _is_running(process: int) -> bool:
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
