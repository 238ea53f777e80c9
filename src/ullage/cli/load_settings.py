"""Loads the settings for a verb, and opens the gateway or the databases that they name.

Contains the flags that all such verbs share. Problems in the settings that affect only one server are printed to
standard error, one line each.
"""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

from ullage.app.build_gateway import Gateway, open_gateway
from ullage.app.fill_start_cache import StartAnswers
from ullage.app.open_store import audit_file
from ullage.config import Approvals, Flags, Loaded, PendingFile, Places, Settings, examine, load
from ullage.errors import UllageError, UnknownResource, UnreadableFile
from ullage.gateway import Server
from ullage.invisible_characters import escape_invisible
from ullage.ledger import SpendOnly
from ullage.processes import user_name
from ullage.start_cache import Situation
from ullage.tool import Caller

from .output import LineFormatter, bold, dialogue_width, hang_line, plain, say, short_path

__all__ = [
    "add_flags",
    "approve",
    "caller_of",
    "can_be_asked",
    "check",
    "choose_servers",
    "examine_settings",
    "fill_start_cache",
    "log_to_stderr",
    "offer_approval",
    "offer_pending_files",
    "pending_lines",
    "read",
    "read_typed_line",
    "review_settings",
    "say",
    "show_telemetry",
    "situation_of",
    "with_gateway",
]


def can_be_asked() -> bool:
    """Return whether a person can answer at a terminal. Closed streams are None."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)  # pyright: ignore[reportUnnecessaryComparison]


_EFFECT_INDENT = 12
"""Columns before the text of an effect, after its verb."""


def pending_lines(pending: PendingFile) -> list[str]:
    """Return what a pending file would do, and how that differs from what was approved before."""
    before = pending.before
    is_same = before is not None and before.digest == pending.unit.digest
    state = "not approved" if before is None else f"changed since you approved it on {before.approved[:10]}"
    if before is not None and is_same:
        state = f"approved on {before.approved[:10]}"
    lines = [f"{bold(_visible(short_path(str(pending.path))))}  {state}"]
    if before is None or is_same:
        lines += [f"  {_visible(line)}" for line in pending.effects] or ["  sets nothing that Ullage knows"]
    else:
        gone = [line for line in before.effects if line not in pending.effects]
        new = [line for line in pending.effects if line not in before.effects]
        same = [line for line in pending.effects if line in before.effects]
        lines += [f"- {_visible(line)}" for line in gone] + [f"+ {_visible(line)}" for line in new]
        lines += [f"  {_visible(line)}" for line in same]
        if not gone and not new:
            lines.append("  The text differs in a way that this summary does not show: read the file first.")
    lines += [f"  error     {_visible(fault)}" for fault in pending.faults]
    limit = dialogue_width()
    if limit is not None:
        lines[1:] = [piece for line in lines[1:] for piece in hang_line(line, limit, _EFFECT_INDENT)]
    return [*lines, f"  sha256    {pending.unit.digest}"]


def _visible(text: str) -> str:
    """Return a line with control characters and invisible ones spelled out."""
    return escape_invisible(plain(text))


def approve(pending: PendingFile, store: str) -> None:
    """Approve a project's file, and write that to the audit in the store."""
    Approvals(Places.of_user().trust).approve(pending.unit, pending.effects)
    audit_file(store, "approval", str(pending.path))


