"""Put Ullage in front of a program's MCP servers.

Moves the program's servers, with their environment, filters and approval rules, to your own ullage.toml, and leaves
Ullage in their place. `ullage uninstall` undoes this.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from ullage.app.build_gateway import Gateway
from ullage.app.install_plan import (
    OWN_NAME,
    InstallPlan,
    MovedScope,
    ServeFlags,
    plan_install,
    serve_flags,
    ullage_entry,
)
from ullage.app.scan_servers import ClientScan, approval_of, servers_behind, usable_model
from ullage.clients.configs import (
    PROGRAMS,
    ChangeRecord,
    ClientConfig,
    EditRefused,
    FileChanged,
    Put,
    Remove,
    edit_content,
    parse_config,
    read_bytes,
    value_at,
)
from ullage.config import Places
from ullage.errors import BadConfiguration, InvalidArguments
from ullage.processes import find_executable
from ullage.tool import Json

from ..app.install_plan import changing_files, chosen_client, own_settings, ullage_command, undo_folder
from .load_settings import can_be_asked, examine_settings, situation_of, with_gateway
from .output import (
    bold,
    cut,
    dim,
    emit,
    emit_json,
    emit_wrapped,
    green,
    how_many,
    plain,
    say,
    screen,
    short_path,
    yellow,
)
from .scan import plan_for, review_command, scan_clients, short_reason

__all__ = ["arguments", "run"]

_LIST_WAIT = 30.0
"""Seconds allowed to the program's own command for listing its servers."""
_START_WAIT = 20.0
"""Seconds allowed to all servers for starting."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", metavar="CLIENT", help=", ".join(PROGRAMS))
    parser.add_argument("--dry-run", action="store_true", help="show what would be changed, and change nothing")
    parser.add_argument(
        "--scope",
        choices=get_args(MovedScope),
        default="user",
        help="which servers to move: yours for all folders (default), those of this folder's project, or both; "
        "project servers stay limited to the folder",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--no-start", action="store_true", help="do not start the servers to count their tools")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    places = Places.of_user()
    planned = _plan(arguments, places, ())
    config = planned.config
    _refuse_useless(config, planned.plan)
    scan, sign_ins = None, list[str]()
    if not arguments.no_start:
        scan = next(iter(scan_clients(plan_for(config.program.name), _START_WAIT)), None)
    if scan is not None:
        sign_ins = [one.name for one in scan.servers if one.state == "sign-in" and not one.is_behind]
        planned = replace(planned, plan=planned.plan_with(sign_ins))
    tokens = None if scan is None else _tokens_json(scan)
    is_done = _is_already_done(config, planned.plan, planned.own)
    if not arguments.json:
        _print_plan(config, planned.plan, places, scan, is_done=is_done)
    if arguments.dry_run or is_done:
        report: dict[str, Json] = {**_plan_json(planned.plan), "tokens": tokens}
        _print_unchanged(planned.plan, report, is_done=is_done, as_json=arguments.json)
        return 0
    if not (arguments.yes or _is_agreed()):
        return 1
    now, changes = _carry_out_in_turn(arguments, places, planned, sign_ins)
    if scan is not None:
        _warm_start_cache(now)
    report = {**_plan_json(now), "tokens": tokens, "is_listed": _is_listed(now)}
    for change in changes[1:]:
        undo_folder(places).adopt_rewrite(change)
    if arguments.json:
        emit_json(report)
    else:
        _print_result(now, report)
    return 0


def _carry_out_in_turn(
    arguments: argparse.Namespace, places: Places, agreed: "_Planned", sign_ins: Iterable[str]
) -> tuple[InstallPlan, list[ChangeRecord]]:
    """Plan again on the files as the last installation has left them, and carry it out.

    Raises:
        Unavailable: Servers would be moved that the plan before did not name, or nothing could be written.
    """
    with changing_files(), undo_folder(places).hold_turn():
        now = _plan(arguments, places, sign_ins)
        known = [one.entry for one in agreed.plan.moved]
        if any(one.entry not in known for one in now.plan.moved):
            title = now.config.program.title
            raise FileChanged(f"the servers of {title} were changed by another program meanwhile")
        return now.plan, _carry_out(now.plan, places, now.content, now.config)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A plan, with the files as they were read for it."""

    config: ClientConfig
    content: bytes | None = field(repr=False)
    """The user's own file."""
    own: Mapping[str, object] = field(repr=False)
    """The same, parsed."""
    plan_with: Callable[[Iterable[str]], InstallPlan] = field(repr=False)
    """Plans anew where these servers were found to require a sign-in."""
    plan: InstallPlan


