"""Which verb was asked for?

Only the verb that runs is imported: `ullage count` must not wait for the MCP SDK. What a verb does is its own file's
affair.
"""

import argparse
import gc
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from ullage import __version__
from ullage.errors import UllageError

from .output import complain

__all__ = ["VERBS", "main", "parser_of"]

VERBS = {
    "call": "what does this tool answer?",
    "count": "how many tokens is this?",
    "doctor": "what is wrong with my servers and settings?",
    "find": "which tool does this?",
    "models": "which models exist, with window, tokenizer and price?",
    "serve": "put Ullage in front of my servers, over MCP",
    "tools": "which tools are there, and what do they cost?",
}
"""Each verb and the question it answers; its file in this room has the same name."""


class Verb(Protocol):
    """What a verb's file holds."""

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file's name may hold what no encoding can write
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        parser_of(*VERBS).print_help(sys.stderr)
        return 2
    verb = next((word for word in words if not word.startswith("-")), None)
    arguments = parser_of(*([verb] if verb in VERBS else VERBS)).parse_args(words)
    run: Callable[[argparse.Namespace], int] = arguments.run
    return _guarded(run, arguments)


def parser_of(*verbs: str) -> argparse.ArgumentParser:
    """The command line's grammar, with the named verbs loaded."""
    parser = argparse.ArgumentParser(prog="ullage", description="The token economy of LLM agents.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name in verbs:
        verb = _imported(f"ullage.cli.{name}")
        subparser = subparsers.add_parser(name, help=VERBS[name], description=verb.__doc__, allow_abbrev=False)
        verb.arguments(subparser)
        subparser.set_defaults(run=verb.run)
    return parser


def _imported(module: str) -> Verb:
    """The verb's file. What importing makes stays for good, so looking for garbage among it is time that a client
    waits for, then and at every later look."""
    if module not in sys.modules and gc.isenabled():
        gc.disable()
        try:
            importlib.import_module(module)
        finally:
            gc.enable()
        gc.freeze()
    return cast("Verb", importlib.import_module(module))


def _guarded(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    try:
        return run(arguments)
    except UllageError as error:
        complain(error, as_json=getattr(arguments, "json", False))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone (`ullage models | head`); standard output must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
