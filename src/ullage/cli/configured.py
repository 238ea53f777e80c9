"""How does a verb learn of the user's servers and settings?

The flags that all such verbs share, and the gateway opened for one of them. What is wrong with the settings but harms
only one server is said on standard error, in one line each.
"""

import argparse
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import anyio

from ullage.app.gateway import Gateway, open_gateway
from ullage.app.starting import StartAnswers
from ullage.config import Flags, Loaded, examine, load
from ullage.errors import UllageError, UnknownResource, UnreadableFile
from ullage.gateway import Server
from ullage.start_cache import Situation
from ullage.tool import Caller
from ullage.wire import user_name

from .approving import can_be_asked, offer_approval
from .output import say
from .telemetry import show_telemetry
from .terminal import LineFormatter

__all__ = [
    "add_flags",
    "caller_of",
    "check",
    "chosen",
    "examined",
    "fill_start_cache",
    "log_to_stderr",
    "offered",
    "read",
    "reviewed",
    "say",
    "situation_of",
    "with_gateway",
]

Result = TypeVar("Result")

_SILENT = ("mcp", "client", "httpx2", "httpcore2")
"""Loggers; `client` is the SDK's too."""


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
        help="also serve the MCP servers of another program's configuration file; may be given again",
    )
    parser.add_argument("--store", metavar="URL", help="SQLite file or PostgreSQL database for catalogue and ledger")
    parser.add_argument("--client", metavar="NAME", help="client profile to use; usage is recorded under this name")


def read(arguments: argparse.Namespace) -> Loaded:
    """The settings; raises where they cannot be used, and says what is wrong with single servers."""
    check(arguments)
    was_asked = offered(arguments)
    loaded = load(_flags(arguments), os.environ, Path.cwd())
    if arguments.client is not None and arguments.client not in loaded.settings.clients:
        say(f"ullage: no [clients.{arguments.client}] in the settings: figures are filed under that name, no more")
    for issue in loaded.issues:
        if issue.severity == "problem" and not (was_asked and issue in loaded.pending_issues):
            say(f"ullage: {issue.sentence()}")
    return loaded


def check(arguments: argparse.Namespace) -> None:
    """Refuses flags that name a file which is not there: in the settings it may come, on the command line it is a
    slip."""
    for path in arguments.include:
        if not path.expanduser().is_file():
            raise UnreadableFile(f"`{path}` is not there", suggestion="check the path given with --include")


def examined(arguments: argparse.Namespace, before: Loaded | None = None) -> Loaded:
    """The same without raising or saying anything; `before` is what this process uses now."""
    return examine(_flags(arguments), os.environ, Path.cwd(), before=before)


def reviewed(arguments: argparse.Namespace) -> Loaded:
    """The same with pending project files read for a person to review, and all that they include."""
    return examine(_flags(arguments), os.environ, Path.cwd(), is_review=True)


def offered(arguments: argparse.Namespace) -> bool:
    """Asks the person at the terminal to approve the project files that wait for it; False where nobody was asked."""
    if not can_be_asked() or not examined(arguments).pending:
        return False
    offer_approval(reviewed(arguments).pending)
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


def situation_of(arguments: argparse.Namespace) -> Situation | None:
    """How `ullage serve` is started with the same flags; None where the working folder is gone."""
    flags = _flags(arguments)
    said = {
        "config": flags.config,
        "include": flags.include,
        "store": flags.store,
        "model": flags.model,
        "mode": flags.mode,
        "sample": flags.sample,
    }
    try:
        return Situation(said, os.environ, str(Path.cwd()), arguments.client)
    except OSError:
        return None


def chosen(loaded: Loaded, name: str | None) -> list[Server]:
    """The server of that name, or all of them; raises where there is none."""
    servers = [server for server in loaded.settings.servers if name in (None, server.name)]
    if name is not None and not servers:
        raise UnknownResource(
            f"no server is called `{name}`",
            suggestion="leave the name out to see them all",
            options=tuple(server.name for server in loaded.settings.servers),
        )
    return servers


def caller_of(gateway: Gateway, client: str | None) -> Caller:
    """Whoever typed the command, for figures and rules."""
    model = gateway.flagged(client).model
    return Caller(principal=user_name(), session="command line", client=client, model=model)


def with_gateway(
    loaded: Loaded,
    work: Callable[[Gateway], Awaitable[Result]],
    *,
    situation: Situation | None = None,
    is_quiet: bool = False,
) -> Result:
    """Runs something with a gateway that nobody else is served by, and closes it again.

    With `situation`, what a client that is started in the same way is answered first is put into the cache, where
    every server's tools are known by then. With `is_quiet`, what is logged of single servers is not shown: the caller
    reports on each.
    """

    async def run() -> Result:
        async with open_gateway(loaded, environment=os.environ) as gateway:
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
    """Puts what a client that starts `ullage serve` is answered first into the cache, where the tools of every server
    are known without starting any."""
    loaded, situation = examined(arguments), situation_of(arguments)
    if loaded.errors or situation is None:
        return

    async def run() -> None:
        async with open_gateway(loaded, environment=os.environ) as gateway:
            answers = StartAnswers(gateway=gateway, situation=situation)
            if await gateway.servers.are_known():
                await answers.write((None, situation.client, *loaded.settings.clients))

    with suppress(UllageError, OSError):  # it is a convenience, and the next start does without
        anyio.run(run)


def log_to_stderr(level: int = logging.WARNING) -> None:
    """What Ullage says reaches a person; what libraries say of what they met does not: the SDK's errors are told again
    in our words, and HTTP's lines name URLs, which may hold a secret."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("ullage: %(message)s"))
    logging.basicConfig(handlers=[handler], level=level)
    for library in _SILENT:
        logging.getLogger(library).setLevel(logging.CRITICAL)
