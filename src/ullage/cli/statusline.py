"""Print one line for a program's status line: window, session cost, today's cost, tokens saved.

Reads Claude Code's status-line JSON from standard input; without it, only today is shown. Figures are those of the
ledger; at most once a minute, the logs are brought into it in the background.
"""

import argparse

from ullage.status_line import print_status_line

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", metavar="URL", help="the store with the ledger (default: the settings' own)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    print_status_line(arguments.store, as_json=arguments.json)
    return 0
