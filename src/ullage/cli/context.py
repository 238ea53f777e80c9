"""Show how full the context window of a session is, how it filled up, what takes the most space, and what would help.

FILE is a session of Claude Code, Codex, opencode, pi, cline, Gemini CLI or Ullage, a list of messages, or a request
body; the format is detected. Several files are listed in one line each.
"""

import argparse
from collections.abc import Sequence

from ullage.context import Options
from ullage.errors import UnreadableFile

from .output import emit_json, say
from .progress import Progress
from .report import print_list, print_report
from .report_json import listed_json, report_json
from .sessions import Found, add_flags, all_in, named, weigh

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="session files; - is standard input")
    add_flags(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    found = _found(arguments.files)
    if arguments.session is not None:
        found = [named(found, arguments.session)]
    if len(found) > 1:
        return _several(found, arguments)
    weighed = weigh(found[0], Options(context_window=arguments.window), arguments.model)
    if arguments.json:
        emit_json(report_json(weighed))
    else:
        print_report(weighed)
    return 0


def _found(files: Sequence[str]) -> list[Found]:
    """What can be read; where several files are named, one that cannot is said and passed over."""
    found: list[Found] = []
    unread: list[UnreadableFile] = []
    for file in files:
        try:
            found += all_in(file)
        except UnreadableFile as error:
            unread.append(error)
    if not found:
        raise unread[0]
    say(*(f"ullage: {error.message}" for error in unread))
    return found


def _several(found: Sequence[Found], arguments: argparse.Namespace) -> int:
    options = Options(context_window=arguments.window)
    with Progress(sum(one.size for one in found), "weighing") as progress:
        weighed = [weigh(one, options, arguments.model) for one in progress.through(found)]
    if arguments.json:
        emit_json([listed_json(one) for one in weighed])
    else:
        print_list(weighed)
    return 0