def _plan(arguments: argparse.Namespace, places: Places, sign_ins: Iterable[str]) -> _Planned:
    """Read the files as they are now, and plan what to change."""
    config = chosen_client(arguments.client)
    content, document = own_settings(places)
    behind = servers_behind(config, places, os.environ, Path.cwd())
    command = (*ullage_command(), "serve", *_kept_flags(config), "--client", config.program.name)

    def plan_with(sign_ins: Iterable[str]) -> InstallPlan:
        return plan_install(
            config,
            document,
            command,
            model=usable_model(config.users_model),
            scope=arguments.scope,
            is_approved=approval_of(config, places),
            behind=[server.name for server in behind or ()],
            needs_sign_in=sign_ins,
            environment=os.environ,
        )

    return _Planned(config, content, document, plan_with, plan_with(sign_ins))


def _print_unchanged(plan: InstallPlan, report: dict[str, Json], *, is_done: bool, as_json: bool) -> None:
    """Print the end of a run that changes nothing."""
    if as_json:
        emit_json(report)
    elif not is_done:
        emit(f"\nNothing was changed. Next: ullage install {plan.program.name}")


def _is_already_done(config: ClientConfig, plan: InstallPlan, own: object) -> bool:
    """Return whether Ullage is installed and every value that the plan would write is there already.

    Args:
        config: The program.
        plan: What an installation would do.
        own: The parsed content of the user's own file.
    """
    if plan.moved or ullage_entry(config) is None:
        return False
    edits = [(own, edit) for edit in plan.own_edits]
    edits += [(config.documents.get(path), edit) for path, some in plan.file_edits.items() for edit in some]
    return all(isinstance(edit, Put) and value_at(found, edit.path) == edit.value for found, edit in edits)


def _kept_flags(config: ClientConfig) -> tuple[str, ...]:
    """Return the flags of an existing entry of Ullage that name servers.

    Raises:
        InvalidArguments: The entry reads another settings file, which an installation does not change.
    """
    present = ullage_entry(config)
    flags = ServeFlags() if present is None else serve_flags(present)
    if flags.config is not None:
        raise InvalidArguments(
            f"{config.program.title} starts Ullage with `--config {flags.config}`, and an installation uses your own "
            "ullage.toml",
            suggestion=f"remove that entry from `{'' if present is None else present.file}` first",
        )
    return flags.words()


def _refuse_useless(config: ClientConfig, plan: InstallPlan) -> None:
    """Refuse if a file of rules cannot be read, because its restrictions would be lost, or if the program's rules leave
    Ullage out, because its servers would be."""
    if plan.shut_out is not None:
        raise InvalidArguments(
            f"{config.program.title} would not let Ullage serve: {plan.shut_out}",
            suggestion="nothing was changed; admit `ullage` there first",
        )
    for problem in config.problems:
        if Path(problem.file).parent.name == "policies":
            raise InvalidArguments(
                f"`{problem.file}` {problem.message}, and moving the servers would lose its rules",
                suggestion="fix the file first",
            )


