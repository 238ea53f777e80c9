"""The command line: parse the arguments, run one verb, print errors.

Only the verb that runs is imported, so `ullage count` does not wait for the MCP SDK.
"""

import argparse
import errno
import gc
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, Protocol, cast

from ullage import __version__
from ullage.errors import BadInput, InvalidArguments, UllageError, Unavailable
from ullage.start_session import StartSession

from .output import complain, escaping_terminals

__all__ = ["VERBS", "VERB_GROUPS", "main", "parser_of", "use_one_thread", "verb_parser"]

VERBS = {
    "audit": "Show refusals, withheld tools, approvals and fallbacks",
    "call": "Call a tool of any server behind Ullage",
    "compact": "Shrink a session file to fit its context window",
    "completion": "Print the completion script of a shell",
    "config": "Show the settings in force and where each comes from",
    "context": "Show what fills the context window of a session",
    "count": "Count the tokens of files for one or several models",
    "dashboard": "Show the address of the dashboard, with a code to sign in",
    "doctor": "Check servers, databases and settings, and say how to fix them",
    "find": "Search for tools the way an agent does",
    "install": "Put Ullage in front of a program's MCP servers",
    "models": "List known models with window, tokenizer and price",
    "route": "Show which model a prompt would be sent to, and why",
    "run": "Answer a prompt with the model your policy chooses",
    "scan": "Count what your MCP servers cost, and what Ullage would save",
    "serve": "Run the MCP gateway on stdio or HTTP",
    "sql": "Query a database read-only, as an agent would",
    "status": "Show where Ullage is installed",
    "statusline": "Print one line for the status line of an agent program",
    "tools": "List tools and what their definitions cost in every request",
    "trust": "Review and approve project files and changed tool definitions",
    "uninstall": "Remove Ullage from a program and restore its servers",
    "usage": "Show what was spent and saved, in tokens and dollars",
}
"""Each verb with its help text. A verb is implemented by the module of the same name in this package."""
VERB_GROUPS = {
    "set up": ("scan", "install", "status", "uninstall", "trust", "completion"),
    "gateway": ("serve", "tools", "find", "call", "doctor", "config"),
    "tokens and context": ("count", "models", "context", "compact"),
    "models and databases": ("run", "route", "sql"),
    "reports": ("usage", "audit", "statusline", "dashboard"),
}
"""The verbs in the order in which `ullage --help` lists them."""
_DESCRIPTION = "\n".join(
    (
        "Reduce the tokens that LLM agents spend on tools, results, history and model\ncalls.",
        *(
            f"\n{title}:\n" + "\n".join(f"  {verb:<11} {VERBS[verb]}" for verb in verbs)
            for title, verbs in VERB_GROUPS.items()
        ),
    )
)
_THREADS = "OPENBLAS_NUM_THREADS"


class Verb(Protocol):
    """The interface of a verb's module."""

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None, *, session: StartSession | None = None) -> int:
    """Run a command line; return the exit status.

    Args:
        argv: The words after the program's name; None for those of this process.
        session: The connection of a client whose first requests are already answered, for `serve`.
    """
    if argv is None:
        use_one_thread()
    # Replace closed output streams (`>&-`), for which Python has None, with ones that discard everything.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a file's name may contain characters that no encoding can write
    with escaping_terminals(for_good=argv is None):
        return _run(argv, session)


