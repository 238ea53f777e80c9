"""Accept what a server changed in its tools, prompts or instructions.

Shows the difference from what was accepted before, then accepts it. Starts no server: what it last offered is in the
store. A gateway that runs serves the accepted definitions within seconds.
"""

import argparse

from .configured import add_flags, chosen, read
from .definitions import accept_definitions

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="SERVER", help="the server whose changes to accept")
    parser.add_argument("tool", nargs="?", metavar="TOOL", help="accept only this tool or prompt, by the server's name")
    parser.add_argument("--show", action="store_true", help="show the difference and accept nothing")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    loaded = read(arguments)
    (server,) = chosen(loaded, arguments.target)
    return accept_definitions(loaded.settings, server, arguments.tool, only_show=arguments.show)