def offer_approval(pending: Sequence[PendingFile], store: str) -> bool:
    """Ask the person at the terminal about each file; return whether any was approved."""
    is_any = False
    for one in pending:
        say("", "A project file waits for your approval:", *pending_lines(one))
        if one.faults:
            say("It cannot be approved before its errors are fixed.", "")
            continue
        say("Scripts and programs that it starts are not checked, only this file and what it includes.")
        print("Approve this content? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            approve(one, store)
            is_any = True
            say("Approved.", "")
        else:
            say("Not approved: only its restrictions apply.", "")
    return is_any


_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


def show_telemetry(settings: Settings, *, only_if_said: bool = False) -> None:
    """Log the telemetry of delegation and the audit to standard error. With `only_if_said`, which is meant for verbs
    that print their own messages, telemetry only if `ORCH_LOG_LEVEL` is set, and no audit."""
    log, audit = logging.getLogger("ullage.delegate"), logging.getLogger("ullage.audit")
    level = settings.delegate.log_level
    for each in (log, audit):
        each.propagate = False
        each.handlers.clear()
    if only_if_said:
        audit.addHandler(logging.NullHandler())
    if level is None and only_if_said:
        log.addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(message)s", is_json=True))
    log.addHandler(handler)
    log.setLevel(_LEVELS[level or "info"])
    if not only_if_said:
        audit.addHandler(handler)
        audit.setLevel(logging.INFO)


Result = TypeVar("Result")

_SILENT = ("mcp", "client", "httpx2", "httpcore2")
"""Loggers that are silenced; `client` is the SDK's too."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="use this ullage.toml instead of the project's and the user's"
    )
    parser.add_argument(
        "--include",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="also serve the MCP servers of another program's configuration file; may be repeated",
    )
    parser.add_argument("--store", metavar="URL", help="SQLite file or PostgreSQL database for catalogue and ledger")
    parser.add_argument("--client", metavar="NAME", help="client profile to use; usage is recorded under this name")


def read(arguments: argparse.Namespace) -> Loaded:
    """Return the settings, and print problems with single servers.

    Raises:
        BadConfiguration: The settings cannot be used.
        UnreadableFile: A file given with `--include` does not exist.
    """
    check(arguments)
    was_asked = offer_pending_files(arguments)
    loaded = load(_flags(arguments), os.environ, Path.cwd(), client_rules=_client_rules(arguments))
    if arguments.client is not None and arguments.client not in loaded.settings.clients:
        say(f"ullage: no [clients.{arguments.client}] in the settings: only usage is recorded under that name")
    for issue in loaded.issues:
        if issue.severity == "problem" and not (was_asked and issue in loaded.pending_issues):
            say(f"ullage: {issue.sentence()}")
    return loaded


def check(arguments: argparse.Namespace) -> None:
    """Refuse flags that name a missing file: the settings may name a file that is created later, but on the command
    line it is a mistake."""
    for path in arguments.include:
        if not path.expanduser().is_file():
            raise UnreadableFile(f"`{path}` does not exist", suggestion="check the path given with --include")


def examine_settings(arguments: argparse.Namespace, before: Loaded | None = None) -> Loaded:
    """Return the settings without raising or printing anything; `before` is what this process uses now."""
    rules = _client_rules(arguments)
    return examine(_flags(arguments), os.environ, Path.cwd(), before=before, client_rules=rules)


def review_settings(arguments: argparse.Namespace) -> Loaded:
    """Return the settings without raising, with pending project files and all their included files read for review."""
    return examine(_flags(arguments), os.environ, Path.cwd(), is_review=True)


def offer_pending_files(arguments: argparse.Namespace) -> bool:
    """Ask the person at the terminal to approve the pending project files; return False if nobody was asked."""
    if not can_be_asked() or not examine_settings(arguments).pending:
        return False
    loaded = review_settings(arguments)
    offer_approval(loaded.pending, loaded.settings.store)
    return True


def _flags(arguments: argparse.Namespace) -> Flags:
    return Flags(
        config=arguments.config,
        include=tuple(arguments.include),
        store=arguments.store,
        model=getattr(arguments, "model", None),
        mode=getattr(arguments, "mode", None),
        sample=getattr(arguments, "sample", False),
    )


def _client_rules(arguments: argparse.Namespace) -> dict[str, list[str]] | None:
    """Return the rules on the client's command line, which `ullage serve` reads."""
    return getattr(arguments, "client_rules", None)


def situation_of(arguments: argparse.Namespace) -> Situation | None:
    """Return how `ullage serve` is started with the same flags; None if the working folder no longer exists."""
    flags = _flags(arguments)
    said = {
        "config": flags.config,
        "include": flags.include,
        "store": flags.store,
        "model": flags.model,
        "mode": flags.mode,
        "sample": flags.sample,
        "client_rules": _client_rules(arguments),
    }
    try:
        return Situation(said, os.environ, str(Path.cwd()), arguments.client)
    except OSError:
        return None


def choose_servers(loaded: Loaded, name: str | None) -> list[Server]:
    """Return the server of that name, or all servers without a name; raise an error if there is none."""
    servers = [server for server in loaded.settings.servers if name in (None, server.name)]
    if name is not None and not servers:
        raise UnknownResource(
            f"no server is called `{name}`",
            suggestion="leave out the name to list all of them",
            options=tuple(server.name for server in loaded.settings.servers),
        )
    return servers


def caller_of(gateway: Gateway, client: str | None) -> Caller:
    """Return the caller who typed the command, for figures and rules."""
    model = gateway.flagged(client).model
    return Caller(principal=user_name(), session="command line", client=client, model=model)


def with_gateway(
    loaded: Loaded,
    work: Callable[[Gateway], Awaitable[Result]],
    *,
    situation: Situation | None = None,
    is_quiet: bool = False,
) -> Result:
    """Run `work` with a gateway of its own, and close it afterwards.

    With `situation`, the first answers for a client that is started in the same way are written to the cache, if every
    server's tools are known by then. With `is_quiet`, log messages about single servers are not shown, because the
    caller reports on each.
    """

    async def run() -> Result:
        async with open_gateway(loaded, environment=os.environ, observe=SpendOnly) as gateway:
            if situation is None:
                return await work(gateway)
            answers = StartAnswers(gateway=gateway, situation=situation)
            result = await work(gateway)
            if not (await gateway.view()).missing:
                await answers.write((None, situation.client, *loaded.settings.clients))
            return result

    log_to_stderr(logging.ERROR if is_quiet else logging.WARNING)
    show_telemetry(loaded.settings, only_if_said=True)
    return anyio.run(run)


def fill_start_cache(arguments: argparse.Namespace) -> None:
    """Write the first answers for a client that starts `ullage serve` to the cache, if the tools of every server are
    known without starting any."""
    loaded, situation = examine_settings(arguments), situation_of(arguments)
    if loaded.errors or situation is None:
        return

    async def run() -> None:
        async with open_gateway(loaded, environment=os.environ, observe=SpendOnly) as gateway:
            answers = StartAnswers(gateway=gateway, situation=situation)
            if await gateway.servers.are_known():
                await answers.write((None, situation.client, *loaded.settings.clients))

    with suppress(UllageError, OSError):  # the cache is optional: without it the next start is only slower
        anyio.run(run)


def log_to_stderr(level: int = logging.WARNING) -> None:
    """Show Ullage's own log messages on standard error, but not those of libraries: Ullage reports the SDK's errors
    itself, and the HTTP library logs URLs, which may contain a secret."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("ullage: %(message)s"))
    logging.basicConfig(handlers=[handler], level=level)
    for library in _SILENT:
        logging.getLogger(library).setLevel(logging.CRITICAL)


async def read_typed_line(prompt: str) -> str:
    """Return the line that a person types; empty if the person declines."""
    answer: list[str] = []
    done, token = anyio.Event(), current_token()
    with anyio.open_signal_receiver(signal.SIGINT) as told:
        # A daemon thread: a thread that reads cannot be interrupted, and would keep the process from ending.
        threading.Thread(target=_read, args=(prompt, answer, done, token), daemon=True).start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch_interrupt, told, done)
            await done.wait()
            tasks.cancel_scope.cancel()
    if not answer:
        say("")
    return "".join(answer)


async def _watch_interrupt(told: AsyncIterator[signal.Signals], done: anyio.Event) -> None:
    async for _ in told:
        done.set()


def _read(prompt: str, answer: list[str], done: anyio.Event, token: EventLoopToken) -> None:
    with suppress(EOFError, OSError, ValueError):
        answer.append(input(plain(prompt)))
    with suppress(anyio.RunFinishedError):
        from_thread.run_sync(done.set, token=token)
