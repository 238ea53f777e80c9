"""Run the MCP gateway, on stdio or, with --http, over HTTP.

It serves the servers, databases, folders and models of ullage.toml, and the servers of other programs' configuration
files that are named there or with --include.
"""

import argparse
import gc
import os
import select
import signal
import socket
import stat
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

import anyio

from ullage import __version__
from ullage.app.build_gateway import Gateway, open_gateway
from ullage.app.fill_start_cache import StartAnswers
from ullage.client_command import read_client_rules
from ullage.config import Loaded, Places, providers_on, read_tokens
from ullage.errors import InvalidArguments
from ullage.ledger import Recorder
from ullage.options import SAMPLE
from ullage.process_memory import collect_garbage
from ullage.start_session import Handover, StartSession, claim_input, claim_output, era_asked_in
from ullage.wire import Address, Profile, Shutdown, Tokens, listen, serve_stdio

from .input_files import is_watched_input
from .load_settings import add_flags, examine_settings, log_to_stderr, read, say, show_telemetry, situation_of
from .output import waiting_or

__all__ = ["arguments", "cancel_when_set", "run", "run_until_signalled"]

_SIGNALS = (signal.SIGTERM,) if sys.platform == "win32" else (signal.SIGTERM, signal.SIGHUP)


async def run_until_signalled(work: Callable[[anyio.Event], Awaitable[None]], *, with_interrupt: bool) -> None:
    """Run work that ends by itself when its event is set. The first signal sets the event; the second cancels the work.

    With `with_interrupt`, Ctrl-C counts as such a signal. Without, it raises KeyboardInterrupt as usual.
    """
    told = anyio.Event()
    with anyio.open_signal_receiver(*_SIGNALS, *((signal.SIGINT,) if with_interrupt else ())) as signals:
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                async for _ in signals:
                    if told.is_set():
                        tasks.cancel_scope.cancel()
                    told.set()

            tasks.start_soon(listen)
            await work(told)
            tasks.cancel_scope.cancel()