def _is_agreed() -> bool:
    if not can_be_asked():
        raise InvalidArguments(
            "this is not a terminal, so no one can confirm", suggestion="add --yes, or --dry-run to only look"
        )
    print("Change these files? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _carry_out(plan: InstallPlan, places: Places, own: bytes | None, config: ClientConfig) -> list[ChangeRecord]:
    """Change the user's own file first, then the program's. If one fails, all are restored.

    Raises:
        FileChanged: A place has changed since the plan was made. Nothing was written.
    """
    undo = undo_folder(places)
    changes = [
        ChangeRecord(
            program=plan.program.name,
            file=str(places.user_file),
            format="toml",
            before=own,
            after=edit_content(own, "toml", plan.own_edits),
            added=plan.added_to_own(),
        )
    ]
    for path, edits in plan.file_edits.items():
        before, kind = read_bytes(path), plan.formats[path].format
        # The places must have the content that the plan was made for.
        file = plan.formats[path]
        planned = config.documents.get(path)
        try:
            now = parse_config(before or b"", file)
        except ValueError as error:
            raise EditRefused(f"`{file.path}` {error}") from error
        if any(value_at(now, edit.path) != value_at(planned, edit.path) for edit in edits):
            raise FileChanged(f"`{file.path}` was changed by another program meanwhile")
        try:
            after = edit_content(before, kind, edits)
        except EditRefused as error:
            raise EditRefused(f"`{file.path}` cannot be edited: {error}") from error
        changes.append(
            ChangeRecord(
                program=plan.program.name,
                file=path,
                format=kind,
                before=before,
                after=after,
                removed=tuple(edit.path for edit in edits if isinstance(edit, Remove)),
                added=tuple(edit.path for edit in edits if isinstance(edit, Put)),
            )
        )
    done = list[tuple[ChangeRecord, bytes | None]]()
    try:
        for change in changes:
            done.append((change, undo.change(change)))
            if change is changes[0]:
                # The file may contain the servers' secrets now.
                places.user_file.chmod(0o600)
                _check_own_file(places)
    except BaseException:
        for change, earlier in reversed(done):
            undo.roll_back(change, earlier)
        raise
    return changes


def _check_own_file(places: Places) -> None:
    """Refuse to continue if the user's file cannot be used as it is now."""
    loaded = examine_settings(_serve_arguments(None))
    mine = [issue for issue in loaded.errors if issue.file == str(places.user_file)]
    if mine:
        raise BadConfiguration("; ".join(issue.sentence() for issue in mine), suggestion="nothing was changed")


def _serve_arguments(client: str | None) -> argparse.Namespace:
    """Return the flags with which the program starts `ullage serve`."""
    return argparse.Namespace(config=None, include=[], store=None, client=client)


def _warm_start_cache(plan: InstallPlan) -> None:
    """Write the first answers to the program to the start cache; the servers' tools are already known."""
    given = _serve_arguments(plan.program.name)
    loaded = examine_settings(given)
    if loaded.errors:
        return

    async def look(gateway: Gateway) -> None:
        await gateway.find(plan.program.name).tools()

    with_gateway(loaded, look, situation=situation_of(given), is_quiet=True)


def _is_listed(plan: InstallPlan) -> bool | None:
    """Return whether the program's own command lists Ullage now; None if it has no command that can be run."""
    words = plan.program.list_command
    program = None if words is None else find_executable(words[0])
    if words is None or program is None:
        return None
    try:
        # Not in the working folder: some of these commands start the servers of a project's file to see whether they
        # answer, without asking.
        done = subprocess.run(
            [program, *words[1:]],
            capture_output=True,
            text=True,
            timeout=_LIST_WAIT,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=Path.home(),
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    # Gemini CLI writes its list to standard error.
    return OWN_NAME in done.stdout + done.stderr if done.returncode == 0 else None


def _print_plan(
    config: ClientConfig, plan: InstallPlan, places: Places, scan: ClientScan | None, *, is_done: bool
) -> None:
    servers = () if scan is None else scan.servers
    counted = {one.name: one for one in servers if one.state == "counted"}
    emit(f"{bold(plan.program.title)}  {short_path(plan.file.path)}")
    for one in plan.moved:
        renamed = "" if one.name == one.entry.name else f" as {one.name}"
        known = "; the same server is there already" if one.is_known else ""
        found = counted.get(one.entry.name)
        cost = "" if found is None else dim(f"  {how_many(len(found.tools), 'tool')}, {found.tokens:,} tokens")
        limit = "" if one.entry.folder is None else f", in {short_path(one.entry.folder)} only"
        emit(f"  {green('move')}  {plain(one.entry.name)}{renamed}{limit}{known}{cost}")
    for one in plan.staying:
        emit(f"  {yellow('stay')}  {plain(one.entry.name)}: {plain(one.reason)}")
        if one.kind == "pending":
            emit(f"        review it: {review_command(one.entry.file)}")
    for problem in config.problems:
        emit_wrapped(f"  {yellow('problem')}  {short_path(problem.file)} {plain(problem.message)}")
    if is_done:
        emit("  Ullage is already installed here, and there is nothing to move.")
        return
    emit(f"  {green('add')}   {plan.entry_path[-1]}, with the servers in {short_path(str(places.user_file))}")
    for one in servers:
        if one.state in ("failed", "late") and any(moved.entry.name == one.name for moved in plan.moved):
            said = f"{plain(one.name)} is moved, but did not start: {short_reason(one)}"
            emit(f"  {yellow('note')}  {cut(said, max(screen() - 8, 40))}")
    if scan is not None and scan.now is not None and scan.with_ullage is not None:
        more = scan.with_ullage - scan.now
        added = f": {more:,} more" if more > 0 else ""
        emit(
            f"  {bold(f'{scan.now:,}')} tokens in every request now, {bold(f'{scan.with_ullage:,}')} with Ullage{added}"
        )


def _print_result(plan: InstallPlan, report: Mapping[str, Json]) -> None:
    emit()
    emit(f"{how_many(len(plan.moved), 'server')} moved. Undo it with: ullage uninstall {plan.program.name}")
    if report["is_listed"] is True:
        emit(f"Checked: `{' '.join(plan.program.list_command or ())}` lists Ullage.")
    if report["is_listed"] is False:
        words = " ".join(plan.program.list_command or ())
        say(f"ullage: `{words}` does not list Ullage yet; restart the program and check again")
    emit(dim(f"Restart {plan.program.title} for the change to take effect."))


def _tokens_json(scan: ClientScan) -> dict[str, Json]:
    return {
        "before": scan.now,
        "after": scan.with_ullage,
        "model": scan.model,
        "not_counted": list[Json](one.name for one in scan.unknown),
    }


def _plan_json(plan: InstallPlan) -> dict[str, Json]:
    return {
        "client": plan.program.name,
        "file": plan.file.path,
        "moved": [
            {"server": one.entry.name, "as": one.name, "known": one.is_known, "folder": one.entry.folder}
            for one in plan.moved
        ],
        "staying": [
            {"server": one.entry.name, "reason": one.reason, "kind": one.kind, "file": one.entry.file}
            for one in plan.staying
        ],
    }
