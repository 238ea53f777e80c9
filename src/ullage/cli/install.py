"""Put Ullage in front of a program's MCP servers.

Moves the program's servers, with their environment, filters and approval rules, to your own ullage.toml, and leaves
Ullage in their place. `ullage uninstall` takes it back.
"""

import argparse
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from ullage.app.gateway import Gateway
from ullage.app.installing import OWN_NAME, InstallPlan, plan_install
from ullage.clients.configs import PROGRAMS, ChangeRecord, ClientConfig, Remove, edit_content, read_bytes
from ullage.config import Places
from ullage.errors import BadConfiguration, InvalidArguments, UnsupportedModel
from ullage.gateway import definition_text
from ullage.models import shipped
from ullage.tool import Json

from .approving import can_be_asked
from .configured import examined, situation_of, with_gateway
from .installed_clients import changing_files, chosen_client, own_settings, ullage_command, undo_folder
from .output import bold, dim, emit, emit_json, green, plain, say, yellow
from .shown import tokens_of, weigh
from .wording import how_many

__all__ = ["arguments", "run"]

_LIST_WAIT = 30.0
"""Seconds for the program's own command to list its servers."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", metavar="CLIENT", help=", ".join(PROGRAMS))
    parser.add_argument("--dry-run", action="store_true", help="show what would be changed, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--no-start", action="store_true", help="do not start the servers to count their tools")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    places = Places.of_user()
    config = chosen_client(arguments.client)
    content, document = own_settings(places)
    command = (*ullage_command(), "serve", "--client", config.program.name)
    plan = plan_install(config, document, command, model=_known_model(config.model))
    _refuse_unread_rules(plan)
    if not arguments.json:
        _print_plan(config, plan, places)
    if arguments.dry_run:
        if arguments.json:
            emit_json(_plan_json(plan))
        return 0
    if not arguments.yes and not _is_agreed():
        return 1
    with changing_files():
        changes = _carry_out(plan, places, content)
    tokens = None if arguments.no_start else _count_tokens(plan)
    report: dict[str, Json] = {**_plan_json(plan), "tokens": tokens, "is_listed": _is_listed(plan)}
    for change in changes[1:]:
        undo_folder(places).adopt_rewrite(change)
    if arguments.json:
        emit_json(report)
    else:
        _print_result(plan, report)
    return 0


def _refuse_unread_rules(plan: InstallPlan) -> None:
    """Refuse where Gemini CLI has policy files: their deny and ask rules are not read, and would be lost."""
    policies = Path(plan.file.path).parent / "policies"
    if plan.program.name == "gemini" and any(policies.glob("*.toml")):
        raise InvalidArguments(
            f"the rules in `{policies}` are not read yet, and moving the servers would lose them",
            suggestion="put the rules into `excludeTools` of Gemini CLI's settings.json and move the policy files away",
        )


def _known_model(model: str | None) -> str | None:
    with suppress(UnsupportedModel):
        return None if model is None else (shipped().find(model) and model)
    return None


def _is_agreed() -> bool:
    if not can_be_asked():
        raise InvalidArguments("nobody can be asked here", suggestion="add --yes, or --dry-run to only look")
    say("Change these files? [y/N]")
    return input().strip().lower() in ("y", "yes")


def _carry_out(plan: InstallPlan, places: Places, own: bytes | None) -> list[ChangeRecord]:
    """Changes the user's own file first, then the program's; where one fails, all are as they were."""
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
        changes.append(
            ChangeRecord(
                program=plan.program.name,
                file=path,
                format=kind,
                before=before,
                after=edit_content(before, kind, edits),
                removed=tuple(edit.path for edit in edits if isinstance(edit, Remove)),
                added=(plan.entry_path,) if path == plan.file.path else (),
            )
        )
    done = list[tuple[ChangeRecord, bytes | None]]()
    try:
        for change in changes:
            done.append((change, undo.change(change)))
            if change is changes[0]:
                # It may hold the servers' secrets now.
                places.user_file.chmod(0o600)
                _check_own_file(places)
    except BaseException:
        for change, earlier in reversed(done):
            undo.roll_back(change, earlier)
        raise
    return changes


def _check_own_file(places: Places) -> None:
    """Refuses to go on where the user's file cannot be used as it is now."""
    loaded = examined(_serve_arguments(None))
    mine = [issue for issue in loaded.errors if issue.file == str(places.user_file)]
    if mine:
        raise BadConfiguration("; ".join(issue.sentence() for issue in mine), suggestion="nothing was changed")