def _run(argv: Sequence[str] | None, session: StartSession | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    verb = next((word for word in words if not word.startswith("-")), None)
    try:
        parser, of_verbs = _parsers(*([verb] if verb in VERBS else ()))
    except KeyboardInterrupt:  # importing a verb may take a second
        return 130
    if not words and not sys.stdout.isatty():
        parser.print_help(sys.stderr)
        return 2
    if words in ([], ["--json"]):
        return _run_verb(_show_overview, argparse.Namespace(json=bool(words)))
    parser.words = words
    before = words if verb is None else words[: words.index(verb)]
    misplaced = [word for word in before if word not in ("--json", "--version", "-h", "--help")]
    if misplaced:
        parser.error(f"unrecognized arguments: {' '.join(misplaced)}")
    if verb is not None and verb not in VERBS:
        from difflib import get_close_matches

        near = get_close_matches(verb, VERBS, n=1)
        error = InvalidArguments(
            f"unknown command `{verb}`",
            suggestion=f"did you mean `ullage {near[0]}`?" if near else "`ullage --help` lists all commands",
        )
        complain(error, as_json="--json" in words)
        sys.exit(2)
    if verb in of_verbs and all(word == "--json" for word in before):
        arguments = _parse_verb(of_verbs[verb], verb, words)
    else:
        arguments = parser.parse_args(words)
    arguments.start_session = session
    run: Callable[[argparse.Namespace], int] = arguments.run
    return _run_verb(run, arguments)


def _show_overview(arguments: argparse.Namespace) -> int:
    from .scan import show_overview

    return show_overview(as_json=arguments.json)


class CommandParser(argparse.ArgumentParser):
    """A parser that reports mistakes as every other error is reported, as JSON if the command line asks for it."""

    words: Sequence[str] = ()
    """The command line that is parsed."""

    def error(self, message: str) -> NoReturn:
        complain(self._explain(message), as_json="--json" in self.words)
        sys.exit(2)

    def _explain(self, message: str) -> InvalidArguments:
        """Return argparse's message in plain words, with what to write instead."""
        help_command = f"`{self.prog} --help` shows all options"
        kind, _, rest = message.partition(": ")
        if kind == "the following arguments are required":
            missing = [action for action in self._actions if not action.option_strings and action.required]
            hints = [f"{_shown_name(one)}: {one.help}" for one in missing if one.help]
            choices = tuple(str(choice) for one in missing for choice in one.choices or ())
            return InvalidArguments(
                f"`{self.prog}` needs {rest}", suggestion="\n".join([*hints, help_command]), options=choices
            )
        if kind == "unrecognized arguments":
            return self._explain_unknown(rest.split(" ")[0], help_command)
        if kind.startswith("argument "):
            name, (reason, _, detail) = kind.removeprefix("argument "), rest.partition(": ")
            value = detail.split(" (choose")[0].strip("'\"")
            action = next((one for one in self._actions if _shown_name(one) == name), None)
            choices = () if action is None else tuple(map(str, action.choices or ()))
            if reason == "invalid choice":
                hint = "choose one of the options below"
                return InvalidArguments(f"{name} cannot be `{value}`", suggestion=hint, options=choices)
            if reason.startswith("invalid "):
                kinds = {"invalid int value": "a whole number", "invalid seconds value": "seconds, 0 or more"}
                return InvalidArguments(
                    f"{name} cannot be `{value}`", suggestion=f"it takes {kinds.get(reason, 'a number')}"
                )
            if reason == "expected one argument":
                return InvalidArguments(f"{name} needs a value", suggestion=help_command, options=choices)
        return InvalidArguments(message, suggestion=help_command)

    def _explain_unknown(self, word: str, help_command: str) -> InvalidArguments:
        from difflib import get_close_matches

        if not word.startswith("-"):
            return InvalidArguments(f"`{self.prog}` takes no further argument: `{word}`", suggestion=help_command)
        option = word.split("=", maxsplit=1)[0]
        near = get_close_matches(option, self._option_string_actions, n=1)
        if near or self.prog != "ullage":
            hint = f"did you mean `{near[0]}`?" if near else help_command
        else:
            hint = "options go after the command; `ullage --help` lists all commands"
        return InvalidArguments(f"`{self.prog}` has no option `{option}`", suggestion=hint)


def _shown_name(action: argparse.Action) -> str:
    """Return an argument's name as argparse's messages have it."""
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def _parse_verb(parser: CommandParser, verb: str, words: list[str]) -> argparse.Namespace:
    """Parse a verb's arguments: options before, between or after the positional ones, and `--json` before the verb."""
    parser.words = words
    at = words.index(verb)
    arguments, unknown = parser.parse_known_intermixed_args([*words[:at], *words[at + 1 :]])
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return arguments


def use_one_thread() -> None:
    """Keep numpy from starting threads on import, which nothing here uses and which take half of the import's time. Set
    with `putenv`, not through `os.environ`, from which child processes get their environment."""
    if _THREADS not in os.environ:
        os.putenv(_THREADS, "1")


def parser_of(*verbs: str) -> argparse.ArgumentParser:
    """Return the parser of the whole command line. Only the named verbs are imported; the others are known by name."""
    return _parsers(*verbs)[0]


def verb_parser(verb: str) -> argparse.ArgumentParser:
    """Return the parser of one verb's arguments."""
    return _parsers(verb)[1][verb]


def _parsers(*verbs: str) -> tuple[CommandParser, dict[str, CommandParser]]:
    """Return the parser of the whole command line and those of its verbs."""
    parser = CommandParser(
        prog="ullage",
        usage="ullage [-h] [--version] COMMAND ...",
        description=_DESCRIPTION,
        epilog="`ullage COMMAND --help` shows the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"%(prog)s {__version__}", help="show the version and exit"
    )
    subparsers = parser.add_subparsers(prog="ullage", metavar="COMMAND", required=True, help=argparse.SUPPRESS)
    found = dict[str, CommandParser]()
    for name in VERBS:
        verb = _import_verb(f"ullage.cli.{name}") if name in verbs else None
        subparser = subparsers.add_parser(name, description=None if verb is None else verb.__doc__, allow_abbrev=False)
        found[name] = subparser
        if verb is not None:
            verb.arguments(subparser)
            subparser.set_defaults(run=verb.run)
    return parser, found


def _import_verb(module: str) -> Verb:
    """Import a verb's module without garbage collection. Imported objects are never freed, so collecting them would
    only delay the client, during the import and at every later collection."""
    if module not in sys.modules and gc.isenabled():
        gc.disable()
        try:
            importlib.import_module(module)
        finally:
            gc.enable()
        gc.freeze()
    return cast("Verb", importlib.import_module(module))


def _run_verb(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    try:
        code = run(arguments)
        sys.stdout.flush()  # so that a closed pipe cannot cause an error at exit
        return code  # noqa: TRY300
    except UllageError as error:
        return _report_error(error, arguments)
    except BaseExceptionGroup as group:
        error = _first(group)
        if error is None:
            raise
        return _report_error(error, arguments) if isinstance(error, UllageError) else 130
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard_output()  # the reader has closed the pipe: `ullage models | head`
        return 141
    except OSError as error:
        if error.errno == errno.ENOENT and not _has_working_folder():
            gone = Unavailable("the working folder does not exist any more", suggestion="change to another folder")
            return _report_error(gone, arguments)
        if error.errno != errno.ENOSPC:
            raise
        _discard_output()
        return _report_error(Unavailable(f"the output cannot be written: {error.strerror}"), arguments)


def _has_working_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _discard_output() -> None:
    """Redirect standard output to the null device, so that it does not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_error(error: UllageError, arguments: argparse.Namespace) -> int:
    session: StartSession | None = getattr(arguments, "start_session", None)
    if session is not None:
        session.refuse(error.wire(), is_input=isinstance(error, BadInput))
    complain(error, as_json=getattr(arguments, "json", False))
    return 2


def _first(group: BaseExceptionGroup[BaseException]) -> UllageError | KeyboardInterrupt | None:
    """Return the error to report, unwrapped from the groups in which concurrent tasks raised it."""
    for error in group.exceptions:
        found = (
            _first(cast("BaseExceptionGroup[BaseException]", error)) if isinstance(error, BaseExceptionGroup) else error
        )
        if isinstance(found, UllageError | KeyboardInterrupt):
            return found
    return None
