"""Print one line for a program's status line: window, session cost, today's cost, tokens saved.

Reads Claude Code's status-line JSON from standard input; without it, only today's figures are shown. Figures come
from the ledger. The logs are imported in the background, at most once a minute.
"""

import argparse

from ullage.status_line import print_status_line

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", metavar="URL", help="store with the ledger (default: that of the settings)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    print_status_line(arguments.store, as_json=arguments.json)
    return 0