def _serve_arguments(client: str | None) -> argparse.Namespace:
    """The flags with which the program starts `ullage serve`."""
    return argparse.Namespace(config=None, include=[], store=None, client=client)


def _count_tokens(plan: InstallPlan) -> dict[str, Json] | None:
    """Starts the moved servers once, and counts what a request carries without Ullage and with it."""
    given = _serve_arguments(plan.program.name)
    loaded = examined(given)
    if loaded.errors:
        return None
    names = loaded.settings.servers_of(plan.program.name) or frozenset()

    async def look(gateway: Gateway) -> dict[str, Json]:
        view = await gateway.view(60.0)
        find = gateway.find(plan.program.name)
        listed = (await find.tools()).tools
        return {
            "before": sum(tokens_of(entry) for entry in view.entries if entry.server in names),
            "after": sum(weigh(definition_text(tool)) for tool in listed) + weigh(find.instructions(view)),
            "not_counted": list[Json](one.server for one in view.missing if one.server in names),
        }

    return with_gateway(loaded, look, situation=situation_of(given))


def _is_listed(plan: InstallPlan) -> bool | None:
    """Whether the program's own command lists Ullage now; None where it has none that can be run."""
    words = plan.program.list_command
    if words is None or shutil.which(words[0]) is None:
        return None
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_LIST_WAIT, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    # Gemini CLI writes its list to standard error.
    return OWN_NAME in done.stdout + done.stderr if done.returncode == 0 else None


def _print_plan(config: ClientConfig, plan: InstallPlan, places: Places) -> None:
    emit(f"{bold(plan.program.title)}  {plain(plan.file.path)}")
    for one in plan.moved:
        renamed = "" if one.name == one.entry.name else f" as {one.name}"
        known = " (the same server is there already)" if one.is_known else ""
        emit(f"  {green('move')}  {plain(one.entry.name)}{renamed} to {plain(str(places.user_file))}{known}")
    for one in plan.staying:
        emit(f"  {yellow('stay')}  {plain(one.entry.name)}: {plain(one.reason)}")
    for problem in config.problems:
        emit(f"  {yellow('problem')}  {plain(problem.file)}: {plain(problem.message)}")
    emit(f"  {green('add')}   {OWN_NAME}, with the group [groups.{plan.program.name}]")


def _print_result(plan: InstallPlan, report: Mapping[str, Json]) -> None:
    emit()
    emit(f"{how_many(len(plan.moved), 'server')} moved. Take it back with: ullage uninstall {plan.program.name}")
    tokens = report.get("tokens")
    if isinstance(tokens, dict):
        before, after = bold(f"{tokens['before']:,}"), bold(f"{tokens['after']:,}")
        emit(f"{before} tokens of definitions in every request before, {after} now (o200k_base).")
        for name in cast("list[str]", tokens["not_counted"]):
            say(f"ullage: `{name}` did not start and is not counted; run: ullage doctor {name}")
    if report["is_listed"] is False:
        words = " ".join(plan.program.list_command or ())
        say(f"ullage: `{words}` does not list it; restart the program and look again")
    emit(dim(f"Restart {plan.program.title} for the change to take effect."))


def _plan_json(plan: InstallPlan) -> dict[str, Json]:
    return {
        "client": plan.program.name,
        "file": plan.file.path,
        "moved": [{"server": one.entry.name, "as": one.name, "known": one.is_known} for one in plan.moved],
        "staying": [{"server": one.entry.name, "reason": one.reason} for one in plan.staying],
    }