async def cancel_when_set(event: anyio.Event, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work, and cancel it if the event is set first."""
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            await event.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        await work()
        tasks.cancel_scope.cancel()


_SWITCH = 0.0005
"""Seconds for which a worker thread may run while another thread waits."""
_COLLECTIONS = 2_000, 10, 10_000
"""Number of new objects between garbage collections, and how many of these lead to a larger and then a full one."""

_FIRST_BYTES = 65_536
_WRITE_SECONDS = 1.0
"""Seconds allowed for updating the cache of first answers at the end."""
_MOMENT, _WHILE = 0.3, 2.0
"""Seconds until the first answers are written to the cache: short if the cache had none, longer if it was used."""

_NAMED = 8
"""Maximum servers and databases named in the welcome."""
_SAMPLE_QUESTION = "Which three products of the shop brought in the most?"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        help="serve streamable HTTP on this address instead of standard input and output",
    )
    parser.add_argument(
        "--next-free", action="store_true", help="with --http: when the port is taken, use the next free one"
    )
    parser.add_argument(
        "--tokens",
        metavar="FILE",
        type=Path,
        help="with --http: file of bearer tokens, one NAME:TOKEN per line; required for clients on other machines",
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME[:PORT]",
        action="append",
        default=[],
        help="with --http: another host name that clients use, such as a proxy's; may be repeated",
    )
    parser.add_argument(
        "--access-log",
        action="store_true",
        help="with --http: log a JSON line for each search, call and model call on standard error",
    )
    parser.add_argument(
        "--sample", action="store_true", help="serve a sample database as source `shop`, created on first use"
    )
    parser.add_argument("--mode", choices=("auto", "search", "direct"), help="show tools behind find_tool, or directly")
    parser.add_argument("--model", metavar="NAME", help="model for token counts and the window")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    given = {
        "--next-free": arguments.next_free,
        "--access-log": arguments.access_log,
        "--tokens": arguments.tokens is not None,
        "--allow-host": bool(arguments.allow_host),
    }
    useless = [flag for flag, is_given in given.items() if is_given]
    if arguments.http is None and useless:
        raise InvalidArguments(
            f"{', '.join(useless)} works only with --http",
            suggestion="add --http 8787, or remove it: standard input and output have only one client",
        )
    log_to_stderr()
    # Long work for one server runs in worker threads. The event loop takes the interpreter back from them several times
    # for each call of another server, and by default waits 5 ms each time.
    sys.setswitchinterval(_SWITCH)
    # A full collection visits every object of every catalogue and reply, and blocks all threads meanwhile:
    # `collect_garbage` makes them while no call is open.
    gc.set_threshold(*_COLLECTIONS)
    session: StartSession | None = getattr(arguments, "start_session", None)
    if session is not None and session.is_finished:
        return 0
    arguments.client_rules = None if arguments.http else read_client_rules()
    loaded = read(arguments)
    show_telemetry(loaded.settings)
    again = partial(examine_settings, arguments)
    if arguments.http is None:
        if is_watched_input():
            say(
                "Ullage speaks MCP here, on standard input and output: a client program starts it, for example with",
                "  claude mcp add ullage -- ullage serve",
                *_describe_sources(loaded),
                "To have a look yourself: ullage tools, or ullage serve --http 8787. Ctrl-D ends this.",
            )
        anyio.run(partial(run_until_signalled, partial(_stdio, arguments, loaded, again), with_interrupt=False))
        return 0
    return _run_http(arguments, loaded)


async def _stdio(
    arguments: argparse.Namespace, loaded: Loaded, again: partial[Loaded], told_to_end: anyio.Event
) -> None:
    client: str | None = arguments.client
    session: StartSession | None = getattr(arguments, "start_session", None)
    first = None if session is not None else await anyio.to_thread.run_sync(_read_first)
    async with AsyncExitStack() as stack:
        metrics, tracer = None, None
        if loaded.settings.telemetry.is_on:
            from ullage.web import Metrics, open_telemetry

            metrics = Metrics()
            exporting = open_telemetry(loaded.settings.telemetry, os.environ, version=__version__, metrics=metrics)
            tracer = await stack.enter_async_context(exporting)
        gateway = await stack.enter_async_context(
            open_gateway(
                loaded,
                environment=os.environ,
                again=again,
                observe=None if metrics is None else metrics.wrap,
                tracer=tracer,
            )
        )
        situation = situation_of(arguments)
        answers = None if situation is None else StartAnswers(gateway=gateway, situation=situation)
        era = None if first is None else era_asked_in(first.rest.split(b"\n", 1)[0])
        era = era if session is None else session.client_era
        if era is not None:
            # Set before servers are started, because they are addressed in the client's era.
            gateway.met(era)
        await cancel_when_set(told_to_end, partial(gateway.settle, client))
        gateway.warm_up()
        gateway.spawn(partial(collect_garbage, gateway.open_calls))
        if answers is not None:
            gateway.spawn(partial(answers.keep, _MOMENT if session is None else _WHILE))
        profile = gateway.flagged(client)
        handover = first if session is None else await anyio.to_thread.run_sync(session.hand_over)
        if handover is not None and handover.protocol_version is not None:
            # The client has read these instructions, so tools stay listed accordingly.
            profile.identity.current_instructions()
        try:
            await serve_stdio(profile, client=client, shutdown=_shutdown(gateway, told_to_end), handover=handover)
        finally:
            if answers is not None:
                with anyio.move_on_after(_WRITE_SECONDS, shield=True):
                    await answers.close()


def _read_first() -> Handover | None:
    """Return what the client has already sent, without waiting for it; None if standard input is not a pipe or
    socket."""
    mode = os.fstat(0).st_mode
    if sys.platform == "win32" or not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return None
    reader, writer = claim_input(), claim_output()
    if not select.select([reader], [], [], 0)[0]:
        return Handover(reader=reader, writer=writer)
    read = os.read(reader, _FIRST_BYTES)
    return Handover(reader=reader, writer=writer, rest=read, is_ended=not read)


def _shutdown(gateway: Gateway, told_to_end: anyio.Event) -> Shutdown:
    return Shutdown(
        told=told_to_end,
        grace=lambda: gateway.settings.gateway.shutdown_grace,
        end_calls=gateway.open_calls.end,
    )


def _run_http(arguments: argparse.Namespace, loaded: Loaded) -> int:
    asked = Address.parse(arguments.http)
    tokens = Tokens.read(os.environ, arguments.tokens, named=read_tokens(loaded.settings.tokens, os.environ))
    say(*tokens.warnings)
    bound, address = listen(asked, next_free=arguments.next_free, tokens=tokens)
    if asked.port not in (0, address.port):
        say(f"Port {asked.port} is taken; using {address.port}.")
    bearer = ' --header "Authorization: Bearer TOKEN"' if tokens else ""
    headers = ', "headers": {"Authorization": "Bearer TOKEN"}' if tokens else ""
    behind, *databases = _describe_sources(loaded)
    say(
        f"Ullage serves MCP at {address.url}. {behind}",
        *databases,
        f"  Claude Code:  claude mcp add --transport http ullage {address.url}{bearer}",
        f'  any client:   {{"mcpServers": {{"ullage": {{"type": "http", "url": "{address.url}"{headers}}}}}}}',
        "Ctrl-C ends it.",
    )
    # Ending the server by hand is not a failure, and the terminal may be gone by then.
    with suppress(KeyboardInterrupt):
        work = partial(_http, arguments, loaded, (bound, address), tokens)
        anyio.run(partial(run_until_signalled, work, with_interrupt=True))
    with suppress(OSError):
        say("", "Ended.")
    return 0


async def _http(
    arguments: argparse.Namespace,
    loaded: Loaded,
    place: tuple[socket.socket, Address],
    tokens: Tokens,
    told_to_end: anyio.Event,
) -> None:
    from ullage.app.build_dashboard import announce_server, build_dashboard
    from ullage.web import AccessLog, Metrics, open_telemetry, operations_pages
    from ullage.wire import serve_http

    bound, address = place
    metrics = Metrics()

    def observe(recorder: Recorder) -> Recorder:
        counted = metrics.wrap(recorder)
        return AccessLog(counted, write=say) if arguments.access_log else counted

    async with (
        open_telemetry(loaded.settings.telemetry, os.environ, version=__version__, metrics=metrics) as tracer,
        open_gateway(
            loaded,
            environment=os.environ,
            again=partial(examine_settings, arguments),
            is_own_address=address.is_reached_by,
            observe=observe,
            tracer=tracer,
        ) as gateway,
    ):
        for client in {arguments.client, *gateway.settings.clients}:
            await cancel_when_set(told_to_end, partial(gateway.settle, client))
        gateway.warm_up()
        gateway.spawn(partial(collect_garbage, gateway.open_calls))
        dashboard = build_dashboard(gateway, tokens=tokens)
        with announce_server(address, dashboard.key, Places.of_user()) as server:
            if sys.stderr.isatty():  # a log keeps what it is sent, and a code is for the person who started this
                say(f"  dashboard:    {server.url}#{dashboard.make_code()}  (signs in once; later: ullage dashboard)")
            else:
                say(f"  dashboard:    {server.url}  (ullage dashboard prints a code to sign in)")
            await serve_http(
                partial(_profile, gateway, arguments.client),
                bound,
                client=arguments.client,
                tokens=tokens,
                hosts=(Address.parse(arguments.http).host,),
                allow_hosts=tuple(arguments.allow_host),
                on_session_end=gateway.host.release,
                shutdown=_shutdown(gateway, told_to_end),
                pages=operations_pages(metrics, lambda: gateway.store_error is None),
                site=dashboard.application(),
                audit=gateway.recorder.audit,
            )


def _profile(gateway: Gateway, flagged: str | None, client: str | None) -> Profile:
    return gateway.flagged(client) if client == flagged else gateway.profile(client)


def _describe_sources(loaded: Loaded) -> list[str]:
    settings = loaded.settings
    names = [server.name for server in settings.servers if not server.disabled]
    names += [f"database {database.name}" for database in settings.databases]
    names += [f"folders {folders.name}" for folders in settings.retrieves]
    if settings.delegate.is_wanted:
        names += [f"models of {provider}" for provider in providers_on(settings, os.environ)]
    if not names:
        return [waiting_or(loaded, "It has no servers yet: name some in ullage.toml, or with --include FILE.")]
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    lines = [f"Behind it: {', '.join(names[:_NAMED])}{rest}."]
    database = settings.default_database
    if database is not None:
        question = _SAMPLE_QUESTION if database.url == SAMPLE else f"What is in the database {database.name}?"
        lines.append(f"  ask a model:  {question}")
    return lines
