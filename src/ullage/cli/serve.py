"""Offer Ullage's tools over MCP: on standard input and output, or with --http on a loopback address."""

import argparse
import sys
from functools import partial

import anyio

from ullage import __version__, app
from ullage.wire import Address, Identity, listen, serve_http, serve_stdio

__all__ = ["arguments", "run"]

_IDENTITY = Identity(
    name="ullage",
    version=__version__,
    instructions="Ullage weighs and saves tokens. `count-tokens` says how many tokens a text is to a given model.",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        help="serve streamable HTTP on this loopback address instead of standard input and output",
    )
    parser.add_argument(
        "--next-free", action="store_true", help="with --http: when the port is taken, use the next free one"
    )
    parser.add_argument("--client", metavar="NAME", help="what to call whoever connects, in figures and settings")


def run(arguments: argparse.Namespace) -> int:
    if arguments.http is None:
        return _run_stdio(arguments)
    return _run_http(arguments)


def _run_stdio(arguments: argparse.Namespace) -> int:
    if sys.stdin.isatty():
        _say(
            "Ullage speaks MCP here, on standard input and output: a client program starts it, for example with",
            "  claude mcp add ullage -- ullage serve",
            "To have a look yourself, serve on an address instead: ullage serve --http 8787. Ctrl-D ends this.",
        )
    anyio.run(partial(serve_stdio, app.source(), _IDENTITY, client=arguments.client))
    return 0


def _run_http(arguments: argparse.Namespace) -> int:
    asked = Address.parse(arguments.http)
    bound, address = listen(asked, next_free=arguments.next_free)
    if asked.port not in (0, address.port):
        _say(f"Port {asked.port} is taken; using {address.port}.")
    _say(
        f"Ullage serves MCP at {address.url}",
        f"  Claude Code:  claude mcp add --transport http ullage {address.url}",
        f'  any client:   {{"mcpServers": {{"ullage": {{"type": "http", "url": "{address.url}"}}}}}}',
        "Ctrl-C ends it.",
    )
    try:
        anyio.run(partial(serve_http, app.source(), _IDENTITY, bound, client=arguments.client))
    except KeyboardInterrupt:
        # How a person ends it is not a failure.
        _say("", "Ended.")
    return 0


def _say(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr, flush=True)
